"""What needs the user's consent, and when it is given."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.model.approved import ApprovedItem
from reconciler.model.change import Action, Risk
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Approval, Plan
from reconciler.model.snapshot import Binding, Live
from reconciler.planning.planner import PlanOptions
from tests.planning.builders import change_of, declare, live, make_plan, record, ref, snapshot

DOMAIN = {"domain": "a.x"}


def edges(count: int, description: str = "") -> list[Live]:
    was = {"description": description}
    return [live("TLSEdge", f"e{n}", was, owner=record(f"TLSEdge/{n}", was)) for n in range(count)]


def declare_edges(*numbers: int, description: str = "") -> list[Declaration]:
    return [declare(f"TLSEdge/{n}", {"description": description}) for n in numbers]


def list_approvals(made: Plan) -> list[str]:
    return [consent.flag for consent in made.missing_approvals]


# --- shares -----------------------------------------------------------------------------------------------------------


def test_three_of_ten_may_be_deleted() -> None:
    assert list_approvals(make_plan(*declare_edges(*range(7)), seen=snapshot(*edges(10)))) == []


def test_four_of_ten_may_not_be_deleted_without_consent() -> None:
    assert list_approvals(make_plan(*declare_edges(*range(6)), seen=snapshot(*edges(10)))) == ["--allow delete:*=4"]


def test_of_fewer_than_ten_any_share_may_be_deleted() -> None:
    assert list_approvals(make_plan(*declare_edges(0), seen=snapshot(*edges(9)))) == []


def test_of_fewer_than_ten_none_may_be_deleted_or_updated_if_the_limit_is_0() -> None:
    none = PlanOptions(max_delete_percent=0, max_update_percent=0)
    made = make_plan(*declare_edges(0), *declare_edges(1, description="x"), seen=snapshot(*edges(3)), options=none)
    assert list_approvals(made) == ["--allow delete:*=1", "--allow update:*=1"]
    assert list_approvals(make_plan(*declare_edges(0, 1), seen=snapshot(*edges(2)), options=none)) == []


def test_three_of_ten_may_be_updated() -> None:
    made = make_plan(*declare_edges(*range(7)), *declare_edges(7, 8, 9, description="x"), seen=snapshot(*edges(10)))
    assert list_approvals(made) == []


def test_four_of_ten_may_not_be_updated_without_consent() -> None:
    made = make_plan(*declare_edges(*range(6)), *declare_edges(6, 7, 8, 9, description="x"), seen=snapshot(*edges(10)))
    assert list_approvals(made) == ["--allow update:*=4"]


def test_a_renamed_resource_counts_as_an_update() -> None:
    renamed = [declare(f"TLSEdge/new{n}", moved=[f"TLSEdge/{n}"]) for n in range(6, 10)]
    made = make_plan(*declare_edges(*range(6)), *renamed, seen=snapshot(*edges(10)))
    assert list_approvals(made) == ["--allow update:*=4"]


@pytest.mark.parametrize(("percent", "flags"), [(40, []), (39, ["--allow delete:*=4"]), (0, ["--allow delete:*=4"])])
def test_the_share_that_may_be_deleted_is_the_users_choice(percent: int, flags: list[str]) -> None:
    made = make_plan(
        *declare_edges(*range(6)), seen=snapshot(*edges(10)), options=PlanOptions(max_delete_percent=percent)
    )
    assert list_approvals(made) == flags


def test_a_replacement_counts_as_a_delete() -> None:
    there = [
        live("CertificateAuthority", f"ca_{n}", {"ca_pem": "OLD"}, owner=record(f"CertificateAuthority/{n}"))
        for n in range(10)
    ]
    made = make_plan(
        *(declare(f"CertificateAuthority/{n}", {"ca_pem": "NEW"}) for n in range(10)), seen=snapshot(*there)
    )
    assert list_approvals(made) == ["--allow delete:*=10"]


def test_objects_of_other_stacks_and_of_nobody_do_not_water_a_share_down() -> None:
    others = [live("TLSEdge", f"x{n}") for n in range(50)]
    others += [live("TLSEdge", f"y{n}", owner=record(f"TLSEdge/y{n}", {}, stack="theirs")) for n in range(50)]
    made = make_plan(*declare_edges(*range(6)), seen=snapshot(*edges(10), *others))
    assert list_approvals(made) == ["--allow delete:*=4"]


def test_resources_declared_absent_count_like_removed_ones() -> None:
    absent = [declare(f"TLSEdge/{n}", ensure=Ensure.ABSENT) for n in range(6, 10)]
    plan = make_plan(*declare_edges(*range(6)), *absent, seen=snapshot(*edges(10)))
    assert list_approvals(plan) == ["--allow delete:*=4"]


@pytest.mark.parametrize("receipts", [[], [f"i{n}" for n in range(12)]], ids=["no token arrived", "every token did"])
def test_what_a_run_left_half_done_is_cleared_up_without_consent(receipts: list[str]) -> None:
    there = [
        live(
            "TunnelCredential",
            f"cr_{n}",
            owner=record(f"TunnelCredential/{n}", {}, pending=True, intent=f"i{n}"),
        )
        for n in range(12)
    ]
    made = make_plan(*(declare(f"TunnelCredential/{n}") for n in range(12)), seen=snapshot(*there, receipts=receipts))
    assert (len(made.changes), list_approvals(made)) == (12, [])


def test_no_share_counts_when_everything_is_to_go() -> None:
    assert list_approvals(make_plan(seen=snapshot(*edges(20)), options=PlanOptions(destroy=True))) == []


# --- counts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "granted"), [(1, False), (2, True), (3, True)])
def test_consent_is_given_for_at_most_as_many_as_it_says(given: int, granted: bool) -> None:
    there = [
        live("ReservedDomain", f"rd_{n}", {"domain": f"{n}.x"}, owner=record(f"ReservedDomain/{n}")) for n in range(2)
    ]
    made = make_plan(
        declare("IPPolicy/p"), seen=snapshot(*there), options=PlanOptions(allow={("delete", "ReservedDomain"): given})
    )
    assert [(approval.flag, approval.granted) for approval in made.approvals] == [
        ("--allow delete:ReservedDomain=2", granted)
    ]


def test_consent_for_one_kind_is_none_for_another() -> None:
    there = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/a"))
    made = make_plan(
        declare("IPPolicy/p"), seen=snapshot(there), options=PlanOptions(allow={("delete", "ReservedAddress"): 9})
    )
    assert list_approvals(made) == ["--allow delete:ReservedDomain=1"]


def test_consent_to_delete_is_none_to_delete_what_is_protected() -> None:
    there = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/a", protect=True))
    made = make_plan(
        declare("IPPolicy/p"), seen=snapshot(there), options=PlanOptions(allow={("delete", "ReservedDomain"): 9})
    )
    assert list_approvals(made) == ["--allow delete-protected:ReservedDomain=1"]


def test_an_empty_manifest_is_a_mistake_unless_everything_is_to_go() -> None:
    one = snapshot(*edges(1))
    assert (
        list_approvals(make_plan(seen=one)),
        list_approvals(make_plan(seen=one, options=PlanOptions(destroy=True))),
    ) == (
        ["--allow empty:*=1"],
        [],
    )


def test_an_empty_manifest_of_a_stack_that_owns_nothing_is_no_mistake() -> None:
    assert make_plan(seen=snapshot(live("TLSEdge", "e"))).approvals == ()


# --- irreversible deletions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body"),
    [("ReservedDomain", DOMAIN), ("ReservedAddress", {"addr": "1.tcp.x:1"}), ("AgentIngress", {"domain": "c.x"})],
)
def test_names_and_addresses_do_not_go_without_consent(kind: str, body: dict[str, str]) -> None:
    there = live(kind, "id-1", body, owner=record(f"{kind}/a"))
    assert list_approvals(make_plan(declare("IPPolicy/p"), seen=snapshot(there))) == [f"--allow delete:{kind}=1"]


def test_a_domain_that_is_replaced_needs_the_consent_of_one_that_is_deleted() -> None:
    was = {**DOMAIN, "region": "eu"}
    there = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/a", was))
    made = make_plan(declare("ReservedDomain/a", {**DOMAIN, "region": "us"}), seen=snapshot(there))
    assert list_approvals(made) == ["--allow delete:ReservedDomain=1"]


def test_ensure_absent_does_not_approve_an_irreversible_deletion() -> None:
    there = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/a"))
    plan = make_plan(declare("ReservedDomain/a", DOMAIN, ensure=Ensure.ABSENT), seen=snapshot(there))
    assert list_approvals(plan) == ["--allow delete:ReservedDomain=1"]


def test_ensure_absent_does_not_approve_the_deletion_of_an_object_that_no_stack_manages() -> None:
    declared = declare("TLSEdge/a", id="e", ensure=Ensure.ABSENT, adopt=True)
    assert list_approvals(make_plan(declared, seen=snapshot(live("TLSEdge", "e")))) == ["--allow delete:TLSEdge=1"]


def test_a_required_approval_of_irreversible_changes_asks_for_each_change_once() -> None:
    there = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/a"))
    kept = live("ReservedDomain", "rd_2", {"domain": "b.example.com"}, owner=record("ReservedDomain/b", protect=True))
    options = PlanOptions(require_approval=frozenset({Risk.IRREVERSIBLE}))
    plan = make_plan(declare("IPPolicy/p"), seen=snapshot(there, kept), options=options)
    assert list_approvals(plan) == ["--allow delete-protected:ReservedDomain=1", "--allow delete:ReservedDomain=1"]


def test_a_child_without_a_record_of_its_own_is_deleted_without_consent_but_a_bot_is_not() -> None:
    above = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}))
    source = live("EventSource", "vault_created.v0", parent="esb_1")
    bot = live("BotUser", "bot_1", {"name": "b"})
    bound = {"EventSource/x": Binding(source.locator), "BotUser/b": Binding("bot_1")}
    made = make_plan(declare("EventSubscription/s"), seen=snapshot(above, source, bot, bindings=bound))
    assert {str(change.address) for change in made.changes} == {"EventSource/x", "BotUser/b"}
    assert list_approvals(made) == ["--allow delete:BotUser=1"]


@pytest.mark.parametrize(("moment", "granted"), [("23:59:59", True), ("24:00:01", False)])
def test_an_entry_counts_to_the_end_of_its_last_day(moment: str, granted: bool) -> None:
    there = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/a"))
    declared = declare("IPPolicy/p")
    (approval,) = make_plan(declared, seen=snapshot(there)).missing_approvals
    (item,) = approval.items
    entry = ApprovedItem("delete", item.subject, item.id, item.digest, "1970-01-02")
    hours, minutes, seconds = map(int, moment.split(":"))
    now = 86_400 + 3_600 * hours + 60 * minutes + seconds
    made = make_plan(declared, seen=snapshot(there), options=PlanOptions(approved=(entry,), now=now))
    assert [approval.granted for approval in made.approvals] == [granted]
    assert [problem.code for problem in made.problems] == ([] if granted else ["unused-approval"])


@pytest.mark.parametrize(
    ("entry_id", "text"),
    [("", None), ("ipr_1", "approves ipr_1, but the object is new")],
)
def test_an_entry_for_an_object_that_is_created_names_no_id(entry_id: str, text: str | None) -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/office", {}))
    spec = {"ip_policy_id": ref("IPPolicy/office"), "cidr": "10.0.0.0/8", "action": "allow"}
    declared = [declare("IPPolicy/office"), declare("IPPolicyRule/r", spec)]
    options = PlanOptions(require_approval=frozenset({Risk.WIDENS_ACCESS}))
    (approval,) = make_plan(*declared, seen=snapshot(policy), options=options).approvals
    (item,) = approval.items
    entry = ApprovedItem("widens_access", item.subject, entry_id, item.digest, "1970-01-02")
    made = make_plan(*declared, seen=snapshot(policy), options=replace(options, approved=(entry,)))
    assert [problem.text for problem in made.problems] == ([text] if text else [])
    assert [approval.granted for approval in made.approvals] == [text is None]


def test_only_changes_with_the_named_risk_need_its_approval() -> None:
    """Deleting a domain is irreversible, deleting a restriction widens access: each counts for its own risk only."""
    domain = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/a"))
    rule = live("IPPolicyRule", "ipr_1", {"cidr": "10.0.0.0/8", "action": "deny"}, owner=record("IPPolicyRule/r"))
    for risk in (Risk.INTERRUPTS_TRAFFIC, Risk.WIDENS_ACCESS):
        options = PlanOptions(require_approval=frozenset({risk}), allow={("delete", "ReservedDomain"): 1})
        made = make_plan(declare("IPPolicy/p"), seen=snapshot(domain, rule), options=options)
        kinds = [approval.kind for approval in made.missing_approvals]
        assert kinds == [change.address.kind for change in made.changes if risk in change.risks]
        assert len(kinds) == 1


# --- protection -------------------------------------------------------------------------------------------------------


def test_protection_outlives_the_declaration() -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=True))
    made = make_plan(declare("IPPolicy/p"), seen=snapshot(there))
    assert (list_approvals(made), change_of(made, "TLSEdge/a").protected) == (
        ["--allow delete-protected:TLSEdge=1"],
        True,
    )


def test_protection_of_a_bot_outlives_its_declaration_too() -> None:
    made = make_plan(
        declare("IPPolicy/p"),
        seen=snapshot(live("BotUser", "bot_1", {"name": "b"}), bindings={"BotUser/b": Binding("bot_1", {}, True)}),
    )
    assert list_approvals(made) == ["--allow delete-protected:BotUser=1"]


def test_protection_does_not_yield_to_a_tombstone() -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=True))
    made = make_plan(declare("TLSEdge/a", ensure=Ensure.ABSENT), seen=snapshot(there))
    assert list_approvals(made) == ["--allow delete-protected:TLSEdge=1"]


@pytest.mark.parametrize(("on_object", "in_git"), [(True, False), (False, True), (True, True)])
def test_protection_on_the_object_or_in_git_keeps_it_from_being_replaced(on_object: bool, in_git: bool) -> None:
    there = live(
        "CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a", protect=on_object)
    )
    made = make_plan(declare("CertificateAuthority/a", {"ca_pem": "NEW"}, protect=in_git), seen=snapshot(there))
    assert list_approvals(made) == ["--allow delete-protected:CertificateAuthority=1"]


def test_protection_does_not_keep_an_object_from_being_changed() -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=True))
    made = make_plan(declare("TLSEdge/a", {"description": "x"}, protect=True), seen=snapshot(there))
    assert (list_approvals(made), len(made.calls)) == ([], 1)


def test_protection_that_git_took_back_is_taken_off_before_the_object_may_go() -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=True))
    made = make_plan(declare("TLSEdge/a", protect=False), seen=snapshot(there))
    assert [call.method for call in made.calls] == ["PATCH"]


def test_a_plan_that_asks_for_nothing_has_no_consents() -> None:
    assert make_plan(declare("TLSEdge/a")).approvals == ()


def test_a_consent_once_granted_stays_granted() -> None:
    consent = Approval("delete", "*", 4, "many", granted=True)
    assert replace(consent, why="more").granted


# --- what goes with a whole -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "flags"),
    [
        (record("IPPolicyRule/r", {}), []),
        (record("IPPolicyRule/r", {}, protect=True), ["--allow delete-protected:IPPolicyRule=1"]),
        (record("IPPolicyRule/r", {}, stack="theirs"), ["--allow delete:IPPolicyRule=1"]),
        (record("IPPolicyRule/r", {}, stack="theirs", protect=True), ["--allow delete-protected:IPPolicyRule=1"]),
        (None, ["--allow delete:IPPolicyRule=1"]),
    ],
)
def test_parts_that_go_with_their_whole_count_as_what_they_are(owner: Owner | None, flags: list[str]) -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    rule = live("IPPolicyRule", "ipr_1", {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8"}, owner=owner)
    made = make_plan(seen=snapshot(policy, rule), options=PlanOptions(targets=("IPPolicy/p",), destroy=True))
    assert list_approvals(made) == flags
    assert made.unmanaged == ()


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
def test_what_a_run_made_twice_or_replaced_is_cleared_up_only_with_the_approval_of_its_kind(
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
    made = make_plan(declare(f"{kind}/a", protect=protect), seen=snapshot(first, second))
    assert [(change.action, change.id, change.protected) for change in made.changes] == [
        (Action.DELETE, "id-1" if replaces else "id-2", protect)
    ]
    assert list_approvals(made) == flags
