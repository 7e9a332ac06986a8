"""Which DNS records a plan needs and leaves behind, and when a name is left dangling."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.change import Action, Risk
from reconciler.model.dns import PlannedRecord
from reconciler.model.snapshot import Live
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import change_of, declare, live, make_plan, record, snapshot

ZONES = PlanOptions(zones=("example.com", "Apps.Example.com."))
SHOP = {"domain": "shop.example.com", "cname_target": "abc.cname.platform.example"}
APPS = {
    "domain": "*.apps.example.com",
    "cname_target": "def.cname.platform.example",
    "acme_challenge_cname_target": "def.acme.platform.example",
}
AGENTS = {"domain": "apps.example.com", "ns_targets": ["ns-1.platform.example", "ns-2.platform.example"]}
FREE = {"domain": "a.platform.example", "cname_target": None, "acme_challenge_cname_target": None}


def ours(address: str, id: str, body: dict[str, Any]) -> Live:
    return live(address.partition("/")[0], id, body, owner=record(address, {"domain": body["domain"]}))


@pytest.mark.parametrize(
    ("address", "domain", "records"),
    [
        ("ReservedDomain/a", "Shop.example.com", [("shop.example.com", "CNAME", "example.com")]),
        (
            "ReservedDomain/a",
            "*.apps.example.com",
            [
                ("*.apps.example.com", "CNAME", "apps.example.com"),
                ("_acme-challenge.apps.example.com", "CNAME", "apps.example.com"),
            ],
        ),
        ("ReservedDomain/a", "shop.example.org", [("shop.example.org", "CNAME", "")]),
        ("AgentIngress/a", "apps.example.com", [("apps.example.com", "NS", "example.com")]),
    ],
)
def test_a_create_names_the_records_to_set_although_their_targets_are_known_after_apply(
    address: str, domain: str, records: list[tuple[str, str, str]]
) -> None:
    change = change_of(make_plan(declare(address, {"domain": domain}), options=ZONES), address)
    assert change.needs_records == tuple(PlannedRecord(name, type, "", zone) for name, type, zone in records)
    assert change.leaves_records == ()
    assert Risk.LEAVES_DNS_RECORD not in change.risks


def test_a_create_below_a_domain_of_the_platform_needs_no_record() -> None:
    seen = snapshot(live("ReservedDomain", "rd_1", FREE), live("AgentIngress", "agin_1", {"domain": "b.example.com"}))
    declared = [
        declare("ReservedDomain/a", {"domain": "b.platform.example"}),
        declare("ReservedDomain/b", {"domain": "c.example.com"}),
    ]
    plan = make_plan(*declared, seen=seen, options=ZONES)
    assert change_of(plan, "ReservedDomain/a").needs_records == ()
    assert len(change_of(plan, "ReservedDomain/b").needs_records) == 1


@pytest.mark.parametrize(
    ("address", "body", "records"),
    [
        ("ReservedDomain/a", SHOP, [("shop.example.com", "CNAME", "abc.cname.platform.example", "example.com")]),
        (
            "ReservedDomain/a",
            APPS,
            [
                ("*.apps.example.com", "CNAME", "def.cname.platform.example", "apps.example.com"),
                ("_acme-challenge.apps.example.com", "CNAME", "def.acme.platform.example", "apps.example.com"),
            ],
        ),
        (
            "AgentIngress/a",
            AGENTS,
            [
                ("apps.example.com", "NS", "ns-1.platform.example", "example.com"),
                ("apps.example.com", "NS", "ns-2.platform.example", "example.com"),
            ],
        ),
        ("ReservedDomain/a", FREE, []),
    ],
)
def test_a_delete_names_the_records_that_point_to_the_released_name(
    address: str, body: dict[str, Any], records: list[tuple[str, str, str, str]]
) -> None:
    plan = make_plan(seen=snapshot(ours(address, "id_1", body)), options=ZONES)
    change = change_of(plan, address)
    assert change.leaves_records == tuple(PlannedRecord(*fields) for fields in records)
    assert (Risk.LEAVES_DNS_RECORD in change.risks) is bool(records)


def test_a_replacement_leaves_a_name_only_if_the_domain_changes() -> None:
    seen = snapshot(ours("ReservedDomain/a", "rd_1", SHOP))
    other = change_of(
        make_plan(declare("ReservedDomain/a", {"domain": "b.example.com"}), seen=seen), "ReservedDomain/a"
    )
    assert (other.action, Risk.LEAVES_DNS_RECORD in other.risks) == (Action.REPLACE, True)
    assert [record.owner for record in (*other.leaves_records, *other.needs_records)] == [
        "shop.example.com",
        "b.example.com",
    ]
    same = change_of(
        make_plan(
            declare("ReservedDomain/a", {"domain": "shop.example.com"}),
            seen=seen,
            options=PlanOptions(to_replace=frozenset({other.address})),
        ),
        "ReservedDomain/a",
    )
    assert (same.action, Risk.LEAVES_DNS_RECORD in same.risks) == (Action.REPLACE, False)
    assert [record.owner for record in (*same.leaves_records, *same.needs_records)] == ["shop.example.com"] * 2


def test_a_renamed_resource_needs_and_leaves_no_record() -> None:
    renamed = make_plan(
        declare("ReservedDomain/b", {"domain": "shop.example.com"}),
        seen=snapshot(ours("ReservedDomain/a", "rd_1", SHOP)),
    )
    change = change_of(renamed, "ReservedDomain/b")
    assert (change.action, change.risks, change.needs_records, change.leaves_records) == (Action.MOVE, (), (), ())


@pytest.mark.parametrize("granted", [0, 1])
def test_a_project_may_require_approval_for_records_that_are_left_behind(granted: int) -> None:
    options = PlanOptions(
        require_approval=frozenset({Risk.LEAVES_DNS_RECORD}),
        allow={("delete", "ReservedDomain"): 2, ("leaves_dns_record", "ReservedDomain"): granted},
    )
    seen = snapshot(ours("ReservedDomain/a", "rd_1", SHOP), ours("ReservedDomain/b", "rd_2", FREE))
    plan = make_plan(declare("BotUser/x", {"name": "x"}), seen=seen, options=options)
    (approval,) = (item for item in plan.approvals if item.what == "leaves_dns_record")
    assert (approval.kind, approval.count, approval.granted) == ("ReservedDomain", 1, bool(granted))


@pytest.mark.parametrize("value", [None, 5, ["x"], {"a": 1}])
def test_bodies_of_other_shapes_need_and_leave_no_record(value: Any) -> None:
    body = {"domain": "shop.example.com", "cname_target": value, "ns_targets": value}
    plan = make_plan(seen=snapshot(ours("ReservedDomain/a", "rd_1", body)))
    assert change_of(plan, "ReservedDomain/a").leaves_records == ()
