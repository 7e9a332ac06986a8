"""One-time secrets: each live credential has its token delivered."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine.ports import Gone, Lost, Refused, Transient
from reconciler.engine.retry import RetryPolicy
from reconciler.model import owner_record as owners
from reconciler.model.event import Ended, Outcome
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Call, OwnerDraft, Plan, Verb
from reconciler.model.value import Json, Ref, Secret, Template
from tests.harness.engine import EngineHarness, Fault, MemoryPlatform, MemorySinks, create, update

SINK = Delivery("to_file", "secrets/agent.token")
MAKE = create("TunnelCredential/agent", "/credentials", pending=True, deliver={"token": SINK})
COMPLETE = update(
    "TunnelCredential/agent",
    Template(("/credentials/", Ref(MAKE.address))),
    {},
    owner=OwnerDraft(MAKE.address),
    needs=(MAKE.id,),
)


@pytest.fixture
def world() -> EngineHarness:
    return EngineHarness(MemoryPlatform(kinds.every()))


async def create_credential(world: EngineHarness) -> Ended:
    return (await world.end_events(Plan("prod", calls=(MAKE, COMPLETE))))[MAKE.id]


async def test_the_token_is_delivered_before_the_owner_record_is_completed(world: EngineHarness) -> None:
    ended = await create_credential(world)
    (credential,) = world.platform.all("/credentials")
    assert world.sinks.delivered == {"secrets/agent.token": f"{ended.id}_secret"}
    pending = [
        owners.read(str(body["metadata"]))[1].pending  # type: ignore[union-attr]
        for body in world.platform.bodies
        if body
    ]
    assert pending == [True, False]
    record = owners.read(credential["metadata"])[1]
    assert record is not None
    assert world.journal.receipts == {record.intent}


async def test_the_credential_is_recorded_before_its_token_is_delivered(world: EngineHarness) -> None:
    known: list[object] = []

    def look(point: str, call: Call) -> None:
        if point == "before deliver":
            known.append([intent.object for intent in world.journal.open.values()])

    ended = await world.end_events(Plan("prod", calls=(MAKE, COMPLETE)), on_checkpoint=look)
    assert known == [[ended[MAKE.id].id]]


async def test_no_credential_is_created_if_its_sink_is_not_writable(world: EngineHarness) -> None:
    world.sinks.proves = "the disk is full"
    ended = await create_credential(world)
    assert (ended.outcome, world.platform.log, world.journal.open) == (Outcome.FAILED, [], {})
    assert "nothing was created" in ended.why
    assert "the disk is full" in ended.why


async def test_a_credential_that_cannot_be_delivered_is_deleted(world: EngineHarness) -> None:
    world.sinks.delivers = "the disk is full"
    ended = await create_credential(world)
    assert (ended.outcome, world.platform.all("/credentials")) == (Outcome.FAILED, [])
    assert list(world.journal.concluded.values()) == [None]
    assert world.journal.receipts == set()


async def test_the_delete_of_an_undelivered_credential_is_retried_and_its_failure_is_reported(
    world: EngineHarness,
) -> None:
    world.sinks.delivers = "the disk is full"
    world.platform.faults = [Fault("DELETE", "/credentials", Transient("502", status=502), times=3)]
    await create_credential(world)
    assert world.platform.all("/credentials") == []
    world.platform.faults = [Fault("DELETE", "/credentials", Transient("502", status=502), times=99)]
    ended = await create_credential(world)
    assert "/credentials/cr_0002 exists, its secret was not delivered" in ended.why
    assert len(world.journal.open) == 1


@pytest.mark.parametrize("losses", [1, 3])
async def test_a_credential_is_replaced_if_the_response_with_its_token_is_lost(
    world: EngineHarness, losses: int
) -> None:
    world.platform.faults = [Fault("POST", "/credentials", Lost("reset"), effect=True, times=losses)]
    ended = await create_credential(world)
    (credential,) = world.platform.all("/credentials")
    assert (ended.outcome, ended.id) == (Outcome.DONE, credential["id"])
    assert world.sinks.delivered == {"secrets/agent.token": f"{credential['id']}_secret"}
    assert world.journal.open == {}
    assert len(world.journal.receipts) == 1


async def test_no_credential_remains_if_each_response_with_a_token_is_lost(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/credentials", Lost("reset"), effect=True, times=99)]
    ended = await create_credential(world)
    assert (ended.outcome, world.platform.all("/credentials"), world.sinks.delivered) == (Outcome.FAILED, [], {})
    assert ended.why == "the response with its secret was lost, so the object was deleted; creating it again"
    assert len(world.platform.requests("POST")) == RetryPolicy().attempts
    assert (world.journal.open, set(world.journal.concluded.values())) == ({}, {None})


async def test_an_intent_remains_open_if_a_credential_without_token_cannot_be_deleted(world: EngineHarness) -> None:
    world.platform.faults = [
        Fault("POST", "/credentials", Lost("reset"), effect=True),
        Fault("DELETE", "/credentials", Refused("still in use", status=400)),
    ]
    ended = await create_credential(world)
    assert ended.why == (
        "/credentials/cr_0001 exists, its secret was not delivered (the response with it was lost), and it cannot be "
        "deleted: still in use; the next apply replaces it"
    )
    assert (len(world.platform.requests("POST")), len(world.journal.open)) == (1, 1)


async def test_a_response_without_a_token_counts_as_undelivered(world: EngineHarness) -> None:
    address = MAKE.address._replace(kind="TLSEdge")
    call = replace(MAKE, address=address, path="/edges/tls", owner=OwnerDraft(address, pending=True))
    (ended,) = (await world.end_events(Plan("prod", calls=(call,)))).values()
    assert "has no token" in ended.why
    assert world.platform.all("/edges/tls") == []


@pytest.mark.parametrize("overwrites", [False, True])
async def test_an_existing_target_is_overwritten_only_if_the_plan_allows_it(
    world: EngineHarness, overwrites: bool
) -> None:
    sinks = NotingSinks()
    world.sinks = sinks
    await world.apply(Plan("prod", calls=(replace(MAKE, overwrites=overwrites),)))
    assert sinks.noted == [("check", overwrites), ("deliver", overwrites)]


class NotingSinks(MemorySinks):
    """Notes with what each target was checked and written."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[str, bool]] = []

    async def check(self, delivery: Delivery, *, overwrites: bool) -> None:
        self.noted.append(("check", overwrites))

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool) -> None:
        self.noted.append(("deliver", overwrites))


class EmptyTokens(MemoryPlatform):
    async def send(self, *request: Any, **options: Any) -> Json:
        answer = await super().send(*request, **options)
        return {**answer, "token": ""} if isinstance(answer, dict) else answer


async def test_an_empty_token_counts_as_undelivered() -> None:
    world = EngineHarness(EmptyTokens(kinds.every()))
    ended = await create_credential(world)
    assert (ended.outcome, "has no token" in ended.why) == (Outcome.FAILED, True)
    assert (world.platform.all("/credentials"), world.sinks.delivered) == ([], {})


async def test_an_undelivered_credential_that_was_deleted_already_is_concluded(world: EngineHarness) -> None:
    world.sinks.delivers = "the disk is full"
    world.platform.faults = [Fault("DELETE", "/credentials", Gone("not found", status=404))]
    ended = await create_credential(world)
    assert "created and deleted again" in ended.why
    assert list(world.journal.concluded.values()) == [None]


async def test_the_token_is_in_no_event(world: EngineHarness) -> None:
    world.sinks.delivers = "no"
    events = await world.apply(Plan("prod", calls=(MAKE, COMPLETE)))
    assert "_secret" not in repr(events)
    assert COMPLETE.verb is Verb.UPDATE


@pytest.mark.parametrize("step", ["delivery", "record"])
async def test_a_token_that_a_later_error_quotes_is_redacted(world: EngineHarness, step: str) -> None:
    if step == "delivery":
        world.sinks.delivers = "cannot write 'cr_0001_secret' to the disk"
    else:
        quoting = Refused("cr_0001_secret is no valid metadata", status=400)
        world.platform.faults = [Fault("PATCH", "/credentials", quoting, times=99)]
    events = await world.apply(Plan("prod", calls=(MAKE, COMPLETE)))
    (failed,) = [event for event in events if isinstance(event, Ended) and event.outcome is Outcome.FAILED]
    assert failed.call is (MAKE if step == "delivery" else COMPLETE)
    assert "(secret)" in failed.why
    assert "cr_0001_secret" not in repr(events)
