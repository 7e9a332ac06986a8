"""The sandbox's agent, as clients of the public one know it, and what the management API shows of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.platform import SandboxProcess, open_client
from tests.sandbox.table import TABLE, Row

TUNNEL = {"name": "orders", "proto": "http", "addr": "8080", "domain": "orders.berlin.example.com"}


@pytest.fixture(scope="module")
def _with_agent() -> Iterator[SandboxProcess]:
    with SandboxProcess(agent=True) as running:
        yield running


@pytest.fixture
def sandbox(_with_agent: SandboxProcess) -> SandboxProcess:
    """An account with a wildcard domain and nothing else, and an agent that has just started."""
    _with_agent.reset()
    _with_agent.post("/reserved_domains", {"domain": "*.berlin.example.com"})
    return _with_agent


@pytest.fixture
def agent(sandbox: SandboxProcess) -> Iterator[httpx.Client]:
    with open_client(sandbox.agent_url) as client:
        yield client


def start(agent: httpx.Client, **settings: Any) -> httpx.Response:
    return agent.post("/api/tunnels", json=TUNNEL | settings)


def refusal(answer: httpx.Response) -> tuple[int, int, str]:
    """Status, the agent's own number, and the platform's code in what it quotes."""
    body = answer.json()
    assert body.keys() == {"error_code", "status_code", "msg", "details"}
    assert body["status_code"] == answer.status_code
    return answer.status_code, body["error_code"], body["details"]["err"].strip().rpartition("ERR_NGROK_")[2]


def forms(listed: dict[str, Any]) -> list[dict[str, Any]]:
    """What an agent has open, apart from ids."""
    [found] = [value for value in listed.values() if isinstance(value, list)]
    return [{key: value for key, value in item.items() if key != "ID"} for item in found]


def sign_in(sandbox: SandboxProcess, *acl: str) -> str:
    """The id of a credential with these rules, which the agent has."""
    credential = sandbox.post("/credentials", {"acl": list(acl)})
    sandbox.post("/_sandbox/agent", {"authtoken": credential["token"]})
    return str(credential["id"])


def test_a_started_tunnel_is_listed_and_found_and_can_be_stopped(agent: httpx.Client) -> None:
    started = start(agent)
    assert started.status_code == 201
    tunnel = started.json()
    assert tunnel.keys() == {"ID", "name", "uri", "public_url", "proto", "config", "metrics"}
    assert ("gauge" in tunnel["metrics"]["conns"], "gauge" in tunnel["metrics"]["http"]) == (True, False)
    assert tunnel["public_url"] == "https://orders.berlin.example.com"
    assert tunnel["config"] == {"addr": "http://localhost:8080", "inspect": True}
    assert agent.get("/api/tunnels").json() == {"tunnels": [tunnel], "uri": "/api/tunnels"}
    assert agent.get(tunnel["uri"]).json() == tunnel
    assert agent.delete(tunnel["uri"]).status_code == 204
    assert agent.get(tunnel["uri"]).status_code == 404
    assert agent.delete(tunnel["uri"]).status_code == 404


@pytest.mark.parametrize(
    ("settings", "config"),
    [
        ({"proto": "http", "addr": "80"}, {"addr": "http://localhost:80", "inspect": True}),
        ({"proto": "http", "addr": 80, "inspect": False}, {"addr": "http://localhost:80", "inspect": False}),
        ({"proto": "http", "addr": "file:///srv"}, {"addr": "file:///srv", "inspect": True}),
        ({"proto": "tcp", "addr": "22"}, {"addr": "localhost:22", "inspect": False}),
        ({"proto": "tcp", "addr": "22", "inspect": True}, {"addr": "localhost:22", "inspect": False}),
        ({"proto": "tls", "addr": "443"}, {"addr": "tls://localhost:443", "inspect": False}),
    ],
    ids=str,
)
def test_a_tunnel_is_shown_with_its_upstream_in_full_and_inspects_only_http(
    agent: httpx.Client, settings: dict[str, Any], config: dict[str, Any]
) -> None:
    assert agent.post("/api/tunnels", json={"name": "t", **settings}).json()["config"] == config


@pytest.mark.parametrize("name", ["ä %", "a/b", "a/", "%41"])
def test_a_tunnel_is_found_at_its_uri_whatever_its_name(agent: httpx.Client, name: str) -> None:
    tunnel = start(agent, name=name).json()
    assert tunnel["uri"].isascii()
    assert agent.get(tunnel["uri"]).json() == tunnel
    assert agent.delete(tunnel["uri"]).status_code == 204


def test_a_tunnel_is_an_ephemeral_endpoint_a_tunnel_and_a_session_of_the_account(
    sandbox: SandboxProcess, agent: httpx.Client
) -> None:
    start(agent, metadata="from berlin")
    (endpoint,) = sandbox.get("/endpoints")["endpoints"]
    (tunnel,) = sandbox.get("/tunnels")["tunnels"]
    (session,) = sandbox.get("/tunnel_sessions")["tunnel_sessions"]
    (domain,) = sandbox.get("/reserved_domains")["reserved_domains"]
    assert (endpoint["type"], endpoint["metadata"]) == ("ephemeral", "from berlin")
    assert endpoint["domain"]["id"] == domain["id"]
    assert (endpoint["tunnel"]["id"], tunnel["endpoint"]["id"]) == (tunnel["id"], endpoint["id"])
    assert endpoint["tunnel_session"]["id"] == tunnel["tunnel_session"]["id"] == session["id"]
    assert sandbox.get(f"/tunnels/{tunnel['id']}")["forwards_to"] == "http://localhost:8080"
    agent.delete("/api/tunnels/orders")
    assert sandbox.get("/endpoints")["endpoints"] == sandbox.get("/tunnels")["tunnels"] == []


def test_the_management_api_does_not_delete_an_ephemeral_endpoint(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    start(agent)
    (endpoint,) = sandbox.get("/endpoints")["endpoints"]
    assert sandbox.refusal("DELETE", f"/endpoints/{endpoint['id']}")[0] == 400
    assert len(agent.get("/api/tunnels").json()["tunnels"]) == 1


def test_a_restart_ends_started_tunnels(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    start(agent)
    (before,) = sandbox.get("/tunnel_sessions")["tunnel_sessions"]
    sandbox.post("/_sandbox/agent", {})
    (after,) = sandbox.get("/tunnel_sessions")["tunnel_sessions"]
    assert agent.get("/api/tunnels").json()["tunnels"] == sandbox.get("/endpoints")["endpoints"] == []
    assert before["id"] != after["id"]


@pytest.mark.parametrize(("command", "sessions", "status"), [("restart", 1, 201), ("stop", 0, 503)])
def test_the_management_api_restarts_and_stops_the_agent(
    sandbox: SandboxProcess, agent: httpx.Client, command: str, sessions: int, status: int
) -> None:
    start(agent)
    (session,) = sandbox.get("/tunnel_sessions")["tunnel_sessions"]
    assert sandbox.request("POST", f"/tunnel_sessions/{session['id']}/{command}").status_code == 204
    assert agent.get("/api/tunnels").json()["tunnels"] == sandbox.get("/tunnels")["tunnels"] == []
    assert len(sandbox.get("/tunnel_sessions")["tunnel_sessions"]) == sessions
    assert start(agent).status_code == status


def test_a_planted_session_remains_after_a_restart_of_the_agent(sandbox: SandboxProcess) -> None:
    planted = f"ts_{7:027}"
    sandbox.plant("/tunnel_sessions", {"id": planted})
    sandbox.post("/_sandbox/agent", {})
    assert planted in [session["id"] for session in sandbox.get("/tunnel_sessions")["tunnel_sessions"]]


def test_tunnels_of_a_killed_process_are_removed_at_the_next_start(
    start_sandbox: Callable[..., SandboxProcess], tmp_path: Path
) -> None:
    sandbox = start_sandbox(db=tmp_path / "sandbox.sqlite", agent=True)
    sandbox.post("/reserved_domains", {"domain": "*.berlin.example.com"})
    httpx.post(f"{sandbox.agent_url}/api/tunnels", json=TUNNEL, trust_env=False).raise_for_status()
    assert len(sandbox.get("/endpoints")["endpoints"]) == 1
    sandbox.kill()
    sandbox.restart()
    assert sandbox.get("/endpoints")["endpoints"] == []
    assert len(sandbox.get("/tunnel_sessions")["tunnel_sessions"]) == 1


# --- what a credential may bind ---------------------------------------------------------------------------------------

RULES = [
    ([], True),
    (["*"], True),
    (["bind:orders.berlin.example.com"], True),
    (["bind:orders.berlin.example.com:443"], True),
    (["bind:*.berlin.example.com"], True),
    (["bind:*.example.com"], True),
    (["bind:orders.berlin.example.com."], True),
    (["bind:orders.berlin.example.com.:443"], True),
    (["bind:*.Example.com."], True),
    (["bind:berlin.example.com"], False),
    (["bind:*.orders.berlin.example.com"], False),
    (["bind:*.erlin.example.com"], False),
    (["bind:service=orders"], False),
    (["bind:other.berlin.example.com", "bind:ORDERS.berlin.example.com"], True),
]


@pytest.mark.parametrize(
    ("acl", "allowed"), RULES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_credential_binds_the_hosts_of_its_rules(
    sandbox: SandboxProcess, agent: httpx.Client, acl: list[str], allowed: bool
) -> None:
    sign_in(sandbox, *acl)
    answer = start(agent)
    assert answer.status_code == 201 if allowed else refusal(answer) == (502, 103, "308")


def test_a_random_host_name_is_for_credentials_without_restrictions(
    sandbox: SandboxProcess, agent: httpx.Client
) -> None:
    assert start(agent, domain=None).json()["public_url"].endswith(".sandbox.test")
    sign_in(sandbox, "bind:*.sandbox.test")
    assert refusal(start(agent, domain=None)) == (502, 103, "308")


def test_a_session_has_the_credential_and_an_endpoint_its_owner(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    credential = sign_in(sandbox, "bind:*.berlin.example.com")
    start(agent)
    (session,) = sandbox.get("/tunnel_sessions")["tunnel_sessions"]
    (endpoint,) = sandbox.get("/endpoints")["endpoints"]
    assert session["credential"]["id"] == credential
    assert endpoint["principal"]["id"] == sandbox.get(f"/credentials/{credential}")["owner_id"]


def test_a_deleted_credential_opens_no_tunnel(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    sandbox.delete(f"/credentials/{sign_in(sandbox)}")
    assert refusal(start(agent)) == (502, 103, "107")


def test_an_agent_with_an_unknown_token_is_not_ready(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    assert sandbox.refusal("POST", "/_sandbox/agent", {"authtoken": "made-up"})[0] == 400
    status = agent.get("/api/status").json()
    assert (status["status"], status["session"]) == ("connecting", {"legs": []})
    assert refusal(start(agent))[:2] == (503, 104)
    sign_in(sandbox)
    assert start(agent).status_code == 201


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"domain": "orders.munich.example.com"}, (502, 103, "319")),
        ({"domain": "not a host"}, (400, 102)),
        ({"proto": "tcp", "domain": None, "remote_addr": "1.tcp.sandbox.test:20000"}, (502, 103, "307")),
        ({"proto": "gopher"}, (400, 102)),
        ({"addr": ""}, (400, 102)),
        ({"name": None}, (400, 102)),
        ({"inspect": "no"}, (400, 102)),
        ({"addr": True}, (400, 102)),
        ({"surprise": 1}, (400, 102)),
    ],
    ids=str,
)
def test_an_invalid_tunnel_is_refused(agent: httpx.Client, settings: dict[str, Any], refused: tuple[Any, ...]) -> None:
    assert refusal(start(agent, **settings))[: len(refused)] == refused
    assert agent.get("/api/tunnels").json()["tunnels"] == []


def test_a_name_and_an_address_of_a_tunnel_are_unique(agent: httpx.Client) -> None:
    start(agent)
    assert refusal(start(agent, domain="other.berlin.example.com"))[:2] == (400, 102)
    assert refusal(start(agent, name="other")) == (502, 103, "334")


def test_an_address_that_an_edge_or_a_cloud_endpoint_serves_is_taken(
    sandbox: SandboxProcess, agent: httpx.Client
) -> None:
    sandbox.post("/edges/https", {"hostports": ["edge.berlin.example.com:443"]})
    policy = '{"on_http_request": [{"actions": [{"type": "deny"}]}]}'
    for name in ("cloud", "pooled"):
        body = {"url": f"https://{name}.berlin.example.com", "traffic_policy": policy}
        sandbox.post("/endpoints", body | {"pooling_enabled": name == "pooled"})
    for name in ("edge", "cloud", "pooled"):
        assert refusal(start(agent, domain=f"{name}.berlin.example.com")) == (502, 103, "334")


def test_an_address_that_a_tunnel_serves_is_taken(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    start(agent)
    host = TUNNEL["domain"]
    policy = '{"on_http_request": [{"actions": [{"type": "deny"}]}]}'
    endpoint = {"url": f"https://{host}", "traffic_policy": policy}
    for collection in ("/edges/https", "/edges/tls"):
        assert sandbox.refusal("POST", collection, {"hostports": [f"{host}:443"]}) == (400, "7122")
    assert sandbox.refusal("POST", "/endpoints", endpoint) == (400, "18009")
    agent.delete("/api/tunnels/orders")
    sandbox.post("/edges/https", {"hostports": [f"{host}:443"]})


def test_a_reserved_address_serves_a_tcp_tunnel(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    address = sandbox.post("/reserved_addrs", {})
    started = start(agent, proto="tcp", domain=None, remote_addr=address["addr"]).json()
    assert started["public_url"] == f"tcp://{address['addr']}"
    (endpoint,) = sandbox.get("/endpoints")["endpoints"]
    assert endpoint["tcp_addr"]["id"] == address["id"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"name": "\\ud800"}', b"\xff"])
def test_a_body_that_is_no_tunnel_is_refused(agent: httpx.Client, body: bytes) -> None:
    answer = agent.post("/api/tunnels", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400


def test_a_body_of_another_type_is_refused(agent: httpx.Client) -> None:
    assert agent.post("/api/tunnels", data={"name": "x"}).status_code == 415


# --- the table of operations ------------------------------------------------------------------------------------------

AGENT_ROWS = [Row.parse(text) for text in TABLE["agent"]]
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/api/tunnels"): {**TUNNEL, "name": "another", "domain": "another.berlin.example.com"},
    ("POST", "/api/endpoints"): {"name": "second", "upstream": {"url": "8080"}},
    ("PUT", "/api/endpoints/shop"): {"upstream": {"url": "9090"}},
}


def fill_agent(sandbox: SandboxProcess, agent: httpx.Client) -> dict[str, str]:
    """Starts an endpoint and a tunnel, and captures a request: the names and the id, by path."""
    start(agent).raise_for_status()
    agent.post("/api/endpoints", json={"name": "shop", "upstream": {"url": "8080"}}).raise_for_status()
    sandbox.post("/_sandbox/agent/requests", {"tunnel_name": "shop"})
    (captured,) = agent.get("/api/requests/http").json()["requests"]
    return {"/api/endpoints": "shop", "/api/tunnels": "orders", "/api/requests/http": captured["id"]}


@pytest.mark.parametrize("row", AGENT_ROWS, ids=lambda row: f"{row.method} {row.path}")
def test_an_operation_of_the_agent_responds_as_the_table_states(
    sandbox: SandboxProcess, agent: httpx.Client, row: Row
) -> None:
    known = fill_agent(sandbox, agent)
    collection, brace, _ = row.path.partition("/{")
    path = f"{collection}/{known[collection]}" if brace else collection
    replayed = {"id": known["/api/requests/http"]}
    answer = agent.request(row.method, path, json=BODIES.get((row.method, path), replayed))
    assert answer.status_code == row.status, answer.text
    if not row.shape:
        assert answer.content == b""
        return
    found = answer.json()
    if row.list_key:
        assert found.keys() - {"uri"} == {row.list_key}
        found = found[row.list_key][0]
    assert found.keys() == set(TABLE["agent_shapes"][row.shape])


def test_the_agent_has_no_operation_that_the_table_lacks(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    known = fill_agent(sandbox, agent)
    paths = {row.path for row in AGENT_ROWS} | {"/api/surprise", "/api/endpoints/{name}/surprise"}
    listed = {(row.method, row.path) for row in AGENT_ROWS}
    grid = {(method, path) for method in ("GET", "POST", "PUT", "PATCH", "DELETE") for path in paths} - listed
    for method, path in sorted(grid):
        collection, brace, rest = path.partition("/{")
        concrete = f"{collection}/{known[collection]}{rest.partition('}')[2]}" if brace else path
        assert agent.request(method, concrete, json={}).status_code == 404, (method, path)


def test_the_status_has_the_version_and_the_legs_of_the_session(agent: httpx.Client) -> None:
    status = agent.get("/api/status").json()
    assert status["status"] == "online"
    assert re.fullmatch(r"3\.[0-9]+\.[0-9]+", status["agent_version"])
    assert [leg.keys() for leg in status["session"]["legs"]] == [{"region", "latency"}]


def test_the_start_and_stop_of_a_session_are_events(sandbox: SandboxProcess) -> None:
    target = {"metrics": {"api_key": "k", "service": "edge"}}
    destination = sandbox.post("/event_destinations", {"format": "json", "target": target})["id"]
    sources = [{"type": f"agent_session_{event}.v0"} for event in ("start", "stop")]
    sandbox.post("/event_subscriptions", {"sources": sources, "destination_ids": [destination]})
    sandbox.post("/_sandbox/agent", {})
    found = sandbox.get(f"/_sandbox/deliveries?destination={destination}")["deliveries"]
    assert [delivery["event"]["event_type"] for delivery in found] == [
        "agent_session_stop.v0",
        "agent_session_start.v0",
    ]


def test_a_disconnected_agent_has_no_session_and_opens_nothing_until_it_connects_again(
    sandbox: SandboxProcess, agent: httpx.Client
) -> None:
    start(agent)
    sandbox.delete("/_sandbox/agent")
    assert [sandbox.get(path)[path[1:]] for path in ("/tunnels", "/tunnel_sessions", "/endpoints")] == [[], [], []]
    assert agent.get("/api/status").json()["status"] == "connecting"
    assert refusal(start(agent))[:2] == (503, 104)
    sandbox.post("/_sandbox/agent", {})
    assert agent.get("/api/status").json()["status"] == "online"
    assert start(agent).status_code == 201
    assert len(sandbox.get("/tunnel_sessions")["tunnel_sessions"]) == 1


def test_an_agent_opens_the_same_again_after_an_interruption(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    start(agent, schemes=["http", "https"])
    agent.post(
        "/api/endpoints", json={"name": "cart", "url": "https://cart.berlin.example.com", "upstream": {"url": "1"}}
    )
    before = [agent.get(path).json() for path in ("/api/tunnels", "/api/endpoints")]
    sandbox.delete("/_sandbox/agent")
    assert agent.get("/api/tunnels").json()["tunnels"] == []
    sandbox.put("/_sandbox/agent", {})
    assert [forms(agent.get(path).json()) for path in ("/api/tunnels", "/api/endpoints")] == [*map(forms, before)]
    assert len(sandbox.get("/endpoints")["endpoints"]) == 3
    sandbox.delete("/_sandbox/agent")
    sandbox.delete(f"/reserved_domains/{sandbox.get('/reserved_domains')['reserved_domains'][0]['id']}")
    assert "ERR_NGROK_319" in sandbox.request("PUT", "/_sandbox/agent").text


def test_a_stopped_agent_opens_nothing_again(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    start(agent)
    [session] = sandbox.get("/tunnel_sessions")["tunnel_sessions"]
    sandbox.post(f"/tunnel_sessions/{session['id']}/stop", {})
    sandbox.put("/_sandbox/agent", {})
    assert agent.get("/api/tunnels").json()["tunnels"] == []


def test_an_agent_of_an_old_version_shows_it_in_its_session(sandbox: SandboxProcess) -> None:
    versions = []
    for body in ({"version": "2.3.41"}, {}):
        sandbox.post("/_sandbox/agent", body)
        [session] = sandbox.get("/tunnel_sessions")["tunnel_sessions"]
        versions.append(session["agent_version"])
    assert versions[0] == "2.3.41"
    assert versions[1].startswith("3.")


def test_faults_of_the_agents_api_do_not_affect_the_platform(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    sandbox.fault("POST /api/tunnels", agent=True, then="status", status=502)
    sandbox.fault("* *", agent=True, then="cut", nth=2)
    assert sandbox.get("/tunnels")["tunnels"] == []
    assert refusal(start(agent))[:2] == (502, 100)
    with pytest.raises(httpx.TransportError):
        start(agent)
    assert agent.get("/api/tunnels").json()["tunnels"] == []
    assert start(agent).status_code == 201


def test_a_tunnel_exists_although_the_agents_answer_was_lost(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    sandbox.fault("POST /api/tunnels", agent=True, then="commit-then-cut")
    with pytest.raises(httpx.TransportError):
        start(agent)
    assert [tunnel["name"] for tunnel in agent.get("/api/tunnels").json()["tunnels"]] == ["orders"]


def test_a_fault_of_the_platform_does_not_affect_the_agents_api(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    sandbox.fault("* *", then="status", status=500, times=0)
    assert start(agent).status_code == 201
    assert sandbox.request("GET", "/tunnels").status_code == 500
