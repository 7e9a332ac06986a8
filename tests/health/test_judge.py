"""Health of objects of every kind: what is true of all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.health.judge import judge, judge_all
from reconciler.kinds import read_only
from reconciler.model.health import Health, State
from reconciler.model.kind import Kind
from tests.health.accounts import any_json, build_facts, judge_first, moment

ALL = (*kinds.list_planned(), *read_only.KINDS)
WITH_HEALTH = [kind for kind in ALL if kind.health is not None]
RESPONSE_KEYS = """
    tunnels labels tunnel_session public_url backend enabled on_http_request actions config type value edge_id
    destinations credential principal app issued_at renews_at provisioning_job error_code retries_at
    dns_names terminate_at id
""".split()  # noqa: SIM905 - as a paragraph they can be read
KEYS = {*RESPONSE_KEYS, *(name for kind in WITH_HEALTH for name in (*kind.by_name, *kind.read.model_fields))}
any_body = st.builds(
    lambda body, id: {**body, "id": id},
    st.dictionaries(st.sampled_from(sorted(KEYS)), any_json(KEYS), max_size=8),
    st.sampled_from(["cert_1", "rd_1", "bkdfo_1", "bkdtg_1", "bot_1", "tn_1", "ts_1", "x"]),
)


@given(st.dictionaries(st.sampled_from(sorted(kind.name for kind in ALL)), st.lists(any_body), max_size=4))
def test_health_and_records_are_found_for_objects_of_any_shape(objects: dict[str, list[dict[str, Any]]]) -> None:
    facts = build_facts(objects)

    for _, health in judge_all(facts):
        assert isinstance(health, Health)
        assert health.state is State.HEALTHY or health.reason
        assert "\n" not in health.reason
    for kind in kinds.every():
        for live in facts.list_objects(kind.name) if kind.records is not None else ():
            assert kind.records is not None
            assert all(record.owner and record.type and record.value for record in kind.records(live.body))


def test_every_kind_that_can_fail_has_health() -> None:
    assert {kind.name for kind in WITH_HEALTH} == {
        *("ReservedDomain", "AgentIngress", "TLSCertificate", "CertificateAuthority"),
        *("SSHHostCertificate", "SSHUserCertificate", "TunnelCredential", "SSHCredential", "APIKey"),
        *("HTTPSEdge", "HTTPSEdgeRoute", "TLSEdge", "TCPEdge", "CloudEndpoint"),
        *("TunnelGroupBackend", "FailoverBackend", "WeightedBackend"),
        *("AgentTunnel", "AgentEndpoint", "KubernetesOperator", "EventDestination", "EventSubscription"),
    }


def test_a_kind_without_a_rule_has_no_health() -> None:
    facts = build_facts({"IPPolicy": [{"id": "ipp_1"}]})

    assert judge_first(facts, "IPPolicy") is None
    assert list(judge_all(facts)) == []


def test_an_uploaded_certificate_is_judged_and_one_of_the_platform_is_left_out() -> None:
    own = {"id": "cert_1", "not_after": moment(days=90)}
    facts = build_facts({"TLSCertificate": [own, {**own, "id": "cert_2", "issued_at": moment(days=-1)}]})

    assert [live.id for live, _ in judge_all(facts)] == ["cert_1"]


@pytest.mark.parametrize("kind", WITH_HEALTH, ids=lambda kind: kind.name)
def test_an_object_without_fields_is_not_healthy(kind: Kind) -> None:
    facts = build_facts({kind.name: [{kind.key: "x"}]}, unread=[other.name for other in ALL])

    health = judge(kind, facts.list_objects(kind.name)[0], facts)

    assert health is None or health.state is not State.HEALTHY
