"""The owner record is checked in every attempt of every update and delete, when its request may leave."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine.ownership import OwnershipCheck
from reconciler.engine.ports import Check, Failure, Lost, Refused, Transient, complete_body
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Reason
from reconciler.model.event import Ended, Outcome
from reconciler.model.manifest import Delivery
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Call, Observed, OwnerDraft, Plan, Verb
from reconciler.model.value import Json, Ref, Secret, Template
from tests.harness.engine import EngineHarness, Fault, MemoryPlatform, MemorySinks, VirtualClock, create, delete, update

EDGE = Address("TLSEdge", "pay")
PATH = "/edges/tls/edgtls_1"
MANAGED = Owner("prod", EDGE, "intent-of-prod-1")
FOREIGN = Owner("other", Address("TLSEdge", "theirs"), "intent-of-others")


@dataclass
class DelayingPlatform(MemoryPlatform):
    """Delays each request, as a request budget does, and each response."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    queue: float = 0.0  # seconds before a request that changes something may leave
    latency: float = 0.0  # seconds that each request takes

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        if check is not None:
            await check.prepare()
        await self.clock.sleep(self.queue)
        body = await complete_body(check, body, self.get)
        await self.clock.sleep(self.latency)
        return await super().send(method, path, body)

    async def get(self, path: str) -> Json:
        await self.clock.sleep(self.latency)
        return await super().get(path)


@pytest.fixture
def platform() -> DelayingPlatform:
    return DelayingPlatform(kinds.every())


@pytest.fixture
def world(platform: DelayingPlatform) -> EngineHarness:
    world = EngineHarness(platform, clock=platform.clock)
    put(world, "edgtls_1", MANAGED, mutual_tls={"certificate_authority_ids": ["ca_1"]})
    return world


def put(world: EngineHarness, id: str, owner: Owner, **fields: Json) -> None:
    collection = world.platform.objects.setdefault("/edges/tls", {})
    collection[id] = {"id": id, "description": "before", "metadata": owners.write("", owner), **fields}


def edge(world: EngineHarness, id: str = "edgtls_1") -> dict[str, Json]:
    return world.platform.objects["/edges/tls"][id]


def plan(*calls: Call) -> Plan:
    return Plan("prod", calls=calls)


def draft_owner() -> OwnerDraft:
    return OwnerDraft(EDGE, intent=MANAGED.intent)


CALLS = [
    update(str(EDGE), PATH, {"description": "after"}, target="edgtls_1", owner=draft_owner()),
    update(str(EDGE), PATH, {"description": "after"}, target="edgtls_1"),
    Call("put", EDGE, Verb.PUT, f"{PATH}/mutual_tls", target="edgtls_1", body={"enabled": False}),
    Call("remove", EDGE, Verb.REMOVE, f"{PATH}/mutual_tls", target="edgtls_1"),
    delete(str(EDGE), PATH, "edgtls_1"),
]
each_call = pytest.mark.parametrize("call", CALLS, ids=["record", "update", "module", "module removal", "delete"])


# --- between two attempts ---------------------------------------------------------------------------------------------


@each_call
@pytest.mark.parametrize(
    "failure",
    [Transient("503", status=503, retry_after=3.0), Transient("429", status=429), Lost("reset")],
    ids=["retry-after", "budget", "lost"],
)
async def test_an_object_that_another_stack_owns_before_a_retry_is_unchanged(
    world: EngineHarness, call: Call, failure: Failure
) -> None:
    def change_owner(method: str, path: str, body: Mapping[str, Json] | None) -> Failure | None:
        if method == "GET" or owners.read(str(edge(world)["metadata"]))[1] == FOREIGN:
            return None
        edge(world)["metadata"] = owners.write("", FOREIGN)
        return failure

    world.platform.refuse = change_owner
    (ended,) = (await world.end_events(plan(call))).values()
    assert (ended.outcome, "is now TLSEdge/theirs of stack other" in ended.why) == (Outcome.FAILED, True)
    assert edge(world) == {
        "id": "edgtls_1",
        "description": "before",
        "metadata": owners.write("", FOREIGN),
        "mutual_tls": {"certificate_authority_ids": ["ca_1"]},
    }
    assert len(world.platform.requests("PATCH", "PUT", "DELETE")) == 1


@each_call
async def test_a_retry_succeeds_if_the_owner_record_is_unchanged(world: EngineHarness, call: Call) -> None:
    failure = Transient("503", status=503)
    world.platform.faults = [Fault(method, PATH, failure, times=3) for method in ("PATCH", "PUT", "DELETE")]
    (ended,) = (await world.end_events(plan(call))).values()
    assert ended.outcome is Outcome.DONE
    assert [method for method, _ in world.platform.log].count("GET") == 4


async def test_a_lost_delete_that_was_effective_succeeds_on_retry(world: EngineHarness) -> None:
    world.platform.faults = [Fault("DELETE", PATH, Lost("reset"), effect=True)]
    (ended,) = (await world.end_events(plan(CALLS[-1]))).values()
    assert ended.outcome is Outcome.ALREADY
    assert len(world.platform.requests("DELETE")) == 1


async def test_a_forget_is_retried_after_its_owner_record_was_removed(world: EngineHarness) -> None:
    world.platform.faults = [Fault("PATCH", PATH, Lost("reset"), effect=True)]
    forget = update(str(EDGE), PATH, {"metadata": ""}, target="edgtls_1")
    seen = Observed("edgtls_1", {}, f"prod {EDGE}")
    changes = (Change(EDGE, Action.FORGET, Reason.FORGOTTEN, "edgtls_1"),)
    (ended,) = (await world.end_events(replace(plan(forget), changes=changes, observed={EDGE: seen}))).values()
    assert ended.outcome is Outcome.DONE
    assert edge(world)["metadata"] == ""


async def test_a_response_older_than_a_change_of_this_run_confirms_nothing(world: EngineHarness) -> None:
    call = update(str(EDGE), PATH, {"description": "after"}, target="edgtls_1", owner=draft_owner())
    registry = {kind.name: kind for kind in kinds.every()}
    ownership = OwnershipCheck(plan(call), world.platform, world.clock, registry)
    check = ownership.check(call, PATH)
    assert check is not None

    async def read() -> Json:
        body = await world.platform.get(PATH)
        world.clock.time += 1.0
        ownership.forget(PATH)  # a change of another call ends while the response is on its way
        return body

    await check.confirm(read)
    assert check.is_due()
    await check.confirm(lambda: world.platform.get(PATH))
    assert not check.is_due()


def ownership_of(world: EngineHarness, call: Call) -> OwnershipCheck:
    return OwnershipCheck(plan(call), world.platform, world.clock, {kind.name: kind for kind in kinds.every()})


async def test_a_read_that_began_before_a_write_response_confirms_nothing(world: EngineHarness) -> None:
    ownership = ownership_of(world, CALLS[0])
    check = ownership.check(CALLS[0], PATH)
    assert check is not None

    async def read() -> Json:
        body = await world.platform.get(PATH)
        world.clock.time += 1.0
        ownership.learn(kinds.get("TLSEdge"), PATH, world.clock.now(), None)
        return body

    await check.confirm(read)
    assert check.is_due()


async def test_the_newest_read_is_used_in_either_order_of_responses(world: EngineHarness) -> None:
    ownership = ownership_of(world, CALLS[0])
    slow, quick = (ownership.check(CALLS[0], PATH) for _ in range(2))
    assert slow is not None
    assert quick is not None

    async def read_slowly() -> Json:
        body = copy.deepcopy(await world.platform.get(PATH))
        world.clock.time += 1.0
        edge(world)["metadata"] = owners.write("", FOREIGN)
        with pytest.raises(Refused, match="of stack other"):
            await quick.confirm(lambda: world.platform.get(PATH))
        return body

    await slow.confirm(read_slowly)
    newest = ownership.find_fresh(PATH)
    assert newest is not None
    assert newest.owner == FOREIGN


async def test_a_response_confirms_an_object_from_the_time_of_its_request(
    world: EngineHarness, platform: DelayingPlatform
) -> None:
    module = replace(CALLS[2], needs=(CALLS[0].id,))
    for latency, gets in ((0.1, 1), (6.0, 3)):  # a reading that takes six seconds is repeated at once
        platform.log.clear()
        platform.latency = latency
        assert set((await world.outcomes(plan(CALLS[0], module))).values()) == {Outcome.DONE}
        assert reads(world) == gets


async def test_a_write_response_confirms_an_object_for_longer_than_the_read_before_it(
    world: EngineHarness, platform: DelayingPlatform
) -> None:
    """The module is sent eight seconds after the reading, and four after the update."""
    platform.queue = 4.0
    module = replace(CALLS[2], needs=(CALLS[0].id,))
    assert set((await world.outcomes(plan(CALLS[0], module))).values()) == {Outcome.DONE}
    assert reads(world) == 1


# --- between the check and the request --------------------------------------------------------------------------------


def updates(world: EngineHarness, count: int) -> Plan:
    """An update of each of `count` objects of the plan."""
    calls, seen = [], {}
    for number in range(count):
        address, id = Address("TLSEdge", f"e{number}"), f"edgtls_{number}"
        put(world, id, Owner("prod", address, f"intent-{number:09}"))
        draft = OwnerDraft(address, intent=f"intent-{number:09}")
        body = {"description": "after"}
        calls.append(update(str(address), f"/edges/tls/{id}", body, target=id, owner=draft))
        seen[address] = Observed(id, {}, "")
    return Plan("prod", calls=tuple(calls), observed=seen)


def reads(world: EngineHarness) -> int:
    return len(world.platform.requests("GET"))


@pytest.mark.parametrize(("queue", "gets"), [(4.9, 0), (5.1, 20)])
async def test_a_list_confirms_an_object_for_five_seconds_and_then_the_object_is_read(
    world: EngineHarness, platform: DelayingPlatform, queue: float, gets: int
) -> None:
    new_plan = updates(world, 20)
    platform.queue = queue
    assert set((await world.outcomes(new_plan, concurrency=20)).values()) == {Outcome.DONE}
    assert reads(world) == 1 + gets


async def test_an_object_that_another_stack_owns_while_a_request_waits_is_unchanged(
    world: EngineHarness, platform: DelayingPlatform
) -> None:
    new_plan = updates(world, 20)
    platform.queue = 60.0
    is_changed = False

    async for event in world.run(new_plan, concurrency=20):
        if not is_changed and world.clock.now() == 0 and platform.log:
            edge(world, "edgtls_7")["metadata"] = owners.write("", FOREIGN)
            is_changed = True
        if isinstance(event, Ended):
            is_foreign = event.call.target == "edgtls_7"
            assert event.outcome is (Outcome.FAILED if is_foreign else Outcome.DONE)
    assert edge(world, "edgtls_7")["description"] == "before"


class SleepingPlatform(DelayingPlatform):
    """Suspends the process for an hour during the first response, and calls `action`."""

    action: Callable[[], None] | None = None

    async def get(self, path: str) -> Json:
        answer = copy.deepcopy(await super().get(path))
        if (action := self.action) is not None:
            self.action = None
            action()
            await self.clock.sleep(3600)
        return answer


@each_call
async def test_an_object_that_another_stack_owns_after_a_suspend_is_unchanged(world: EngineHarness, call: Call) -> None:
    platform = SleepingPlatform(kinds.every(), objects=world.platform.objects, clock=world.clock)
    platform.action = lambda: edge(world).update(metadata=owners.write("", FOREIGN))
    world.platform = platform
    (ended,) = (await world.end_events(plan(call))).values()
    assert (ended.outcome, "is now TLSEdge/theirs of stack other" in ended.why) == (Outcome.FAILED, True)
    assert edge(world)["description"] == "before"
    assert platform.requests("PATCH", "PUT", "DELETE") == []


@each_call
async def test_an_object_without_the_owner_record_of_the_plan_is_unchanged(world: EngineHarness, call: Call) -> None:
    edge(world)["metadata"] = ""
    new_plan = replace(plan(call), observed={EDGE: Observed("edgtls_1", {}, f"prod {EDGE}")})
    (ended,) = (await world.end_events(new_plan)).values()
    assert (ended.outcome, "its owner record was removed" in ended.why) == (Outcome.FAILED, True)
    assert world.platform.requests("PATCH", "PUT", "DELETE") == []


@each_call
@pytest.mark.parametrize(
    ("action", "reason"),
    [(Action.UPDATE, Reason.FIELDS), (Action.DELETE, Reason.REMOVED)],
)
async def test_an_update_or_delete_fails_if_the_owner_record_was_removed(
    world: EngineHarness, call: Call, action: Action, reason: Reason
) -> None:
    edge(world)["metadata"] = ""
    changes = (Change(EDGE, action, reason, "edgtls_1"),)
    new_plan = replace(plan(call), observed={EDGE: Observed("edgtls_1", {}, f"prod {EDGE}")}, changes=changes)
    (ended,) = (await world.end_events(new_plan)).values()
    assert (ended.outcome, "its owner record was removed" in ended.why) == (Outcome.FAILED, True)


async def test_a_created_object_is_unchanged_once_its_owner_record_is_removed(world: EngineHarness) -> None:
    def lose_record() -> None:
        (credential,) = world.platform.all("/credentials")
        credential["metadata"] = ""

    world.sinks = SlowSinks(world.clock, lose_record)
    ended = await world.end_events(plan(CREDENTIAL, COMPLETE))
    assert "its owner record was removed" in ended[COMPLETE.id].why


@pytest.mark.parametrize(
    ("action", "reason"),
    [(Action.DELETE, Reason.ABSENT), (Action.DELETE, Reason.ADDED), (Action.ADOPT, Reason.UNOWNED)],
)
async def test_an_object_planned_without_owner_record_is_deleted(
    world: EngineHarness, action: Action, reason: Reason
) -> None:
    edge(world)["metadata"] = ""
    new_plan = replace(plan(CALLS[-1]), changes=(Change(EDGE, action, reason, "edgtls_1"),))
    assert set((await world.outcomes(new_plan)).values()) == {Outcome.DONE}


async def test_a_module_of_an_object_planned_without_owner_record_is_updated(world: EngineHarness) -> None:
    edge(world)["metadata"] = ""
    new_plan = replace(plan(CALLS[2]), observed={EDGE: Observed("edgtls_1", {}, "")})
    assert set((await world.outcomes(new_plan)).values()) == {Outcome.DONE}


async def test_an_unmanaged_object_that_this_stack_owns_by_now_is_not_deleted(world: EngineHarness) -> None:
    new_plan = replace(plan(CALLS[-1]), changes=(Change(EDGE, Action.DELETE, Reason.ADDED, "edgtls_1"),))
    (ended,) = (await world.end_events(new_plan)).values()
    assert (ended.outcome, "it is now TLSEdge/pay of this stack" in ended.why) == (Outcome.FAILED, True)
    assert world.platform.requests("DELETE") == []


@pytest.mark.parametrize("stack", ["other", "production"])
async def test_an_unmanaged_object_that_another_stack_owns_by_now_is_not_deleted(
    world: EngineHarness, stack: str
) -> None:
    edge(world)["metadata"] = owners.write("", FOREIGN._replace(stack=stack))
    new_plan = replace(plan(CALLS[-1]), changes=(Change(EDGE, Action.DELETE, Reason.ADDED, "edgtls_1"),))
    (ended,) = (await world.end_events(new_plan)).values()
    why = f"edgtls_1 was not changed: it is now TLSEdge/theirs of stack {stack}; plan again"
    assert (ended.outcome, ended.why, world.platform.requests("DELETE")) == (Outcome.FAILED, why, [])


async def test_an_adoption_is_retried_although_this_stack_owns_the_object_by_now(world: EngineHarness) -> None:
    """The first attempt of an adoption may have taken effect."""
    new_plan = replace(plan(CALLS[0]), changes=(Change(EDGE, Action.ADOPT, Reason.ADDED, "edgtls_1"),))
    assert set((await world.outcomes(new_plan)).values()) == {Outcome.DONE}


# --- a child without a record -----------------------------------------------------------------------------------------

SOURCE = Address("EventSource", "created")
SUBSCRIPTION = "/event_subscriptions/esb_1"
SOURCE_PATH = f"{SUBSCRIPTION}/sources/domain_created.v0"


def put_source(world: EngineHarness, *owner: Owner) -> dict[str, Json]:
    """An event source without owner record below a subscription with one; returns the subscription."""
    subscription = world.platform.objects.setdefault("/event_subscriptions", {})
    subscription["esb_1"] = {"id": "esb_1", "metadata": owners.write("", *owner) if owner else ""}
    world.platform.objects[f"{SUBSCRIPTION}/sources"] = {"domain_created.v0": {"type": "domain_created.v0"}}
    return subscription["esb_1"]


def of_subscription(stack: str) -> Owner:
    return Owner(stack, Address("EventSubscription", "audit"), f"intent-of-{stack:6}")


DELETE_SOURCE = delete(str(SOURCE), SOURCE_PATH, "domain_created.v0")


async def test_a_child_without_owner_record_is_unchanged_if_another_stack_owns_its_parent(world: EngineHarness) -> None:
    put_source(world, of_subscription("other"))
    new_plan = replace(plan(DELETE_SOURCE), observed={SOURCE: Observed("esb_1/domain_created.v0", {}, "prod")})
    (ended,) = (await world.end_events(new_plan)).values()
    assert ended.outcome is Outcome.FAILED
    assert ended.why == (
        "domain_created.v0 was not changed: its parent esb_1 is now EventSubscription/audit of stack other; plan again"
    )
    assert world.platform.requests("DELETE") == []


async def test_a_child_is_not_deleted_if_another_stack_owns_its_parent_before_a_retry(world: EngineHarness) -> None:
    subscription = put_source(world, of_subscription("prod"))

    def change_owner(method: str, path: str, body: Mapping[str, Json] | None) -> Failure | None:
        if method == "GET" or "other" in str(subscription["metadata"]):
            return None
        subscription["metadata"] = owners.write("", of_subscription("other"))
        return Transient("503", status=503)

    world.platform.refuse = change_owner
    (ended,) = (await world.end_events(plan(DELETE_SOURCE))).values()
    assert (ended.outcome, "of stack other" in ended.why) == (Outcome.FAILED, True)
    assert len(world.platform.requests("DELETE")) == 1


@pytest.mark.parametrize("parent", ["prod", "other", ""])
async def test_a_managed_child_is_deleted_below_the_parent_of_the_plan(world: EngineHarness, parent: str) -> None:
    """Also below a parent of another stack: the store records the child as managed."""
    put_source(world, *([of_subscription(parent)] if parent else []))
    new_plan = replace(plan(DELETE_SOURCE), observed={SOURCE: Observed("esb_1/domain_created.v0", {}, parent)})
    assert set((await world.outcomes(new_plan)).values()) == {Outcome.DONE}


async def test_an_unmanaged_child_is_not_deleted_if_its_parent_became_unmanaged(world: EngineHarness) -> None:
    put_source(world)
    added = Change(SOURCE, Action.DELETE, Reason.ADDED, "domain_created.v0")
    (ended,) = (await world.end_events(replace(plan(DELETE_SOURCE), changes=(added,)))).values()
    assert (ended.outcome, "the owner record of its parent esb_1 was removed" in ended.why) == (Outcome.FAILED, True)


async def test_an_unmanaged_child_of_a_managed_parent_is_deleted(world: EngineHarness) -> None:
    put_source(world, of_subscription("prod"))
    added = Change(SOURCE, Action.DELETE, Reason.ADDED, "domain_created.v0")
    assert set((await world.outcomes(replace(plan(DELETE_SOURCE), changes=(added,)))).values()) == {Outcome.DONE}


async def test_children_of_one_parent_are_confirmed_by_one_read(world: EngineHarness) -> None:
    put_source(world, of_subscription("prod"))
    names = [f"{prefix}_created.v0" for prefix in ("domain", "vault", "secret", "ip_policy")]
    sources: dict[str, dict[str, Json]] = {name: {"type": name} for name in names}
    world.platform.objects[f"{SUBSCRIPTION}/sources"] = sources
    calls = [
        delete(f"EventSource/s{number}", f"{SUBSCRIPTION}/sources/{name}", name) for number, name in enumerate(names)
    ]
    assert set((await world.outcomes(plan(*calls), concurrency=1)).values()) == {Outcome.DONE}
    assert reads(world) == 1


class SlowSinks(MemorySinks):
    """Delivers in a minute, and calls `action`."""

    def __init__(self, clock: VirtualClock, action: Callable[[], None]) -> None:
        super().__init__()
        self._clock = clock
        self._action = action

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool) -> None:
        await self._clock.sleep(60)
        self._action()
        await super().deliver(delivery, secret, overwrites=overwrites)


CREDENTIAL = create(
    "TunnelCredential/agent", "/credentials", pending=True, deliver={"token": Delivery("to_file", "agent.token")}
)
COMPLETE = update(
    "TunnelCredential/agent",
    Template(("/credentials/", Ref(CREDENTIAL.address))),
    {},
    owner=OwnerDraft(CREDENTIAL.address),
    needs=(CREDENTIAL.id,),
)


async def test_an_object_that_another_stack_owns_after_a_delivery_is_unchanged(world: EngineHarness) -> None:
    def change_owner() -> None:
        (credential,) = world.platform.all("/credentials")
        credential["metadata"] = owners.write("", FOREIGN._replace(address=CREDENTIAL.address))

    world.sinks = SlowSinks(world.clock, change_owner)
    ended = await world.end_events(plan(CREDENTIAL, COMPLETE))
    assert [event.outcome for event in ended.values()] == [Outcome.DONE, Outcome.FAILED]
    assert "of stack other" in ended[COMPLETE.id].why
    assert world.platform.requests("PATCH") == []


@pytest.mark.parametrize("owner", [[FOREIGN._replace(address=CREDENTIAL.address)], []], ids=["foreign", "unmanaged"])
async def test_an_undelivered_credential_that_the_stack_no_longer_owns_is_not_deleted(
    world: EngineHarness, owner: list[Owner]
) -> None:
    def change_owner() -> None:
        (credential,) = world.platform.all("/credentials")
        credential["metadata"] = owners.write("", *owner) if owner else ""
        world.sinks.delivers = "the disk is full"

    world.sinks = SlowSinks(world.clock, change_owner)
    await world.end_events(plan(CREDENTIAL))
    assert len(world.platform.all("/credentials")) == 1


async def test_a_created_object_is_updated_without_a_read(world: EngineHarness) -> None:
    ended = await world.end_events(plan(CREDENTIAL, COMPLETE))
    assert {event.outcome for event in ended.values()} == {Outcome.DONE}
    assert [method for method, _ in world.platform.log] == ["POST", "PATCH"]


# --- in few requests --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 5])
async def test_many_objects_of_a_collection_are_listed(world: EngineHarness, count: int) -> None:
    await world.apply(updates(world, count))
    assert reads(world) == 1


class SlowlyListedPlatform(DelayingPlatform):
    async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        await self.clock.sleep(1)
        async for page in super().pages(path, key):
            yield page


async def test_calls_wait_for_a_list_in_progress(world: EngineHarness, platform: DelayingPlatform) -> None:
    new_plan = updates(world, 5)
    world.platform = SlowlyListedPlatform(kinds.every(), objects=platform.objects, clock=platform.clock)
    await world.apply(new_plan)
    assert reads(world) == 1


async def test_calls_that_waited_for_a_list_do_not_list_again(world: EngineHarness) -> None:
    """Although the list confirmed the first call, which was sent, before the second one checks."""
    new_plan = updates(world, 5)

    class Listing(MemoryPlatform):
        async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
            await world.clock.sleep(1)
            async for page in super().pages(path, key):
                yield page

    world.platform = Listing(kinds.every(), objects=world.platform.objects)
    assert set((await world.outcomes(new_plan)).values()) == {Outcome.DONE}
    assert world.platform.requests("GET") == [("GET", "/edges/tls")]


ROUTES = "/edges/https/edghts_1/routes"


async def test_children_with_a_record_are_read_one_by_one(world: EngineHarness) -> None:
    """The platform returns them in their parent only, not in a list."""
    addresses = [Address("HTTPSEdgeRoute", f"r{number}") for number in range(3)]
    owned = [Owner("prod", address, f"intent-{address.name:9}") for address in addresses]
    world.platform.objects["/edges/https"] = {"edghts_1": {"id": "edghts_1"}}
    world.platform.objects[ROUTES] = {
        owner.address.name: {"id": owner.address.name, "metadata": owners.write("", owner)} for owner in owned
    }
    calls = [
        update(str(address), f"{ROUTES}/{address.name}", {"description": "after"}, target=address.name)
        for address in addresses
    ]
    seen = {address: Observed(address.name, {}, f"prod {address}") for address in addresses}
    others = updates(world, 3)  # are listed
    new_plan = replace(others, calls=(*calls, *others.calls), observed={**others.observed, **seen})
    assert set((await world.outcomes(new_plan)).values()) == {Outcome.DONE}
    paths = [path for _, path in world.platform.requests("GET")]
    assert sorted(paths) == [*(f"{ROUTES}/r{number}" for number in range(3)), "/edges/tls"]


@pytest.mark.parametrize("objects", [100, 101])
@pytest.mark.parametrize("confirmed", range(4))
async def test_a_list_is_repeated_if_the_last_one_saved_as_many_requests_as_it_needed(
    world: EngineHarness, objects: int, confirmed: int
) -> None:
    """More than a hundred objects need two pages; the plan has none of them."""
    new_plan = updates(world, 6)
    for number in range(6, objects):
        put(world, f"edgtls_x{number}", FOREIGN)
    ownership = OwnershipCheck(new_plan, world.platform, world.clock, {kind.name: kind for kind in kinds.every()})
    checks = [check for call in new_plan.calls if (check := ownership.check(call, str(call.path)))]
    await checks[-1].prepare()
    for check in checks[:confirmed]:
        await check.prepare()
        assert not check.is_due()
        await check.confirm(lambda path=check.path: world.platform.get(path))  # type: ignore[misc]
    world.clock.time += 5.1
    await checks[-1].prepare()
    again = confirmed >= (1 if objects == 100 else 2)
    assert world.platform.log == [("GET", "/edges/tls")] * (1 + again)


async def test_the_last_object_of_a_collection_is_read_by_id(world: EngineHarness) -> None:
    new_plan = updates(world, 3)
    *first, last = new_plan.calls
    new_plan = replace(new_plan, calls=(*first, replace(last, needs=tuple(call.id for call in first))))

    def wait(point: str, call: Call) -> None:
        if call.id == last.id and point == "before send":
            world.clock.time += 6

    assert set((await world.outcomes(new_plan, on_checkpoint=wait)).values()) == {Outcome.DONE}
    assert [path for _, path in world.platform.requests("GET")] == ["/edges/tls", str(last.path)]


class CurtPlatform(DelayingPlatform):
    """Answers a PATCH with `answer`."""

    answer: Json = None

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        answer = await super().send(method, path, body, check=check)
        return self.answer if method == "PATCH" else answer


@pytest.mark.parametrize(
    "answer",
    [
        None,
        ["welcome"],
        {},
        {"id": 7, "metadata": owners.write("", MANAGED)},
        {"id": "edgtls_1"},
        {"id": "edgtls_1", "metadata": owners.write("", FOREIGN)},
        {"id": "edgtls_1", "metadata": owners.write("", MANAGED._replace(stack="production"))},
    ],
    ids=str,
)
async def test_a_response_without_the_owner_record_confirms_nothing(world: EngineHarness, answer: Json) -> None:
    platform = CurtPlatform(kinds.every(), objects=world.platform.objects, clock=world.clock)
    platform.answer = answer
    world.platform = platform
    module = replace(CALLS[2], needs=(CALLS[0].id,))
    new_plan = replace(plan(CALLS[0], module), observed={EDGE: Observed("edgtls_1", {}, f"prod {EDGE}")})
    assert set((await world.outcomes(new_plan)).values()) == {Outcome.DONE}
    assert reads(world) == 2


async def test_an_undelivered_credential_is_deleted_while_another_one_is_updated(world: EngineHarness) -> None:
    world.sinks.delivers = "the disk is full"
    other, path = Address("TunnelCredential", "other"), "/credentials/cr_9"
    record = owners.write("", Owner("prod", other, "intent-of-other-"))
    world.platform.objects["/credentials"] = {"cr_9": {"id": "cr_9", "metadata": record}}
    change = update(str(other), path, {"description": "x"}, target="cr_9", needs=())
    ended = await world.end_events(plan(CREDENTIAL, change))
    assert [ended[call.id].outcome for call in (CREDENTIAL, change)] == [Outcome.FAILED, Outcome.DONE]
    assert "could not be delivered: the disk is full" in ended[CREDENTIAL.id].why
    assert [body["id"] for body in world.platform.all("/credentials")] == ["cr_9"]


@pytest.mark.parametrize(("seen", "gets"), [(99, ["/edges/tls"]), (100, [f"{PATH}", "/edges/tls/edgtls_0"])])
async def test_two_objects_are_listed_if_the_list_needs_one_request(
    world: EngineHarness, seen: int, gets: list[str]
) -> None:
    """A list of a hundred objects or more needs two requests, as many as two reads by id."""
    new_plan = updates(world, 2)
    known = replace(new_plan, unmanaged=tuple(("TLSEdge", f"edgtls_{number}") for number in range(seen)))
    assert set((await world.outcomes(known)).values()) == {Outcome.DONE}
    assert sorted(path for _, path in world.platform.requests("GET")) == sorted(gets)


class DraggingPlatform(DelayingPlatform):
    """Returns its last page six seconds after the request of the first one."""

    async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        await self.clock.sleep(6)
        async for page in super().pages(path, key):
            yield page


async def test_a_slow_list_confirms_nothing(world: EngineHarness, platform: DelayingPlatform) -> None:
    new_plan = updates(world, 5)
    world.platform = DraggingPlatform(kinds.every(), objects=platform.objects, clock=platform.clock)
    assert set((await world.outcomes(new_plan)).values()) == {Outcome.DONE}
    assert reads(world) == 1 + 5


@dataclass
class PagingPlatform(DelayingPlatform):
    """Lists ten objects a page, each page in `page_time` seconds, and notes when the list ended."""

    page_time: float = 1.0
    fails_after: int | None = None  # pages
    changed: dict[str, float] = field(default_factory=dict)  # path → when its change was sent
    listed_at: float = 0.0

    async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        objects = [body async for page in super().pages(path, key) for body in page]
        for place in range(0, len(objects), 10):
            if place // 10 == self.fails_after:
                raise Refused("no more pages", status=403)
            await self.clock.sleep(self.page_time)
            yield objects[place : place + 10]
        self.listed_at = self.clock.now()

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        answer = await super().send(method, path, body, check=check)
        self.changed[path] = self.clock.now()
        return answer


async def test_an_object_is_updated_as_soon_as_its_page_is_read(
    world: EngineHarness, platform: DelayingPlatform
) -> None:
    new_plan = updates(world, 40)
    paging = PagingPlatform(kinds.every(), objects=platform.objects, clock=platform.clock)
    world.platform = paging
    assert set((await world.outcomes(new_plan, concurrency=40)).values()) == {Outcome.DONE}
    times = sorted(paging.changed.values())
    assert [times[place] < paging.listed_at for place in (0, 9, 19, 29)] == [True] * 4
    assert paging.requests("GET") == [("GET", "/edges/tls")]


async def test_each_page_confirms_from_its_own_request_on(world: EngineHarness, platform: DelayingPlatform) -> None:
    """A list of eight seconds; each page is recent when its objects are updated."""
    new_plan = updates(world, 40)
    world.platform = PagingPlatform(kinds.every(), objects=platform.objects, clock=platform.clock, page_time=2.0)
    assert set((await world.outcomes(new_plan, concurrency=40)).values()) == {Outcome.DONE}
    assert world.platform.requests("GET") == [("GET", "/edges/tls")]


async def test_a_page_confirms_nothing_before_its_own_request(world: EngineHarness, platform: DelayingPlatform) -> None:
    new_plan = updates(world, 20)
    world.platform = PagingPlatform(kinds.every(), objects=platform.objects, clock=platform.clock, page_time=5.1)
    assert set((await world.outcomes(new_plan, concurrency=20)).values()) == {Outcome.DONE}
    assert reads(world) == 1 + 20


async def test_calls_read_their_objects_if_the_list_fails(world: EngineHarness, platform: DelayingPlatform) -> None:
    new_plan = updates(world, 40)
    world.platform = PagingPlatform(kinds.every(), objects=platform.objects, clock=platform.clock, fails_after=3)
    assert set((await world.outcomes(new_plan, concurrency=40)).values()) == {Outcome.DONE}
    assert reads(world) == 1 + 10


async def test_a_call_that_waits_for_a_list_uses_no_request_slot(
    world: EngineHarness, platform: DelayingPlatform
) -> None:
    """Other requests are sent, although more calls wait than requests may be sent at once."""
    new_plan = updates(world, 10)
    other = Address("TunnelCredential", "other")
    record = owners.write("", Owner("prod", other, "intent-of-other-"))
    platform.objects["/credentials"] = {"cr_9": {"id": "cr_9", "metadata": record}}
    change = update(str(other), "/credentials/cr_9", {"description": "x"}, target="cr_9", needs=())
    paging = PagingPlatform(kinds.every(), objects=platform.objects, clock=platform.clock)
    world.platform = paging
    ended = await world.outcomes(replace(new_plan, calls=(*new_plan.calls, change)), concurrency=10)
    assert set(ended.values()) == {Outcome.DONE}
    assert paging.changed["/credentials/cr_9"] < paging.listed_at


async def test_each_object_is_read_by_id_if_the_list_is_refused(world: EngineHarness) -> None:
    new_plan = updates(world, 5)
    world.platform.faults = [Fault("GET", "/edges/tls", Refused("not this list", status=403))]
    assert set((await world.outcomes(new_plan)).values()) == {Outcome.DONE}
    assert reads(world) == 1 + 5


class TalkingPlatform(DelayingPlatform):
    """A proxy answers with a list of its own."""

    async def get(self, path: str) -> Json:
        return ["welcome"]


@each_call
async def test_a_response_that_is_not_an_object_confirms_nothing(world: EngineHarness, call: Call) -> None:
    world.platform = TalkingPlatform(kinds.every(), objects=world.platform.objects, clock=world.clock)
    (ended,) = (await world.end_events(plan(call))).values()
    assert (ended.outcome, "is not an object" in ended.why) == (Outcome.FAILED, True)
    assert world.platform.requests("PATCH", "PUT", "DELETE") == []


async def test_one_object_is_read_by_id(world: EngineHarness) -> None:
    await world.apply(updates(world, 1))
    assert world.platform.requests("GET") == [("GET", "/edges/tls/edgtls_0")]


@pytest.mark.parametrize(
    ("latency", "queue", "most"),
    [(0.05, 0.0, 20), (0.05, 1.0, 150), (0.05, 4.0, 330), (0.0, 8.0, 1000 + 10)],
    ids=["fast", "a second each", "four seconds each", "slow"],
)
async def test_a_thousand_updates_need_few_reads(
    world: EngineHarness, platform: DelayingPlatform, latency: float, queue: float, most: int
) -> None:
    new_plan = updates(world, 1000)
    platform.latency, platform.queue = latency, queue
    await world.apply(new_plan, concurrency=16)
    assert reads(world) <= most


async def test_a_list_that_saved_no_request_is_not_repeated(world: EngineHarness, platform: DelayingPlatform) -> None:
    new_plan = updates(world, 200)
    platform.queue = 6.0
    await world.apply(new_plan, concurrency=4)
    assert platform.log.count(("GET", "/edges/tls")) == 1


async def test_each_object_is_read_by_id_if_the_list_fails(world: EngineHarness, platform: DelayingPlatform) -> None:
    new_plan = updates(world, 3)
    platform.faults = [Fault("GET", "/edges/tls", Transient("503", status=503))]
    assert set((await world.outcomes(new_plan)).values()) == {Outcome.DONE}
    assert reads(world) == 1 + 3


# --- fields of each PATCH --------------------------------------------------------------------------------------------


class EmptyingPlatform(DelayingPlatform):
    """Empties `backends` if a PATCH omits it, as the public platform does."""

    def _carry_out(self, method: str, path: str, body: dict[str, Json]) -> Json:
        if method == "PATCH":
            body = {"backends": None, **body}
        return super()._carry_out(method, path, body)


@pytest.mark.parametrize("queue", [0.0, 60.0])
@pytest.mark.parametrize(
    ("kind", "collection", "backends"),
    [
        ("FailoverBackend", "/backends/failover", ["bkdhr_1", "bkdhr_2"]),
        ("WeightedBackend", "/backends/weighted", {"bkdhr_1": 1, "bkdhr_2": 0}),
    ],
)
@pytest.mark.parametrize("action", ["update", "forget", "adopt"])
async def test_an_update_sends_the_current_backends(
    kind: str, collection: str, backends: Json, action: str, queue: float
) -> None:
    platform = EmptyingPlatform(kinds.every(), queue=queue)
    world = EngineHarness(platform, clock=platform.clock)
    address = Address(kind, "pay")
    record = "" if action == "adopt" else owners.write("", Owner("prod", address, "intent-of-prod-1"))
    live: dict[str, Json] = {"id": "b_1", "metadata": record, "backends": backends}
    platform.objects[collection] = {"b_1": live}
    body = {"metadata": ""} if action == "forget" else {"description": "after"}
    drafts = {"update": OwnerDraft(address, intent="intent-of-prod-1"), "adopt": OwnerDraft(address)}
    platform.faults = [Fault("PATCH", collection, Transient("503", status=503))]
    call = update(str(address), f"{collection}/b_1", body, target="b_1", owner=drafts.get(action))
    assert set((await world.outcomes(plan(call))).values()) == {Outcome.DONE}
    assert live["backends"] == backends
    assert all(live[name] == value for name, value in body.items())


async def test_an_update_of_backends_sends_the_new_ones(platform: DelayingPlatform, world: EngineHarness) -> None:
    address, path = Address("FailoverBackend", "pay"), "/backends/failover"
    record = owners.write("", Owner("prod", address, "intent-of-prod-1"))
    platform.objects[path] = {"b_1": {"id": "b_1", "metadata": record, "backends": ["bkdhr_1"]}}
    changes: list[list[str]] = [["bkdhr_2"], []]
    for backends in changes:
        await world.apply(plan(update(str(address), f"{path}/b_1", {"backends": backends}, target="b_1")))
        assert platform.objects[path]["b_1"]["backends"] == backends


@pytest.mark.parametrize("backends", [["bkdhr_1"], None])
async def test_an_update_sends_no_other_current_values(
    platform: DelayingPlatform, world: EngineHarness, backends: Json
) -> None:
    address, path = Address("FailoverBackend", "pay"), "/backends/failover/b_1"
    record = owners.write("", Owner("prod", address, "intent-of-prod-1"))
    live: dict[str, Json] = {"id": "b_1", "metadata": record, "description": "x", "backends": backends}
    platform.objects["/backends/failover"] = {"b_1": live}
    change = update(str(address), path, {"description": "after"}, target="b_1")
    gone = delete(str(address), path, "b_1", needs=(change.id,))
    await world.apply(plan(change, gone))
    sent = {method: body for (method, _), body in zip(platform.log, platform.bodies, strict=True)}
    assert sent["PATCH"] == {"description": "after"} | ({"backends": backends} if backends else {})
    assert not sent["DELETE"]
