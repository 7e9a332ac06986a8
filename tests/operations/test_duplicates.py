"""The cleanup after two concurrent runs deletes only duplicates, and only what needs no approval."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.change import Action, Change, Reason
from reconciler.model.plan import Approval, Call, Plan, Verb
from reconciler.model.problem import Problem
from reconciler.operations.applying.duplicates import cleanup_plan
from reconciler.operations.reporting import Note
from tests.harness.builders import at, declare, live, make_plan, record, ref, requests, snapshot

POLICIES = [declare(f"IPPolicy/{name}", {"description": name}) for name in ("a", "b")]
EDGE = declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/a")]}})


def plan_with_duplicates(*names: str, **flags: Any) -> Plan:
    """A plan on an account where each of these policies exists twice. The edge refers to the newer object of `a`."""
    objects = [
        live(
            "IPPolicy",
            f"ipp_{name}{number}",
            {"description": name, "created_at": f"2026-01-0{number}T00:00:00Z"},
            owner=record(f"IPPolicy/{name}", {"description": name}, intent=f"i{name}{number}", **flags),
        )
        for name in names
        for number in (1, 2)
    ]
    restriction = {"enabled": True, "ip_policy_ids": ["ipp_a2"]}
    edge = live("TLSEdge", "edgtls_1", {"ip_restriction": restriction}, owner=record("TLSEdge/e", {}))
    return make_plan(*POLICIES, EDGE, seen=snapshot(*objects, edge))


def clean_up(plan: Plan) -> tuple[list[str], list[str]]:
    """The requests of the cleanup, and the addresses that it reports."""
    events: list[Any] = []
    cleanup = cleanup_plan(plan, events.append)
    notes = [note.text.partition(" ")[0] for note in events if isinstance(note, Note)]
    return (requests(cleanup) if cleanup is not None else []), notes


def with_approval(plan: Plan, what: str, kind: str, *, granted: bool = False) -> Plan:
    return replace(plan, approvals=(Approval(what, kind, 1, "", granted=granted),))


def test_a_duplicate_is_deleted_after_its_referrers_were_updated() -> None:
    sent, notes = clean_up(plan_with_duplicates("a", "b"))
    assert sorted(sent) == ["DELETE /ip_policies/ipp_a2", "DELETE /ip_policies/ipp_b2", "PATCH /edges/tls/edgtls_1"]
    assert sent.index("PATCH /edges/tls/edgtls_1") < sent.index("DELETE /ip_policies/ipp_a2")
    assert sorted(notes) == ["IPPolicy/a", "IPPolicy/b"]


def test_a_protected_duplicate_is_not_deleted() -> None:
    plan = plan_with_duplicates("a", "b", protect=True)
    assert [approval.what for approval in plan.missing_approvals] == ["delete-protected"]
    assert clean_up(plan) == ([], [])


@pytest.mark.parametrize("what", ["delete", "update", "account"])
def test_nothing_is_deleted_while_the_whole_plan_needs_approval(what: str) -> None:
    assert clean_up(with_approval(plan_with_duplicates("a", "b"), what, "*")) == ([], [])
    assert len(clean_up(with_approval(plan_with_duplicates("a", "b"), what, "*", granted=True))[0]) == 3


def test_a_duplicate_is_not_deleted_before_a_call_that_it_needs_is_approved() -> None:
    plan = with_approval(plan_with_duplicates("a", "b"), "adopt", "TLSEdge")
    assert clean_up(plan) == (["DELETE /ip_policies/ipp_b2"], ["IPPolicy/b"])


def test_other_changes_are_not_part_of_the_cleanup() -> None:
    sent, _ = clean_up(plan_with_duplicates("b"))  # the plan creates `a` and updates the edge as well
    assert sent == ["DELETE /ip_policies/ipp_b2"]


def test_nothing_is_deleted_while_an_error_blocks_the_plan() -> None:
    blocked = replace(plan_with_duplicates("a", "b"), problems=(Problem("no", subject="IPPolicy/b", code="not-owned"),))
    assert blocked.blocking_errors
    assert clean_up(blocked) == ([], [])


def test_another_object_of_the_same_address_is_not_part_of_the_cleanup() -> None:
    plan = plan_with_duplicates("b")
    (duplicate,) = [call for call in plan.calls if call.target == "ipp_b2"]
    other = replace(duplicate, id="delete another", path="/ip_policies/ipp_b9", target="ipp_b9")
    assert clean_up(replace(plan, calls=(*plan.calls, other))) == (["DELETE /ip_policies/ipp_b2"], ["IPPolicy/b"])


def test_undeclared_objects_are_not_part_of_the_cleanup() -> None:
    plan = plan_with_duplicates("b")
    removed = Change(at("IPPolicy/old"), Action.DELETE, Reason.REMOVED, "ipp_old")
    delete = Call("delete old", removed.address, Verb.DELETE, "/ip_policies/ipp_old", target="ipp_old")
    with_orphan = replace(plan, changes=(*plan.changes, removed), calls=(*plan.calls, delete))
    assert clean_up(with_orphan) == (["DELETE /ip_policies/ipp_b2"], ["IPPolicy/b"])


def test_the_cleanup_has_the_calls_that_its_deletions_need_through_others_and_no_bindings() -> None:
    plan = plan_with_duplicates("b")
    first, second = (
        Call(name, at("TLSEdge/e"), Verb.UPDATE, f"/edges/tls/{name}", target=name, needs=needs)
        for name, needs in (("one", ()), ("two", ("one",)))
    )
    calls = [replace(call, needs=("two",)) if call.target == "ipp_b2" else call for call in plan.calls]
    chained = replace(plan, calls=(first, second, *calls), bindings={at("BotUser/b"): None})
    cleanup = cleanup_plan(chained, lambda event: None)
    assert cleanup is not None
    assert requests(cleanup) == ["PATCH /edges/tls/one", "PATCH /edges/tls/two", "DELETE /ip_policies/ipp_b2"]
    assert cleanup.bindings == {}
    withheld = with_approval(chained, "update", "TLSEdge")  # also of a call that is needed through another
    assert clean_up(withheld) == ([], [])
