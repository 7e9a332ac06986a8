"""Settings of tunnels of the sandbox's agent, as version 2 of the configuration has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from reconciler.sandbox.agent.tunnel_settings import parse_settings
from reconciler.sandbox.agent.tunnels import AgentError
from tests.harness.platform import SandboxProcess, open_client

WEB: dict[str, Any] = {"name": "web", "proto": "http", "addr": 8080}
LABELLED: dict[str, Any] = {"name": "shop", "addr": 8080, "labels": ["service=shop", "zone=a"]}
POLICY = {"on_http_request": [{"actions": [{"type": "deny"}]}]}
EVERY: dict[str, Any] = {
    **WEB,
    "inspect": False,
    "metadata": "m",
    "description": "d",
    "domain": "web.berlin.example.com",
    "schemes": ["https"],
    "basic_auth": ["ana:s3cretpass"],
    "circuit_breaker": 0.5,
    "compression": True,
    "websocket_tcp_converter": True,
    "host_header": "rewrite",
    "ip_restriction": {"allow_cidrs": ["192.0.2.0/24"], "deny_cidrs": []},
    "proxy_proto": "2",
    "mutual_tls_cas": "ca.pem",
    "crt": "web.pem",
    "key": "web.key",
    "oauth": {"provider": "google", "allow_domains": ["example.com"], "allow_emails": [], "scopes": []},
    "oidc": {"issuer_url": "https://id.example.com", "client_id": "a", "client_secret": "b", "scopes": []},
    "request_header": {"add": ["x-from:agent"], "remove": ["cookie"]},
    "response_header": {"add": ["x-from:agent"]},
    "user_agent_filter": {"deny": ["(?i)bot"]},
    "verify_webhook": {"provider": "github", "secret": "s"},
    "traffic_policy": POLICY,
}


@pytest.fixture(scope="module")
def _with_agent() -> Iterator[SandboxProcess]:
    with SandboxProcess(agent=True) as running:
        yield running


@pytest.fixture
def sandbox(_with_agent: SandboxProcess) -> SandboxProcess:
    _with_agent.reset()
    return _with_agent


@pytest.fixture
def agent(sandbox: SandboxProcess) -> Iterator[httpx.Client]:
    with open_client(sandbox.agent_url) as client:
        yield client


def test_every_setting_of_a_tunnel_is_accepted() -> None:
    parsed = parse_settings(EVERY)
    assert (parsed.proto, parsed.schemes, parsed.metadata, parsed.description) == ("http", ("https",), "m", "d")
    assert "deny" in parsed.traffic_policy
    assert parse_settings({**WEB, "proto": "tls", "terminate_at": "edge"}).schemes == ()


@pytest.mark.parametrize("key", sorted(EVERY.keys() - {"name", "proto", "addr", "traffic_policy"}))
def test_a_setting_of_another_type_is_refused(key: str) -> None:
    wrong = ["much"] if isinstance(EVERY[key], str | bool) else 3 if isinstance(EVERY[key], dict | list) else "much"
    with pytest.raises(AgentError, match=f"^{key}: cannot unmarshal "):
        parse_settings({**WEB, key: wrong})


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"oauth": {"colour": "red"}}, "oauth.colour: field colour not found in type config.Oauth"),
        ({"oauth": {"scopes": "all"}}, "oauth.scopes: cannot unmarshal !!str into list"),
        ({"schemes": [True]}, "schemes.0: cannot unmarshal !!bool into string"),
        ({"schemes": ["ftp"]}, "schemes must be http, https or both"),
        ({"labels": ["service=shop"]}, "a tunnel has either proto or labels"),
        ({"proto": None, "labels": ["service"]}, "labels must be a list of name=value"),
        ({"proto": None}, "proto is required"),
        ({"proto": "gopher"}, "invalid protocol name 'gopher'"),
        ({"crt": "web.pem"}, "crt is set without key"),
        ({"proto": "tls", "mutual_tls_cas": "ca.pem"}, "mutual_tls_cas is set without crt and key"),
        ({"proto": "tls", "terminate_at": "moon"}, "ERR_NGROK_224"),
        ({"oidc": {"client_secret": "b"}}, "ERR_NGROK_385"),
        ({"oidc": {"client_id": "a"}}, "ERR_NGROK_386"),
        ({"proxy_proto": "3"}, "proxy_proto must be 1 or 2"),
        ({"basic_auth": ["ana:short"]}, "basic_auth: user:password"),
        ({"traffic_policy": {"on_moon": []}}, "ERR_NGROK_2201"),
        ({"url": "tcp://"}, "url 'tcp://' has another protocol"),
    ],
    ids=str,
)
def test_an_invalid_setting_is_refused_with_the_reason(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(AgentError, match=why):
        parse_settings({**WEB, **settings})


@pytest.mark.parametrize(
    ("settings", "schemes"),
    [
        ({}, ("https",)),
        ({"schemes": ["http"]}, ("http",)),
        ({"schemes": ["http", "https"]}, ("https", "http")),
        ({"bind_tls": True}, ("https",)),
        ({"bind_tls": False}, ("http",)),
        ({"bind_tls": "both"}, ("https", "http")),
        ({"proto": "tcp"}, ()),
    ],
    ids=str,
)
def test_the_schemes_of_a_tunnel(settings: dict[str, Any], schemes: tuple[str, ...]) -> None:
    assert parse_settings({**WEB, **settings}).schemes == schemes


def test_a_tunnel_with_two_schemes_is_two_that_are_stopped_separately(agent: httpx.Client) -> None:
    opened = agent.post("/api/tunnels", json={**WEB, "schemes": ["http", "https"]}).json()
    second = agent.get("/api/tunnels/web%20(http)").json()
    assert opened["public_url"].startswith("https://")
    assert second["public_url"] == opened["public_url"].replace("https", "http")
    assert agent.delete(opened["uri"]).status_code == 204
    assert [tunnel["name"] for tunnel in agent.get("/api/tunnels").json()["tunnels"]] == ["web (http)"]


def test_a_tunnel_with_labels_has_no_endpoint(agent: httpx.Client, sandbox: SandboxProcess) -> None:
    opened = agent.post("/api/tunnels", json=LABELLED).json()
    assert (opened["public_url"], opened["proto"]) == ("", "")
    [tunnel] = sandbox.get("/tunnels")["tunnels"]
    assert (tunnel["labels"], tunnel["endpoint"]) == ({"service": "shop", "zone": "a"}, None)
    assert sandbox.get("/endpoints")["endpoints"] == []
    assert agent.delete(opened["uri"]).status_code == 204
    assert sandbox.get("/tunnels")["tunnels"] == []


@pytest.mark.parametrize(
    ("acl", "status"), [([], 201), (["bind:service=shop", "bind:zone=a"], 201), (["bind:service=shop"], 502)], ids=str
)
def test_a_credential_with_restrictions_starts_only_its_labels(
    agent: httpx.Client, sandbox: SandboxProcess, acl: list[str], status: int
) -> None:
    token = sandbox.post("/credentials", {"acl": acl})["token"]
    sandbox.post("/_sandbox/agent", {"authtoken": token})
    assert agent.post("/api/tunnels", json=LABELLED).status_code == status


def test_the_endpoint_of_a_tunnel_has_its_traffic_policy_and_description(
    agent: httpx.Client, sandbox: SandboxProcess
) -> None:
    agent.post("/api/tunnels", json={**WEB, "traffic_policy": POLICY, "description": "d", "url": "https://"})
    [endpoint] = sandbox.get("/endpoints")["endpoints"]
    assert endpoint["description"] == "d"
    assert "deny" in endpoint["traffic_policy"]
