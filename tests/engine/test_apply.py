"""Carrying out a plan: order, references, records, failures, interruption."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine.ports import Check, Conflict, Gone, Lost, NotSent, Refused, Transient
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


async def test_a_reference_becomes_the_id_of_what_was_created_before(world: EngineHarness) -> None:
    assert set((await world.outcomes(edge_with_ca())).values()) == {Outcome.DONE}
    (edge,) = world.platform.all("/edges/tls")
    (authority,) = world.platform.all("/certificate_authorities")
    assert edge["mutual_tls"] == {"certificate_authority_ids": [authority["id"]]}


async def test_a_reference_to_a_live_object_is_taken_from_the_plan(world: EngineHarness) -> None:
    call = create(str(EDGE), "/edges/tls", {"hostports": [Template(("", Ref(CA, "addr"), ""))]})
    await world.apply(plan(call, resolved={f"{CA}.addr": "1.tcp.example:20000"}))
    assert world.platform.all("/edges/tls")[0]["hostports"] == ["1.tcp.example:20000"]


async def test_a_reference_that_nobody_can_resolve_fails_the_call(world: EngineHarness) -> None:
    ended = await world.ended(plan(create(str(EDGE), "/edges/tls", {"description": Ref(CA, "addr")})))
    assert ended[f"create {EDGE}"].outcome is Outcome.FAILED
    assert "no response of the platform has a value for" in ended[f"create {EDGE}"].why
    assert world.platform.log == []
    assert world.journal.open == {}


async def test_an_id_with_strange_characters_stays_one_segment_of_a_path(world: EngineHarness) -> None:
    call = Call("put", BOT, Verb.UPDATE, Template(("/bot_users/", Ref(BOT))), body={"active": False})
    await world.apply(plan(call, resolved={f"{BOT}.id": "../x?y"}))
    assert world.platform.log == [("PATCH", "/bot_users/..%2Fx%3Fy")]


async def test_a_create_writes_the_owner_record_with_digests_of_what_is_known_by_then(world: EngineHarness) -> None:
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


async def test_applied_lists_whose_order_means_nothing_are_digested_in_one_order(world: EngineHarness) -> None:
    second = Address("CertificateAuthority", "second")
    call = create(str(EDGE), "/edges/tls", applied={"mutual_tls.certificate_authority_ids": [Ref(second), Ref(CA)]})
    await world.apply(plan(call, resolved={f"{CA}.id": "ca_1", f"{second}.id": "ca_2"}))
    record = owners.read(world.platform.all("/edges/tls")[0]["metadata"])[1]
    assert record is not None
    assert record.applied["mutual_tls.certificate_authority_ids"] == digest(["ca_1", "ca_2"])


async def test_an_update_after_a_create_keeps_the_intent(world: EngineHarness) -> None:
    follow = update(str(EDGE), Template(("/edges/tls/", Ref(EDGE))), {}, owner=OwnerDraft(EDGE), needs=("create",))
    first = create(str(EDGE), "/edges/tls")
    first = Call("create", first.address, first.verb, first.path, body=first.body, owner=first.owner)
    await world.apply(plan(first, follow))
    record = owners.read(world.platform.all("/edges/tls")[0]["metadata"])[1]
    assert record is not None
    assert list(world.journal.concluded) == [record.intent]


async def test_secrets_are_in_the_clear_on_the_wire_and_not_in_a_message(world: EngineHarness) -> None:
    world.platform.refuse = lambda method, path, body: Refused(f"I do not like {body and body['description']}")
    ended = await world.ended(plan(create(str(EDGE), "/edges/tls", {"description": Secret("hush-hush", "env:X")})))
    assert ended[f"create {EDGE}"].why == "I do not like (secret)"
    assert world.platform.bodies[0] is not None
    assert world.platform.bodies[0]["description"] == "hush-hush"


async def test_a_secret_that_the_platform_quotes_is_hidden_while_a_call_is_repeated_too(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("hush-hush is busy", status=503))]
    events = await world.apply(plan(create(str(EDGE), "/edges/tls", {"description": Secret("hush-hush", "env:X")})))
    assert [event.why for event in events if isinstance(event, Retried)] == ["(secret) is busy"]


@pytest.mark.parametrize(("status", "denied"), [(400, False), (401, True), (403, True), (409, False)])
async def test_a_refusal_says_whether_the_key_is_the_reason(world: EngineHarness, status: int, denied: bool) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Refused("no", status=status))]
    (ended,) = (await world.ended(plan(create(str(EDGE), "/edges/tls")))).values()
    assert ended.denied is denied


async def test_what_needs_a_failed_call_is_skipped_and_the_rest_goes_on(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/certificate_authorities", Refused("not a CA", status=400))]
    outcomes = await world.outcomes(plan(*edge_with_ca().calls, create(str(BOT), "/bot_users", {"name": "b"})))
    assert list(outcomes.values()).count(Outcome.DONE) == 1
    assert outcomes[f"create {CA}"] is Outcome.FAILED
    assert outcomes[f"create {EDGE}"] is Outcome.SKIPPED
    assert list(world.journal.concluded.values()) == [None, "bot_0001"]


@pytest.mark.parametrize("failure", [Transient("503", status=503), Lost("reset")])
@pytest.mark.parametrize("effect", [False, True])
async def test_a_patch_is_repeated_until_it_works(world: EngineHarness, failure: Transient, effect: bool) -> None:
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


async def test_a_module_without_fields_is_put(world: EngineHarness) -> None:
    await world.apply(plan(create(str(EDGE), "/edges/tls")))
    path = "/edges/tls/edgtls_0001/mutual_tls"
    await world.apply(plan(Call("put", EDGE, Verb.PUT, path, target="edgtls_0001", body={})))
    assert world.platform.sent("PUT") == [("PUT", path)]


async def test_an_adopted_object_is_bound_and_the_removal_of_a_module_leaves_it_so(world: EngineHarness) -> None:
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


async def test_patience_has_an_end(world: EngineHarness) -> None:
    await world.apply(plan(create(str(EDGE), "/edges/tls")))
    world.platform.faults = [Fault("DELETE", "/edges", Transient("still attached", status=400), times=99)]
    ended = await world.ended(plan(delete(str(EDGE), "/edges/tls/edgtls_0001", "edgtls_0001")))
    assert ended[f"delete {EDGE}"].why == "still attached"
    assert len(world.platform.sent("DELETE")) == 6


async def test_a_delete_that_finds_nothing_has_succeeded(world: EngineHarness) -> None:
    calls = [delete(str(EDGE), "/edges/tls/edgtls_0001", "edgtls_0001")]
    calls.append(Call("remove", EDGE, Verb.REMOVE, "/edges/tls/edgtls_0001/backend", target="edgtls_0001"))
    assert set((await world.outcomes(plan(*calls))).values()) == {Outcome.ALREADY}


@pytest.mark.parametrize("verb", [Verb.UPDATE, Verb.PUT])
async def test_changing_what_is_gone_fails(world: EngineHarness, verb: Verb) -> None:
    call = Call("change", EDGE, verb, "/edges/tls/edgtls_0001", target="edgtls_0001", body={"description": "x"})
    ended = await world.ended(plan(call))
    assert ended["change"].outcome is Outcome.FAILED
    assert "deleted after the plan was created" in ended["change"].why


async def test_a_conflict_fails_the_call(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Conflict("already there", status=409))]
    assert (await world.outcomes(plan(create(str(EDGE), "/edges/tls"))))[f"create {EDGE}"] is Outcome.FAILED
    assert list(world.journal.concluded.values()) == [None]


async def test_a_move_is_bound_in_the_place_of_the_former_address_once_the_record_says_so(world: EngineHarness) -> None:
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

    async def test_an_adoption_sends_nothing(self, world: EngineHarness) -> None:
        await world.apply(plan(update(str(BOT), "/bot_users/bot_7", {}, target="bot_7", owner=OwnerDraft(BOT))))
        assert world.platform.log == []
        assert world.journal.bindings == {BOT: Binding("bot_7")}

    async def test_a_move_frees_the_former_address(self, world: EngineHarness) -> None:
        old = Address("BotUser", "old")
        world.journal.bindings[old] = Binding("bot_7")
        moved = Change(BOT, Action.MOVE, Reason.RENAMED, "bot_7", former=old)
        call = update(str(BOT), "/bot_users/bot_7", {}, target="bot_7", owner=OwnerDraft(BOT))
        await world.apply(plan(call, changes=(moved,)))
        assert world.journal.bindings == {BOT: Binding("bot_7")}

    async def test_no_death_leaves_it_to_both_addresses(self, world: EngineHarness) -> None:
        old = Address("BotUser", "old")
        world.journal.bindings[old] = Binding("bot_7")
        moved = Change(BOT, Action.MOVE, Reason.RENAMED, "bot_7", former=old)
        call = update(str(BOT), "/bot_users/bot_7", {}, target="bot_7", owner=OwnerDraft(BOT))
        seen: list[set[Address]] = []
        await world.apply(plan(call, changes=(moved,)), on_checkpoint=lambda *_: seen.append({*world.journal.bindings}))
        assert seen.count({old}) > 0
        assert {frozenset(each) for each in seen} == {frozenset({old}), frozenset({BOT})}

    async def test_what_the_plan_says_to_remember_or_forget_is_done_without_a_call(self, world: EngineHarness) -> None:
        other = Address("BotUser", "other")
        world.journal.bindings[BOT] = Binding("bot_7")
        await world.apply(plan(bindings={BOT: None, other: Binding("bot_8")}))
        assert (world.platform.log, world.journal.bindings) == ([], {other: Binding("bot_8")})

    async def test_below_a_parent_the_binding_names_both(self, world: EngineHarness) -> None:
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

    async def test_an_update_of_fields_alone_leaves_the_binding_as_it_is(self, world: EngineHarness) -> None:
        world.journal.bindings[BOT] = bound = Binding("bot_7", {"name": digest("berlin")}, protect=True)
        world.platform.objects["/bot_users"] = {"bot_7": {"id": "bot_7"}}
        await world.apply(plan(update(str(BOT), "/bot_users/bot_7", {"active": False}, target="bot_7")))
        assert world.journal.bindings == {BOT: bound}

    async def test_the_delete_of_what_an_earlier_run_replaced_leaves_the_binding_as_it_is(
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

    async def test_what_is_replaced_is_remembered_until_it_is_deleted(self, world: EngineHarness) -> None:
        world.journal.bindings[BOT] = Binding("bot_7")
        new = create(str(BOT), "/bot_users", {"name": "berlin"})
        assert new.owner is not None
        new = replace(new, owner=replace(new.owner, replaces="bot_7"))
        await world.apply(plan(new))
        assert world.journal.bindings == {BOT: Binding("bot_0001", replaces="bot_7")}

    async def test_a_binding_names_the_id_as_the_platform_spells_it(self, world: EngineHarness) -> None:
        await world.apply(plan(update(str(BOT), "/bot_users/b%2F7", {}, target="b/7", owner=OwnerDraft(BOT))))
        assert world.journal.bindings == {BOT: Binding("b/7")}

    @pytest.mark.parametrize("replaces", ["bot_7", None])
    async def test_the_delete_of_a_create_first_replacement_leaves_the_new_binding(
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

    async def test_the_delete_of_another_object_leaves_what_is_replaced_in_the_binding(
        self, world: EngineHarness
    ) -> None:
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
    async def test_what_an_earlier_run_replaced_is_in_the_binding_until_it_is_deleted(
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


async def test_no_more_calls_run_at_once_than_allowed(world: EngineHarness) -> None:
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(20)]
    running = most = 0
    for event in await world.apply(plan(*calls), concurrency=3):
        running += isinstance(event, Started) - isinstance(event, Ended)
        most = max(most, running)
    assert most == 3


async def test_twice_as_many_calls_are_under_way_as_requests(
    world: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, requests, most_requests, running, most_running = world.platform.send, 0, 0, 0, 0

    async def counted(
        method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        nonlocal requests, most_requests
        requests += 1
        most_requests = max(most_requests, requests)
        try:
            return await send(method, path, body, check=check)
        finally:
            requests -= 1

    monkeypatch.setattr(world.platform, "send", counted)
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(40)]
    for event in await world.apply(plan(*calls), concurrency=8):
        running += isinstance(event, Started) - isinstance(event, Ended)
        most_running = max(most_running, running)
    assert (most_requests, most_running) == (8, 16)


async def test_after_a_stop_nothing_starts_and_what_runs_is_finished(world: EngineHarness) -> None:
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(5)]
    outcomes = []
    async for event in world.run(plan(*calls), concurrency=2):
        if isinstance(event, Started):
            world.stop.set()
        if isinstance(event, Ended):
            outcomes.append((event.outcome, event.why))
    assert sorted(outcomes) == [(Outcome.SKIPPED, "the run was stopped")] * 3 + [(Outcome.DONE, "")] * 2
    assert world.journal.open == {}


async def test_a_stop_cuts_the_wait_for_another_attempt_short(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("429", status=429, retry_after=200), times=99)]
    ended = []
    async for event in world.run(plan(create(str(EDGE), "/edges/tls"))):
        if isinstance(event, Retried):
            world.stop.set()
        if isinstance(event, Ended):
            ended.append(event)
    assert [(each.outcome, each.why) for each in ended] == [(Outcome.FAILED, "429")]
    assert (world.clock.now(), len(world.platform.sent("POST"))) == (0, 1)


async def test_closing_the_stream_cancels_what_runs(world: EngineHarness) -> None:
    before = asyncio.all_tasks()
    async with aclosing(world.run(plan(create(str(EDGE), "/edges/tls")))) as events:  # type: ignore[type-var]
        async for _ in events:
            break
    assert asyncio.all_tasks() == before
    await asyncio.sleep(0)
    assert world.platform.log == []


async def test_whoever_reads_slowly_gets_every_event(world: EngineHarness) -> None:
    """Also those of calls that have all ended by then."""
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(5)]
    events = []
    async for event in world.run(plan(*calls)):
        for _ in range(50):
            await asyncio.sleep(0)
        events.append(type(event))
    assert sorted(events, key=str) == [Ended] * 5 + [Started] * 5


async def test_the_caller_says_how_often_a_request_is_tried(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("busy", status=503), times=99)]
    outcomes = await world.outcomes(plan(create(str(EDGE), "/edges/tls")), retries=RetryPolicy(attempts=3))
    assert (set(outcomes.values()), len(world.platform.sent("POST"))) == ({Outcome.FAILED}, 3)


async def heard(events: AsyncIterator[Event], told: list[Event]) -> None:
    async for event in events:
        told.append(event)  # noqa: PERF401 - a comprehension would lose what came before an exception


async def test_a_journal_that_fails_breaks_the_run_before_anything_is_sent(world: EngineHarness) -> None:
    world.journal.fails = OSError("disk full")
    told: list[Event] = []
    with pytest.raises(OSError, match="disk full"):
        await heard(world.run(edge_with_ca()), told)
    assert world.platform.log == []
    assert [event.outcome for event in told if isinstance(event, Ended)] == [Outcome.SKIPPED, Outcome.SKIPPED]


async def test_what_took_effect_and_could_not_be_written_down_is_not_said_to_have_failed(world: EngineHarness) -> None:
    def full(point: str, call: Call) -> None:
        if point == "after send":
            world.journal.fails = OSError("disk full")

    told: list[Event] = []
    with pytest.raises(OSError, match="disk full"):
        await heard(world.run(edge_with_ca(), on_checkpoint=full), told)
    ended = [event for event in told if isinstance(event, Ended)]
    assert [event.outcome for event in ended] == [Outcome.UNKNOWN, Outcome.SKIPPED]


async def test_no_call_starts_after_an_unexpected_error_and_the_first_error_is_raised(world: EngineHarness) -> None:
    errors = iter([OSError("first"), OSError("second")])

    def fail(point: str, call: Call) -> None:
        if point == "after send":
            raise next(errors)

    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(9)]
    told: list[Event] = []
    with pytest.raises(OSError, match="first"):
        await heard(world.run(plan(*calls), on_checkpoint=fail, concurrency=2), told)
    assert len(world.platform.sent("POST")) == 2
    outcomes = [event.outcome for event in told if isinstance(event, Ended)]
    assert sorted(outcomes) == [Outcome.SKIPPED] * 7 + [Outcome.UNKNOWN] * 2


async def test_an_interrupt_does_not_wait_for_calls_that_wait(world: EngineHarness) -> None:
    def interrupt(point: str, call: Call) -> None:
        if call.address == EDGE and point == "before send":
            raise Crash

    world.platform.faults = [Fault("POST", "/bot_users", Transient("429", status=429, retry_after=200))]
    calls = plan(create(str(BOT), "/bot_users", {"name": "b"}), create(str(EDGE), "/edges/tls"))
    with pytest.raises(Crash):
        await world.apply(calls, on_checkpoint=interrupt)
    assert world.clock.now() == 0


async def test_a_lost_request_whose_search_breaks_off_may_have_taken_effect(world: EngineHarness) -> None:
    def fail(point: str, call: Call) -> None:
        if point == "before search":
            raise OSError("disk full")

    world.platform.faults = [Fault("POST", "/edges/tls", Lost("reset"), effect=True)]
    told: list[Event] = []
    with pytest.raises(OSError, match="disk full"):
        await heard(world.run(plan(create(str(EDGE), "/edges/tls")), on_checkpoint=fail), told)
    assert [event.outcome for event in told if isinstance(event, Ended)] == [Outcome.UNKNOWN]


async def test_a_request_that_was_held_back_is_skipped_and_the_run_ends_with_the_reason(
    world: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hold_back(*_: object, **__: object) -> Json:
        raise NotSent from OSError("the lock was lost")

    monkeypatch.setattr(world.platform, "send", hold_back)
    told: list[Event] = []
    with pytest.raises(OSError, match="the lock was lost"):
        await heard(world.run(plan(create(str(EDGE), "/edges/tls"))), told)
    assert [event.outcome for event in told if isinstance(event, Ended)] == [Outcome.SKIPPED]


async def test_a_request_that_was_held_back_without_a_reason_ends_the_run(
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
async def test_a_call_that_an_unexpected_error_ends_is_unknown_only_if_its_request_may_have_taken_effect(
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

    told: list[Event] = []
    with pytest.raises(OSError, match="disk full"):
        await heard(world.run(plan(call), on_checkpoint=fail), told)
    (ended,) = [event for event in told if isinstance(event, Ended)]
    assert (ended.outcome, ended.why, ended.id) == (outcome, "the run was aborted", call.target)


async def test_an_error_while_a_request_is_under_way_leaves_it_unknown(
    world: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_off(*_: object, **__: object) -> Json:
        raise OSError("broken")

    monkeypatch.setattr(world.platform, "send", break_off)
    told: list[Event] = []
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(3)]
    with pytest.raises(OSError, match="broken"):
        await heard(world.run(plan(*calls), concurrency=1), told)
    ended = [(event.outcome, event.why) for event in told if isinstance(event, Ended)]
    assert ended == [(Outcome.UNKNOWN, "the run was aborted")] + [(Outcome.SKIPPED, "the run was aborted")] * 2


async def test_a_plan_without_calls_writes_nothing(world: EngineHarness) -> None:
    world.journal.fails = OSError("disk full")
    assert await world.apply(plan()) == []


async def test_events_tell_when_which_attempt_and_which_object(world: EngineHarness) -> None:
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


async def test_a_failure_after_a_stop_is_not_waited_for(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("busy", status=503))]
    events = []
    async for event in world.run(plan(create(str(EDGE), "/edges/tls"))):
        world.stop.set()
        events.append(event)
    assert [type(event) for event in events] == [Started, Ended]
    assert world.clock.slept == []


async def test_a_later_call_refers_to_what_an_update_answered(world: EngineHarness) -> None:
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
async def test_nothing_goes_on_after_the_last_event(world: EngineHarness, stops: bool) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("busy", status=503, retry_after=100))]
    before = asyncio.all_tasks()
    async for event in world.run(plan(create(str(EDGE), "/edges/tls"))):
        if stops and isinstance(event, Retried):
            world.stop.set()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_the_answer_to_a_module_says_nothing_about_the_object(world: EngineHarness) -> None:
    """A module may have an id of its own."""
    first = create(str(EDGE), "/edges/tls")
    path = Template(("/edges/tls/", Ref(EDGE), "/backend"))
    module = Call("put", EDGE, Verb.PUT, path, body={"id": "bkd_1"}, needs=(first.id,))
    follow = update(str(EDGE), Template(("/edges/tls/", Ref(EDGE))), {"description": "x"}, needs=("put",))
    assert set((await world.outcomes(plan(first, module, follow))).values()) == {Outcome.DONE}
    assert world.platform.sent("PATCH") == [("PATCH", "/edges/tls/edgtls_0001")]


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (3, 3), (4, 8)])
async def test_few_requests_at_once_leave_no_room_for_further_calls(
    world: EngineHarness, concurrency: int, most: int
) -> None:
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(12)]
    running, counts = 0, []
    for event in await world.apply(plan(*calls), concurrency=concurrency):
        running += isinstance(event, Started) - isinstance(event, Ended)
        counts.append(running)
    assert max(counts) == most


async def test_a_thousand_calls_end_each_exactly_once(world: EngineHarness) -> None:
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(1000)]
    outcomes = [event.call.id for event in await world.apply(plan(*calls)) if isinstance(event, Ended)]
    assert sorted(outcomes) == sorted(call.id for call in calls)


async def test_a_gone_parent_fails_a_create(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Gone("no such edge", status=404))]
    assert (await world.outcomes(plan(create(str(EDGE), "/edges/tls"))))[f"create {EDGE}"] is Outcome.FAILED
