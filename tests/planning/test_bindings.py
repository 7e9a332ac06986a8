"""Bindings that a plan writes to the store, and those that it removes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.canonical import canonical_spec, collect_applied, digests
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.snapshot import Binding, Live
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import at, declare, live, make_plan, record, snapshot

BOT = live("BotUser", "bot_1", {"name": "b", "active": True})


def bind(address: str = "BotUser/b", name: str = "b", **more: Any) -> Binding:
    kind = kinds.get("BotUser")
    return Binding("bot_1", digests(collect_applied(kind, canonical_spec(kind, {"name": name})), address), **more)


def find_bindings(
    declared: Declaration | None, bindings: Mapping[str, Binding], *live_objects: Live, **options: Any
) -> dict[str, Binding | None]:
    plan = make_plan(
        *([declared] if declared is not None else []),
        seen=snapshot(*live_objects, bindings=bindings),
        options=PlanOptions(**options),
    )
    return {str(address): binding for address, binding in plan.bindings.items()}


PRESENT = declare("BotUser/b", {"name": "b"})
REPLACED = live("BotUser", "bot_0", {"name": "a", "active": True})
FORGOTTEN, ABSENT = (replace(PRESENT, ensure=ensure) for ensure in (Ensure.FORGOTTEN, Ensure.ABSENT))


@pytest.mark.parametrize(
    ("declared", "bindings", "live_objects", "updates"),
    [
        (PRESENT, {"BotUser/b": bind()}, [BOT], {}),
        (PRESENT, {"BotUser/b": bind(name="old")}, [BOT], {"BotUser/b": bind()}),
        (PRESENT, {"BotUser/b": bind(protect=True)}, [BOT], {"BotUser/b": bind()}),
        (PRESENT, {"BotUser/b": bind(replaces="bot_0")}, [BOT], {"BotUser/b": bind()}),
        (
            PRESENT,
            {"BotUser/b": bind(replaces="bot_0")},
            [BOT, REPLACED],
            {"BotUser/b": bind(replaces="bot_0")},
        ),
        (
            declare("BotUser/b", {"name": "c"}),
            {"BotUser/b": bind(replaces="bot_0")},
            [BOT, REPLACED],
            {"BotUser/b": bind(replaces="bot_0")},
        ),
        # A field differs: the call writes the binding.
        (declare("BotUser/b", {"name": "c"}), {"BotUser/b": bind()}, [BOT], {}),
        (PRESENT, {"BotUser/b": bind()}, [], {}),
        (
            replace(PRESENT, moved=(at("BotUser/old"),)),
            {"BotUser/old": bind("BotUser/old")},
            [BOT],
            {"BotUser/b": bind(), "BotUser/old": None},
        ),
        (FORGOTTEN, {"BotUser/b": bind()}, [BOT], {"BotUser/b": None}),
        (
            FORGOTTEN,
            {"BotUser/b": bind(), "BotUser/old": bind("BotUser/old")},
            [BOT],
            {"BotUser/b": None, "BotUser/old": None},
        ),
        (FORGOTTEN, {"BotUser/b": bind()}, [], {"BotUser/b": None}),
        (ABSENT, {"BotUser/b": bind()}, [BOT], {}),  # the delete removes it
        (ABSENT, {"BotUser/b": bind()}, [], {"BotUser/b": None}),
        (None, {"BotUser/b": bind()}, [BOT], {}),
        (None, {"BotUser/b": bind()}, [], {"BotUser/b": None}),
        # Another object has the id now: an owner record takes precedence over a binding.
        (None, {"TLSEdge/e": Binding("e")}, [live("TLSEdge", "e", owner=record("TLSEdge/e", {}))], {}),
        (None, {"TLSEdge/e": Binding("e")}, [live("TLSEdge", "e", owner=record("TLSEdge/f", {}))], {"TLSEdge/e": None}),
        (
            None,
            {"TLSEdge/e": Binding("e")},
            [live("TLSEdge", "e", owner=record("TLSEdge/e", {}, stack="other"))],
            {"TLSEdge/e": None},
        ),
        (None, {"TLSEdge/e": Binding("e")}, [live("TLSEdge", "e")], {}),
        (None, {"TLSEdge/e": Binding("e")}, [], {}),
        (declare("TLSEdge/e"), {"TLSEdge/e": Binding("e")}, [live("TLSEdge", "e", owner=record("TLSEdge/f", {}))], {}),
    ],
)
def test_a_plan_writes_and_deletes_the_bindings_of_its_declarations(
    declared: Declaration | None,
    bindings: dict[str, Binding],
    live_objects: list[Live],
    updates: dict[str, Binding | None],
) -> None:
    assert find_bindings(declared, bindings, *live_objects) == updates
    excluded = (*bindings, "BotUser/b")
    assert find_bindings(declared, bindings, *live_objects, excludes=excluded) == {}
    assert find_bindings(declared, bindings, *live_objects, targets=("IPPolicy/*",)) == {}
