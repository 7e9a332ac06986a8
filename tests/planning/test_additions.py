"""Additions: children of managed objects that were created outside Git and that no manifest declares."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.change import Action, Reason, Risk
from reconciler.model.manifest import Declaration, Lifecycle
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Binding, Live
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import at, declare, errors, live, make_plan, record, ref, requests, snapshot

POLICY = live("IPPolicy", "ipp_1", owner=record("IPPolicy/office", {}))
RULE = {"ip_policy": {"id": "ipp_1"}, "cidr": "0.0.0.0/0", "action": "allow"}
ADDED = live("IPPolicyRule", "ipr_9", RULE)
EDGE = live("HTTPSEdge", "edghts_1", owner=record("HTTPSEdge/web", {}))
SUBSCRIPTION = live("EventSubscription", "esb_1", owner=record("EventSubscription/audit", {}))
VAULT = live("Vault", "vault_1", {"name": "pay"}, owner=record("Vault/pay", {"name": "pay"}))
CHILDREN = [
    ("IPPolicy/office", {}, POLICY, ADDED),
    ("HTTPSEdge/web", {}, EDGE, live("HTTPSEdgeRoute", "rt_9", {"match": "/x"}, parent="edghts_1")),
    ("EventSubscription/audit", {}, SUBSCRIPTION, live("EventSource", "vault_created.v0", parent="esb_1")),
    ("Vault/pay", {"name": "pay"}, VAULT, live("Secret", "secret_9", {"name": "k", "vault": {"id": "vault_1"}})),
]


def office(children: str = "report") -> Declaration:
    return declare("IPPolicy/office", unmanaged_children=children)


def list_additions(plan: Plan) -> list[tuple[str, str]]:
    return [(str(addition.address), str(addition.parent)) for addition in plan.additions]


def allow(count: int, kind: str = "IPPolicyRule") -> PlanOptions:
    return PlanOptions(allow={("delete", kind): count})


def test_each_kind_of_part_has_a_case() -> None:
    assert {child.kind for *_, child in CHILDREN} == {kind.name for kind in kinds.every() if kind.part_of is not None}


@pytest.mark.parametrize(("parent", "spec", "above", "child"), CHILDREN, ids=[row[3].kind for row in CHILDREN])
def test_an_undeclared_child_is_reported_with_its_parent_and_unchanged(
    parent: str, spec: dict[str, str], above: Live, child: Live
) -> None:
    plan = make_plan(declare(parent, spec), seen=snapshot(above, child))
    (addition,) = plan.additions
    assert (addition.address.kind, str(addition.parent)) == (child.kind, parent)
    assert (addition.reason, addition.risks) == (Reason.ADDED, (Risk.ADDED,))
    assert "value" not in [field.path for field in addition.fields]  # of a secret, which no response shows
    assert (plan.changes, plan.calls, plan.missing_approvals, plan.unmanaged) == ((), (), (), ())
    assert plan.has_drift


def test_an_addition_shows_all_its_fields() -> None:
    (addition,) = make_plan(office(), seen=snapshot(POLICY, ADDED)).additions
    assert {field.path: (field.old, field.new) for field in addition.fields} == {
        "cidr": ("0.0.0.0/0", None),
        "action": ("allow", None),
    }
    assert addition.position is not None


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        (POLICY, live("IPPolicyRule", "ipr_9", RULE, owner=record("IPPolicyRule/x", stack="other"))),
        (live("IPPolicy", "ipp_1"), ADDED),
        (live("IPPolicy", "ipp_1", owner=record("IPPolicy/office", {}, stack="other")), ADDED),
        (POLICY, live("IPPolicyRule", "ipr_9", {**RULE, "ip_policy": {"id": "ipp_2"}})),
    ],
    ids=["of another stack", "of an unmanaged parent", "of a parent of another stack", "of another parent"],
)
def test_a_child_of_another_stack_or_parent_is_no_addition(parent: Live, child: Live) -> None:
    assert make_plan(office(), seen=snapshot(parent, child)).additions == ()


def test_a_child_of_an_adopted_object_is_no_addition() -> None:
    adopted = declare("IPPolicy/office", id="ipp_1", unmanaged_children="delete")
    plan = make_plan(adopted, seen=snapshot(live("IPPolicy", "ipp_1"), ADDED), options=allow(9))
    assert (plan.additions, requests(plan)) == ((), ["PATCH /ip_policies/ipp_1"])


def test_a_child_bound_by_another_stack_in_the_store_is_no_addition() -> None:
    source = live("EventSource", "vault_created.v0", parent="esb_1")
    seen = replace(snapshot(SUBSCRIPTION, source), elsewhere={source.key: "other"})
    declared = declare("EventSubscription/audit", unmanaged_children="delete")
    plan = make_plan(declared, seen=seen, options=allow(9, "EventSource"))
    assert (plan.additions, plan.calls) == ((), ())


def test_a_declared_or_deleted_child_is_no_addition() -> None:
    rule = declare("IPPolicyRule/all", {"ip_policy_id": ref("IPPolicy/office"), "cidr": "0.0.0.0/0", "action": "allow"})
    assert make_plan(office(), rule, seen=snapshot(POLICY, ADDED)).additions == ()  # it will be adopted
    managed = live("IPPolicyRule", "ipr_9", RULE, owner=record("IPPolicyRule/old"))
    plan = make_plan(office(), seen=snapshot(POLICY, managed))
    assert (plan.additions, [change.reason for change in plan.changes]) == ((), [Reason.REMOVED])


def test_a_child_without_metadata_is_managed_only_if_it_is_bound() -> None:
    source = live("EventSource", "vault_created.v0", parent="esb_1")
    bound = snapshot(SUBSCRIPTION, source, bindings={"EventSource/old": Binding(source.locator)})
    plan = make_plan(declare("EventSubscription/audit"), seen=bound)
    assert (plan.additions, [change.reason for change in plan.changes]) == ((), [Reason.REMOVED])
    plan = make_plan(declare("EventSubscription/audit"), seen=snapshot(SUBSCRIPTION, source))
    assert list_additions(plan) == [("EventSource/audit-vault_created.v0", "EventSubscription/audit")]


def list_sources(*types: str, **more: Any) -> list[Declaration]:
    """A subscription whose manifest lists these sources inline."""
    above = replace(declare("EventSubscription/audit", **more), listed=("EventSource",))
    return [
        above,
        *(
            declare(f"EventSource/audit-{type_}", {"subscription_id": ref("EventSubscription/audit"), "type": type_})
            for type_ in types
        ),
    ]


def test_a_source_that_its_subscription_does_not_list_is_deleted_without_the_store_and_without_approval() -> None:
    sources = [live("EventSource", type_, parent="esb_1") for type_ in ("vault_created.v0", "vault_deleted.v0")]
    plan = make_plan(*list_sources("vault_deleted.v0"), seen=snapshot(SUBSCRIPTION, *sources))
    assert requests(plan) == ["DELETE /event_subscriptions/esb_1/sources/vault_created.v0"]
    assert (plan.approvals, plan.additions) == ((), ())
    assert plan.has_drift
    empty = make_plan(*list_sources(), seen=snapshot(SUBSCRIPTION, *sources))
    assert len(empty.calls) == 2
    assert make_plan(declare("EventSubscription/audit"), seen=snapshot(SUBSCRIPTION, *sources)).calls == ()


def test_unlisted_sources_count_for_the_share_of_deletions() -> None:
    source = live("EventSource", "vault_created.v0", parent="esb_1")
    options = PlanOptions(max_delete_percent=0)
    plan = make_plan(*list_sources(), seen=snapshot(SUBSCRIPTION, source), options=options)
    assert [(approval.flag, approval.granted) for approval in plan.approvals] == [("--allow delete:*=1", False)]


def test_unlisted_sources_of_another_stack_or_of_an_ignoring_parent_are_unchanged() -> None:
    source = live("EventSource", "vault_created.v0", parent="esb_1")
    elsewhere = replace(snapshot(SUBSCRIPTION, source), elsewhere={source.key: "other"})
    assert make_plan(*list_sources(), seen=elsewhere).calls == ()
    ignoring = list_sources(unmanaged_children="ignore")
    assert make_plan(*ignoring, seen=snapshot(SUBSCRIPTION, source)).calls == ()


def test_a_rule_that_its_policy_does_not_list_is_an_addition() -> None:
    """Its owner record says who manages it, with and without the store."""
    plan = make_plan(replace(office(), listed=("IPPolicyRule",)), seen=snapshot(POLICY, ADDED))
    assert (plan.calls, list_additions(plan)) == ((), [("IPPolicyRule/ipr_9", "IPPolicy/office")])


def test_an_addition_is_ignored_by_its_parent_or_by_a_selection() -> None:
    seen = snapshot(POLICY, ADDED)
    assert make_plan(office("ignore"), seen=seen).additions == ()
    assert make_plan(office("ignore"), seen=seen).unmanaged == (("IPPolicyRule", "ipr_9"),)
    assert make_plan(office(), seen=seen, options=PlanOptions(excludes=("IPPolicyRule/ipr_9",))).additions == ()
    assert make_plan(office(), seen=seen, options=PlanOptions(excludes=("IPPolicy/*",))).additions == ()
    assert make_plan(office(), seen=seen, options=PlanOptions(targets=("Vault/*",))).additions == ()
    for target in ("IPPolicy/office", "IPPolicyRule/*"):
        assert list_additions(make_plan(office(), seen=seen, options=PlanOptions(targets=(target,)))) == [
            ("IPPolicyRule/ipr_9", "IPPolicy/office")
        ]


def test_an_addition_is_deleted_only_if_its_parent_allows_it_and_the_count_is_approved() -> None:
    seen = snapshot(POLICY, ADDED)
    assert list_additions(make_plan(office(), seen=seen, options=allow(9))) == [
        ("IPPolicyRule/ipr_9", "IPPolicy/office")
    ]
    plan = make_plan(office("delete"), seen=seen)
    assert (plan.changes, plan.calls, plan.missing_approvals) == ((), (), ())
    assert [approval.flag for approval in plan.missing_optional_approvals] == ["--allow delete:IPPolicyRule=1"]
    plan = make_plan(office("delete"), seen=seen, options=allow(1))
    assert (
        [(change.action, change.reason, change.risks) for change in plan.changes],
        requests(plan),
        plan.additions,
    ) == (
        [(Action.DELETE, Reason.ADDED, (Risk.ADDED,))],
        ["DELETE /ip_policy_rules/ipr_9"],
        (),
    )
    two = snapshot(POLICY, ADDED, live("IPPolicyRule", "ipr_8", {**RULE, "cidr": "10.0.0.0/8"}))
    assert len(make_plan(office("delete"), seen=two, options=allow(1)).additions) == 2


def test_a_missing_approval_of_an_addition_does_not_block_other_changes() -> None:
    described = declare("IPPolicy/office", {"description": "new"}, unmanaged_children="delete")
    plan = make_plan(described, seen=snapshot(POLICY, ADDED))
    assert (requests(plan), plan.missing_approvals, errors(plan)) == (["PATCH /ip_policies/ipp_1"], (), [])


def test_an_incomplete_list_is_reported_as_unknown_additions() -> None:
    plan = make_plan(office(), seen=snapshot(POLICY, cut=["IPPolicyRule", "Secret"]))
    (problem,) = plan.problems
    assert (problem.code, problem.subject, problem.is_error) == ("additions-unknown", "IPPolicy/office", False)
    assert make_plan(office("ignore"), seen=snapshot(POLICY, cut=["IPPolicyRule"])).problems == ()


def test_an_id_with_special_characters_becomes_a_valid_unique_name() -> None:
    hostile = live("IPPolicyRule", "ipr_\n9/../x", RULE)
    similar = live("IPPolicyRule", "ipr_\r9/../x", {**RULE, "cidr": "10.0.0.0/8"})
    taken = declare("IPPolicyRule/ipr_-9-..-x", {"ip_policy_id": "ipp_1", "cidr": "192.0.2.0/24", "action": "deny"})
    plan = make_plan(office(), taken, seen=snapshot(POLICY, hostile, similar))
    assert [addition[0] for addition in list_additions(plan)] == [
        "IPPolicyRule/ipr_-9-..-x-2",
        "IPPolicyRule/ipr_-9-..-x-3",
    ]
    assert all(at(name) for name, _ in list_additions(plan))


def test_an_addition_of_a_replaced_parent_is_not_deleted_by_itself() -> None:
    """It is deleted with the replaced object, which needs an approval of its own."""
    replacing = replace(allow(1), to_replace=frozenset({at("IPPolicy/office")}))
    plan = make_plan(office("delete"), seen=snapshot(POLICY, ADDED), options=replacing)
    assert not [request for request in requests(plan) if "ipr_9" in request]


def test_an_addition_of_an_unplannable_parent_is_not_deleted() -> None:
    failing = replace(
        declare("IPPolicy/office", unmanaged_children="delete"),
        lifecycle=Lifecycle(unmanaged_children="delete", replace=False),
    )
    refused = replace(allow(1), to_replace=frozenset({at("IPPolicy/office")}))
    plan = make_plan(failing, seen=snapshot(POLICY, ADDED), options=refused)
    assert (plan.calls, len(plan.errors)) == ((), 1)


def test_long_ids_become_unique_names() -> None:
    ids = [f"ipr_{'9' * 120}{last}" for last in "abc"]
    plan = make_plan(office(), seen=snapshot(POLICY, *(live("IPPolicyRule", id, RULE) for id in ids)))
    assert [addition.address.name for addition in plan.additions] == [
        f"ipr_{'9' * 96}",
        f"ipr_{'9' * 90}-2",
        f"ipr_{'9' * 90}-3",
    ]


@pytest.mark.parametrize(
    ("targets", "excludes", "is_listed"),
    [
        ((), (), True),
        (("IPPolicy/office",), (), True),
        (("IPPolicyRule/ipr_9",), (), True),
        (("TLSEdge/*",), (), False),
        ((), ("IPPolicy/office",), False),
        ((), ("IPPolicyRule/ipr_9",), False),
        ((), ("TLSEdge/*",), True),
        (("IPPolicy/*",), ("IPPolicyRule/*",), False),
        (("IPPolicyRule/*",), ("IPPolicy/*",), False),
    ],
)
def test_an_addition_is_selected_by_its_own_address_or_that_of_its_parent(
    targets: tuple[str, ...], excludes: tuple[str, ...], is_listed: bool
) -> None:
    plan = make_plan(office(), seen=snapshot(POLICY, ADDED), options=PlanOptions(targets=targets, excludes=excludes))
    assert list_additions(plan) == ([("IPPolicyRule/ipr_9", "IPPolicy/office")] if is_listed else [])


@pytest.mark.parametrize(("allowed", "deleted"), [(0, 0), (1, 0), (2, 2), (3, 2)])
def test_all_additions_of_a_kind_are_deleted_or_none(allowed: int, deleted: int) -> None:
    second = live("IPPolicyRule", "ipr_8", {**RULE, "cidr": "10.0.0.0/8"})
    plan = make_plan(office("delete"), seen=snapshot(POLICY, ADDED, second), options=allow(allowed))
    assert sorted(requests(plan)) == [f"DELETE /ip_policy_rules/ipr_{n}" for n in (8, 9)][:deleted]
    assert len(plan.additions) == 2 - deleted
    assert make_plan(office("delete"), seen=snapshot(POLICY, ADDED, second), options=allow(9, "Secret")).calls == ()


def test_unknown_additions_are_reported_for_the_parent_or_for_the_kind_of_several() -> None:
    other = live("IPPolicy", "ipp_2", owner=record("IPPolicy/home", {}))

    def find_subjects(*declared: Declaration) -> list[str | None]:
        plan = make_plan(*declared, seen=snapshot(POLICY, other, cut=["IPPolicyRule"]))
        return [problem.subject for problem in plan.problems if problem.code == "additions-unknown"]

    assert find_subjects(office(), declare("IPPolicy/home")) == ["IPPolicy"]
    assert find_subjects(office(), declare("IPPolicy/home", unmanaged_children="ignore")) == ["IPPolicy/office"]
    assert find_subjects(declare("IPPolicy/home")) == ["IPPolicy/home"]
    assert find_subjects(declare("TLSEdge/e")) == []
