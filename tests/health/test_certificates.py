"""Health of what has a certificate: domains, ingresses, uploaded certificates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.health import Actor, Health, State
from tests.health.accounts import NOW, build_facts, judge_first, moment

CUSTOM = {"id": "rd_1", "domain": "shop.example.com", "cname_target": "a.cname.example.net"}
MANAGED: dict[str, Any] = {**CUSTOM, "certificate_management_policy": {"authority": "letsencrypt"}}
INGRESS: dict[str, Any] = {
    "id": "agin_1",
    "domain": "agents.example.com",
    "ns_targets": ["ns1.example.net", "ns2.example.net"],
    "certificate_management_policy": {"authority": "letsencrypt"},
}


def judge_domain(domain: dict[str, Any], **objects: list[dict[str, Any]]) -> Health:
    health = judge_first(build_facts({"ReservedDomain": [domain], **objects}), "ReservedDomain")
    assert health is not None
    return health


def with_job(domain: dict[str, Any], **job: Any) -> dict[str, Any]:
    return {**domain, "certificate_management_status": {"renews_at": None, "provisioning_job": job}}


def test_a_domain_of_the_platform_is_healthy() -> None:
    assert judge_domain({**CUSTOM, "cname_target": None}) == Health(State.HEALTHY)


def test_a_domain_with_a_certificate_is_healthy_until_it_is_renewed() -> None:
    status = {"renews_at": moment(days=60), "provisioning_job": None}
    domain = {**MANAGED, "certificate": {"id": "cert_1"}, "certificate_management_status": status}

    assert judge_domain(domain) == Health(State.HEALTHY, due=NOW.timestamp() + 60 * 86400)
    late = {**domain, "certificate_management_status": {"renews_at": moment(days=-3)}}
    assert judge_domain(late).state is State.DEGRADED
    assert judge_domain(late).reason == "the certificate should have been renewed on 2026-05-29"


def test_a_status_that_is_null_is_not_ready() -> None:
    health = judge_domain({**MANAGED, "certificate": None, "certificate_management_status": None})

    assert (health.state, health.actor) == (State.PROGRESSING, Actor.PLATFORM)


def test_an_error_of_dns_names_the_record_that_is_missing() -> None:
    domain = with_job(MANAGED, error_code="DNS_ERROR", msg="no CNAME", retries_at=moment(hours=2))

    health = judge_domain(domain)

    assert (health.state, health.actor) == (State.DEGRADED, Actor.ZONE_OWNER)
    assert health.reason == "the certificate waits for DNS; the platform tries again at 2026-06-01 14:00 UTC"
    assert health.advice == "set shop.example.com CNAME a.cname.example.net"
    assert health.retries_at == NOW.timestamp() + 7200


def test_a_temporary_error_progresses_until_the_retry_is_long_past() -> None:
    soon = judge_domain(with_job(MANAGED, error_code="INTERNAL_ERROR", retries_at=moment(hours=-2)))
    never = judge_domain(with_job(MANAGED, error_code="INTERNAL_ERROR", retries_at=moment(days=-2)))

    assert (soon.state, soon.actor) == (State.PROGRESSING, Actor.PLATFORM)
    assert never.state is State.DEGRADED
    assert "was not tried again on 2026-05-30" in never.reason


def test_an_error_of_a_renewal_counts_while_the_old_certificate_is_served() -> None:
    domain = with_job({**MANAGED, "certificate": {"id": "cert_1"}}, error_code="DNS_ERROR")

    assert judge_domain(domain).state is State.DEGRADED


def test_a_domain_that_serves_an_expired_certificate_is_degraded() -> None:
    domain = {**CUSTOM, "certificate": {"id": "cert_1"}}
    expired = {"id": "cert_1", "not_after": moment(days=-1), "issued_at": moment(days=-91)}

    health = judge_domain(domain, TLSCertificate=[expired])

    assert (health.state, health.reason) == (State.DEGRADED, "its certificate expired on 2026-05-31")


@pytest.mark.parametrize(
    ("edges", "state"),
    [
        ({"HTTPSEdge": [{"id": "e", "hostports": ["shop.example.com:443"]}]}, State.DEGRADED),
        ({"TLSEdge": [{"id": "e", "hostports": ["shop.example.com:443"]}]}, State.DEGRADED),
        (
            {
                "TLSEdge": [
                    {"id": "e", "hostports": ["shop.example.com:443"], "tls_termination": {"terminate_at": "upstream"}}
                ]
            },
            State.HEALTHY,
        ),
        ({}, State.PROGRESSING),
    ],
)
def test_a_domain_without_any_certificate_is_healthy_only_if_tls_ends_upstream(
    edges: dict[str, list[dict[str, Any]]], state: State
) -> None:
    assert judge_domain(CUSTOM, **edges).state is state


def test_an_ingress_is_ready_once_its_renewal_is_announced() -> None:
    def judge(status: Any) -> Health | None:
        ingress = {**INGRESS, "certificate_management_status": status}
        return judge_first(build_facts({"AgentIngress": [ingress]}), "AgentIngress")

    waiting, ready = judge(None), judge({"renews_at": moment(days=60), "provisioning_job": None})
    failed = judge({"renews_at": None, "provisioning_job": {"error_code": "DNS_ERROR"}})

    assert waiting is not None
    assert waiting.state is State.PROGRESSING
    assert ready is not None
    assert ready.state is State.HEALTHY
    assert failed is not None
    assert failed.advice == ("set agents.example.com NS ns1.example.net, agents.example.com NS ns2.example.net")


def test_an_ingress_without_a_policy_has_no_health() -> None:
    ingress = {**INGRESS, "certificate_management_policy": None}

    assert judge_first(build_facts({"AgentIngress": [ingress]}), "AgentIngress") is None


def judge_certificate(body: dict[str, Any], days: float = 0, **objects: list[dict[str, Any]]) -> Health:
    health = judge_first(build_facts({"TLSCertificate": [body], **objects}, days=days), "TLSCertificate")
    assert health is not None
    return health


def test_a_certificate_is_degraded_from_fourteen_days_before_it_expires() -> None:
    certificate = {"id": "cert_1", "not_before": moment(days=1), "not_after": moment(days=90)}

    states = [judge_certificate(certificate, days).state for days in (0, 2, 75, 77, 91)]
    reasons = [judge_certificate(certificate, days).reason for days in (77, 91)]

    assert states == [State.PROGRESSING, State.HEALTHY, State.HEALTHY, State.DEGRADED, State.DEGRADED]
    assert reasons == ["expires on 2026-08-30", "expired on 2026-08-30"]


@given(st.floats(-1000, 1000), st.floats(-1000, 1000), st.floats(-1000, 1000), st.floats(0, 1000))
def test_a_certificate_never_recovers_by_waiting(begins: float, ends: float, days: float, more: float) -> None:
    certificate = {"id": "cert_1", "not_before": moment(days=begins), "not_after": moment(days=ends)}

    if judge_certificate(certificate, days).state is State.DEGRADED:
        assert judge_certificate(certificate, days + more).state is State.DEGRADED


@pytest.mark.parametrize(
    ("names", "host", "covered"),
    [
        (["shop.example.com"], "shop.example.com", True),
        (["*.example.com"], "shop.example.com", True),
        (["*.example.com"], "a.shop.example.com", False),
        (["*.example.com"], "*.example.com", True),
        (["shop.example.com"], "*.example.com", False),
        (["other.example.com"], "shop.example.com", False),
    ],
)
def test_a_certificate_covers_the_hosts_of_the_domains_that_serve_it(
    names: list[str], host: str, covered: bool
) -> None:
    certificate = {
        "id": "cert_1",
        "not_after": moment(days=90),
        "subject_common_name": host,
        "subject_alternative_names": {"dns_names": names},
    }

    health = judge_certificate(
        certificate, ReservedDomain=[{"id": "rd_1", "domain": host, "certificate": {"id": "cert_1"}}]
    )

    assert health.state is (State.HEALTHY if covered else State.DEGRADED)
    assert covered or health.reason == f"it does not cover {host}"
