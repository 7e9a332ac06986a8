"""Which decisions need which approval: each kind of object, with each action and each protection."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.approved import ApprovedItem
from reconciler.model.change import Action, Reason, Risk
from reconciler.model.manifest import Ensure
from reconciler.model.plan import Approval
from reconciler.model.problem import Severity
from reconciler.model.snapshot import Live, Snapshot
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.guards import find_required_approvals, find_unused, is_protected
from reconciler.planning.matching.index import LiveIndex
from tests.planning.builders import KINDS, at, declare, live, manifest, record, snapshot

DOMAIN, BOT, SOURCE, EDGE = (
    live("ReservedDomain", "rd_1", {"domain": "a.x"}, owner=record("ReservedDomain/a", {})),
    live("BotUser", "bot_1", {"name": "b"}),
    live("EventSource", "vault_created.v0", parent="esb_1"),
    live("TLSEdge", "edgtls_1", owner=record("TLSEdge/a", {})),
)
DECLARED = manifest(declare("IPPolicy/p"))
EMPTY = LiveIndex.of(DECLARED, snapshot(), KINDS)


def decide(there: Live, action: Action | None, **more: Any) -> Decision:
    kind = kinds.get(there.kind)
    return replace(Decision(at(f"{kind.name}/a"), kind, action=action, live=there), **more)


def find_approvals(
    *decisions: Decision, parts: tuple[Live, ...] = (), seen: Snapshot | None = None, owned: int = 0, **options: Any
) -> tuple[Approval, ...]:
    index = EMPTY if seen is None else LiveIndex.of(DECLARED, seen, KINDS)
    return find_required_approvals(decisions, parts, index, owned, PlanOptions(**options))


def list_flags(*decisions: Decision, **more: Any) -> list[str]:
    return [f"{each.what}:{each.kind}={each.count}" for each in find_approvals(*decisions, **more) if not each.granted]


@pytest.mark.parametrize("there", [DOMAIN, BOT, SOURCE, EDGE], ids=lambda each: str(each.kind))
def test_what_ends_needs_the_approval_of_its_kind_and_protection(there: Live) -> None:
    ways = product((*Action, None), (False, True), (False, True), (None, *Ensure), (False, True), (False, True))
    for action, live_protected, protect, ensure, keeps_predecessor, needs_approval in ways:
        declared = declare(f"{there.kind}/a", ensure=ensure, protect=protect) if ensure is not None else None
        decision = decide(
            there,
            action,
            declaration=declared,
            live_protected=live_protected,
            keeps_predecessor=keeps_predecessor,
            needs_approval=needs_approval,
        )
        is_guarded = live_protected or (protect and declared is not None)
        ends = action in (Action.DELETE, Action.REPLACE) and not keeps_predecessor
        needed = []
        if ends and is_guarded:
            needed.append(f"delete-protected:{there.kind}=1")
        else:
            is_irreversible = there is DOMAIN and ends
            is_known_to_the_store_only = there is BOT and action is Action.DELETE
            needed += [f"delete:{there.kind}=1"] * (is_irreversible + is_known_to_the_store_only)
        rule = "create" if action is Action.CREATE else "adopt"
        needed += [f"{rule}:{there.kind}=1"] * needs_approval
        assert is_protected(decision, PlanOptions()) is (ends and is_guarded)
        assert list_flags(decision) == needed, (action, live_protected, protect, ensure, keeps_predecessor)


@pytest.mark.parametrize(
    ("part", "flag"),
    [
        (live("IPPolicyRule", "ipr_1", owner=record("IPPolicyRule/r", {})), []),
        (live("IPPolicyRule", "ipr_1", owner=record("IPPolicyRule/r", {}, protect=True)), ["delete-protected"]),
        (live("IPPolicyRule", "ipr_1", owner=record("IPPolicyRule/r", {}, stack="other")), ["delete"]),
        (
            live("IPPolicyRule", "ipr_1", owner=record("IPPolicyRule/r", {}, stack="other", protect=True)),
            ["delete-protected"],
        ),
        (live("IPPolicyRule", "ipr_1"), ["delete"]),
    ],
)
def test_a_part_that_is_deleted_with_its_parent_needs_approval_unless_it_is_ours(part: Live, flag: list[str]) -> None:
    approvals = find_approvals(parts=(part,), seen=snapshot(part))
    assert [(each.what, each.kind, each.count, each.parts) for each in approvals] == [
        (what, "IPPolicyRule", 1, 1) for what in flag
    ]
    assert [item.subject for each in approvals for item in each.items] == ["IPPolicyRule/ipr_1"] * len(flag)


def test_objects_of_one_kind_are_counted_together_and_kinds_apart() -> None:
    domains = [decide(DOMAIN, Action.DELETE, address=at(f"ReservedDomain/{name}")) for name in "abc"]
    guarded = [decide(there, Action.DELETE, live_protected=True) for there in (EDGE, DOMAIN, BOT)]
    part = live("ReservedDomain", "rd_2", owner=record("ReservedDomain/x", {}, protect=True))
    approvals = find_approvals(*domains, *guarded, parts=(part,), seen=snapshot(part))
    assert [(each.what, each.kind, each.count, each.parts, len(each.items)) for each in approvals] == [
        ("delete-protected", "BotUser", 1, 0, 1),
        ("delete-protected", "ReservedDomain", 2, 1, 2),
        ("delete-protected", "TLSEdge", 1, 0, 1),
        ("delete", "ReservedDomain", 3, 0, 3),
    ]


def edges(count: int, action: Action, **more: Any) -> list[Decision]:
    return [decide(EDGE, action, address=at(f"TLSEdge/{number}"), **more) for number in range(count)]


@pytest.mark.parametrize(
    ("decisions", "counted"),
    [
        (edges(4, Action.DELETE), "delete"),
        (edges(4, Action.REPLACE), "delete"),
        (edges(4, Action.REPLACE, keeps_predecessor=True), None),
        (edges(4, Action.REPLACE, reason=Reason.UNDELIVERED), None),
        (edges(4, Action.DELETE, reason=Reason.ADDED), None),
        (edges(4, Action.DELETE, declaration=declare("TLSEdge/a", ensure=Ensure.ABSENT)), "delete"),
        (edges(4, Action.UPDATE), "update"),
        (edges(4, Action.MOVE), "update"),
        (edges(4, Action.UPDATE, reason=Reason.RECORD), "update"),
        (edges(4, Action.UPDATE, reason=Reason.FIELDS, confirms_delivery=True), "update"),
        (edges(4, Action.UPDATE, reason=Reason.RECORD, confirms_delivery=True), None),
        (edges(4, Action.CREATE), None),
        (edges(4, Action.ADOPT), None),
        (edges(4, Action.FORGET), None),
        (edges(3, Action.DELETE) + edges(3, Action.UPDATE), None),
    ],
)
def test_which_changes_count_in_the_share_of_a_stack(decisions: list[Decision], counted: str | None) -> None:
    flag = [f"{counted}:*=4"] if counted else []
    assert list_flags(*decisions, owned=10) == flag
    assert list_flags(*decisions, owned=13) == flag  # 30.8 %
    assert list_flags(*decisions, owned=14) == []
    assert list_flags(*decisions, owned=9) == []
    assert list_flags(*decisions, owned=10, destroy=True) == []
    limits = {"max_delete_percent": 40, "max_update_percent": 40}
    assert list_flags(*decisions, owned=10, **limits) == []
    limits = {"max_delete_percent": 39, "max_update_percent": 39}
    assert list_flags(*decisions, owned=10, **limits) == flag


def test_any_change_of_an_account_in_doubt_needs_approval() -> None:
    seen = replace(snapshot(), doubt="it may be another account")
    (approval,) = find_approvals(*edges(2, Action.UPDATE), seen=seen)
    assert (approval.flag, approval.why, approval.items) == ("--allow account:*=1", seen.doubt, ())
    assert list_flags(decide(EDGE, None), seen=seen) == []
    assert list_flags(*edges(2, Action.UPDATE)) == []
    assert list_flags(*edges(2, Action.UPDATE), seen=seen, allow={("account", "*"): 1}) == []


# --- entries of approvals.yaml ----------------------------------------------------------------------------------------

TWO = [decide(DOMAIN, Action.DELETE, address=at(f"ReservedDomain/{name}")) for name in "ab"]
DAY = 86_400.0  # the second day of 1970 begins


def approve(*numbers: int, **more: Any) -> tuple[ApprovedItem, ...]:
    """Entries for some of the objects that need approval."""
    (approval,) = find_approvals(*TWO)
    items = [approval.items[number] for number in numbers]
    return tuple(
        replace(ApprovedItem("delete", item.subject, item.id, item.digest, "1970-01-02"), **more) for item in items
    )


@pytest.mark.parametrize(
    ("approved", "allowed", "granted"),
    [
        ((), 0, False),
        ((), 1, False),
        ((), 2, True),
        (approve(0), 0, False),
        (approve(0), 1, True),
        (approve(0, 1), 0, True),
        (approve(0, 0), 0, False),
        (approve(0, 0), 1, True),
        (approve(0, 1, what="delete-protected"), 0, False),
        (approve(0, 1, until="1970-01-01"), 0, False),
        (approve(0, 1, id="rd_2"), 0, False),
        (approve(0, 1, digest="00"), 0, False),
        (approve(0, 1, subject="ReservedDomain/c"), 0, False),
    ],
)
def test_entries_and_flags_grant_an_approval_together(
    approved: tuple[ApprovedItem, ...], allowed: int, granted: bool
) -> None:
    allow = {("delete", "ReservedDomain"): allowed}
    (approval,) = find_approvals(*TWO, approved=approved, now=DAY, allow=allow)
    assert approval.granted is granted


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (approve(0), None),
        (approve(0, subject="ReservedDomain/c"), "approves no change of this plan"),
        (approve(0, until="1970-01-01"), "expired on 1970-01-01"),
        (approve(0, id="rd_2"), "approves rd_2, but the object is rd_1"),
        (approve(0, id=""), "approves no object, but the object is rd_1"),
        (approve(0, digest="00"), f"approves another change: its digest is {approve(0)[0].digest} now"),
        (approve(0, until="1970-01-01", id="rd_2", digest="00"), "expired on 1970-01-01"),
        (approve(0, id="rd_2", digest="00"), "approves rd_2, but the object is rd_1"),
    ],
)
def test_an_entry_that_approves_nothing_says_why(entry: tuple[ApprovedItem, ...], text: str | None) -> None:
    options = PlanOptions(approved=entry, now=DAY)
    problems = list(find_unused(find_approvals(*TWO), options))
    assert [problem.text for problem in problems] == ([text] if text else [])
    assert [problem.code for problem in problems] == ["unused-approval"] * len(problems)
    for limited in (replace(options, targets=("*",)), replace(options, excludes=("IPPolicy/*",))):
        assert list(find_unused(find_approvals(*TWO), limited)) == []


@pytest.mark.parametrize(
    ("until", "remedy"), [("2999-01-01", "it can stay until 2999-01-01"), ("1970-01-01", "remove the entry")]
)
def test_a_used_entry_is_a_note(until: str, remedy: str) -> None:
    """Whether the plan is empty, as after the apply, or needs approvals of other rules only."""
    for needed, entry in (((), approve(0, until=until)), (find_approvals(*TWO), approve(0, what="adopt", until=until))):
        (problem,) = find_unused(needed, PlanOptions(approved=entry, now=DAY))
        assert problem.severity is Severity.NOTE
        assert problem.remedy == remedy
        assert problem.code == "unused-approval"


def test_risks_need_approval_for_each_kind_that_has_them() -> None:
    domains = [decide(DOMAIN, Action.DELETE, address=at(f"ReservedDomain/{name}")) for name in "ab"]
    decisions = [*domains, decide(EDGE, Action.DELETE)]
    required = frozenset({Risk.IRREVERSIBLE, Risk.INTERRUPTS_TRAFFIC})
    allow = {("delete", "ReservedDomain"): 2}
    assert list_flags(*decisions, allow=allow) == []
    assert sorted(list_flags(*decisions, allow=allow, require_approval=required)) == [
        "interrupts_traffic:ReservedDomain=2",
        "interrupts_traffic:TLSEdge=1",
    ]
