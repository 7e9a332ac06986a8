"""The causes of changes in a review: the plan of the reviewed manifests beside the plan of their base."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.change import Action, Cause, Change, ChangedBy, FieldChange, Order, Reason, Risk
from reconciler.model.plan import Approval, ApprovalItem, Base, Plan
from reconciler.planning.attribution import attribute
from reconciler.rendering.plan import phrases
from reconciler.rendering.plan.outline import build_outline
from tests.harness.builders import at

BASE = Base("main", "c0ffee")


def field(path: str = "description", changed_by: ChangedBy = ChangedBy.GIT, **values: Any) -> FieldChange:
    return replace(FieldChange(path, "old", "new", changed_by), **values)


def change(*fields: FieldChange, **values: Any) -> Change:
    return replace(Change(at("IPPolicy/a"), Action.UPDATE, Reason.FIELDS, id="ipp_1", fields=fields), **values)


def deletion(**values: Any) -> Change:
    return replace(change(action=Action.DELETE, reason=Reason.REMOVED), **values)


def attribute_one(head: Change, *before: Change) -> Change:
    plan = attribute(Plan("s", changes=(head,)), Plan("s", changes=before), BASE)
    assert plan.base is not None
    assert plan.base.withdrawn == ()
    return plan.changes[0]


def test_a_change_that_the_base_does_not_plan_is_caused_by_the_review() -> None:
    drifted = field(changed_by=ChangedBy.PLATFORM)
    attributed = attribute_one(change(drifted, reason=Reason.VANISHED))
    assert (attributed.cause, [field_change.cause for field_change in attributed.fields]) == (
        Cause.THIS_CHANGE,
        [Cause.THIS_CHANGE],
    )


@pytest.mark.parametrize(
    ("same", "cause"),
    [
        (change(field()), Cause.PENDING),
        (change(field(changed_by=ChangedBy.FOLLOWS)), Cause.PENDING),
        (change(field(changed_by=ChangedBy.PLATFORM)), Cause.DRIFT),
        (change(field(changed_by=ChangedBy.BOTH)), Cause.DRIFT),
        (change(field(changed_by=ChangedBy.UNKNOWN)), Cause.DRIFT),
        (change(field(), field("metadata", ChangedBy.PLATFORM)), Cause.DRIFT),
        # Proven to be from Git only.
        (change(field(changed_by=ChangedBy.UNKNOWN), is_pending=True), Cause.PENDING),
        # There was no object that could have drifted.
        (change(field(changed_by=ChangedBy.UNKNOWN), action=Action.CREATE, id=None), Cause.PENDING),
        (change(action=Action.CREATE, reason=Reason.DECLARED, id=None), Cause.PENDING),
        (change(action=Action.CREATE, reason=Reason.VANISHED, id=None), Cause.DRIFT),
        (deletion(reason=Reason.ADDED, is_pending=True), Cause.DRIFT),
        (deletion(reason=Reason.DUPLICATE, is_pending=True), Cause.DRIFT),
        (deletion(is_pending=True), Cause.PENDING),
        (deletion(is_pending=False), Cause.DRIFT),
        (change(reason=Reason.RECORD), Cause.PENDING),
        (change(action=Action.MOVE, reason=Reason.RENAMED, former=at("IPPolicy/old")), Cause.PENDING),
    ],
)
def test_a_change_of_both_plans_is_pending_or_drift(same: Change, cause: Cause) -> None:
    assert attribute_one(same, same).cause is cause


@pytest.mark.parametrize(
    "head",
    [
        deletion(is_pending=True, action=Action.FORGET),
        deletion(is_pending=True, reason=Reason.ABSENT),
        deletion(is_pending=True, order=Order.DELETE_FIRST),
        deletion(is_pending=True, former=at("IPPolicy/old")),
    ],
)
def test_another_action_on_the_same_object_is_caused_by_the_review(head: Change) -> None:
    before = deletion(is_pending=True)
    assert attribute_one(before, before).cause is Cause.PENDING
    assert attribute_one(head, before).cause is Cause.THIS_CHANGE


def test_positions_and_risks_are_not_compared() -> None:
    """Positions change with each edited line, and risks are derived from the other values."""
    before = change(field(), risks=(Risk.WIDENS_ACCESS,))
    assert attribute_one(change(field()), before).cause is Cause.PENDING


def test_each_field_has_its_cause() -> None:
    drifted = field("drifted", ChangedBy.PLATFORM)
    before = change(field("pending"), drifted, field("sets"), field("finds"))
    head = change(field("pending"), drifted, field("sets", new="more"), field("finds", old="more"), field("added"))
    attributed = attribute_one(head, before)
    assert {field_change.path: field_change.cause for field_change in attributed.fields} == {
        "pending": Cause.PENDING,
        "drifted": Cause.DRIFT,
        "sets": Cause.THIS_CHANGE,
        "finds": Cause.THIS_CHANGE,
        "added": Cause.THIS_CHANGE,
    }
    assert attributed.cause is Cause.THIS_CHANGE


def test_the_cause_of_a_field_is_that_of_the_base() -> None:
    """The review may declare the live value of another part of the same field."""
    before, head = change(field(changed_by=ChangedBy.PLATFORM)), change(field(changed_by=ChangedBy.BOTH))
    assert attribute_one(head, change(field())).fields[0].cause is Cause.PENDING
    assert attribute_one(change(field()), before).fields[0].cause is Cause.DRIFT


def test_an_address_with_another_object_is_another_change() -> None:
    before, head = deletion(id="ipp_1"), deletion(id="ipp_2")
    plan = attribute(Plan("s", changes=(head,)), Plan("s", changes=(before,)), BASE)
    assert [change_.cause for change_ in plan.changes] == [Cause.THIS_CHANGE]
    assert plan.base == replace(BASE, withdrawn=(before,))


def test_a_change_that_only_the_base_plans_is_withdrawn() -> None:
    unchanged, removed = change(field()), change(field(), address=at("IPPolicy/b"), id="ipp_2")
    added = deletion(address=at("IPPolicyRule/r"), id="ipr_1", reason=Reason.ADDED)
    plan = attribute(Plan("s", changes=(unchanged,)), Plan("s", changes=(unchanged, removed), additions=(added,)), BASE)
    assert plan.base == replace(BASE, withdrawn=(removed,))


def test_additions_are_compared_with_deletions_of_the_base_and_the_reverse() -> None:
    """The reviewed manifests may delete what the base only reports, and are then the cause."""
    added = deletion(address=at("IPPolicyRule/r"), id="ipr_1", reason=Reason.ADDED)
    other = deletion(address=at("IPPolicyRule/s"), id="ipr_2", reason=Reason.ADDED)
    new = deletion(address=at("IPPolicyRule/t"), id="ipr_3", reason=Reason.ADDED)
    head = Plan("s", changes=(added,), additions=(other, new))
    plan = attribute(head, Plan("s", changes=(other,), additions=(added,)), BASE)
    assert [change_.cause for change_ in plan.changes] == [Cause.THIS_CHANGE]
    assert [change_.cause for change_ in plan.additions] == [Cause.DRIFT, Cause.THIS_CHANGE]
    assert plan.base == BASE


def test_objects_have_the_names_of_both_plans_and_the_review_takes_precedence() -> None:
    head, before = Plan("s", names={"1": "new", "2": "added"}), Plan("s", names={"1": "old", "3": "deleted"})
    assert attribute(head, before, BASE).names == {"1": "new", "2": "added", "3": "deleted"}


def test_approvals_of_pending_changes_are_listed_last_and_marked() -> None:
    from_review, from_base = (ApprovalItem(f"ReservedDomain/{name}", f"rd_{name}", name) for name in ("review", "base"))
    pending = Approval("adopt", "BotUser", 1, "why", items=(from_base,))
    own = Approval("delete", "ReservedDomain", 2, "why", items=(from_review, from_base))
    of_all = Approval("empty", "*", 3, "why")
    before = (pending, Approval("delete", "ReservedDomain", 1, "why", items=(from_base,)), of_all)
    plan = attribute(Plan("s", approvals=(pending, own, of_all)), Plan("s", approvals=before), BASE)
    assert [(approval.what, approval.is_pending) for approval in plan.approvals] == [
        ("delete", False),
        ("empty", False),
        ("adopt", True),
    ]
    assert [phrases.approval(row) for row in build_outline(plan).approvals][-1] == (
        "Approval required for a pending change, not of this branch: pass --allow adopt:BotUser=1"
    )


@pytest.mark.parametrize(
    ("before", "is_pending", "cause"),
    [
        (None, True, Cause.THIS_CHANGE),
        ("another digest", True, Cause.THIS_CHANGE),
        ("digest", True, Cause.PENDING),
        ("digest", False, Cause.DRIFT),
    ],
)
def test_an_entry_point_that_the_base_changes_in_the_same_way_is_pending_or_drift(
    before: str | None, is_pending: bool, cause: Cause
) -> None:
    entry = AccessChange("https://a.example.com", Verdict.WIDENS, "", "", "", True, ("IPPolicy/a",), "digest")
    changes = (change(field(), is_pending=is_pending),)
    head = Plan("s", changes=changes, access=(entry,))
    base = Plan("s", changes=changes, access=(replace(entry, digest=before),) if before else ())
    assert [found.cause for found in attribute(head, base, BASE).access] == [cause]
