"""Unknown ids and uncovered hosts: warnings of a plan, never errors."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.plan import Plan
from reconciler.model.problem import Severity
from tests.harness.builders import declare, live, make_plan, record, ref, snapshot

RULE = {"ip_policy_id": "ipp_2", "cidr": "10.0.0.0/8", "action": "allow"}


def warnings(plan: Plan) -> list[tuple[str, str]]:
    assert not plan.errors
    assert {problem.severity for problem in plan.problems} <= {Severity.WARNING}
    return [(problem.subject, problem.text) for problem in plan.problems]


def test_an_unknown_id_is_one_warning_for_all_resources_that_use_it() -> None:
    declared = [declare(f"IPPolicyRule/r{number}", {**RULE, "cidr": f"10.{number}.0.0/16"}) for number in range(3)]
    policy = live("IPPolicy", "ipp_1")
    assert warnings(make_plan(*declared, seen=snapshot(policy))) == [
        ("IPPolicyRule/r0", "no IPPolicy has the id ipp_2 (3 resources)")
    ]
    assert warnings(make_plan(*declared, seen=snapshot(policy, live("IPPolicy", "ipp_2")))) == []


def test_ids_in_modules_and_lists_are_checked() -> None:
    spec: dict[str, Any] = {
        "ip_restriction": {"ip_policy_ids": ["ipp_1", "ipp_9"]},
        "backend": {"backend_id": "bkdhr_7"},
    }
    plan = make_plan(declare("TLSEdge/a", spec), seen=snapshot(live("IPPolicy", "ipp_1")))
    assert sorted(text for _, text in warnings(plan)) == [
        "no HTTPResponseBackend has the id bkdhr_7",
        "no IPPolicy has the id ipp_9",
    ]


def test_references_users_and_unusual_ids_are_not_checked() -> None:
    plan = make_plan(
        declare("IPPolicy/p"),
        declare("IPPolicyRule/r", {**RULE, "ip_policy_id": ref("IPPolicy/p")}),
        declare("SSHCredential/s", {"public_key": "ssh-ed25519 AAAA", "owner_id": "usr_1"}),
        declare("TLSEdge/a", {"ip_restriction": {"ip_policy_ids": ["custom"]}}),
    )
    assert warnings(plan) == []


@pytest.mark.parametrize("host", ["shop.example.com:443", "a.wild.example.com:443", "SHOP.example.com.:443"])
def test_a_host_of_a_declared_or_an_existing_domain_is_covered(host: str) -> None:
    declared = declare("ReservedDomain/d", {"domain": "shop.example.com"})
    domain = live("ReservedDomain", "rd_1", {"domain": "*.wild.example.com"})
    edge = declare("TLSEdge/a", {"hostports": [host]})
    assert warnings(make_plan(declared, edge, seen=snapshot(domain))) == []


def test_an_uncovered_host_is_a_warning() -> None:
    edges = [declare("TLSEdge/a", {"hostports": ["a.x:443"]}), declare("TCPEdge/b", {"hostports": ["1.tcp.x:20000"]})]
    reserved_address = live("ReservedAddress", "ra_1", {"addr": "1.tcp.x:20001"})
    assert sorted(warnings(make_plan(*edges, seen=snapshot(reserved_address)))) == [
        ("TCPEdge/b", "no reserved domain or address covers 1.tcp.x:20000"),
        ("TLSEdge/a", "no reserved domain or address covers a.x:443"),
    ]


@pytest.mark.parametrize("cut", ["ReservedDomain", "ReservedAddress"])
def test_an_incomplete_list_causes_no_warning(cut: str) -> None:
    edge = declare("TLSEdge/a", {"hostports": ["a.x:443"]})
    assert warnings(make_plan(edge, seen=snapshot(cut=[cut]))) == []
    rule = declare("TLSEdge/b", {"ip_restriction": {"ip_policy_ids": ["ipp_2"]}})
    assert warnings(make_plan(rule, seen=snapshot(cut=["IPPolicy"]))) == []


def test_a_resource_in_sync_causes_no_warning() -> None:
    """The platform accepted these values."""
    fields = {"hostports": ["a.x:443"]}
    edge = live("TLSEdge", "edgtls_1", fields, owner=record("TLSEdge/a", fields))
    assert warnings(make_plan(declare("TLSEdge/a", fields), seen=snapshot(edge))) == []
    assert warnings(make_plan(declare("TLSEdge/a", {**fields, "description": "x"}), seen=snapshot(edge))) == []
