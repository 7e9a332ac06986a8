"""Reviews of plans: an apply recognizes the reviewed changes, and grants the reviewed approvals."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.fleet.reviews import approvals_of
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, FieldChange, Reason
from reconciler.model.fleet import Shape
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Approval, ApprovalItem, Call, OwnerDraft, Plan, Verb
from reconciler.model.value import Hidden
from reconciler.planning.reviewed_changes import digest_changes, find_unreviewed
from reconciler.rendering.wire import plan_json

DOMAIN = Address("ReservedDomain", "a")


def change(action: Action = Action.UPDATE, reason: Reason = Reason.FIELDS, **options: Any) -> Change:
    options.setdefault("fields", (FieldChange("description", "x", "y"), FieldChange("key", Hidden("1"), Hidden("2"))))
    options.setdefault("id", "rd_1")
    return Change(DOMAIN, action, reason, **options)


CALL = Call(
    "update ReservedDomain/a",
    DOMAIN,
    Verb.UPDATE,
    "/reserved_domains/rd_1",
    target="rd_1",
    body={"description": "y"},
    owner=OwnerDraft(DOMAIN),
    deliver={"token": Delivery("to_command", "deliver", settings={"run": ["a"]})},
)


def plan(*changes: Change, calls: tuple[Call, ...] = (CALL,), **options: Any) -> Plan:
    options.setdefault("account", "https://api.example.com")
    options.setdefault("manifest_digest", "m1")
    return Plan("shop", changes=changes or (change(),), calls=calls, **options)


OTHERS = {
    "id": plan(change(id="rd_2")),
    "old value": plan(change(fields=(FieldChange("description", "z", "y"),))),
    "secret": plan(change(fields=(FieldChange("description", "x", "y"), FieldChange("key", Hidden("1"), Hidden("3"))))),
    "action": plan(change(Action.REPLACE)),
    "account": plan(account="https://api.example.org"),
    "second change of the address": plan(change(Action.DELETE, id="rd_2"), change()),
    "verb": plan(calls=(replace(CALL, verb=Verb.PUT),)),
    "path": plan(calls=(replace(CALL, path="/ip_policies/rd_1"),)),
    "target": plan(calls=(replace(CALL, target="rd_2"),)),
    "body": plan(calls=(replace(CALL, body={"description": "y", "domain": "b"}),)),
    "owner": plan(calls=(replace(CALL, owner=OwnerDraft(DOMAIN, protect=True)),)),
    "command": plan(
        calls=(replace(CALL, deliver={"token": Delivery("to_command", "deliver", settings={"run": ["b"]})}),)
    ),
    "delivery": plan(calls=(replace(CALL, deliver={"token": Delivery("to_file", "token")}),)),
    "overwrites": plan(calls=(replace(CALL, overwrites=True),)),
    "second call": plan(calls=(CALL, replace(CALL, id="delete", verb=Verb.DELETE))),
    "call elsewhere": plan(calls=(CALL, replace(CALL, address=Address("ReservedDomain", "b")))),
}


@pytest.mark.parametrize("difference", OTHERS)
def test_every_unreviewed_change_is_found(difference: str) -> None:
    reviewed = digest_changes(plan())
    assert not find_unreviewed(plan(), reviewed, has_begun=False)
    assert find_unreviewed(OTHERS[difference], reviewed, has_begun=False)


def test_obsolete_changes_and_another_commit_are_accepted() -> None:
    other = Change(Address("ReservedDomain", "b"), Action.CREATE, Reason.DECLARED)
    reviewed = digest_changes(plan(change(), other))
    assert not find_unreviewed(plan(commit="c2", manifest_digest="m2"), reviewed, has_begun=False)
    assert not find_unreviewed(Plan("shop"), reviewed, has_begun=False)


def test_the_rest_of_an_interrupted_apply_may_differ_from_the_review() -> None:
    reviewed = digest_changes(plan(change(Action.CREATE, Reason.DECLARED, id=None)))
    assert find_unreviewed(plan(), reviewed, has_begun=False)
    assert not find_unreviewed(plan(), reviewed, has_begun=True)
    for reason in (Reason.DUPLICATE, Reason.UNDELIVERED, Reason.SUPERSEDED):
        assert not find_unreviewed(plan(change(Action.DELETE, reason)), reviewed, has_begun=True)


def test_the_rest_of_an_interrupted_apply_requires_the_reviewed_manifests() -> None:
    reviewed = digest_changes(plan())
    other = Change(Address("ReservedDomain", "b"), Action.CREATE, Reason.DECLARED)
    for rest in (
        plan(change(fields=()), manifest_digest="m2"),  # the files were edited before `resume`
        plan(change(fields=()), account="https://api.example.org"),
        plan(change(), other),
        plan(change(Action.DELETE, Reason.REMOVED)),
        plan(change(Action.REPLACE, Reason.IMMUTABLE)),
        plan(change(Action.FORGET, Reason.FORGOTTEN)),
    ):
        assert find_unreviewed(rest, reviewed, has_begun=True)


def test_objects_deleted_with_their_parent_are_reviewed() -> None:
    def of(part: str) -> Plan:
        items = (ApprovalItem(f"IPPolicyRule/{part}", part, "d"),)
        approval = Approval("delete", "IPPolicyRule", 1, "why", parts=1, items=items)
        return plan(change(Action.DELETE, Reason.REMOVED), approvals=(approval,))

    assert find_unreviewed(of("ipr_2"), digest_changes(of("ipr_1")), has_begun=False)


def test_a_shape_grants_only_the_approvals_that_its_plans_need() -> None:
    approvals = (
        Approval("delete", "ReservedDomain", 3, "irreversible"),
        Approval("delete", "ReservedDomain", 1, "deleted with its parent"),
        Approval("adopt", "ReservedDomain", 1, "why", granted=True),
        Approval("delete", "IPPolicy", 1, "why", is_optional=True),
    )
    shape = Shape("0" * 12, "acme", "web", plan_json.write_plan(plan(approvals=approvals)))
    assert approvals_of(shape) == {("delete", "ReservedDomain"): 3}
