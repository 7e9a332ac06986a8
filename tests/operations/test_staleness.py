"""What of a plan file still holds, where an address has more names or objects than one."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Reason
from reconciler.model.kind import Kind
from reconciler.model.manifest import Manifest
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Approval, Call, Forecast, Observed, OwnerDraft, Plan, Verb
from reconciler.model.snapshot import Binding, Live, Snapshot
from reconciler.model.value import Template
from reconciler.operations.applying import remaining_plan, staleness
from reconciler.operations.applying.plan_files import PlanFile
from reconciler.planning.comparing.canonical_fields import canonical_live
from reconciler.planning.comparing.plan_fields import show_fields
from reconciler.project.manifests.load import Loaded
from reconciler.project.settings.config import Config
from reconciler.rendering.wire import plan_json
from tests.harness.builders import LENIENT, at, declare, live, make_plan, record, ref, snapshot
from tests.harness.steps import count_steps


@pytest.mark.parametrize("description", ["", "changed as well"])
def test_an_object_that_is_renamed_and_replaced_is_still_managed_and_deleted(description: str) -> None:
    was = {"domain": "a.example.com"}
    now = {"domain": "b.example.com"}
    old = live("ReservedDomain", "rd_old", was, owner=record("ReservedDomain/b", was, intent="i0"))
    new = live("ReservedDomain", "rd_new", now, owner=record("ReservedDomain/a", now, intent="i1", replaces="rd_old"))
    seen = snapshot(old, new)
    declared = declare("ReservedDomain/a", {**now, "description": description}, moved=["ReservedDomain/b"])
    plan = make_plan(declared, seen=seen, options=LENIENT)
    assert "rd_old" in [change.id for change in plan.changes]
    assert staleness.find_changed_objects(plan, seen) == {}


def test_an_object_with_an_unapplied_rename_is_found_by_its_recorded_name() -> None:
    bot = live("BotUser", "bot_1", {"name": "nightly"})
    seen = snapshot(bot, bindings={"BotUser/old": Binding("bot_1", {})})
    plan = make_plan(declare("BotUser/new", {"name": "nightly"}, moved=["BotUser/old"]), seen=seen)
    assert plan.bindings.keys() == {at("BotUser/new"), at("BotUser/old")}
    rest, _ = remaining_plan.without_changed(plan, {at("BotUser/new")})
    assert (rest.changes, rest.bindings) == ((), {})


def test_the_rest_of_a_plan_has_its_own_forecast_and_approvals() -> None:
    names = [f"a{number}" for number in range(12)]
    was, now = {"description": "was"}, {"description": "now"}
    policies = [live("IPPolicy", f"ipp_{n}", was, owner=record(f"IPPolicy/{n}", was, intent=f"i{n}")) for n in names]
    plan = make_plan(*(declare(f"IPPolicy/{name}", now) for name in names), seen=snapshot(*policies))
    plan = replace(plan, forecast=Forecast(12, 60.0))
    assert [approval.flag for approval in plan.approvals] == ["--allow update:*=12"]
    rest, _ = remaining_plan.without_changed(plan, {at("IPPolicy/a0")})
    assert rest.forecast == Forecast(11, 55.0)
    assert [approval.flag for approval in rest.approvals] == ["--allow update:*=11"]
    nothing, _ = remaining_plan.without_changed(plan, {at(f"IPPolicy/{name}") for name in names})
    assert (nothing.approvals, nothing.forecast) == ((), Forecast(0, 0.0))


@pytest.mark.parametrize(
    ("what", "kind", "count", "refused", "left"),
    [
        ("update", "*", 2, "BotUser/update", [1]),
        ("delete", "*", 2, "BotUser/delete", [1]),
        ("delete", "BotUser", 1, "BotUser/delete", []),
        ("delete", "BotUser", 1, "IPPolicy/replace", [1]),
        ("delete-protected", "BotUser", 1, "BotUser/delete", []),
        ("delete", "IPPolicyRule", 2, "BotUser/delete", [2]),
        ("account", "*", 1, "BotUser/delete", [1]),
        ("empty", "*", 9, "BotUser/delete", [9]),
    ],
)
def test_an_approval_never_covers_more_than_the_remaining_changes(
    what: str, kind: str, count: int, refused: str, left: list[int]
) -> None:
    actions = [Action.UPDATE, Action.MOVE, Action.DELETE, Action.REPLACE, Action.CREATE]
    homes = ["BotUser", "BotUser", "BotUser", "IPPolicy", "IPPolicy"]
    changes = tuple(
        Change(at(f"{home}/{action}"), action, Reason.FIELDS) for home, action in zip(homes, actions, strict=True)
    )
    parts = 2 if kind == "IPPolicyRule" else 0  # which go with something
    plan = Plan("prod", changes=changes, approvals=(Approval(what, kind, count, "why", granted=True, parts=parts),))
    rest, _ = remaining_plan.without_changed(plan, {at(refused)})
    assert [approval.count for approval in rest.approvals] == left


def test_each_approval_of_a_plan_is_reduced_separately() -> None:
    plan = Plan(
        "prod",
        changes=(
            Change(at("BotUser/a"), Action.DELETE, Reason.REMOVED),
            Change(at("BotUser/b"), Action.DELETE, Reason.REMOVED),
        ),
        approvals=tuple(Approval(what, "*", 2, "why") for what in ("update", "empty", "delete", "account")),
    )
    rest, _ = remaining_plan.without_changed(plan, {at("BotUser/a")})
    assert [approval.flag for approval in rest.approvals] == [
        "--allow empty:*=2",
        "--allow delete:*=1",
        "--allow account:*=2",
    ]
    same, _ = remaining_plan.without_changed(plan, ())
    assert same.approvals == plan.approvals


@pytest.mark.parametrize("work", ["compare", "leave out"])
def test_the_work_of_the_staleness_check_grows_with_the_plan_and_not_with_its_square(work: str) -> None:
    """Counts the lines of Python that run for a plan and for one of twice its size."""

    def steps(size: int) -> int:
        plan, seen = _plan_of(size)
        first = plan.changes[0].address
        return count_steps(
            lambda: (
                staleness.find_changed_objects(plan, seen)
                if work == "compare"
                else remaining_plan.without_changed(plan, {first})
            )
        )

    steps(1)  # fills the caches
    assert steps(200) < 2.3 * steps(100)


def _plan_of(size: int) -> tuple[Plan, Snapshot]:
    """Creates with a unique key, updates, and a chain of references, beside as many undeclared objects."""
    was, now = {"description": "was"}, {"description": "now"}
    updates = [
        live("IPPolicy", f"ipp_{n}", was, owner=record(f"IPPolicy/p{n}", was, intent=f"i{n}")) for n in range(size)
    ]
    others = [live("ReservedDomain", f"rd_{n}", {"domain": f"other{n}.example.com"}) for n in range(size)]
    seen = snapshot(*updates, *others)
    declared = [
        *(declare(f"ReservedDomain/d{n}", {"domain": f"d{n}.example.com"}) for n in range(size)),
        *(declare(f"IPPolicy/p{n}", now) for n in range(size)),
    ]
    plan = make_plan(*declared, seen=seen, options=LENIENT)
    chained = [replace(call, needs=(before.id,)) for before, call in zip(plan.calls, plan.calls[1:], strict=False)]
    return replace(plan, calls=(plan.calls[0], *chained)), seen


def test_a_new_object_is_not_created_if_its_kind_cannot_be_listed() -> None:
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot())
    (lines,) = staleness.find_changed_objects(plan, snapshot(cut=["TLSEdge"])).values()
    assert lines == ["the list of TLSEdge objects is incomplete: cut"]


def test_a_replaced_object_that_another_stack_adopted_is_stale() -> None:
    was, now = {"domain": "a.example.com"}, {"domain": "b.example.com"}
    old = live("ReservedDomain", "rd_old", was, owner=record("ReservedDomain/a", was, intent="i0"))
    new = live("ReservedDomain", "rd_new", now, owner=record("ReservedDomain/a", now, intent="i1", replaces="rd_old"))
    declared = declare("ReservedDomain/a", {**now, "description": "changed as well"})
    plan = make_plan(declared, seen=snapshot(old, new), options=LENIENT)
    assert ("rd_old" in [change.id for change in plan.changes], plan.observed[at("ReservedDomain/a")].id) == (
        True,
        "rd_new",
    )
    theirs = live("ReservedDomain", "rd_old", was, owner=record("ReservedDomain/a", was, stack="theirs"))
    (lines,) = staleness.find_changed_objects(plan, snapshot(theirs, new)).values()
    assert lines == ["ReservedDomain/a: rd_old is now managed by theirs ReservedDomain/a"]


def test_an_object_that_a_finished_call_updated_is_stale_if_it_is_deleted_before_the_next() -> None:
    was = {"description": "was", "traffic_policy": {"value": "{}"}}
    edge = live("TLSEdge", "e", was, owner=record("TLSEdge/e", was))
    plan = make_plan(declare("TLSEdge/e", {"description": "now"}), seen=snapshot(edge))
    first, second = plan.calls
    assert staleness.find_changed_objects(plan, snapshot(edge), {first.id}) == {}
    (lines,) = staleness.find_changed_objects(plan, snapshot(), {first.id}).values()
    assert lines == ["TLSEdge/e: e was deleted"]
    assert second.target == "e"


def test_an_equal_object_of_a_kind_that_may_exist_twice_is_no_conflict_with_a_create() -> None:
    pem = {"ca_pem": "-----BEGIN CERTIFICATE-----"}
    plan = make_plan(declare("CertificateAuthority/a", pem), seen=snapshot())
    assert [call.method for call in plan.calls] == ["POST"]
    assert staleness.find_changed_objects(plan, snapshot(live("CertificateAuthority", "ca_1", pem))) == {}


def test_objects_that_no_finished_call_created_are_not_missing() -> None:
    rule = {"ip_policy_id": ref("IPPolicy/office"), "cidr": "10.0.0.0/8", "action": "allow"}
    plan = make_plan(declare("IPPolicy/office"), declare("IPPolicyRule/r", rule), declare("TLSEdge/e"), seen=snapshot())
    edge = live("TLSEdge", "e", owner=record("TLSEdge/e", {}, intent="i9"))
    rest, lost = remaining_plan.without_finished_calls(plan, snapshot(edge), {"create TLSEdge/e"})
    assert (lost, [call.id for call in rest.calls]) == ({}, ["create IPPolicy/office", "create IPPolicyRule/r"])
    _, lost = remaining_plan.without_finished_calls(plan, snapshot(), {"create IPPolicy/office"})
    assert lost == {
        at("IPPolicyRule/r"): ["IPPolicyRule/r: IPPolicy/office, which this plan created, does not exist any more"]
    }


# --- plan files that an earlier run applied in part -------------------------------------------------------------------

TOKEN, EDGE, BOT = at("TunnelCredential/c"), at("TLSEdge/a"), at("BotUser/b")
MADE = live("TunnelCredential", "cr_1", owner=record(str(TOKEN), {}, intent="i-made", pending=True))


def resume(plan: Plan, seen: Snapshot, *done: str) -> tuple[Plan, dict[Address, list[str]]]:
    return remaining_plan.without_finished_calls(plan, seen, set(done))


def test_the_intent_of_a_create_is_unchanged_when_the_rest_of_the_plan_is_applied() -> None:
    """Its receipt names the intent: with another one the token would count as lost, and be replaced."""
    plan = make_plan(declare(str(TOKEN)))
    rest, lost = resume(plan, snapshot(MADE), f"create {TOKEN}")
    (complete,) = rest.calls
    assert complete.owner is not None
    assert (complete.owner.intent, complete.needs, rest.resolved) == ("i-made", (), {f"{TOKEN}.id": "cr_1"})
    assert ([change.address for change in rest.changes], lost) == ([TOKEN], {})


def test_an_object_that_was_deleted_after_an_earlier_run_is_not_completed() -> None:
    plan = make_plan(declare(str(TOKEN)))
    _, lost = resume(plan, snapshot(), f"create {TOKEN}")
    assert lost == {TOKEN: [f"{TOKEN}: {TOKEN}, which this plan created, does not exist any more"]}
    (lines,) = staleness.find_changed_objects(plan, snapshot(), {f"create {TOKEN}"}).values()
    assert lines == [f"{TOKEN}: the object that this plan created does not exist any more"]


def test_finished_calls_of_earlier_runs_are_neither_compared_nor_counted() -> None:
    plan = make_plan(declare(str(TOKEN)), declare(str(EDGE)))
    done = [call.id for call in plan.calls if call.address == TOKEN]
    rest, lost = resume(plan, snapshot(), *done)
    assert ([call.id for call in rest.calls], [change.address for change in rest.changes]) == (
        [f"create {EDGE}"],
        [EDGE],
    )
    assert (lost, staleness.find_changed_objects(plan, snapshot(), done)) == ({}, {})


def test_references_to_objects_of_an_earlier_run_are_resolved() -> None:
    authority = at("CertificateAuthority/ca")
    trusting = {"mutual_tls": {"certificate_authority_ids": [ref(str(authority))]}}
    plan = make_plan(declare(str(authority), {"ca_pem": "PEM"}), declare(str(EDGE), trusting))
    made = live("CertificateAuthority", "ca_1", {"ca_pem": "PEM"}, owner=record(str(authority), {"ca_pem": "PEM"}))
    rest, lost = resume(plan, snapshot(made), f"create {authority}")
    assert ([call.needs for call in rest.calls], rest.resolved, lost) == ([()], {f"{authority}.id": "ca_1"}, {})
    _, lost = resume(plan, snapshot(), f"create {authority}")
    assert list(lost) == [EDGE]


OLD = record(str(EDGE), {})


@pytest.mark.parametrize(
    ("objects", "bindings", "found"),
    [
        ([live("TLSEdge", "e1", owner=OLD)], {}, "e1"),
        ([], {}, None),
        # Nothing says which of two it was.
        ([live("TLSEdge", "e1", owner=OLD), live("TLSEdge", "e2", owner=OLD)], {}, None),
        # The object that the plan replaces does not count.
        ([live("TLSEdge", "seen", owner=OLD)], {}, None),
        ([live("TLSEdge", "seen", owner=OLD), live("TLSEdge", "e2", owner=OLD)], {}, "e2"),
        ([live("TLSEdge", "e1", owner=record(str(EDGE), {}, stack="theirs"))], {}, None),
        # By the binding of the store, unless its record names another address by now.
        ([live("TLSEdge", "e1")], {str(EDGE): Binding("e1")}, "e1"),
        ([live("TLSEdge", "e1", owner=record("TLSEdge/other", {}))], {str(EDGE): Binding("e1")}, None),
        ([live("TLSEdge", "seen")], {str(EDGE): Binding("seen")}, None),
        ([], {str(EDGE): Binding("e1")}, None),
    ],
)
def test_the_object_of_an_earlier_run_is_found_if_only_one_matches(
    objects: list[Live], bindings: dict[str, Binding], found: str | None
) -> None:
    plan = Plan("laws", observed={EDGE: Observed("seen", {}, "")})
    comparison = staleness.Comparison(plan, snapshot(*objects, bindings=bindings), {f"create {EDGE}"})
    created = comparison.find_created(EDGE)
    assert (created.id if created is not None else None) == found


# --- what changed -----------------------------------------------------------------------------------------------------


def update_of(was: dict[str, Any], now: dict[str, Any]) -> Plan:
    return make_plan(declare(str(EDGE), now), seen=snapshot(live("TLSEdge", "e", was, owner=record(str(EDGE), was))))


@pytest.mark.parametrize(
    ("objects", "lines"),
    [
        ([live("TLSEdge", "e", {"description": "was"}, owner=record(str(EDGE), {}))], []),
        ([], ["TLSEdge/a: e was deleted"]),
        (
            [live("TLSEdge", "e", {"description": "was"}, owner=record(str(EDGE), {}, stack="theirs"))],
            ["TLSEdge/a: e was managed by laws TLSEdge/a, is now managed by theirs TLSEdge/a"],
        ),
        (
            [live("TLSEdge", "e", {"description": "was"})],
            ["TLSEdge/a: e was managed by laws TLSEdge/a, is now not managed by any stack"],
        ),
        (
            [live("TLSEdge", "e", {"description": "was"}, owner=record(str(EDGE), {}, protect=True))],
            ["TLSEdge/a: e was managed by laws TLSEdge/a, is now managed by laws TLSEdge/a, protected"],
        ),
        (
            [live("TLSEdge", "e", {"description": "by hand"}, owner=record(str(EDGE), {}))],
            ['TLSEdge/a.description: was "was", is now "by hand"'],
        ),
        ([live("TLSEdge", "e", owner=record(str(EDGE), {}))], ['TLSEdge/a.description: was "was", is now ""']),
        (
            [live("TLSEdge", "e", {"description": "was", "hostports": ["a.x:443"]}, owner=record(str(EDGE), {}))],
            ['TLSEdge/a.hostports: was [], is now ["a.x:443"]'],
        ),
    ],
)
def test_a_changed_field_is_one_row(objects: list[Live], lines: list[str]) -> None:
    plan = update_of({"description": "was"}, {"description": "now"})
    found = staleness.find_changed_objects(plan, snapshot(*objects))
    assert [line for changes in found.values() for line in changes] == lines


@pytest.mark.parametrize("kind", kinds.every(), ids=attrgetter("name"))
def test_each_field_that_only_one_side_has_is_reported(kind: Kind) -> None:
    """A field that was not read when the plan was made, and is now; and one that is not read any more."""
    address = at(f"{kind.name}/a")
    seen = live(kind.name, "x", {field.name: "set" for field in kind.fields}, parent="p" if kind.parent else None)
    present = show_fields(kind, canonical_live(kind, seen), address)
    assert present.keys() <= {field.name for field in kind.fields}
    observed = Observed(seen.locator, {}, "")
    plan = Plan("laws", changes=(Change(address, Action.UPDATE, Reason.FIELDS, "x"),), observed={address: observed})
    for fields in ({}, *({field: present[field]} for field in present), present):
        partly = replace(plan, observed={address: replace(observed, fields=fields)})
        lines = staleness.find_changed_objects(partly, snapshot(seen)).get(address, [])
        added = sorted(field for field in present.keys() - fields.keys() if present[field] is not None)
        assert [line.partition(":")[0] for line in lines] == [f"{address}.{field}" for field in added]
        assert all(": was (not set), is now " in line for line in lines)
    older = replace(plan, observed={address: replace(observed, fields={**present, "of_an_older_version": 1})})
    assert staleness.find_changed_objects(older, snapshot(seen)) == {
        address: [f"{address}.of_an_older_version: was 1, is now (not set)"]
    }


def test_added_and_removed_modules_are_reported() -> None:
    module = {"backend": {"enabled": True, "backend": {"id": "b"}}}
    bare, whole = ({"description": "was", **more} for more in ({}, module))
    for before, after in ((bare, whole), (whole, bare)):
        seen, later = (live("TLSEdge", "e", body, owner=record(str(EDGE), {})) for body in (before, after))
        plan = make_plan(declare(str(EDGE), {"description": "now"}, ignore=["backend"]), seen=snapshot(seen))
        (lines,) = staleness.find_changed_objects(plan, snapshot(later)).values()
        assert [line.partition(":")[0] for line in lines] == ["TLSEdge/a.backend"]


@pytest.mark.parametrize("owner", [record(str(EDGE), {}), record(str(EDGE), {}, stack="theirs"), None])
def test_fields_that_an_earlier_run_wrote_are_not_compared_but_the_owner_is(owner: Owner | None) -> None:
    """The update is done, the removal of a module is not."""
    was = {"description": "was", "mutual_tls": {"certificate_authority_ids": ["ca_1"]}}
    authority = {"mutual_tls": {"enabled": True, "certificate_authorities": [{"id": "ca_1"}]}}
    seen = live("TLSEdge", "e", {"description": "was", **authority}, owner=record(str(EDGE), was))
    plan = make_plan(declare(str(EDGE), {"description": "now"}), seen=snapshot(seen))
    assert [call.id for call in plan.calls] == ["update TLSEdge/a", "remove module mutual_tls of TLSEdge/a"]
    now = live("TLSEdge", "e", {"description": "now", **authority}, owner=owner)
    found = staleness.find_changed_objects(
        plan, snapshot(now, live("CertificateAuthority", "ca_1")), {"update TLSEdge/a"}
    )
    assert bool(found) is (owner is None or owner.stack == "theirs")


@pytest.mark.parametrize(
    ("alike", "is_conflict"),
    [
        (live("ReservedDomain", "rd_1", {"domain": "a.x"}), True),
        (live("ReservedDomain", "rd_1", {"domain": "b.x"}), False),
        (live("ReservedDomain", "rd_1", {"domain": "b.x"}, owner=record("ReservedDomain/d", {})), True),
        (live("ReservedDomain", "rd_1", {"domain": "b.x"}, owner=record("ReservedDomain/other", {})), False),
        (live("ReservedDomain", "rd_1", {"domain": "a.x"}, owner=record("ReservedDomain/d", {}, stack="theirs")), True),
    ],
)
def test_an_object_that_exists_is_not_created_again(alike: Live, is_conflict: bool) -> None:
    plan = make_plan(declare("ReservedDomain/d", {"domain": "a.x"}))
    found = staleness.find_changed_objects(plan, snapshot(alike))
    assert [line for lines in found.values() for line in lines if "rd_1 exists now" in line] == [
        line for lines in found.values() for line in lines
    ]
    assert bool(found) is is_conflict


@pytest.mark.parametrize("parent", ["e1", "e2"])
def test_a_child_conflicts_with_one_of_the_same_parent_only(parent: str) -> None:
    spec = {"edge_id": "e1", "match": "/", "match_type": "exact_path"}
    plan = make_plan(declare("HTTPSEdgeRoute/r", spec), seen=snapshot(live("HTTPSEdge", "e1"), live("HTTPSEdge", "e2")))
    taken = {"match": "/", "match_type": "exact_path"}
    edges = [live("HTTPSEdge", id) for id in ("e1", "e2")]
    found = staleness.find_changed_objects(plan, snapshot(*edges, live("HTTPSEdgeRoute", "r1", taken, parent=parent)))
    assert bool(found) is (parent == "e1")


# --- what a plan names ------------------------------------------------------------------------------------------------


def ksuid(prefix: str, letter: str) -> str:
    return prefix + letter * 27


def call_to(path: str | Template, body: Any = None, target: str | None = None, **more: Any) -> Call:
    return Call(f"update {EDGE}", EDGE, Verb.UPDATE, path, target, body, **more)


@pytest.mark.parametrize(
    ("call", "kinds"),
    [
        (call_to("/edges/tls/e", {"description": "ipp_1"}), set()),
        (call_to("/edges/tls/e", {"description": f"see {ksuid('ipp_', 'a')}"}), set()),
        (call_to("/edges/tls/e", {"description": ksuid("xyz_", "a")}), set()),
        (call_to("/edges/tls/e", {"ip_restriction": {"ip_policy_ids": [ksuid("ipp_", "a")]}}), {"IPPolicy"}),
        (call_to("/edges/tls/e", {"description": ksuid("ipp_", "a")}, ksuid("ipp_", "a")), set()),
        (call_to("/edges/tls/e", {"description": ksuid("ipp_", "b")}, ksuid("ipp_", "a")), {"IPPolicy"}),
        (call_to("/edges/tls/e", {"description": ksuid("ipp_", "a")}, ksuid("ipp_", "b")), {"IPPolicy"}),
        (call_to(f"/vaults/{ksuid('vault_', 'a')}/x"), {"Vault"}),
        (call_to(Template((f"/vaults/{ksuid('vault_', 'a')}/", ref("IPPolicy/p"), "/x"))), {"Vault"}),
        (call_to("/edges/tls/e", [(ksuid("bot_", "a"),), ksuid("rd_", "a")]), {"BotUser", "ReservedDomain"}),
    ],
)
def test_the_kinds_of_every_id_that_a_call_names_are_read(call: Call, kinds: set[str]) -> None:
    changed = Change(at("TLSEdge/a"), Action.UPDATE, Reason.FIELDS)
    assert staleness.kinds_of(Plan("laws", changes=(changed,), calls=(call,))) == {"TLSEdge"} | kinds


def test_a_kind_is_read_that_is_changed_and_named_in_a_call() -> None:
    changed = Change(at("IPPolicy/p"), Action.UPDATE, Reason.FIELDS)
    call = call_to("/edges/tls/e", {"ip_restriction": {"ip_policy_ids": [ksuid("ipp_", "a")]}})
    assert staleness.kinds_of(Plan("laws", changes=(changed,), calls=(call,))) == {"IPPolicy"}


def test_objects_with_managed_modules_only_are_read_by_id() -> None:
    seen = {
        at("HTTPSEdgeRoute/a"): Observed("e1/r1", {}),
        at("HTTPSEdgeRoute/b"): Observed("e2/r2", {}),
        at("IPPolicy/a"): Observed("ipp_1", {}),
        at("EventSource/a"): Observed("esb_1/type", {}),
    }
    assert staleness.by_id(Plan("laws", observed=seen)) == {"HTTPSEdgeRoute": [("r1", "e1"), ("r2", "e2")]}


def test_the_live_fields_of_observed_objects_are_found_by_their_ids() -> None:
    seen = {at("IPPolicy/a"): Observed("ipp_1", {}), at("IPPolicy/b"): Observed("ipp_9", {})}
    found = staleness.live_fields(
        Plan("laws", observed=seen),
        snapshot(live("IPPolicy", "ipp_1", {"description": "a"}), live("IPPolicy", "ipp_2", {"description": "b"})),
    )
    assert {address: form["description"] for address, form in found.items()} == {at("IPPolicy/a"): "a"}


@pytest.mark.parametrize(
    ("objects", "cut", "lines"),
    [
        ([], [], [f"TLSEdge/a: {ksuid('ipp_', 'a')}, which it refers to, was deleted"]),
        ([live("IPPolicy", ksuid("ipp_", "a"))], [], []),
        ([live("IPPolicy", ksuid("ipp_", "b"))], ["IPPolicy"], []),  # it may be there
    ],
)
def test_the_objects_that_a_call_refers_to_must_exist(objects: list[Live], cut: list[str], lines: list[str]) -> None:
    restriction = {"ip_restriction": {"ip_policy_ids": [ksuid("ipp_", "a")]}}
    edge = live("TLSEdge", "e", {}, owner=record(str(EDGE), {}))
    policy = live("IPPolicy", ksuid("ipp_", "a"))
    plan = make_plan(declare(str(EDGE), restriction), seen=snapshot(edge, policy))
    found = staleness.find_changed_objects(plan, snapshot(edge, *objects, cut=cut))
    assert [line for changes in found.values() for line in changes] == lines
    done = [call.id for call in plan.calls]
    assert staleness.find_changed_objects(plan, snapshot(edge), done) == {}


def edge_with_modules(**more: Any) -> Live:
    authority = {"mutual_tls": {"enabled": True, "certificate_authorities": [{"id": "ca_1"}]}}
    return live("TLSEdge", "e", {"description": "was", **authority, **more.pop("body", {})}, **more)


def plan_of_two_calls() -> Plan:
    """An update of the edge that writes its record, and the removal of a module, which does not."""
    was = {"description": "was", "mutual_tls": {"certificate_authority_ids": ["ca_1"]}}
    edge = edge_with_modules(owner=record(str(EDGE), was))
    plan = make_plan(declare(str(EDGE), {"description": "now"}), seen=snapshot(edge))
    assert [call.verb for call in plan.calls] == [Verb.UPDATE, Verb.REMOVE]
    return plan


@pytest.mark.parametrize(
    ("done", "owner", "body", "changes"),
    [
        (0, record(str(EDGE), {}), {"description": "now"}, []),
        (0, record(str(EDGE), {}), {"description": "now", "hostports": ["a.x:443"]}, ["hostports"]),
        (0, record(str(EDGE), {}, protect=True), {"description": "now"}, []),  # the update wrote the record
        (1, record(str(EDGE), {}), {"mutual_tls": None}, []),
        (1, record(str(EDGE), {}), {}, []),
        (1, record(str(EDGE), {}), {"mutual_tls": None, "description": "by hand"}, ["description"]),
        (1, record(str(EDGE), {}, protect=True), {"mutual_tls": None}, [""]),  # the removal did not
        (1, record(str(EDGE), {}), {"mutual_tls": None, "metadata": "by hand"}, ["metadata"]),
        (0, record(str(EDGE), {}), {"description": "now", "metadata": "by hand"}, []),
    ],
)
def test_only_fields_that_earlier_runs_did_not_write_are_compared(
    done: int, owner: Owner, body: dict[str, Any], changes: list[str]
) -> None:
    plan = plan_of_two_calls()
    now = snapshot(edge_with_modules(owner=owner, body=body), live("CertificateAuthority", "ca_1"))
    found = staleness.find_changed_objects(plan, now, {plan.calls[done].id})
    names = [line.partition(":")[0].partition(".")[2] for lines in found.values() for line in lines]
    assert names == changes


def test_a_deleted_duplicate_differs_from_an_unmanaged_one() -> None:
    was, now = {"domain": "a.example.com"}, {"domain": "b.example.com"}
    old = live("ReservedDomain", "rd_old", was, owner=record("ReservedDomain/a", was, intent="i0"))
    new = live("ReservedDomain", "rd_new", now, owner=record("ReservedDomain/a", now, intent="i1", replaces="rd_old"))
    declared = declare("ReservedDomain/a", {**now, "description": "changed as well"})
    plan = make_plan(declared, seen=snapshot(old, new), options=LENIENT)
    (lines,) = staleness.find_changed_objects(plan, snapshot(new)).values()
    assert lines == ["ReservedDomain/a: rd_old was deleted"]
    free = live("ReservedDomain", "rd_old", was)
    other = live("ReservedDomain", "rd_old", was, owner=record("ReservedDomain/other", was))
    assert staleness.find_changed_objects(plan, snapshot(free, new)) == {}
    (lines,) = staleness.find_changed_objects(plan, snapshot(other, new)).values()
    assert lines == ["ReservedDomain/a: rd_old is now managed by laws ReservedDomain/other"]
    done = [call.id for call in plan.calls if call.verb is Verb.DELETE]
    assert staleness.find_changed_objects(plan, snapshot(new), done) == {}


def plan_with_duplicates(kind: str, spec: dict[str, Any], count: int, *parents: Live) -> tuple[Plan, list[Live]]:
    """A plan to replace an object of which interrupted replacements left duplicates."""
    parent = parents[0].id if parents else None
    body = {name: value for name, value in spec.items() if name != "edge_id"}
    found: list[Live] = []
    for number in range(count):
        owner = record(f"{kind}/a", spec, intent=f"i{number}", replaces=found[-1].locator if found else "")
        found.append(live(kind, f"x{number}", body, owner=owner, parent=parent))
    options = replace(LENIENT, to_replace=frozenset({at(f"{kind}/a")}))
    return make_plan(declare(f"{kind}/a", spec), seen=snapshot(*parents, *found), options=options), found


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("kind", "spec", "parents"),
    [
        ("ReservedDomain", {"domain": "a.example.com"}, []),
        ("HTTPSEdgeRoute", {"edge_id": "e1", "match": "/", "match_type": "exact_path"}, [live("HTTPSEdge", "e1")]),
    ],
)
def test_an_object_that_is_replaced_does_not_conflict_with_itself_or_its_duplicates(
    kind: str, spec: dict[str, Any], parents: list[Live], count: int
) -> None:
    plan, found = plan_with_duplicates(kind, spec, count, *parents)
    assert len(plan.changes) == count
    assert staleness.find_changed_objects(plan, snapshot(*parents, *found)) == {}


def test_a_moved_event_source_conflicts_with_an_existing_one() -> None:
    """The id of a source is its type, which only its subscription tells apart."""
    subscriptions = [live("EventSubscription", id, {"description": id}) for id in ("s1", "s2")]
    source = live("EventSource", "ip_policy_created.v0", {"type": "ip_policy_created.v0"}, parent="s1")
    moved = declare("EventSource/a", {"subscription_id": "s2", "type": "ip_policy_created.v0"})
    bindings = {"EventSource/a": Binding(source.locator)}
    plan = make_plan(moved, seen=snapshot(*subscriptions, source, bindings=bindings), options=LENIENT)
    assert staleness.find_changed_objects(plan, snapshot(*subscriptions, source)) == {}
    taken = live("EventSource", "ip_policy_created.v0", {"type": "ip_policy_created.v0"}, parent="s2")
    (lines,) = staleness.find_changed_objects(plan, snapshot(*subscriptions, source, taken)).values()
    assert "ip_policy_created.v0 exists now" in lines[0]


def test_a_replaced_object_is_deleted_only_while_its_replacement_exists() -> None:
    """Neither is a change of its own in the plan: without this look the last one would be deleted."""
    was, now = {"ca_pem": "OLD"}, {"ca_pem": "NEW"}
    old = live("CertificateAuthority", "ca_1", was, owner=record("CertificateAuthority/a", was, intent="i1"))
    new = live(
        "CertificateAuthority",
        "ca_2",
        now,
        owner=record("CertificateAuthority/a", now, intent="i2", replaces="ca_1"),
    )
    plan = make_plan(declare("CertificateAuthority/a", now), seen=snapshot(old, new))
    assert [call.target for call in plan.calls] == ["ca_1"]
    assert staleness.find_changed_objects(plan, snapshot(old, new)) == {}
    (lines,) = staleness.find_changed_objects(plan, snapshot(old)).values()
    assert lines == ["CertificateAuthority/a: ca_2 was deleted"]


def test_a_moved_event_source_is_deleted_only_while_its_replacement_exists() -> None:
    subscriptions = [live("EventSubscription", f"s{n}", owner=record(f"EventSubscription/s{n}", {})) for n in (1, 2)]
    old, new = (live("EventSource", "a.v0", {"type": "a.v0"}, parent=f"s{n}") for n in (1, 2))
    declared = [
        *(declare(f"EventSubscription/s{n}") for n in (1, 2)),
        declare("EventSource/a", {"subscription_id": ref("EventSubscription/s2"), "type": "a.v0"}),
    ]
    bindings = {"EventSource/a": Binding(old.locator)}
    plan = make_plan(*declared, seen=snapshot(*subscriptions, old, new, bindings=bindings), options=LENIENT)
    assert [call.path for call in plan.calls] == ["/event_subscriptions/s1/sources/a.v0"]
    assert staleness.find_changed_objects(plan, snapshot(*subscriptions, old, new)) == {}
    (lines,) = staleness.find_changed_objects(plan, snapshot(*subscriptions, old)).values()
    assert lines == ["EventSource/a: a.v0 was deleted"]


def test_an_object_that_an_earlier_run_deleted_to_replace_it_is_not_missing() -> None:
    delete = Call(f"delete {EDGE}", EDGE, Verb.DELETE, "/edges/tls/e", "e")
    create = Call(f"create {EDGE}", EDGE, Verb.CREATE, "/edges/tls", body={}, needs=(delete.id,))
    change = Change(EDGE, Action.REPLACE, Reason.REQUESTED, "e")
    plan = Plan("laws", changes=(change,), calls=(delete, create), observed={EDGE: Observed("e", {}, f"laws {EDGE}")})
    assert staleness.find_changed_objects(plan, snapshot(), {delete.id}) == {}
    (lines,) = staleness.find_changed_objects(plan, snapshot()).values()
    assert lines == ["TLSEdge/a: e was deleted"]
    (lines,) = staleness.find_changed_objects(plan, snapshot(), {create.id}).values()
    assert lines == [
        "TLSEdge/a: e was deleted",
        "TLSEdge/a: the object that this plan created does not exist any more",
    ]


def test_a_listed_object_is_compared_if_the_list_is_incomplete() -> None:
    plan = update_of({"description": "was"}, {"description": "now"})
    edge = live("TLSEdge", "e", {"description": "by hand"}, owner=record(str(EDGE), {}))
    (lines,) = staleness.find_changed_objects(plan, snapshot(edge, cut=["TLSEdge"])).values()
    assert lines == ['TLSEdge/a.description: was "was", is now "by hand"']
    (lines,) = staleness.find_changed_objects(plan, snapshot(cut=["TLSEdge"])).values()
    assert lines == ["the list of TLSEdge objects is incomplete: cut"]


def test_the_differences_of_an_object_are_in_the_order_of_their_names() -> None:
    plan = update_of({"description": "was"}, {"description": "now"})
    body = {"description": "by hand", "hostports": ["a.x:443"], "metadata": "m"}
    (lines,) = staleness.find_changed_objects(
        plan, snapshot(live("TLSEdge", "e", body, owner=record(str(EDGE), {})))
    ).values()
    assert [line.partition(":")[0] for line in lines] == [
        "TLSEdge/a.description",
        "TLSEdge/a.hostports",
        "TLSEdge/a.metadata",
    ]


def test_a_kind_without_owner_records_is_compared_by_its_fields() -> None:
    bot = live("BotUser", "bot_1", {"name": "ci"})
    bindings = {"BotUser/a": Binding("bot_1")}
    plan = make_plan(declare("BotUser/a", {"name": "cd"}), seen=snapshot(bot, bindings=bindings), options=LENIENT)
    assert staleness.find_changed_objects(plan, snapshot(bot)) == {}
    (lines,) = staleness.find_changed_objects(plan, snapshot(live("BotUser", "bot_1", {"name": "x"}))).values()
    assert lines == ['BotUser/a.name: was "ci", is now "x"']


@pytest.mark.parametrize(
    ("owners", "line"),
    [
        ((None,), "rd_1 exists now, with the same domain, and is not managed by any stack"),
        (("theirs",), "rd_1 exists now, with the same domain, and is managed by theirs ReservedDomain/d"),
        (("laws",), "rd_1 exists now"),
    ],
)
def test_an_object_that_exists_is_reported_with_its_owner(owners: tuple[str | None, ...], line: str) -> None:
    plan = make_plan(declare("ReservedDomain/d", {"domain": "a.x"}))
    (stack,) = owners
    owner = record("ReservedDomain/d", {}, stack=stack) if stack else None
    (lines,) = staleness.find_changed_objects(
        plan, snapshot(live("ReservedDomain", "rd_1", {"domain": "a.x"}, owner=owner))
    ).values()
    assert lines == [f"ReservedDomain/d: {line}"]


def test_objects_that_exist_are_reported_in_the_order_of_their_ids() -> None:
    plan = make_plan(declare("ReservedDomain/d", {"domain": "a.x"}))
    objects = [
        live("ReservedDomain", "rd_3", {"domain": "c.x"}, owner=record("ReservedDomain/d", {}, intent="i3")),
        live("ReservedDomain", "rd_1", {"domain": "a.x"}),
        live("ReservedDomain", "rd_2", {"domain": "b.x"}, owner=record("ReservedDomain/d", {}, intent="i2")),
    ]
    (lines,) = staleness.find_changed_objects(plan, snapshot(*objects)).values()
    assert [line.split()[1] for line in lines] == ["rd_1", "rd_2", "rd_3"]


# --- the rest of a plan -----------------------------------------------------------------------------------------------


def rest_of(
    plan: Plan, seen: Snapshot, done: tuple[str, ...] = (), **allow: int
) -> tuple[remaining_plan.RemainingPlan, list[str]]:
    """The rest of a plan that was in a file, and the approvals that it still needs."""
    loaded = Loaded(Manifest("laws", {}), ())
    file = PlanFile("p", plan, "", False, loaded, plan_json.write_plan(plan), secrets=0)
    allowed = {(what.replace("_", "-"), "*"): count for what, count in allow.items()}
    rest = remaining_plan.find_remaining_plan(file, seen, Config(Path(), "laws"), allowed, done)
    return rest, [approval.flag for approval in rest.plan.missing_approvals]


def many_updates(count: int) -> tuple[Plan, list[Live]]:
    was, now = {"description": "was"}, {"description": "now"}
    names = [f"a{number}" for number in range(count)]
    policies = [live("IPPolicy", f"ipp_{n}", was, owner=record(f"IPPolicy/{n}", was, intent=f"i{n}")) for n in names]
    return make_plan(*(declare(f"IPPolicy/{name}", now) for name in names), seen=snapshot(*policies)), policies


def test_an_approval_is_granted_by_at_least_the_remaining_number() -> None:
    plan, policies = many_updates(12)
    for allowed, missing in ((0, ["--allow update:*=12"]), (11, ["--allow update:*=12"]), (12, []), (13, [])):
        assert rest_of(plan, snapshot(*policies), update=allowed)[1] == missing
    granted = replace(plan, approvals=tuple(replace(approval, granted=True) for approval in plan.approvals))
    assert rest_of(granted, snapshot(*policies))[1] == []
    assert rest_of(plan, snapshot(*policies[1:]), update=11)[1] == []  # one of them changed


@pytest.mark.parametrize(
    ("approved", "missing"),
    [(None, ["--allow account:*=1"]), (False, ["--allow account:*=1"]), (True, ["--allow account:*=1"])],
)
def test_an_unexpected_account_needs_an_approval_of_its_own(approved: bool | None, missing: list[str]) -> None:
    """That of the file was given for another doubt, if any."""
    plan, policies = many_updates(1)
    if approved is not None:
        plan = replace(plan, approvals=(Approval("account", "*", 1, "another", granted=approved),))
    doubtful = replace(snapshot(*policies), doubt="another account")
    rest, flags = rest_of(plan, doubtful)
    assert (flags, [approval.why for approval in rest.plan.approvals]) == (missing, ["another account"])
    assert rest_of(plan, doubtful, account=1)[1] == []
    assert rest_of(replace(plan, changes=(), calls=(), observed={}), doubtful)[1] == (
        ["--allow account:*=1"] if approved is False else []
    )


def test_changes_are_reported_in_the_order_of_addresses_with_a_summary() -> None:
    plan, policies = many_updates(3)
    by_hand = [
        policy.with_body({**policy.body, "description": f"by hand {number}"}) for number, policy in enumerate(policies)
    ]
    rest, _ = rest_of(plan, snapshot(by_hand[2], policies[1], by_hand[0]))
    assert [line.partition(".")[0] for line in rest.lines] == ["IPPolicy/a0", "IPPolicy/a2"]
    assert rest.reason == "the platform changed after the plan was created"
    assert [call.id for call in rest.plan.calls] == ["update IPPolicy/a1"]
    assert {skipped.call.id: skipped.why for skipped in rest.skipped} == {
        f"update IPPolicy/{name}": "it changed since the plan was created" for name in ("a0", "a2")
    }
    same, _ = rest_of(plan, snapshot(*policies))
    assert (same.lines, same.skipped, len(same.plan.calls)) == ((), (), 3)


def test_dependents_of_a_stale_change_are_skipped() -> None:
    rule = {"ip_policy_id": ref("IPPolicy/a"), "cidr": "10.0.0.0/8", "action": "allow"}
    edge = {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/a")]}}
    declared = [
        declare("IPPolicy/a"),
        declare("IPPolicyRule/r", rule),
        declare("TLSEdge/e", edge),
        declare("IPPolicy/b"),
    ]
    plan = make_plan(*declared)
    taken = live("IPPolicy", "ipp_1", owner=record("IPPolicy/a", {}, intent="i9"))
    rest, _ = rest_of(plan, snapshot(taken))
    assert [call.id for call in rest.plan.calls] == ["create IPPolicy/b"]
    assert {skipped.call.id: skipped.why for skipped in rest.skipped} == {
        "create IPPolicy/a": "it changed since the plan was created",
        "create IPPolicyRule/r": "it needs a resource that changed",
        "create TLSEdge/e": "it needs a resource that changed",
    }


def test_outputs_of_objects_of_an_earlier_run_are_read_from_the_account() -> None:
    address, edge = at("ReservedAddress/r"), at("TCPEdge/e")
    text = Template(
        ("at ", ref(str(address), "addr"), " of ", ref(str(address), "region.name"), " as ", ref(str(address)))
    )
    create = Call(f"create {address}", address, Verb.CREATE, "/reserved_addrs", body={}, owner=OwnerDraft(address))
    after = Call(
        f"create {edge}",
        edge,
        Verb.CREATE,
        "/edges/tcp",
        body={"description": text},
        needs=(create.id,),
        owner=OwnerDraft(edge),
    )
    changes = tuple(Change(created, Action.CREATE, Reason.DECLARED) for created in (address, edge))
    plan = Plan("laws", changes=changes, calls=(create, after), resolved={"Vault/v.id": "vault_1"})
    made = live("ReservedAddress", "ra_1", {"addr": "1.tcp:9", "region": "eu"}, owner=record(str(address), {}))
    rest, lost = resume(plan, snapshot(made), create.id)
    assert rest.resolved == {
        "Vault/v.id": "vault_1",
        f"{address}.addr": "1.tcp:9",
        f"{address}.region.name": None,
        f"{address}.id": "ra_1",
    }
    assert ([call.needs for call in rest.calls], lost, [change.address for change in rest.changes]) == (
        [()],
        {},
        [edge],
    )
    whole, nothing = resume(plan, snapshot(made))
    assert (whole is plan, nothing) == (True, {})
