"""A create that takes effect long after its response was lost: during a retry, or after the process ended."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from reconciler import kinds
from reconciler.engine.observe import observe
from reconciler.engine.ports import Check, Lost, Refused, Transient
from reconciler.engine.recovery import settle
from reconciler.model import owner_record as owners
from reconciler.model.change import Reason
from reconciler.model.event import Ended, Outcome
from reconciler.model.manifest import Declaration
from reconciler.model.plan import Call, Plan
from reconciler.model.value import Json
from reconciler.planning.planner import plan
from tests.harness.builders import KINDS, LENIENT, declare, errors, manifest, requests
from tests.harness.engine import Crash, EngineHarness, Fault, MemoryPlatform, VirtualClock
from tests.harness.tiers import only_if

EDGE = declare("TLSEdge/payments")
CREDENTIAL = declare("TunnelCredential/agent")
BOT = declare("BotUser/berlin", {"name": "berlin"})


def each_declaration(*declared: Declaration) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("declared", declared, ids=lambda declaration: declaration.address.kind)


@dataclass
class SlowPlatform(MemoryPlatform):
    """Its gateway times out the first creates after a minute; the server applies each `later` seconds after that."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    later: list[float] = field(default_factory=list)
    answers_after: float = 0.0  # seconds that every other create takes
    under_way: list[asyncio.Future[None]] = field(default_factory=list)

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        if method == "POST" and self.later:
            self.log.append((method, path))
            late = self._late(60 + self.later.pop(0), path, copy.deepcopy(dict(body or {})))
            self.under_way.append(asyncio.ensure_future(late))
            await self.clock.sleep(60)
            raise Lost("gateway timeout", status=504)
        if method == "POST":
            await self.clock.sleep(self.answers_after)
        return await super().send(method, path, body, check=check)

    async def _late(self, after: float, path: str, body: dict[str, Json]) -> None:
        await self.clock.sleep(after)
        if self.second("POST", path, body) is None:
            self._create(path, body)

    def _create(self, path: str, body: dict[str, Json]) -> Json:
        return super()._create(path, {"created_at": f"2026-01-01T00:{self.clock.time / 60:05.2f}", **body})

    def second(self, method: str, path: str, body: Mapping[str, Json] | None) -> Refused | None:
        names = [body.get("name") for body in self.all(path)] if method == "POST" and path == "/bot_users" else []
        return Refused("there is one of that name", status=400) if body and body.get("name") in names else None


def slow(*later: float, answers_after: float = 0.0) -> EngineHarness:
    platform = SlowPlatform(KINDS, later=list(later), answers_after=answers_after)
    platform.refuse = platform.second
    return EngineHarness(platform, clock=platform.clock)


async def plan_again(world: EngineHarness, declared: Declaration) -> Plan:
    """Recovers what an earlier run left open, and plans."""
    snapshot = await observe(world.platform, KINDS)
    bound = await settle(tuple(world.journal.open.values()), snapshot, KINDS, world.journal)
    new_plan = plan(manifest(declared), world.journal.beside(snapshot, bound), KINDS, LENIENT)
    assert errors(new_plan) == []
    return new_plan


async def apply_declared(world: EngineHarness, declared: Declaration, dies_at: int | None = None) -> list[Ended] | None:
    """One run as of the command; None if it crashed at that checkpoint."""
    moments = itertools.count()

    def reach(point: str, call: Call) -> None:
        if next(moments) == dies_at:
            raise Crash

    try:
        events = await world.apply(await plan_again(world, declared), on_checkpoint=reach)
    except Crash:
        return None
    return [event for event in events if isinstance(event, Ended)]


def list_objects(world: EngineHarness, declared: Declaration) -> list[dict[str, Any]]:
    return world.platform.all(kinds.get(declared.address.kind).path)


def is_complete(world: EngineHarness, declared: Declaration) -> bool:
    """Whether exactly one object exists, with its token delivered, or its binding."""
    (body,) = list_objects(world, declared)
    if declared is BOT:
        return world.journal.bindings[BOT.address].id == body["id"]
    return declared is EDGE or world.sinks.delivered == {"secrets/agent": f"{body['id']}_secret"}


@each_declaration(EDGE, CREDENTIAL)
async def test_a_late_duplicate_of_a_repeated_create_is_deleted(declared: Declaration) -> None:
    world = slow(5.0)
    ended = await apply_declared(world, declared)
    assert [event.outcome for event in ended or ()][:1] == [Outcome.DONE]
    assert world.journal.open == {}
    assert is_complete(world, declared)
    await world.clock.sleep(30)
    kept, late = (body["id"] for body in list_objects(world, declared))
    assert world.journal.concluded == {"intent-000-00001": None, "intent-000-00002": kept}
    new_plan = await plan_again(world, declared)
    assert requests(new_plan) == [f"DELETE {kinds.get(declared.address.kind).path}/{late}"]
    assert [change.reason for change in new_plan.changes] == [
        Reason.DUPLICATE
    ]  # so the refresh at the end of an apply deletes it, too
    await apply_declared(world, declared)
    assert is_complete(world, declared)
    assert (await plan_again(world, declared)).calls == ()


@each_declaration(EDGE, CREDENTIAL)
async def test_a_late_create_that_appears_during_the_retry_is_recovered_at_once(declared: Declaration) -> None:
    """The first is kept, as planning does with duplicates; of credentials, the one with a token in its response."""
    world = slow(5.0, answers_after=10.0)
    ended = await apply_declared(world, declared)
    first = declared is EDGE
    assert [event.outcome for event in ended or ()][:1] == [Outcome.ALREADY if first else Outcome.DONE]
    (body,) = list_objects(world, declared)
    record = owners.read(body["metadata"])[1]
    assert record is not None
    assert record.intent == ("intent-000-00001" if first else "intent-000-00002")
    assert world.journal.concluded[record.intent] == body["id"]
    assert list(world.journal.concluded.values()).count(None) == 1
    assert is_complete(world, declared)
    assert (await plan_again(world, declared)).calls == ()


async def test_the_object_of_any_of_several_lost_creates_is_found() -> None:
    """The second is lost as well, after the first took effect."""
    world = slow(30.0, 30.0)
    ended = await apply_declared(world, EDGE)
    assert [(event.outcome, event.id) for event in ended or ()] == [(Outcome.ALREADY, "edgtls_0001")]
    assert world.journal.concluded == {"intent-000-00001": "edgtls_0001", "intent-000-00002": None}
    await world.clock.sleep(60)
    assert len(list_objects(world, EDGE)) == 2
    await apply_declared(world, EDGE)
    assert [body["id"] for body in list_objects(world, EDGE)] == ["edgtls_0001"]


async def test_a_retry_after_a_rejected_create_uses_the_same_intent() -> None:
    world = slow()
    world.platform.refuse = None
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("busy", status=429), times=3)]
    await apply_declared(world, EDGE)
    assert list(world.journal.concluded.values()) == ["edgtls_0001"]


@each_declaration(EDGE, CREDENTIAL, BOT)
@pytest.mark.parametrize(
    "later", only_if(lambda later: later != [0.5], [[5.0], [30.0, 30.0], [0.5], [200.0, 5.0]]), ids=str
)
@pytest.mark.parametrize("answers_after", [0.0, 10.0])
@pytest.mark.parametrize("waits", only_if(lambda waits: not waits, [False, True]), ids=["at once", "after all of it"])
async def test_reruns_recover_a_late_create_after_a_crash_at_each_checkpoint(
    declared: Declaration, later: list[float], answers_after: float, waits: bool
) -> None:
    for moment in itertools.count():
        world = slow(*later, answers_after=answers_after)
        died = await apply_declared(world, declared, moment) is None
        await world.clock.sleep(300 if waits else 0)
        await apply_declared(world, declared)
        await world.clock.sleep(300)
        await apply_declared(world, declared)
        assert is_complete(world, declared), moment
        assert world.journal.open == {}
        assert (await plan_again(world, declared)).calls == ()
        if not died:
            assert moment > 8
            return
