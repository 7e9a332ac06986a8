"""Each event of an apply as a line of text, and as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

import jsonschema
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.event import Ended, Event, HealthChanged, Outcome, Retried, Started, Waited
from reconciler.model.health import Actor, Health, HealthRow, State, Wait
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Call, Verb
from reconciler.rendering.wire.events import event_schema, format_json, format_line
from tests.rendering.test_text import compare

CALL = Call("create IPPolicy/office", Address("IPPolicy", "office"), Verb.CREATE, "/ip_policies")
TOLD = replace(CALL, deliver={"token": Delivery("to_file", "secrets/a"), "key": Delivery("to_vault", "kv/b")})
UPDATE = Call("update ipp_1", Address("IPPolicy", "office"), Verb.UPDATE, "/ip_policies/ipp_1")
EVENTS: tuple[Event, ...] = (
    Started(CALL, 1.5),
    Retried(CALL, 2, 0.25, "status 503 ##[error]"),
    Retried(CALL, 3, 10.0, "a\x1bb"),
    Waited(1.25),
    *(Ended(CALL, outcome, 2.5, "ipp_1") for outcome in Outcome),
    *(Ended(CALL, outcome, 2.5, None, "because") for outcome in Outcome),
    Ended(CALL, Outcome.DONE, 2.5),
    Ended(CALL, Outcome.DONE, 2.5, "ipp_1\x1b"),
    Ended(TOLD, Outcome.DONE, 2.5, "ipp_1"),
    Ended(TOLD, Outcome.FAILED, 2.5, why="no\nspace"),
    Ended(UPDATE, Outcome.DONE, 2.5, "ipp_1"),
    Ended(UPDATE, Outcome.FAILED, 2.5, "ipp_1", "denied", denied=True),
)
HEALTHS = (
    HealthChanged(HealthRow("TLSEdge/a", "e_1", Health(State.HEALTHY)), Wait.READY),
    HealthChanged(
        HealthRow("", "e_2", Health(State.DEGRADED, "it ##[x]", "do", Actor.YOU, due=1.5, retries_at=2.5)), Wait.FAILED
    ),
)


def test_each_event_is_a_line() -> None:
    def list_lines() -> Iterator[str]:
        for event in EVENTS:
            yield f"{format_line(event)!r}\n  {format_json(event)}"
        for health in HEALTHS:
            yield f"  {format_json(health)}"

    compare("events.txt", "".join(list_lines()))


def test_each_line_matches_the_schema_and_nothing_else_does() -> None:
    schema = event_schema()
    compare("events-schema.txt", json.dumps(schema, indent=1) + "\n")
    validator = jsonschema.Draft202012Validator(schema)
    for event in (*EVENTS, *HEALTHS):
        written = json.loads(format_json(event))
        validator.validate(written)
        assert not validator.is_valid({**written, "more": 1})
        assert not any(validator.is_valid({k: v for k, v in written.items() if k != name}) for name in written)
