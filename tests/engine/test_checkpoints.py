"""After a crash at any checkpoint, the next run has all that it needs.

The next run is simplified here: settle open intents, read owner records, create missing objects.
"""

from __future__ import annotations

import pytest

from reconciler import kinds
from reconciler.engine.apply import POINTS
from reconciler.engine.observe import observe
from reconciler.engine.ports import Lost
from reconciler.engine.recovery import settle
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Call, Plan
from tests.harness.engine import Crash, EngineHarness, Fault, MemoryPlatform, create, delete

EDGE = create("TLSEdge/payments", "/edges/tls")
BOT = create("BotUser/berlin", "/bot_users", {"name": "berlin"})
TUNNEL = create("AgentTunnel/orders", "/api/tunnels", {"name": "orders"})
ENDPOINT = create("AgentEndpoint/shop", "/api/endpoints", {"name": "shop", "metadata": "m"})
CREDENTIAL = create(
    "TunnelCredential/agent", "/credentials", pending=True, deliver={"token": Delivery("to_file", "agent.token")}
)


def fresh(*faults: Fault) -> EngineHarness:
    world = EngineHarness(MemoryPlatform(kinds.list_planned()))
    world.platform.faults = list(faults)
    return world


def lossy() -> list[Fault]:
    return [Fault("POST", "/", Lost("reset"), effect=True)]


async def run_to_checkpoint(world: EngineHarness, call: Call, point: str) -> bool:
    """Runs until the checkpoint is reached for the first time; False if it is not."""

    def reach(here: str, _: Call) -> None:
        if here == point:
            raise Crash

    try:
        await world.apply(Plan("prod", calls=(call,)), on_checkpoint=reach)
    except Crash:
        return True
    return False


async def rerun(world: EngineHarness, call: Call) -> None:
    snapshot = await observe(world.platform, kinds.list_planned())
    await settle(tuple(world.journal.open.values()), snapshot, kinds.list_planned(), world.journal)
    existing = [
        live for live in snapshot.of(call.address.kind).objects if live.owner and live.owner.address == call.address
    ]
    calls: list[Call] = []
    for live in existing:
        assert live.owner is not None
        if live.owner.pending and live.owner.intent not in world.journal.receipts:
            calls.append(delete(str(call.address), f"{call.path}/{live.id}", live.id))
    if len(calls) == len(existing) and call.address not in world.journal.bindings:
        calls.append(call)
    await world.apply(Plan("prod", calls=tuple(calls)))


@pytest.mark.parametrize("faulty", [False, True], ids=["answered", "lost"])
@pytest.mark.parametrize("call", [EDGE, BOT, TUNNEL, ENDPOINT, CREDENTIAL], ids=lambda call: call.address.kind)
@pytest.mark.parametrize("point", POINTS)
async def test_after_a_crash_at_each_checkpoint_one_rerun_leaves_exactly_one_object(
    point: str, call: Call, faulty: bool
) -> None:
    world = fresh(*(lossy() if faulty else []))
    await run_to_checkpoint(world, call, point)
    await rerun(world, call)
    assert isinstance(call.path, str)
    (made,) = world.platform.all(call.path)
    assert world.journal.open == {}
    if call is CREDENTIAL:
        assert world.sinks.delivered == {"agent.token": f"{made['id']}_secret"}
    if call in (BOT, TUNNEL, ENDPOINT):
        assert world.journal.bindings[call.address].id == made["id" if call is BOT else "name"]


async def test_each_checkpoint_is_reached_by_some_call() -> None:
    reached: set[str] = set()
    for call in (EDGE, BOT, CREDENTIAL):
        world = fresh(*lossy())
        await world.apply(Plan("prod", calls=(call,)), on_checkpoint=lambda point, _: reached.add(point))
    assert reached == set(POINTS)
