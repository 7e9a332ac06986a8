"""Approvals: which changes require one, and when it is granted."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.approved import ApprovedItem
from reconciler.model.change import Action, Reason, Risk
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Approval, Plan
from reconciler.model.problem import Severity
from reconciler.model.snapshot import Binding, Live, Snapshot
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.guards import find_required_approvals, find_unused, is_protected
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import KINDS, at, change_of, declare, live, make_plan, manifest, record, snapshot

DOMAIN_SPEC = {"domain": "a.x"}


def live_edges(count: int, description: str = "") -> list[Live]:
    was = {"description": description}
    return [live("TLSEdge", f"e{n}", was, owner=record(f"TLSEdge/{n}", was)) for n in range(count)]


def declare_edges(*numbers: int, description: str = "") -> list[Declaration]:
    return [declare(f"TLSEdge/{n}", {"description": description}) for n in numbers]


def list_approvals(plan: Plan) -> list[str]:
    return [approval.flag for approval in plan.missing_approvals]


# --- shares -----------------------------------------------------------------------------------------------------------


def test_three_of_ten_objects_are_deleted_without_approval() -> None:
    assert list_approvals(make_plan(*declare_edges(*range(7)), seen=snapshot(*live_edges(10)))) == []


def test_a_delete_of_four_of_ten_objects_requires_approval() -> None:
    assert list_approvals(make_plan(*declare_edges(*range(6)), seen=snapshot(*live_edges(10)))) == [
        "--allow delete:*=4"
    ]


def test_any_share_of_fewer_than_ten_objects_is_deleted_without_approval() -> None:
    assert list_approvals(make_plan(*declare_edges(0), seen=snapshot(*live_edges(9)))) == []


def test_a_limit_of_zero_applies_to_fewer_than_ten_objects() -> None:
    none = PlanOptions(max_delete_percent=0, max_update_percent=0)
    plan = make_plan(*declare_edges(0), *declare_edges(1, description="x"), seen=snapshot(*live_edges(3)), options=none)
    assert list_approvals(plan) == ["--allow delete:*=1", "--allow update:*=1"]
    assert list_approvals(make_plan(*declare_edges(0, 1), seen=snapshot(*live_edges(2)), options=none)) == []


def test_three_of_ten_objects_are_updated_without_approval() -> None:
    plan = make_plan(
        *declare_edges(*range(7)), *declare_edges(7, 8, 9, description="x"), seen=snapshot(*live_edges(10))
    )
    assert list_approvals(plan) == []


def test_an_update_of_four_of_ten_objects_requires_approval() -> None:
    plan = make_plan(
        *declare_edges(*range(6)), *declare_edges(6, 7, 8, 9, description="x"), seen=snapshot(*live_edges(10))
    )
    assert list_approvals(plan) == ["--allow update:*=4"]


def test_a_renamed_resource_counts_as_an_update() -> None:
    renamed = [declare(f"TLSEdge/new{n}", moved=[f"TLSEdge/{n}"]) for n in range(6, 10)]
    plan = make_plan(*declare_edges(*range(6)), *renamed, seen=snapshot(*live_edges(10)))
    assert list_approvals(plan) == ["--allow update:*=4"]


@pytest.mark.parametrize(("percent", "flags"), [(40, []), (39, ["--allow delete:*=4"]), (0, ["--allow delete:*=4"])])
def test_the_share_of_deletes_without_approval_is_configurable(percent: int, flags: list[str]) -> None:
    plan = make_plan(
        *declare_edges(*range(6)), seen=snapshot(*live_edges(10)), options=PlanOptions(max_delete_percent=percent)
    )
    assert list_approvals(plan) == flags


def test_a_replacement_counts_as_a_delete() -> None:
    authorities = [
        live("CertificateAuthority", f"ca_{n}", {"ca_pem": "OLD"}, owner=record(f"CertificateAuthority/{n}"))
        for n in range(10)
    ]
    plan = make_plan(
        *(declare(f"CertificateAuthority/{n}", {"ca_pem": "NEW"}) for n in range(10)), seen=snapshot(*authorities)
    )
    assert list_approvals(plan) == ["--allow delete:*=10"]


def test_objects_of_other_stacks_and_unmanaged_objects_do_not_count_in_the_share() -> None:
    others = [live("TLSEdge", f"x{n}") for n in range(50)]
    others += [live("TLSEdge", f"y{n}", owner=record(f"TLSEdge/y{n}", {}, stack="other")) for n in range(50)]
    plan = make_plan(*declare_edges(*range(6)), seen=snapshot(*live_edges(10), *others))
    assert list_approvals(plan) == ["--allow delete:*=4"]


def test_resources_declared_absent_count_like_removed_ones() -> None:
    absent = [declare(f"TLSEdge/{n}", ensure=Ensure.ABSENT) for n in range(6, 10)]
    plan = make_plan(*declare_edges(*range(6)), *absent, seen=snapshot(*live_edges(10)))
    assert list_approvals(plan) == ["--allow delete:*=4"]


@pytest.mark.parametrize(
    "receipts", [[], [f"i{n}" for n in range(12)]], ids=["no token was delivered", "every token was"]
)
def test_credentials_pending_from_an_interrupted_run_are_completed_without_approval(receipts: list[str]) -> None:
    credentials = [
        live(
            "TunnelCredential",
            f"cr_{n}",
            owner=record(f"TunnelCredential/{n}", {}, pending=True, intent=f"i{n}"),
        )
        for n in range(12)
    ]
    plan = make_plan(
        *(declare(f"TunnelCredential/{n}") for n in range(12)), seen=snapshot(*credentials, receipts=receipts)
    )
    assert (len(plan.changes), list_approvals(plan)) == (12, [])


def test_a_destroy_requires_no_approval_of_a_share() -> None:
    assert list_approvals(make_plan(seen=snapshot(*live_edges(20)), options=PlanOptions(destroy=True))) == []


# --- counts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("allowed", "granted"), [(1, False), (2, True), (3, True)])
def test_an_approval_covers_at_most_its_count(allowed: int, granted: bool) -> None:
    domains = [
        live("ReservedDomain", f"rd_{n}", {"domain": f"{n}.x"}, owner=record(f"ReservedDomain/{n}")) for n in range(2)
    ]
    plan = make_plan(
        declare("IPPolicy/p"),
        seen=snapshot(*domains),
        options=PlanOptions(allow={("delete", "ReservedDomain"): allowed}),
    )
    assert [(approval.flag, approval.granted) for approval in plan.approvals] == [
        ("--allow delete:ReservedDomain=2", granted)
    ]


def test_an_approval_of_one_kind_does_not_cover_another() -> None:
    domain = live("ReservedDomain", "rd_1", DOMAIN_SPEC, owner=record("ReservedDomain/a"))
    plan = make_plan(
        declare("IPPolicy/p"), seen=snapshot(domain), options=PlanOptions(allow={("delete", "ReservedAddress"): 9})
    )
    assert list_approvals(plan) == ["--allow delete:ReservedDomain=1"]


def test_an_approval_of_a_delete_does_not_cover_a_protected_object() -> None:
    domain = live("ReservedDomain", "rd_1", DOMAIN_SPEC, owner=record("ReservedDomain/a", protect=True))
    plan = make_plan(
        declare("IPPolicy/p"), seen=snapshot(domain), options=PlanOptions(allow={("delete", "ReservedDomain"): 9})
    )
    assert list_approvals(plan) == ["--allow delete-protected:ReservedDomain=1"]


def test_an_empty_manifest_requires_approval_unless_it_is_a_destroy() -> None:
    one = snapshot(*live_edges(1))
    assert (
        list_approvals(make_plan(seen=one)),
        list_approvals(make_plan(seen=one, options=PlanOptions(destroy=True))),
    ) == (
        ["--allow empty:*=1"],
        [],
    )


def test_an_empty_manifest_of_a_stack_without_objects_requires_no_approval() -> None:
    assert make_plan(seen=snapshot(live("TLSEdge", "e"))).approvals == ()


# --- irreversible deletions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body"),
    [("ReservedDomain", DOMAIN_SPEC), ("ReservedAddress", {"addr": "1.tcp.x:1"}), ("AgentIngress", {"domain": "c.x"})],
)
def test_deletes_of_reserved_names_and_addresses_require_approval(kind: str, body: dict[str, str]) -> None:
    live_object = live(kind, "id-1", body, owner=record(f"{kind}/a"))
    assert list_approvals(make_plan(declare("IPPolicy/p"), seen=snapshot(live_object))) == [f"--allow delete:{kind}=1"]


def test_a_replacement_of_a_domain_requires_the_approval_of_a_delete() -> None:
    domain = live("ReservedDomain", "rd_1", DOMAIN_SPEC, owner=record("ReservedDomain/a"))
    replaced = PlanOptions(to_replace=frozenset({at("ReservedDomain/a")}))
    plan = make_plan(declare("ReservedDomain/a", DOMAIN_SPEC), seen=snapshot(domain), options=replaced)
    assert list_approvals(plan) == ["--allow delete:ReservedDomain=1"]


def test_ensure_absent_does_not_approve_an_irreversible_deletion() -> None:
    domain = live("ReservedDomain", "rd_1", DOMAIN_SPEC, owner=record("ReservedDomain/a"))
    plan = make_plan(declare("ReservedDomain/a", DOMAIN_SPEC, ensure=Ensure.ABSENT), seen=snapshot(domain))
    assert list_approvals(plan) == ["--allow delete:ReservedDomain=1"]


def test_ensure_absent_does_not_approve_the_deletion_of_an_object_that_no_stack_manages() -> None:
    declared = declare("TLSEdge/a", id="e", ensure=Ensure.ABSENT, adopt=True)
    assert list_approvals(make_plan(declared, seen=snapshot(live("TLSEdge", "e")))) == ["--allow delete:TLSEdge=1"]


def test_a_required_approval_of_irreversible_changes_lists_each_change_once() -> None:
    domain = live("ReservedDomain", "rd_1", DOMAIN_SPEC, owner=record("ReservedDomain/a"))
    protected = live(
        "ReservedDomain", "rd_2", {"domain": "b.example.com"}, owner=record("ReservedDomain/b", protect=True)
    )
    options = PlanOptions(require_approval=frozenset({Risk.IRREVERSIBLE}))
    plan = make_plan(declare("IPPolicy/p"), seen=snapshot(domain, protected), options=options)
    assert list_approvals(plan) == ["--allow delete-protected:ReservedDomain=1", "--allow delete:ReservedDomain=1"]


def test_a_child_without_an_owner_record_is_deleted_without_approval_and_a_bot_is_not() -> None:
    above = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}))
    source = live("EventSource", "vault_created.v0", parent="esb_1")
    bot = live("BotUser", "bot_1", {"name": "b"})
    bound = {"EventSource/x": Binding(source.locator), "BotUser/b": Binding("bot_1")}
    plan = make_plan(declare("EventSubscription/s"), seen=snapshot(above, source, bot, bindings=bound))
    assert {str(change.address) for change in plan.changes} == {"EventSource/x", "BotUser/b"}
    assert list_approvals(plan) == ["--allow delete:BotUser=1"]


@pytest.mark.parametrize(("moment", "granted"), [("23:59:59", True), ("24:00:01", False)])
def test_an_entry_is_valid_to_the_end_of_its_last_day(moment: str, granted: bool) -> None:
    domain = live("ReservedDomain", "rd_1", DOMAIN_SPEC, owner=record("ReservedDomain/a"))
    declared = declare("IPPolicy/p")
    (approval,) = make_plan(declared, seen=snapshot(domain)).missing_approvals
    (item,) = approval.items
    entry = ApprovedItem("delete", item.subject, item.id, item.digest, "1970-01-02")
    hours, minutes, seconds = map(int, moment.split(":"))
    now = 86_400 + 3_600 * hours + 60 * minutes + seconds
    plan = make_plan(declared, seen=snapshot(domain), options=PlanOptions(approved=(entry,), now=now))
    assert [approval.granted for approval in plan.approvals] == [granted]
    assert [problem.code for problem in plan.problems] == ([] if granted else ["unused-approval"])


@pytest.mark.parametrize(
    ("entry_id", "text"),
    [("", None), ("cr_1", "approves cr_1, but the object is new")],
)
def test_an_entry_for_a_new_object_has_no_id(entry_id: str, text: str | None) -> None:
    declared = [declare("TunnelCredential/c")]
    options = PlanOptions(require_approval=frozenset({Risk.ISSUES_CREDENTIAL}))
    (approval,) = make_plan(*declared, options=options).approvals
    (item,) = approval.items
    entry = ApprovedItem("issues_credential", item.subject, entry_id, item.digest, "1970-01-02")
    plan = make_plan(*declared, options=replace(options, approved=(entry,)))
    assert [problem.text for problem in plan.problems] == ([text] if text else [])
    assert [approval.granted for approval in plan.approvals] == [text is None]


def test_only_changes_with_the_named_risk_require_its_approval() -> None:
    """Deleting a domain interrupts traffic, deleting a credential disables agents: each counts for its risk only."""
    domain = live("ReservedDomain", "rd_1", DOMAIN_SPEC, owner=record("ReservedDomain/a"))
    credential = live("TunnelCredential", "cr_1", {}, owner=record("TunnelCredential/c"))
    for risk in (Risk.INTERRUPTS_TRAFFIC, Risk.DISABLES_AGENT):
        options = PlanOptions(require_approval=frozenset({risk}), allow={("delete", "ReservedDomain"): 1})
        plan = make_plan(declare("IPPolicy/p"), seen=snapshot(domain, credential), options=options)
        kind_names = [approval.kind for approval in plan.missing_approvals]
        assert kind_names == [change.address.kind for change in plan.changes if risk in change.risks]
        assert len(kind_names) == 1


# --- protection -------------------------------------------------------------------------------------------------------


def test_protection_remains_after_the_declaration_is_removed() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=True))
    plan = make_plan(declare("IPPolicy/p"), seen=snapshot(edge))
    assert (list_approvals(plan), change_of(plan, "TLSEdge/a").protected) == (
        ["--allow delete-protected:TLSEdge=1"],
        True,
    )


def test_protection_of_a_bot_remains_after_its_declaration_is_removed() -> None:
    plan = make_plan(
        declare("IPPolicy/p"),
        seen=snapshot(live("BotUser", "bot_1", {"name": "b"}), bindings={"BotUser/b": Binding("bot_1", {}, True)}),
    )
    assert list_approvals(plan) == ["--allow delete-protected:BotUser=1"]


def test_an_absent_resource_that_is_protected_requires_approval() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=True))
    plan = make_plan(declare("TLSEdge/a", ensure=Ensure.ABSENT), seen=snapshot(edge))
    assert list_approvals(plan) == ["--allow delete-protected:TLSEdge=1"]


@pytest.mark.parametrize(("on_object", "in_git"), [(True, False), (False, True), (True, True)])
def test_protection_of_the_object_or_in_git_prevents_a_replacement(on_object: bool, in_git: bool) -> None:
    authority = live(
        "CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a", protect=on_object)
    )
    plan = make_plan(declare("CertificateAuthority/a", {"ca_pem": "NEW"}, protect=in_git), seen=snapshot(authority))
    assert list_approvals(plan) == ["--allow delete-protected:CertificateAuthority=1"]


def test_protection_does_not_prevent_an_update() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=True))
    plan = make_plan(declare("TLSEdge/a", {"description": "x"}, protect=True), seen=snapshot(edge))
    assert (list_approvals(plan), len(plan.calls)) == ([], 1)


def test_protection_removed_in_git_is_removed_from_the_owner_record_first() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=True))
    plan = make_plan(declare("TLSEdge/a", protect=False), seen=snapshot(edge))
    assert [call.method for call in plan.calls] == ["PATCH"]


def test_a_plan_without_risky_changes_has_no_approvals() -> None:
    assert make_plan(declare("TLSEdge/a")).approvals == ()


def test_a_granted_approval_remains_granted() -> None:
    approval = Approval("delete", "*", 4, "many", granted=True)
    assert replace(approval, why="more").granted


# --- parts of a deleted parent ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "flags"),
    [
        (record("IPPolicyRule/r", {}), []),
        (record("IPPolicyRule/r", {}, protect=True), ["--allow delete-protected:IPPolicyRule=1"]),
        (record("IPPolicyRule/r", {}, stack="other"), ["--allow delete:IPPolicyRule=1"]),
        (record("IPPolicyRule/r", {}, stack="other", protect=True), ["--allow delete-protected:IPPolicyRule=1"]),
        (None, ["--allow delete:IPPolicyRule=1"]),
    ],
)
def test_parts_deleted_with_their_parent_require_approval_by_owner_and_protection(
    owner: Owner | None, flags: list[str]
) -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    rule = live("IPPolicyRule", "ipr_1", {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8"}, owner=owner)
    plan = make_plan(seen=snapshot(policy, rule), options=PlanOptions(targets=("IPPolicy/p",), destroy=True))
    assert list_approvals(plan) == flags
    assert plan.unmanaged == ()


@pytest.mark.parametrize(
    ("kind", "protect", "flags"),
    [
        ("ReservedAddress", False, ["--allow delete:ReservedAddress=1"]),
        ("ReservedAddress", True, ["--allow delete-protected:ReservedAddress=1"]),
        ("IPPolicy", False, []),
        ("IPPolicy", True, ["--allow delete-protected:IPPolicy=1"]),
    ],
)
@pytest.mark.parametrize("replaces", [False, True])
def test_duplicate_and_replaced_objects_are_deleted_with_the_approval_of_their_kind(
    kind: str, protect: bool, flags: list[str], replaces: bool
) -> None:
    first, second = (
        live(
            kind,
            f"id-{n}",
            {"created_at": f"2026-01-01T00:00:0{n}Z"},
            owner=record(
                f"{kind}/a", {}, intent=f"i{n}", protect=protect, replaces="id-1" if replaces and n == 2 else None
            ),
        )
        for n in (1, 2)
    )
    plan = make_plan(declare(f"{kind}/a", protect=protect), seen=snapshot(first, second))
    assert [(change.action, change.id, change.protected) for change in plan.changes] == [
        (Action.DELETE, "id-1" if replaces else "id-2", protect)
    ]
    assert list_approvals(plan) == flags


# --- each kind with each action and protection ------------------------------------------------------------------------

DOMAIN, BOT, SOURCE, EDGE = (
    live("ReservedDomain", "rd_1", {"domain": "a.x"}, owner=record("ReservedDomain/a", {})),
    live("BotUser", "bot_1", {"name": "b"}),
    live("EventSource", "vault_created.v0", parent="esb_1"),
    live("TLSEdge", "edgtls_1", owner=record("TLSEdge/a", {})),
)
DECLARED = manifest(declare("IPPolicy/p"))
EMPTY = LiveIndex.of(DECLARED, snapshot(), KINDS)


def decide(live_object: Live, action: Action | None, **more: Any) -> Decision:
    kind = kinds.get(live_object.kind)
    return replace(Decision(at(f"{kind.name}/a"), kind, action=action, live=live_object), **more)


def find_approvals(
    *decisions: Decision, parts: tuple[Live, ...] = (), seen: Snapshot | None = None, owned: int = 0, **options: Any
) -> tuple[Approval, ...]:
    index = EMPTY if seen is None else LiveIndex.of(DECLARED, seen, KINDS)
    return find_required_approvals(decisions, parts, index, owned, PlanOptions(**options))


def list_flags(*decisions: Decision, **more: Any) -> list[str]:
    return [
        f"{approval.what}:{approval.kind}={approval.count}"
        for approval in find_approvals(*decisions, **more)
        if not approval.granted
    ]


@pytest.mark.parametrize("live_object", [DOMAIN, BOT, SOURCE, EDGE], ids=lambda live_object: str(live_object.kind))
def test_deletes_and_replacements_require_the_approval_of_their_kind_and_protection(live_object: Live) -> None:
    ways = product((*Action, None), (False, True), (False, True), (None, *Ensure), (False, True), (False, True))
    for action, live_protected, protect, ensure, keeps_predecessor, needs_approval in ways:
        declared = declare(f"{live_object.kind}/a", ensure=ensure, protect=protect) if ensure is not None else None
        decision = decide(
            live_object,
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
            needed.append(f"delete-protected:{live_object.kind}=1")
        else:
            is_irreversible = live_object is DOMAIN and ends
            is_known_to_the_store_only = live_object is BOT and action is Action.DELETE
            needed += [f"delete:{live_object.kind}=1"] * (is_irreversible + is_known_to_the_store_only)
        rule = "create" if action is Action.CREATE else "adopt"
        needed += [f"{rule}:{live_object.kind}=1"] * needs_approval
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
def test_a_part_deleted_with_its_parent_requires_approval_unless_it_is_managed(part: Live, flag: list[str]) -> None:
    approvals = find_approvals(parts=(part,), seen=snapshot(part))
    assert [(approval.what, approval.kind, approval.count, approval.parts) for approval in approvals] == [
        (what, "IPPolicyRule", 1, 1) for what in flag
    ]
    assert [item.subject for approval in approvals for item in approval.items] == ["IPPolicyRule/ipr_1"] * len(flag)


def test_objects_of_one_kind_are_counted_together() -> None:
    domains = [decide(DOMAIN, Action.DELETE, address=at(f"ReservedDomain/{name}")) for name in "abc"]
    guarded = [decide(live_object, Action.DELETE, live_protected=True) for live_object in (EDGE, DOMAIN, BOT)]
    part = live("ReservedDomain", "rd_2", owner=record("ReservedDomain/x", {}, protect=True))
    approvals = find_approvals(*domains, *guarded, parts=(part,), seen=snapshot(part))
    assert [
        (approval.what, approval.kind, approval.count, approval.parts, len(approval.items)) for approval in approvals
    ] == [
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
def test_only_deletes_and_updates_count_in_the_share_of_a_stack(decisions: list[Decision], counted: str | None) -> None:
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


@pytest.mark.parametrize("action", [Action.DELETE, Action.UPDATE])
@pytest.mark.parametrize("owned", [1, 2, 9, 10, 11, 12])
def test_the_share_of_a_stack_needs_approval_from_ten_objects_on_or_if_the_limit_is_zero(
    owned: int, action: Action
) -> None:
    """Each number of changed objects, up to all of them."""
    for limit, count in product((0, 1, 30, 99, 100), range(owned + 1)):
        flags = list_flags(*edges(count, action), owned=owned, max_delete_percent=limit, max_update_percent=limit)
        is_guarded = (owned >= 10 or limit == 0) and Fraction(count, owned) > Fraction(limit, 100)
        assert flags == ([f"{action}:*={count}"] if is_guarded else []), (limit, count)


def test_any_change_of_an_account_in_doubt_requires_approval() -> None:
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
def test_an_entry_that_approves_nothing_is_reported_with_the_reason(
    entry: tuple[ApprovedItem, ...], text: str | None
) -> None:
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


def test_risks_require_approval_for_each_kind_that_has_them() -> None:
    domains = [decide(DOMAIN, Action.DELETE, address=at(f"ReservedDomain/{name}")) for name in "ab"]
    decisions = [*domains, decide(EDGE, Action.DELETE)]
    required = frozenset({Risk.IRREVERSIBLE, Risk.INTERRUPTS_TRAFFIC})
    allow = {("delete", "ReservedDomain"): 2}
    assert list_flags(*decisions, allow=allow) == []
    assert sorted(list_flags(*decisions, allow=allow, require_approval=required)) == [
        "interrupts_traffic:ReservedDomain=2",
        "interrupts_traffic:TLSEdge=1",
    ]
