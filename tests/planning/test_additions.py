"""Children that somebody added to our objects on the platform, and that no manifest declares."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.change import Action, Reason, Risk
from reconciler.model.manifest import Declaration, Lifecycle
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Binding, Live
from reconciler.planning.planner import PlanOptions
from tests.planning.builders import at, declare, errors, live, make_plan, record, ref, requests, snapshot

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


def list_additions(made: Plan) -> list[tuple[str, str]]:
    return [(str(addition.address), str(addition.parent)) for addition in made.additions]


def allow(count: int, kind: str = "IPPolicyRule") -> PlanOptions:
    return PlanOptions(allow={("delete", kind): count})


def test_each_kind_that_is_part_of_another_is_tried_here() -> None:
    assert {child.kind for *_, child in CHILDREN} == {kind.name for kind in kinds.every() if kind.part_of is not None}


@pytest.mark.parametrize(("parent", "spec", "above", "child"), CHILDREN, ids=[row[3].kind for row in CHILDREN])
def test_a_child_that_nobody_declares_is_told_with_its_parent_and_stays(
    parent: str, spec: dict[str, str], above: Live, child: Live
) -> None:
    made = make_plan(declare(parent, spec), seen=snapshot(above, child))
    (addition,) = made.additions
    assert (addition.address.kind, str(addition.parent)) == (child.kind, parent)
    assert (addition.reason, addition.risks) == (Reason.ADDED, (Risk.ADDED,))
    assert "value" not in [field.path for field in addition.fields]  # of a secret, which no response shows
    assert (made.changes, made.calls, made.missing_approvals, made.unmanaged) == ((), (), (), ())
    assert made.has_drift


def test_an_addition_shows_all_that_it_says() -> None:
    (addition,) = make_plan(office(), seen=snapshot(POLICY, ADDED)).additions
    assert {field.path: (field.old, field.new) for field in addition.fields} == {
        "cidr": ("0.0.0.0/0", None),
        "action": ("allow", None),
    }
    assert addition.position is not None


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        (POLICY, live("IPPolicyRule", "ipr_9", RULE, owner=record("IPPolicyRule/x", stack="theirs"))),
        (live("IPPolicy", "ipp_1"), ADDED),
        (live("IPPolicy", "ipp_1", owner=record("IPPolicy/office", {}, stack="theirs")), ADDED),
        (POLICY, live("IPPolicyRule", "ipr_9", {**RULE, "ip_policy": {"id": "ipp_2"}})),
    ],
    ids=["of another stack", "below nobody's parent", "below another stack's parent", "below another parent"],
)
def test_what_is_no_addition(parent: Live, child: Live) -> None:
    assert make_plan(office(), seen=snapshot(parent, child)).additions == ()


def test_below_an_object_that_this_plan_adopts_nothing_is_an_addition() -> None:
    adopted = declare("IPPolicy/office", id="ipp_1", unmanaged_children="delete")
    made = make_plan(adopted, seen=snapshot(live("IPPolicy", "ipp_1"), ADDED), options=allow(9))
    assert (made.additions, requests(made)) == ((), ["PATCH /ip_policies/ipp_1"])


def test_a_child_that_another_stack_bound_in_the_same_store_is_no_addition() -> None:
    source = live("EventSource", "vault_created.v0", parent="esb_1")
    seen = replace(snapshot(SUBSCRIPTION, source), elsewhere={source.key: "theirs"})
    declared = declare("EventSubscription/audit", unmanaged_children="delete")
    made = make_plan(declared, seen=seen, options=allow(9, "EventSource"))
    assert (made.additions, made.calls) == ((), ())


def test_what_is_declared_or_to_be_deleted_is_no_addition() -> None:
    rule = declare("IPPolicyRule/all", {"ip_policy_id": ref("IPPolicy/office"), "cidr": "0.0.0.0/0", "action": "allow"})
    assert make_plan(office(), rule, seen=snapshot(POLICY, ADDED)).additions == ()  # it is to be adopted
    ours = live("IPPolicyRule", "ipr_9", RULE, owner=record("IPPolicyRule/old"))
    made = make_plan(office(), seen=snapshot(POLICY, ours))
    assert (made.additions, [change.reason for change in made.changes]) == ((), [Reason.REMOVED])


def test_a_child_without_metadata_is_ours_as_far_as_the_store_binds_it() -> None:
    source = live("EventSource", "vault_created.v0", parent="esb_1")
    bound = snapshot(SUBSCRIPTION, source, bindings={"EventSource/old": Binding(source.locator)})
    made = make_plan(declare("EventSubscription/audit"), seen=bound)
    assert (made.additions, [change.reason for change in made.changes]) == ((), [Reason.REMOVED])
    made = make_plan(declare("EventSubscription/audit"), seen=snapshot(SUBSCRIPTION, source))
    assert list_additions(made) == [("EventSource/audit-vault_created.v0", "EventSubscription/audit")]


def test_what_the_parent_lists_itself_is_a_difference_of_the_parent() -> None:
    whole = declare("EventSubscription/audit", {"sources": [{"type": "vault_deleted.v0"}]})
    seen = snapshot(SUBSCRIPTION, live("EventSource", "vault_created.v0", parent="esb_1"))
    assert make_plan(whole, seen=seen).additions == ()


def test_an_addition_is_ignored_where_the_parent_says_so_or_it_is_excluded() -> None:
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


def test_an_addition_is_deleted_only_if_its_parent_says_so_and_the_number_is_approved() -> None:
    seen = snapshot(POLICY, ADDED)
    assert list_additions(make_plan(office(), seen=seen, options=allow(9))) == [
        ("IPPolicyRule/ipr_9", "IPPolicy/office")
    ]
    made = make_plan(office("delete"), seen=seen)
    assert (made.changes, made.calls, made.missing_approvals) == ((), (), ())
    assert [approval.flag for approval in made.missing_optional_approvals] == ["--allow delete:IPPolicyRule=1"]
    made = make_plan(office("delete"), seen=seen, options=allow(1))
    assert (
        [(change.action, change.reason, change.risks) for change in made.changes],
        requests(made),
        made.additions,
    ) == (
        [(Action.DELETE, Reason.ADDED, (Risk.ADDED,))],
        ["DELETE /ip_policy_rules/ipr_9"],
        (),
    )
    two = snapshot(POLICY, ADDED, live("IPPolicyRule", "ipr_8", {**RULE, "cidr": "10.0.0.0/8"}))
    assert len(make_plan(office("delete"), seen=two, options=allow(1)).additions) == 2


def test_without_approval_the_rest_is_done() -> None:
    described = declare("IPPolicy/office", {"description": "new"}, unmanaged_children="delete")
    made = make_plan(described, seen=snapshot(POLICY, ADDED))
    assert (requests(made), made.missing_approvals, errors(made)) == (["PATCH /ip_policies/ipp_1"], (), [])


def test_a_list_that_did_not_reach_its_end_leaves_additions_unknown() -> None:
    made = make_plan(office(), seen=snapshot(POLICY, cut=["IPPolicyRule", "Secret"]))
    (problem,) = made.problems
    assert (problem.code, problem.subject, problem.is_error) == ("additions-unknown", "IPPolicy/office", False)
    assert make_plan(office("ignore"), seen=snapshot(POLICY, cut=["IPPolicyRule"])).problems == ()


def test_a_name_of_the_platforms_is_made_a_name_of_ours() -> None:
    hostile = live("IPPolicyRule", "ipr_\n9/../x", RULE)
    twin = live("IPPolicyRule", "ipr_\r9/../x", {**RULE, "cidr": "10.0.0.0/8"})
    taken = declare("IPPolicyRule/ipr_-9-..-x", {"ip_policy_id": "ipp_1", "cidr": "192.0.2.0/24", "action": "deny"})
    made = make_plan(office(), taken, seen=snapshot(POLICY, hostile, twin))
    assert [addition[0] for addition in list_additions(made)] == [
        "IPPolicyRule/ipr_-9-..-x-2",
        "IPPolicyRule/ipr_-9-..-x-3",
    ]
    assert all(at(name) for name, _ in list_additions(made))


def test_below_what_is_replaced_no_addition_is_deleted_by_itself() -> None:
    """It goes with the replaced object, which needs an approval of its own."""
    replacing = replace(allow(1), to_replace=frozenset({at("IPPolicy/office")}))
    made = make_plan(office("delete"), seen=snapshot(POLICY, ADDED), options=replacing)
    assert not [request for request in requests(made) if "ipr_9" in request]


def test_below_what_cannot_be_planned_no_addition_is_deleted() -> None:
    failing = replace(
        declare("IPPolicy/office", unmanaged_children="delete"),
        lifecycle=Lifecycle(unmanaged_children="delete", replace=False),
    )
    refused = replace(allow(1), to_replace=frozenset({at("IPPolicy/office")}))
    made = make_plan(failing, seen=snapshot(POLICY, ADDED), options=refused)
    assert (made.calls, len(made.errors)) == ((), 1)


def test_long_names_of_the_platforms_stay_apart() -> None:
    ids = [f"ipr_{'9' * 120}{last}" for last in "abc"]
    made = make_plan(office(), seen=snapshot(POLICY, *(live("IPPolicyRule", id, RULE) for id in ids)))
    assert [addition.address.name for addition in made.additions] == [
        f"ipr_{'9' * 96}",
        f"ipr_{'9' * 90}-2",
        f"ipr_{'9' * 90}-3",
    ]


@pytest.mark.parametrize(
    ("targets", "excludes", "is_told"),
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
def test_an_addition_is_covered_by_its_own_address_or_that_of_its_parent(
    targets: tuple[str, ...], excludes: tuple[str, ...], is_told: bool
) -> None:
    made = make_plan(office(), seen=snapshot(POLICY, ADDED), options=PlanOptions(targets=targets, excludes=excludes))
    assert list_additions(made) == ([("IPPolicyRule/ipr_9", "IPPolicy/office")] if is_told else [])


@pytest.mark.parametrize(("allowed", "deleted"), [(0, 0), (1, 0), (2, 2), (3, 2)])
def test_all_additions_of_a_kind_are_deleted_or_none(allowed: int, deleted: int) -> None:
    second = live("IPPolicyRule", "ipr_8", {**RULE, "cidr": "10.0.0.0/8"})
    made = make_plan(office("delete"), seen=snapshot(POLICY, ADDED, second), options=allow(allowed))
    assert sorted(requests(made)) == [f"DELETE /ip_policy_rules/ipr_{n}" for n in (8, 9)][:deleted]
    assert len(made.additions) == 2 - deleted
    assert make_plan(office("delete"), seen=snapshot(POLICY, ADDED, second), options=allow(9, "Secret")).calls == ()


def test_whose_additions_are_unknown_is_told_by_the_parent_or_if_there_are_several_by_their_kind() -> None:
    other = live("IPPolicy", "ipp_2", owner=record("IPPolicy/home", {}))

    def find_subjects(*declared: Declaration) -> list[str | None]:
        made = make_plan(*declared, seen=snapshot(POLICY, other, cut=["IPPolicyRule"]))
        return [problem.subject for problem in made.problems if problem.code == "additions-unknown"]

    assert find_subjects(office(), declare("IPPolicy/home")) == ["IPPolicy"]
    assert find_subjects(office(), declare("IPPolicy/home", unmanaged_children="ignore")) == ["IPPolicy/office"]
    assert find_subjects(declare("IPPolicy/home")) == ["IPPolicy/home"]
    assert find_subjects(declare("TLSEdge/e")) == []
