"""DNS records that an account needs."""

from __future__ import annotations

from reconciler.health.records import list_records
from reconciler.model.health import Record
from tests.health.accounts import build_facts


def test_a_wildcard_needs_a_record_for_traffic_and_one_for_its_certificate() -> None:
    domain = {
        "id": "rd_1",
        "domain": "*.shop.example.com",
        "cname_target": "a.cname.example.net",
        "acme_challenge_cname_target": "b.acme.example.net",
    }

    own = "ReservedDomain/rd_1"
    assert list_records(build_facts({"ReservedDomain": [domain]})) == (
        Record("*.shop.example.com", "CNAME", "a.cname.example.net", own, "traffic", own),
        Record("_acme-challenge.shop.example.com", "CNAME", "b.acme.example.net", own, "certificate", own),
    )


def test_a_domain_of_the_platform_needs_no_record() -> None:
    domain = {"id": "rd_1", "domain": "shop.platform.example", "cname_target": None}

    assert list_records(build_facts({"ReservedDomain": [domain]})) == ()


def test_an_ingress_needs_a_delegation_to_each_name_server() -> None:
    ingress = {"id": "agin_1", "domain": "agents.example.com", "ns_targets": ["ns2.example.net", "ns1.example.net"]}

    records = list_records(build_facts({"AgentIngress": [ingress]}))

    assert [(record.owner, record.type, record.value) for record in records] == [
        ("agents.example.com", "NS", "ns1.example.net"),
        ("agents.example.com", "NS", "ns2.example.net"),
    ]
