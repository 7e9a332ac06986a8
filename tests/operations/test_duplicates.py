"""The cleanup after two concurrent runs deletes only duplicates, and only what needs no approval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.plan import Approval, Plan
from reconciler.operations.applying.duplicates import cleanup_plan
from reconciler.operations.reporting import Note
from tests.planning.builders import declare, live, make_plan, record, ref, requests, snapshot

POLICIES = [declare(f"IPPolicy/{name}", {"description": name}) for name in ("a", "b")]
EDGE = declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/a")]}})


def duplicated(*names: str, **flags: Any) -> Plan:
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


def cleaned(plan: Plan) -> tuple[list[str], list[str]]:
    """The requests of the cleanup, and the addresses that it reports."""
    notes: list[Any] = []
    cleanup = cleanup_plan(plan, notes.append)
    told = [note.text.partition(" ")[0] for note in notes if isinstance(note, Note)]
    return (requests(cleanup) if cleanup is not None else []), told


def with_approval(plan: Plan, what: str, kind: str, *, granted: bool = False) -> Plan:
    return replace(plan, approvals=(Approval(what, kind, 1, "", granted=granted),))


def test_each_duplicate_is_deleted_after_what_still_refers_to_it_was_updated() -> None:
    sent, told = cleaned(duplicated("a", "b"))
    assert sorted(sent) == ["DELETE /ip_policies/ipp_a2", "DELETE /ip_policies/ipp_b2", "PATCH /edges/tls/edgtls_1"]
    assert sent.index("PATCH /edges/tls/edgtls_1") < sent.index("DELETE /ip_policies/ipp_a2")
    assert sorted(told) == ["IPPolicy/a", "IPPolicy/b"]


def test_a_protected_duplicate_stays() -> None:
    plan = duplicated("a", "b", protect=True)
    assert [approval.what for approval in plan.missing_approvals] == ["delete-protected"]
    assert cleaned(plan) == ([], [])


@pytest.mark.parametrize("what", ["delete", "update", "account"])
def test_nothing_is_deleted_while_the_whole_plan_needs_approval(what: str) -> None:
    assert cleaned(with_approval(duplicated("a", "b"), what, "*")) == ([], [])
    assert len(cleaned(with_approval(duplicated("a", "b"), what, "*", granted=True))[0]) == 3


def test_a_duplicate_stays_while_a_call_that_its_deletion_needs_has_no_approval() -> None:
    plan = with_approval(duplicated("a", "b"), "adopt", "TLSEdge")
    assert cleaned(plan) == (["DELETE /ip_policies/ipp_b2"], ["IPPolicy/b"])


def test_other_changes_are_not_part_of_the_cleanup() -> None:
    sent, _ = cleaned(duplicated("b"))  # the plan creates `a` and updates the edge as well
    assert sent == ["DELETE /ip_policies/ipp_b2"]
