"""An apply: order of calls, references, owner records, bindings, failures and interrupts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine.ports import Conflict, Gone, Lost, NotSent, Refused, Transient
from reconciler.engine.retry import RetryPolicy
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Reason
from reconciler.model.event import Ended, Event, Outcome, Retried, Started, Waited
from reconciler.model.plan import Call, OwnerDraft, Plan, Verb
from reconciler.model.snapshot import Binding
from reconciler.model.value import Json, Ref, Secret, Template, digest
from tests.harness.engine import Crash, EngineHarness, Fault, MemoryPlatform, create, delete, update

CA = Address("CertificateAuthority", "partners")
EDGE = Address("TLSEdge", "payments")
BOT = Address("BotUser", "berlin")


@pytest.fixture
def world() -> EngineHarness:
    return EngineHarness(MemoryPlatform(kinds.every()))


def plan(*calls: Call, **more: Any) -> Plan:
    return Plan("prod", calls=calls, **more)


def edge_with_ca(**more: Any) -> Plan:
    return plan(
        create(str(CA), "/certificate_authorities", {"ca_pem": "PEM"}),
        create(
            str(EDGE),
            "/edges/tls",
            {"mutual_tls": {"certificate_authority_ids": [Ref(CA)]}},
            needs=(f"create {CA}",),
            **more,
        ),
    )


async def test_a_reference_resolves_to_the_id_of_the_created_object(world: EngineHarness) -> None:
    assert set((await world.outcomes(edge_with_ca())).values()) == {Outcome.DONE}
    (edge,) = world.platform.all("/edges/tls")
    (authority,) = world.platform.all("/certificate_authorities")
    assert edge["mutual_tls"] == {"certificate_authority_ids": [authority["id"]]}


async def test_a_reference_to_a_live_object_resolves_from_the_plan(world: EngineHarness) -> None:
    call = create(str(EDGE), "/edges/tls", {"hostports": [Template(("", Ref(CA, "addr"), ""))]})
    await world.apply(plan(call, resolved={f"{CA}.addr": "1.tcp.example:20000"}))
    assert world.platform.all("/edges/tls")[0]["hostports"] == ["1.tcp.example:20000"]


async def test_a_call_with_an_unresolvable_reference_fails(world: EngineHarness) -> None:
    ended = await world.end_events(plan(create(str(EDGE), "/edges/tls", {"description": Ref(CA, "addr")})))
    assert ended[f"create {EDGE}"].outcome is Outcome.FAILED
    assert "no response of the platform has a value for" in ended[f"create {EDGE}"].why
    assert world.platform.log == []
    assert world.journal.open == {}


async def test_an_id_with_special_characters_is_one_path_segment(world: EngineHarness) -> None:
    call = Call("put", BOT, Verb.UPDATE, Template(("/bot_users/", Ref(BOT))), body={"active": False})
    await world.apply(plan(call, resolved={f"{BOT}.id": "../x?y"}))
    assert world.platform.log == [("PATCH", "/bot_users/..%2Fx%3Fy")]


async def test_a_create_writes_an_owner_record_with_digests_of_resolved_values(world: EngineHarness) -> None:
    applied = {"mutual_tls.certificate_authority_ids": [Ref(CA)], "description": Secret("hush", "env:X")}
    await world.apply(edge_with_ca(applied=applied))
    (edge,) = world.platform.all("/edges/tls")
    (authority,) = world.platform.all("/certificate_authorities")
    record = owners.read(edge["metadata"])[1]
    assert record is not None
    assert (record.stack, record.address) == ("prod", EDGE)
    assert record.applied == {
        "mutual_tls.certificate_authority_ids": digest([authority["id"]]),
        "description": digest(Secret("hush", ""), record.intent),
    }
    assert record.intent in world.journal.concluded


async def test_unordered_lists_have_one_digest(world: EngineHarness) -> None:
    second = Address("CertificateAuthority", "second")
    call = create(str(EDGE), "/edges/tls", applied={"mutual_tls.certificate_authority_ids": [Ref(second), Ref(CA)]})
    await world.apply(plan(call, resolved={f"{CA}.id": "ca_1", f"{second}.id": "ca_2"}))
    record = owners.read(world.platform.all("/edges/tls")[0]["metadata"])[1]
    assert record is not None
    assert record.applied["mutual_tls.certificate_authority_ids"] == digest(["ca_1", "ca_2"])


async def test_an_update_after_a_create_writes_the_same_intent(world: EngineHarness) -> None:
    follow = update(str(EDGE), Template(("/edges/tls/", Ref(EDGE))), {}, owner=OwnerDraft(EDGE), needs=("create",))
    first = create(str(EDGE), "/edges/tls")
    first = Call("create", first.address, first.verb, first.path, body=first.body, owner=first.owner)
    await world.apply(plan(first, follow))
    record = owners.read(world.platform.all("/edges/tls")[0]["metadata"])[1]
    assert record is not None
    assert list(world.journal.concluded) == [record.intent]


async def test_secrets_are_revealed_in_requests_and_redacted_in_messages(world: EngineHarness) -> None:
    world.platform.refuse = lambda method, path, body: Refused(f"I do not like {body and body['description']}")
    ended = await world.end_events(plan(create(str(EDGE), "/edges/tls", {"description": Secret("hush-hush", "env:X")})))
    assert ended[f"create {EDGE}"].why == "I do not like (secret)"
    assert world.platform.bodies[0] is not None
    assert world.platform.bodies[0]["description"] == "hush-hush"


async def test_a_secret_that_the_platform_quotes_is_redacted_in_retry_events(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("hush-hush is busy", status=503))]
    events = await world.apply(plan(create(str(EDGE), "/edges/tls", {"description": Secret("hush-hush", "env:X")})))
    assert [event.why for event in events if isinstance(event, Retried)] == ["(secret) is busy"]


@pytest.mark.parametrize(("status", "denied"), [(400, False), (401, True), (403, True), (409, False)])
async def test_a_failed_call_reports_whether_access_was_denied(world: EngineHarness, status: int, denied: bool) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Refused("no", status=status))]
    (ended,) = (await world.end_events(plan(create(str(EDGE), "/edges/tls")))).values()
    assert ended.denied is denied


async def test_dependents_of_a_failed_call_are_skipped_and_other_calls_run(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/certificate_authorities", Refused("not a CA", status=400))]
    outcomes = await world.outcomes(plan(*edge_with_ca().calls, create(str(BOT), "/bot_users", {"name": "b"})))
    assert list(outcomes.values()).count(Outcome.DONE) == 1
    assert outcomes[f"create {CA}"] is Outcome.FAILED
    assert outcomes[f"create {EDGE}"] is Outcome.SKIPPED
    assert list(world.journal.concluded.values()) == [None, "bot_0001"]


@pytest.mark.parametrize("failure", [Transient("503", status=503), Lost("reset")])
@pytest.mark.parametrize("effect", [False, True])
async def test_an_update_is_retried_until_it_succeeds(world: EngineHarness, failure: Transient, effect: bool) -> None:
    await world.apply(plan(create(str(EDGE), "/edges/tls")))
    world.platform.faults = [Fault("PATCH", "/edges/tls", failure, effect=effect, times=3)]
    call = update(str(EDGE), "/edges/tls/edgtls_0001", {"description": "new"}, target="edgtls_0001")
    events = await world.apply(plan(call))
    assert [type(event) for event in events] == [Started, Retried, Retried, Retried, Ended]
    assert world.platform.all("/edges/tls")[0]["description"] == "new"


async def test_an_update_writes_the_intent_of_the_plan(world: EngineHarness) -> None:
    """The intent of an object never changes: receipts of one-time secrets name it."""
    await world.apply(plan(create(str(EDGE), "/edges/tls")))
    draft = OwnerDraft(EDGE, intent="of-the-plan", applied={"description": "new"})
    path = "/edges/tls/edgtls_0001"
    await world.apply(plan(update(str(EDGE), path, {"description": "new"}, target="edgtls_0001", owner=draft)))
    record = owners.read(world.platform.all("/edges/tls")[0]["metadata"])[1]
    assert record is not None
    assert (record.intent, record.applied) == ("of-the-plan", {"description": digest("new")})


async def test_a_module_without_fields_is_updated(world: EngineHarness) -> None:
    await world.apply(plan(create(str(EDGE), "/edges/tls")))
    path = "/edges/tls/edgtls_0001/mutual_tls"
    await world.apply(plan(Call("put", EDGE, Verb.PUT, path, target="edgtls_0001", body={})))
    assert world.platform.requests("PUT") == [("PUT", path)]


async def test_an_adopted_object_remains_bound_after_a_module_is_removed(world: EngineHarness) -> None:
    """The binding is what reports later that the object vanished."""
    world.platform.objects["/edges/tls"] = {"edgtls_7": {"id": "edgtls_7", "backend": {}}}
    adopted = Change(EDGE, Action.ADOPT, Reason.UNOWNED, "edgtls_7")
    call = update(str(EDGE), "/edges/tls/edgtls_7", {}, target="edgtls_7", owner=OwnerDraft(EDGE))
    removal = Call("remove", EDGE, Verb.REMOVE, "/edges/tls/edgtls_7/backend", target="edgtls_7", needs=(call.id,))
    assert set((await world.outcomes(plan(call, removal, changes=(adopted,)))).values()) == {Outcome.DONE}
    assert world.journal.bindings == {EDGE: Binding("edgtls_7")}
    record = owners.read(world.platform.all("/edges/tls")[0]["metadata"])[1]
    assert record is not None
    assert record.intent.startswith("intent-")


async def test_a_delete_fails_after_its_last_attempt(world: EngineHarness) -> None:
    await world.apply(plan(create(str(EDGE), "/edges/tls")))
    world.platform.faults = [Fault("DELETE", "/edges", Transient("still attached", status=400), times=99)]
    ended = await world.end_events(plan(delete(str(EDGE), "/edges/tls/edgtls_0001", "edgtls_0001")))
    assert ended[f"delete {EDGE}"].why == "still attached"
    assert len(world.platform.requests("DELETE")) == 6


async def test_a_delete_of_a_deleted_object_succeeds(world: EngineHarness) -> None:
    calls = [delete(str(EDGE), "/edges/tls/edgtls_0001", "edgtls_0001")]
    calls.append(Call("remove", EDGE, Verb.REMOVE, "/edges/tls/edgtls_0001/backend", target="edgtls_0001"))
    assert set((await world.outcomes(plan(*calls))).values()) == {Outcome.ALREADY}


@pytest.mark.parametrize("verb", [Verb.UPDATE, Verb.PUT])
async def test_an_update_of_a_deleted_object_fails(world: EngineHarness, verb: Verb) -> None:
    call = Call("change", EDGE, verb, "/edges/tls/edgtls_0001", target="edgtls_0001", body={"description": "x"})
    ended = await world.end_events(plan(call))
    assert ended["change"].outcome is Outcome.FAILED
    assert "deleted after the plan was created" in ended["change"].why


async def test_a_conflict_fails_the_call(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Conflict("already there", status=409))]
    assert (await world.outcomes(plan(create(str(EDGE), "/edges/tls"))))[f"create {EDGE}"] is Outcome.FAILED
    assert list(world.journal.concluded.values()) == [None]


async def test_a_move_replaces_the_binding_after_the_owner_record_is_written(world: EngineHarness) -> None:
    await world.apply(plan(create("TLSEdge/old", "/edges/tls", {})))
    (made,) = world.platform.all("/edges/tls")
    old = Address("TLSEdge", "old")
    moved = Change(EDGE, Action.MOVE, Reason.RENAMED, made["id"], former=old)
    call = update(str(EDGE), f"/edges/tls/{made['id']}", {}, target=made["id"], owner=OwnerDraft(EDGE, intent="i"))
    seen: list[tuple[Address, Address]] = []

    def look(*_: Any) -> None:
        record = owners.read(world.platform.all("/edges/tls")[0]["metadata"])[1]
        (bound,) = world.journal.bindings
        assert record is not None
        seen.append((record.address, bound))

    await world.apply(plan(call, changes=(moved,)), on_checkpoint=look)
    assert list(dict.fromkeys(seen)) == [(old, old), (EDGE, old), (EDGE, EDGE)]


class TestKindsWithoutMetadata:
    async def test_a_create_is_bound(self, world: EngineHarness) -> None:
        await world.apply(plan(create(str(BOT), "/bot_users", {"name": "berlin"}, applied={"name": "berlin"})))
        assert world.journal.bindings == {BOT: Binding("bot_0001", {"name": digest("berlin")})}
        assert "metadata" not in world.platform.all("/bot_users")[0]

    async def test_an_adoption_sends_no_request(self, world: EngineHarness) -> None:
        await world.apply(plan(update(str(BOT), "/bot_users/bot_7", {}, target="bot_7", owner=OwnerDraft(BOT))))
        assert world.platform.log == []
        assert world.journal.bindings == {BOT: Binding("bot_7")}

    async def test_a_move_unbinds_the_former_address(self, world: EngineHarness) -> None:
        old = Address("BotUser", "old")
        world.journal.bindings[old] = Binding("bot_7")
        moved = Change(BOT, Action.MOVE, Reason.RENAMED, "bot_7", former=old)
        call = update(str(BOT), "/bot_users/bot_7", {}, target="bot_7", owner=OwnerDraft(BOT))
        await world.apply(plan(call, changes=(moved,)))
        assert world.journal.bindings == {BOT: Binding("bot_7")}

    async def test_a_move_never_binds_both_addresses(self, world: EngineHarness) -> None:
        old = Address("BotUser", "old")
        world.journal.bindings[old] = Binding("bot_7")
        moved = Change(BOT, Action.MOVE, Reason.RENAMED, "bot_7", former=old)
        call = update(str(BOT), "/bot_users/bot_7", {}, target="bot_7", owner=OwnerDraft(BOT))
        seen: list[set[Address]] = []
        await world.apply(plan(call, changes=(moved,)), on_checkpoint=lambda *_: seen.append({*world.journal.bindings}))
        assert seen.count({old}) > 0
        assert {frozenset(addresses) for addresses in seen} == {frozenset({old}), frozenset({BOT})}

    async def test_bindings_of_the_plan_are_stored_without_a_call(self, world: EngineHarness) -> None:
        other = Address("BotUser", "other")
        world.journal.bindings[BOT] = Binding("bot_7")
        await world.apply(plan(bindings={BOT: None, other: Binding("bot_8")}))
        assert (world.platform.log, world.journal.bindings) == ([], {other: Binding("bot_8")})

    async def test_the_binding_of_a_child_names_its_parent(self, world: EngineHarness) -> None:
        address = Address("EventSource", "created")
        world.platform.objects["/event_subscriptions"] = {"esb_1": {"id": "esb_1", "metadata": ""}}
        call = create(str(address), "/event_subscriptions/esb_1/sources", {"type": "ip_policy_created.v0"})
        await world.apply(plan(call))
        assert world.journal.bindings[address].id == "esb_1/ip_policy_created.v0"
        path = "/event_subscriptions/esb_1/sources/ip_policy_created.v0"
        await world.apply(plan(delete(str(address), path, "ip_policy_created.v0")))
        assert (world.journal.bindings, world.platform.all("/event_subscriptions/esb_1/sources")) == ({}, [])

    async def test_a_delete_under_a_new_name_unbinds_the_former_one(self, world: EngineHarness) -> None:
        old = Address("BotUser", "old")
        world.journal.bindings[old] = Binding("bot_7")
        buried = Change(BOT, Action.DELETE, Reason.ABSENT, "bot_7", former=old)
        await world.apply(plan(delete(str(BOT), "/bot_users/bot_7", "bot_7"), changes=(buried,)))
        assert world.journal.bindings == {}

    async def test_an_update_of_fields_does_not_change_the_binding(self, world: EngineHarness) -> None:
        world.journal.bindings[BOT] = bound = Binding("bot_7", {"name": digest("berlin")}, protect=True)
        world.platform.objects["/bot_users"] = {"bot_7": {"id": "bot_7"}}
        await world.apply(plan(update(str(BOT), "/bot_users/bot_7", {"active": False}, target="bot_7")))
        assert world.journal.bindings == {BOT: bound}

    async def test_the_delete_of_an_earlier_replaced_object_does_not_change_the_binding(
        self, world: EngineHarness
    ) -> None:
        world.journal.bindings[BOT] = bound = Binding("bot_8")
        old = delete(str(BOT), "/bot_users/bot_7", "bot_7", unbinds=False)
        assert set((await world.outcomes(plan(old))).values()) == {Outcome.ALREADY}
        assert world.journal.bindings == {BOT: bound}

    async def test_a_delete_unbinds(self, world: EngineHarness) -> None:
        world.journal.bindings[BOT] = Binding("bot_7")
        await world.apply(plan(delete(str(BOT), "/bot_users/bot_7", "bot_7")))
        assert world.journal.bindings == {}

    async def test_a_binding_names_the_replaced_object(self, world: EngineHarness) -> None:
        world.journal.bindings[BOT] = Binding("bot_7")
        new = create(str(BOT), "/bot_users", {"name": "berlin"})
        assert new.owner is not None
        new = replace(new, owner=replace(new.owner, replaces="bot_7"))
        await world.apply(plan(new))
        assert world.journal.bindings == {BOT: Binding("bot_0001", replaces="bot_7")}

    async def test_a_binding_contains_the_decoded_id(self, world: EngineHarness) -> None:
        await world.apply(plan(update(str(BOT), "/bot_users/b%2F7", {}, target="b/7", owner=OwnerDraft(BOT))))
        assert world.journal.bindings == {BOT: Binding("b/7")}

    @pytest.mark.parametrize("replaces", ["bot_7", None])
    async def test_the_delete_of_a_replaced_object_does_not_change_the_new_binding(
        self, world: EngineHarness, replaces: str | None
    ) -> None:
        """And once the replaced object is deleted, the binding names it no more: another may get its id."""
        world.journal.bindings[BOT] = Binding("bot_7")
        new = create(str(BOT), "/bot_users", {"name": "berlin"}, applied={"name": "berlin"})
        assert new.owner is not None
        new = replace(new, owner=replace(new.owner, replaces=replaces, protect=True))
        old = delete(str(BOT), "/bot_users/bot_7", "bot_7", needs=(new.id,), unbinds=False)
        points: list[tuple[str, Verb]] = []
        await world.apply(plan(new, old), on_checkpoint=lambda point, call: points.append((point, call.verb)))
        assert (("before bind", Verb.DELETE) in points) is (replaces is not None)
        assert world.journal.bindings == {BOT: Binding("bot_0001", {"name": digest("berlin")}, protect=True)}

    async def test_a_binding_names_the_replaced_object_after_the_delete_of_another(self, world: EngineHarness) -> None:
        """Or else nothing would delete the replaced object, if its own delete fails in this run."""
        world.journal.bindings[BOT] = Binding("bot_7", replaces="bot_6")
        new = create(str(BOT), "/bot_users", {"name": "berlin"})
        assert new.owner is not None
        new = replace(new, owner=replace(new.owner, replaces="bot_7"))
        oldest = delete(str(BOT), "/bot_users/bot_6", "bot_6", needs=(new.id,), unbinds=False)
        await world.apply(plan(new, oldest))
        assert world.journal.bindings == {BOT: Binding("bot_0001", replaces="bot_7")}

    @pytest.mark.parametrize("is_refused", [False, True])
    @pytest.mark.parametrize("is_updated", [False, True])
    async def test_a_binding_names_the_replaced_object_until_its_delete(
        self, world: EngineHarness, is_updated: bool, is_refused: bool
    ) -> None:
        """Afterwards another object may get its id, and would be deleted in its place."""
        world.journal.bindings[BOT] = Binding("bot_8", replaces="bot_7")
        world.platform.objects["/bot_users"] = {id: {"id": id} for id in ("bot_7", "bot_8")}
        world.platform.faults = [Fault("DELETE", "/bot_users/bot_7", Refused("no"))] if is_refused else []
        old = delete(str(BOT), "/bot_users/bot_7", "bot_7", unbinds=False)
        change = update(str(BOT), "/bot_users/bot_8", {"active": False}, target="bot_8", owner=OwnerDraft(BOT))
        calls = [old, replace(change, needs=() if is_refused else (old.id,))] if is_updated else [old]
        await world.apply(plan(*calls, bindings=dict(world.journal.bindings)))
        assert world.journal.bindings == {BOT: Binding("bot_8", replaces="bot_7" if is_refused else None)}


async def test_after_a_stop_no_call_starts_and_running_calls_end(world: EngineHarness) -> None:
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(5)]
    outcomes = []
    async for event in world.run(plan(*calls), concurrency=2):
        if isinstance(event, Started):
            world.stop.set()
        if isinstance(event, Ended):
            outcomes.append((event.outcome, event.why))
    assert sorted(outcomes) == [(Outcome.SKIPPED, "the run was stopped")] * 3 + [(Outcome.DONE, "")] * 2
    assert world.journal.open == {}


async def test_a_stop_ends_the_wait_before_a_retry(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("429", status=429, retry_after=200), times=99)]
    ended = []
    async for event in world.run(plan(create(str(EDGE), "/edges/tls"))):
        if isinstance(event, Retried):
            world.stop.set()
        if isinstance(event, Ended):
            ended.append(event)
    assert [(event.outcome, event.why) for event in ended] == [(Outcome.FAILED, "429")]
    assert (world.clock.now(), len(world.platform.requests("POST"))) == (0, 1)


async def test_closing_the_stream_cancels_running_calls(world: EngineHarness) -> None:
    before = asyncio.all_tasks()
    async with aclosing(world.run(plan(create(str(EDGE), "/edges/tls")))) as events:  # type: ignore[type-var]
        async for _ in events:
            break
    assert asyncio.all_tasks() == before
    await asyncio.sleep(0)
    assert world.platform.log == []


async def test_a_slow_reader_receives_each_event(world: EngineHarness) -> None:
    """Also those of calls that have all ended by then."""
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(5)]
    events = []
    async for event in world.run(plan(*calls)):
        for _ in range(50):
            await asyncio.sleep(0)
        events.append(type(event))
    assert sorted(events, key=str) == [Ended] * 5 + [Started] * 5


async def test_the_retry_policy_limits_the_attempts(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("busy", status=503), times=99)]
    outcomes = await world.outcomes(plan(create(str(EDGE), "/edges/tls")), retries=RetryPolicy(attempts=3))
    assert (set(outcomes.values()), len(world.platform.requests("POST"))) == ({Outcome.FAILED}, 3)


async def collect_events(events: AsyncIterator[Event], collected: list[Event]) -> None:
    async for event in events:
        collected.append(event)  # noqa: PERF401 - a comprehension would lose what came before an exception


async def test_a_run_is_aborted_before_its_first_request_if_the_journal_fails(world: EngineHarness) -> None:
    world.journal.fails = OSError("disk full")
    collected: list[Event] = []
    with pytest.raises(OSError, match="disk full"):
        await collect_events(world.run(edge_with_ca()), collected)
    assert world.platform.log == []
    assert [event.outcome for event in collected if isinstance(event, Ended)] == [Outcome.SKIPPED, Outcome.SKIPPED]


async def test_a_call_is_unknown_if_its_result_could_not_be_recorded(world: EngineHarness) -> None:
    def full(point: str, call: Call) -> None:
        if point == "after send":
            world.journal.fails = OSError("disk full")

    collected: list[Event] = []
    with pytest.raises(OSError, match="disk full"):
        await collect_events(world.run(edge_with_ca(), on_checkpoint=full), collected)
    ended = [event for event in collected if isinstance(event, Ended)]
    assert [event.outcome for event in ended] == [Outcome.UNKNOWN, Outcome.SKIPPED]


async def test_no_call_starts_after_an_unexpected_error_and_the_first_error_is_raised(world: EngineHarness) -> None:
    errors = iter([OSError("first"), OSError("second")])

    def fail(point: str, call: Call) -> None:
        if point == "after send":
            raise next(errors)

    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(9)]
    collected: list[Event] = []
    with pytest.raises(OSError, match="first"):
        await collect_events(world.run(plan(*calls), on_checkpoint=fail, concurrency=2), collected)
    assert len(world.platform.requests("POST")) == 2
    outcomes = [event.outcome for event in collected if isinstance(event, Ended)]
    assert sorted(outcomes) == [Outcome.SKIPPED] * 7 + [Outcome.UNKNOWN] * 2


async def test_an_interrupt_does_not_wait_for_retries(world: EngineHarness) -> None:
    def interrupt(point: str, call: Call) -> None:
        if call.address == EDGE and point == "before send":
            raise Crash

    world.platform.faults = [Fault("POST", "/bot_users", Transient("429", status=429, retry_after=200))]
    calls = plan(create(str(BOT), "/bot_users", {"name": "b"}), create(str(EDGE), "/edges/tls"))
    with pytest.raises(Crash):
        await world.apply(calls, on_checkpoint=interrupt)
    assert world.clock.now() == 0


async def test_a_lost_create_is_unknown_if_its_search_fails(world: EngineHarness) -> None:
    def fail(point: str, call: Call) -> None:
        if point == "before search":
            raise OSError("disk full")

    world.platform.faults = [Fault("POST", "/edges/tls", Lost("reset"), effect=True)]
    collected: list[Event] = []
    with pytest.raises(OSError, match="disk full"):
        await collect_events(world.run(plan(create(str(EDGE), "/edges/tls")), on_checkpoint=fail), collected)
    assert [event.outcome for event in collected if isinstance(event, Ended)] == [Outcome.UNKNOWN]


async def test_an_unsent_call_is_skipped_and_the_reason_is_raised(
    world: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hold_back(*_: object, **__: object) -> Json:
        raise NotSent from OSError("the lock was lost")

    monkeypatch.setattr(world.platform, "send", hold_back)
    collected: list[Event] = []
    with pytest.raises(OSError, match="the lock was lost"):
        await collect_events(world.run(plan(create(str(EDGE), "/edges/tls"))), collected)
    assert [event.outcome for event in collected if isinstance(event, Ended)] == [Outcome.SKIPPED]


async def test_a_request_that_was_not_sent_without_a_reason_aborts_the_run(
    world: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hold_back(*_: object, **__: object) -> Json:
        raise NotSent

    monkeypatch.setattr(world.platform, "send", hold_back)
    with pytest.raises(NotSent):
        await world.apply(plan(create(str(EDGE), "/edges/tls")))


MOVED_BOT = update(str(BOT), "/bot_users/bot_7", {}, target="bot_7", owner=OwnerDraft(BOT))
CHANGED_EDGE = update(str(EDGE), "/edges/tls/edgtls_7", {"description": "x"}, target="edgtls_7")


@pytest.mark.parametrize(
    ("call", "fails_at", "failure", "outcome"),
    [
        (create(str(EDGE), "/edges/tls"), "before intend", None, Outcome.SKIPPED),
        (create(str(EDGE), "/edges/tls"), "before send", None, Outcome.SKIPPED),
        (create(str(EDGE), "/edges/tls"), "before send", Transient("503", status=503), Outcome.SKIPPED),
        (create(str(EDGE), "/edges/tls"), "before send", Lost("reset"), Outcome.UNKNOWN),
        (create(str(EDGE), "/edges/tls"), "before conclude", None, Outcome.UNKNOWN),
        (create(str(EDGE), "/edges/tls"), "before conclude", Refused("no", status=400), Outcome.SKIPPED),
        (CHANGED_EDGE, "before send", Transient("503", status=503), Outcome.SKIPPED),
        (CHANGED_EDGE, "before send", Lost("reset"), Outcome.UNKNOWN),
        (CHANGED_EDGE, "after send", None, Outcome.UNKNOWN),
        (MOVED_BOT, "before bind", None, Outcome.SKIPPED),
    ],
)
async def test_an_aborted_call_is_unknown_only_if_its_request_may_have_taken_effect(
    world: EngineHarness, call: Call, fails_at: str, failure: Any, outcome: Outcome
) -> None:
    """The error comes after the failure of the first request, if that fails."""
    world.platform.objects["/edges/tls"] = {"edgtls_7": {"id": "edgtls_7"}}
    world.platform.faults = [Fault(method, "/", failure) for method in ("POST", "PATCH") if failure is not None]
    reached: list[str] = []

    def fail(point: str, call: Call) -> None:
        reached.append(point)
        is_retry = "conclude" in fails_at or reached.count(point) > 1
        if point == fails_at and (failure is None or is_retry):
            raise OSError("disk full")

    collected: list[Event] = []
    with pytest.raises(OSError, match="disk full"):
        await collect_events(world.run(plan(call), on_checkpoint=fail), collected)
    (ended,) = [event for event in collected if isinstance(event, Ended)]
    assert (ended.outcome, ended.why, ended.id) == (outcome, "the run was aborted", call.target)


async def test_a_call_is_unknown_if_an_error_ends_its_request(
    world: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_off(*_: object, **__: object) -> Json:
        raise OSError("broken")

    monkeypatch.setattr(world.platform, "send", break_off)
    collected: list[Event] = []
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(3)]
    with pytest.raises(OSError, match="broken"):
        await collect_events(world.run(plan(*calls), concurrency=1), collected)
    ended = [(event.outcome, event.why) for event in collected if isinstance(event, Ended)]
    assert ended == [(Outcome.UNKNOWN, "the run was aborted")] + [(Outcome.SKIPPED, "the run was aborted")] * 2


async def test_a_plan_without_calls_writes_nothing(world: EngineHarness) -> None:
    world.journal.fails = OSError("disk full")
    assert await world.apply(plan()) == []


async def test_events_contain_time_attempt_and_object(world: EngineHarness) -> None:
    world.platform.objects["/edges/tls"] = {"edgtls_7": {"id": "edgtls_7"}}
    world.platform.faults = [
        Fault("PATCH", "/edges/tls/edgtls_7", Transient("busy", status=503, retry_after=10), times=2)
    ]
    last = update("TLSEdge/other", "/edges/tls/edgtls_8", {}, target="edgtls_8", needs=("missing",))
    refused = replace(last, id="missing", path="/edges/tls/edgtls_8", body={"description": "x"}, needs=())
    events = await world.apply(plan(CHANGED_EDGE, refused, last))
    of_first = [event for event in events if not isinstance(event, Waited) and event.call is CHANGED_EDGE]
    waits = [event.wait for event in of_first if isinstance(event, Retried)]
    assert [(event.attempt, event.why) for event in of_first if isinstance(event, Retried)] == [
        (2, "busy"),
        (3, "busy"),
    ]
    assert waits == world.clock.slept
    assert all(10 <= wait <= 10.5 for wait in waits)
    started, ended = of_first[0], of_first[-1]
    assert isinstance(started, Started)
    assert isinstance(ended, Ended)
    assert (started.at, ended.at, ended.id) == (0.0, sum(waits), "edgtls_7")
    assert [(event.id, event.outcome) for event in events if isinstance(event, Ended) and event is not ended] == [
        ("edgtls_8", Outcome.FAILED),
        ("edgtls_8", Outcome.SKIPPED),
    ]


async def test_a_call_is_not_retried_after_a_stop(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("busy", status=503))]
    events = []
    async for event in world.run(plan(create(str(EDGE), "/edges/tls"))):
        world.stop.set()
        events.append(event)
    assert [type(event) for event in events] == [Started, Ended]
    assert world.clock.slept == []


async def test_a_reference_resolves_to_the_response_of_an_update(world: EngineHarness) -> None:
    world.platform.objects["/edges/tls"] = {"edgtls_7": {"id": "edgtls_7"}}
    second = create("TLSEdge/second", "/edges/tls", {"description": Ref(EDGE, "description")}, needs=(CHANGED_EDGE.id,))
    await world.apply(plan(CHANGED_EDGE, second, resolved={f"{EDGE}.description": "before"}))
    assert world.platform.all("/edges/tls")[-1]["description"] == "x"


async def test_only_adopted_and_moved_objects_with_a_record_are_bound_by_an_update(world: EngineHarness) -> None:
    other = Address("TLSEdge", "other")
    world.platform.objects["/edges/tls"] = {"edgtls_7": {"id": "edgtls_7"}}
    call = update(str(EDGE), "/edges/tls/edgtls_7", {}, target="edgtls_7", owner=OwnerDraft(EDGE))
    changes = (
        Change(EDGE, Action.UPDATE, Reason.FIELDS, "edgtls_7"),
        Change(other, Action.ADOPT, Reason.UNOWNED, "edgtls_8"),
        Change(Address("TLSEdge", "new"), Action.MOVE, Reason.RENAMED, "edgtls_9", former=Address("TLSEdge", "old")),
    )
    assert set((await world.outcomes(plan(call, changes=changes))).values()) == {Outcome.DONE}
    assert world.journal.bindings == {}


@pytest.mark.parametrize("stops", [False, True])
async def test_no_task_runs_after_the_last_event(world: EngineHarness, stops: bool) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("busy", status=503, retry_after=100))]
    before = asyncio.all_tasks()
    async for event in world.run(plan(create(str(EDGE), "/edges/tls"))):
        if stops and isinstance(event, Retried):
            world.stop.set()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_the_id_in_a_response_to_a_module_is_ignored(world: EngineHarness) -> None:
    """A module may have an id of its own."""
    first = create(str(EDGE), "/edges/tls")
    path = Template(("/edges/tls/", Ref(EDGE), "/backend"))
    module = Call("put", EDGE, Verb.PUT, path, body={"id": "bkd_1"}, needs=(first.id,))
    follow = update(str(EDGE), Template(("/edges/tls/", Ref(EDGE))), {"description": "x"}, needs=("put",))
    assert set((await world.outcomes(plan(first, module, follow))).values()) == {Outcome.DONE}
    assert world.platform.requests("PATCH") == [("PATCH", "/edges/tls/edgtls_0001")]


async def test_a_thousand_calls_end_each_exactly_once(world: EngineHarness) -> None:
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(1000)]
    outcomes = [event.call.id for event in await world.apply(plan(*calls)) if isinstance(event, Ended)]
    assert sorted(outcomes) == sorted(call.id for call in calls)


async def test_a_create_below_a_deleted_parent_fails(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Gone("no such edge", status=404))]
    assert (await world.outcomes(plan(create(str(EDGE), "/edges/tls"))))[f"create {EDGE}"] is Outcome.FAILED
