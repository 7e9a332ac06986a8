"""Health of what serves traffic: backends, edges, routes, endpoints, agents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.access.policies import ACTIONS, Effect
from reconciler.kinds.rules import serving
from reconciler.model.health import Actor, Health, State
from tests.health.accounts import build_facts, judge_first, moment

OLD = moment(days=-30)
GROUP = {"id": "bkdtg_1", "labels": {"app": "shop"}, "created_at": OLD}
TUNNEL = {"id": "tn_1", "labels": {"app": "shop", "region": "eu"}, "tunnel_session": {"id": "ts_1"}}
BACKEND = {"enabled": True, "backend": {"id": "bkdtg_1"}}
EDGE = {"id": "edgtls_1", "hostports": ["shop.example.com:443"], "backend": BACKEND, "created_at": OLD}
ROUTE = {"id": "edghtsrt_1", "edge_id": "edghts_1", "backend": BACKEND, "created_at": OLD}
HTTPS = {"id": "edghts_1", "hostports": ["shop.example.com:443"], "created_at": OLD}


def judge(kind: str, body: dict[str, Any], unread: tuple[str, ...] = (), **objects: list[dict[str, Any]]) -> Health:
    health = judge_first(build_facts({**objects, kind: [body, *objects.get(kind, ())]}, unread), kind)
    assert health is not None
    return health


def policy_of(type: str, **config: Any) -> dict[str, Any]:
    return {"on_http_request": [{"actions": [{"type": type, "config": config}]}]}


# --- backends ---------------------------------------------------------------------------------------------------------


def test_a_tunnel_group_serves_while_a_tunnel_with_its_labels_is_open() -> None:
    other = {**TUNNEL, "labels": {"app": "other"}}

    assert judge("TunnelGroupBackend", GROUP, Tunnel=[TUNNEL]) == Health(State.HEALTHY)
    assert judge("TunnelGroupBackend", GROUP, Tunnel=[other]) == Health(
        State.DEGRADED,
        "no tunnel with the labels app=shop is open",
        "start an agent that opens a tunnel with the labels app=shop",
        Actor.AGENT,
    )


def test_a_tunnel_group_needs_no_list_of_tunnels_if_the_platform_names_its_own() -> None:
    facts = build_facts({"TunnelGroupBackend": [{**GROUP, "tunnels": [{"id": "tn_1"}]}]}, unread=["Tunnel"])

    health = judge_first(facts, "TunnelGroupBackend")

    assert health == Health(State.HEALTHY)


def test_a_tunnel_group_is_unknown_if_tunnels_could_not_be_read() -> None:
    assert judge("TunnelGroupBackend", GROUP, unread=("Tunnel",)).state is State.UNKNOWN


def test_a_new_tunnel_group_waits_an_hour_for_its_first_agent() -> None:
    states = [
        judge("TunnelGroupBackend", {**GROUP, "created_at": moment(minutes=-age)}).state for age in (0, 59, 61, 600)
    ]

    assert states == [State.PROGRESSING, State.PROGRESSING, State.DEGRADED, State.DEGRADED]


@pytest.mark.parametrize("kind", ["FailoverBackend", "WeightedBackend"])
def test_one_child_that_serves_is_enough(kind: str) -> None:
    children: Any = ["bkdtg_1", "bkdhr_1"] if kind == "FailoverBackend" else {"bkdtg_1": 1, "bkdhr_1": 1}
    parent = {"id": "bkd_1", "backends": children, "created_at": OLD}

    healthy = judge(kind, parent, TunnelGroupBackend=[GROUP], HTTPResponseBackend=[{"id": "bkdhr_1"}])
    degraded = judge(kind, {**parent, "backends": ["bkdtg_1"] if kind == "FailoverBackend" else {"bkdtg_1": 5}},
                     TunnelGroupBackend=[GROUP])  # fmt: skip

    assert healthy == Health(State.HEALTHY)
    assert (degraded.state, degraded.actor) == (State.DEGRADED, Actor.AGENT)
    assert degraded.reason == "none of its backends serves: no tunnel with the labels app=shop is open"


def test_a_child_without_weight_does_not_serve() -> None:
    health = judge(
        "WeightedBackend", {"id": "bkdwd_1", "backends": {"bkdhr_1": 0}}, HTTPResponseBackend=[{"id": "bkdhr_1"}]
    )

    assert (health.state, health.reason) == (State.DEGRADED, "it has no backends")


def test_backends_that_refer_to_each_other_serve_nothing() -> None:
    first, second = {"id": "bkdfo_1", "backends": ["bkdfo_2"]}, {"id": "bkdfo_2", "backends": ["bkdfo_1"]}

    assert judge("FailoverBackend", first, FailoverBackend=[second]).state is State.DEGRADED


@given(st.integers(1, 60))
def test_a_long_chain_of_backends_is_judged_without_an_error(length: int) -> None:
    chain = [{"id": f"bkdfo_{number}", "backends": [f"bkdfo_{number + 1}"]} for number in range(length)]

    health = judge("FailoverBackend", chain[0], FailoverBackend=chain[1:])

    assert health.state in (State.DEGRADED, State.UNKNOWN)


# --- edges and routes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["TLSEdge", "TCPEdge"])
def test_an_edge_serves_if_its_backend_does(kind: str) -> None:
    assert judge(kind, EDGE, TunnelGroupBackend=[GROUP], Tunnel=[TUNNEL]) == Health(State.HEALTHY)
    offline = judge(kind, EDGE, TunnelGroupBackend=[GROUP])
    assert (offline.state, offline.actor) == (State.DEGRADED, Actor.AGENT)
    assert offline.reason == "its backend does not serve: no tunnel with the labels app=shop is open"


def test_an_edge_that_never_served_waits_for_its_agent() -> None:
    new = {**EDGE, "created_at": moment(minutes=-1)}

    assert judge("TLSEdge", new, TunnelGroupBackend=[GROUP]).state is State.PROGRESSING


def test_an_old_edge_with_a_new_backend_is_degraded() -> None:
    group = {**GROUP, "created_at": moment(minutes=-1)}

    assert judge("TLSEdge", EDGE, TunnelGroupBackend=[group]).state is State.DEGRADED


@pytest.mark.parametrize("backend", [None, {**BACKEND, "enabled": False}, {"enabled": True, "backend": None}])
def test_an_edge_without_a_backend_that_is_enabled_is_degraded(backend: Any) -> None:
    health = judge("TLSEdge", {**EDGE, "backend": backend}, TunnelGroupBackend=[GROUP], Tunnel=[TUNNEL])

    assert (health.state, health.reason) == (State.DEGRADED, "it has no backend that is enabled")


def test_an_edge_without_hosts_is_degraded() -> None:
    assert judge("TLSEdge", {**EDGE, "hostports": []}).reason == "it serves no host"


def test_an_edge_with_a_deleted_backend_is_degraded_unless_the_list_is_incomplete() -> None:
    assert judge("TLSEdge", EDGE).state is State.DEGRADED
    assert judge("TLSEdge", EDGE, unread=("TunnelGroupBackend",)).state is State.UNKNOWN


def test_a_policy_that_answers_serves_without_a_backend() -> None:
    answering = {"enabled": True, "value": policy_of("custom-response", status_code=200)}

    assert judge("TLSEdge", {**EDGE, "backend": None, "traffic_policy": answering}).state is State.HEALTHY
    disabled = {**answering, "enabled": False}
    assert judge("TLSEdge", {**EDGE, "backend": None, "traffic_policy": disabled}).state is State.DEGRADED


def test_an_https_edge_serves_if_one_of_its_routes_does() -> None:
    dead = {**ROUTE, "id": "edghtsrt_2", "backend": None}

    served = judge("HTTPSEdge", HTTPS, HTTPSEdgeRoute=[dead, ROUTE], TunnelGroupBackend=[GROUP], Tunnel=[TUNNEL])
    empty = judge("HTTPSEdge", HTTPS)
    offline = judge("HTTPSEdge", HTTPS, HTTPSEdgeRoute=[dead, ROUTE], TunnelGroupBackend=[GROUP])

    assert served == Health(State.HEALTHY)
    assert empty.reason == "it has no routes"
    assert (offline.state, offline.actor) == (State.DEGRADED, Actor.AGENT)


# --- endpoints and agents ---------------------------------------------------------------------------------------------


def endpoint(policy: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "ep_1", "url": "https://shop.example.com", "traffic_policy": policy, "created_at": OLD, **fields}


def test_a_cloud_endpoint_must_answer() -> None:
    assert judge("CloudEndpoint", endpoint(policy_of("redirect", to="https://a.example"))).state is State.HEALTHY
    assert judge("CloudEndpoint", endpoint(policy_of("deny"))).state is State.DEGRADED
    assert judge("CloudEndpoint", endpoint(policy_of("serve-files"))).state is State.UNKNOWN


def test_a_policy_must_forward_to_an_endpoint_that_is_online() -> None:
    forwarding = endpoint(policy_of("forward-internal", url="https://shop.internal"))

    online = judge("CloudEndpoint", forwarding, Endpoint=[{"id": "ep_2", "url": "https://shop.internal:443"}])
    wildcard = judge("CloudEndpoint", forwarding, Endpoint=[{"id": "ep_2", "url": "https://*.internal"}])
    offline = judge("CloudEndpoint", forwarding)
    unread = judge("CloudEndpoint", forwarding, unread=("Endpoint",))

    assert [online.state, wildcard.state, unread.state] == [State.HEALTHY, State.HEALTHY, State.UNKNOWN]
    assert (offline.state, offline.actor) == (State.DEGRADED, Actor.AGENT)
    assert offline.reason == "it forwards to https://shop.internal, which no endpoint serves"


def test_something_must_forward_to_an_internal_endpoint() -> None:
    internal = endpoint(policy_of("custom-response"), url="https://shop.internal", bindings=["internal"])
    public = {"id": "ep_2", "url": "https://shop.example.com", "traffic_policy": None}
    forwarding = {**public, "traffic_policy": policy_of("forward-internal", url="https://shop.internal")}
    chosen = {**public, "traffic_policy": policy_of("forward-internal", url="https://${req.host}.internal")}

    assert judge("CloudEndpoint", internal, CloudEndpoint=[public]).reason == "nothing forwards to it"
    assert judge("CloudEndpoint", internal, CloudEndpoint=[forwarding]).state is State.HEALTHY
    assert judge("CloudEndpoint", internal, CloudEndpoint=[chosen]).state is State.HEALTHY
    assert judge("CloudEndpoint", internal, unread=("Endpoint",)).state is State.UNKNOWN


def test_an_endpoint_of_kubernetes_needs_an_operator_that_is_connected() -> None:
    bound = endpoint(policy_of("custom-response"), url="http://shop.default", bindings=["kubernetes"])
    operator = {"id": "k8sop_1", "principal": {"id": "bot_1"}}
    credential = {"id": "cr_1", "owner_id": "bot_1"}
    session = {"id": "ts_1", "credential": {"id": "cr_1"}}

    connected = judge(
        "CloudEndpoint", bound, KubernetesOperator=[operator], TunnelCredential=[credential], TunnelSession=[session]
    )
    away = judge("CloudEndpoint", bound, KubernetesOperator=[operator], TunnelCredential=[credential])
    unread = judge("CloudEndpoint", bound, KubernetesOperator=[operator], unread=("TunnelSession",))

    assert [connected.state, away.state, unread.state] == [State.HEALTHY, State.DEGRADED, State.UNKNOWN]
    assert away.reason == "no Kubernetes operator is connected"


@pytest.mark.parametrize(("kind", "key"), [("AgentTunnel", "public_url"), ("AgentEndpoint", "url")])
def test_an_object_of_an_agent_is_healthy_while_its_session_is_online(kind: str, key: str) -> None:
    own = {"name": "shop", key: "https://shop.example.com"}
    tunnel = {"id": "tn_1", "public_url": "https://shop.example.com", "tunnel_session": {"id": "ts_1"}}

    online = judge(kind, own, Tunnel=[tunnel], TunnelSession=[{"id": "ts_1"}])
    ended = judge(kind, own, Tunnel=[tunnel])
    gone = judge(kind, own, TunnelSession=[{"id": "ts_1"}])
    unread = judge(kind, own, unread=("Tunnel",))

    assert [online.state, ended.state, gone.state, unread.state] == [
        State.HEALTHY, State.DEGRADED, State.DEGRADED, State.UNKNOWN,
    ]  # fmt: skip
    assert (gone.reason, gone.actor) == ("its agent is not connected", Actor.AGENT)


def test_the_actions_that_answer_are_those_that_access_follows() -> None:
    assert {name for name, effect in ACTIONS.items() if effect in (Effect.ANSWERS, Effect.FORWARDS)} == serving.ANSWERS
