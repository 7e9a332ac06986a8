"""Endpoints of the sandbox's agent, as its API of today opens, updates and closes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.harness.platform import SandboxProcess, open_client

POLICY = '{"on_http_request": [{"actions": [{"type": "deny"}]}]}'
SHOP: dict[str, Any] = {"name": "shop", "url": "https://shop.berlin.example.com", "upstream": {"url": "8080"}}


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


def open_endpoint(agent: httpx.Client, **definition: Any) -> httpx.Response:
    return agent.post("/api/endpoints", json=SHOP | definition)


def refusal(answer: httpx.Response) -> tuple[int, int, str]:
    """Status, the agent's own number, and the platform's code in what it quotes."""
    body = answer.json()
    assert body.keys() == {"error_code", "status_code", "msg", "details"}
    assert body["status_code"] == answer.status_code
    return answer.status_code, body["error_code"], body["details"]["err"].strip().rpartition("ERR_NGROK_")[2]


def test_an_opened_endpoint_is_listed_and_found_and_can_be_closed(agent: httpx.Client) -> None:
    opened = open_endpoint(agent)
    assert opened.status_code == 201
    endpoint = opened.json()
    assert (endpoint["name"], endpoint["url"]) == ("shop", "https://shop.berlin.example.com")
    assert endpoint["upstream"] == {"url": "http://localhost:8080", "protocol": "http1"}
    assert (endpoint["inspect"], endpoint["pooling_enabled"], endpoint["bindings"]) == (True, False, ["public"])
    assert agent.get("/api/endpoints").json() == {"endpoints": [endpoint]}
    assert agent.get(endpoint["uri"]).json() == endpoint
    assert agent.delete(endpoint["uri"]).status_code == 204
    assert [agent.get(endpoint["uri"]).status_code, agent.delete(endpoint["uri"]).status_code] == [404, 404]


def test_an_endpoint_is_shown_by_the_management_api_with_what_it_declares(
    sandbox: SandboxProcess, agent: httpx.Client
) -> None:
    open_endpoint(agent, description="Shop", metadata="team: web", traffic_policy=POLICY).raise_for_status()
    (endpoint,) = sandbox.get("/endpoints")["endpoints"]
    (tunnel,) = sandbox.get("/tunnels")["tunnels"]
    assert (endpoint["type"], endpoint["name"], endpoint["url"]) == ("ephemeral", "shop", SHOP["url"])
    assert (endpoint["description"], endpoint["metadata"]) == ("Shop", "team: web")
    assert (endpoint["traffic_policy"], tunnel["forwards_to"]) == (POLICY, "http://localhost:8080")
    assert endpoint["tunnel"]["id"] == tunnel["id"]
    agent.delete("/api/endpoints/shop")
    assert sandbox.get("/endpoints")["endpoints"] == sandbox.get("/tunnels")["tunnels"] == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("shop.berlin.example.com", "https://shop.berlin.example.com"),
        ("HTTPS://Shop.berlin.example.com:443", "https://shop.berlin.example.com"),
        ("http://shop.berlin.example.com", "http://shop.berlin.example.com"),
        ("shop.berlin.example.com:80", "http://shop.berlin.example.com"),
        ("tls://*.berlin.example.com", "tls://*.berlin.example.com"),
        ("https://shop.internal:8443", "https://shop.internal:8443"),
        ("tcp://shop.internal:22", "tcp://shop.internal:22"),
        ("", "https://*.sandbox.test"),
        (None, "https://*.sandbox.test"),
        ("https://", "https://*.sandbox.test"),
        ("http://", "http://*.sandbox.test"),
        ("tls://", "tls://*.sandbox.test"),
        ("tcp://", "tcp://0.tcp.sandbox.test:*"),
    ],
    ids=str,
)
def test_the_url_of_an_endpoint_is_completed(agent: httpx.Client, url: str | None, expected: str) -> None:
    """`*` stands for what the platform assigns."""
    before, star, after = expected.partition("*" if "sandbox" in expected else "\0")
    opened = open_endpoint(agent, url=url)
    assert opened.status_code == 201, opened.text
    answer = opened.json()["url"]
    assert (answer.startswith(before), answer.endswith(after)) == (True, True)
    assert star or answer == expected


@pytest.mark.parametrize(
    ("url", "upstream", "expected"),
    [
        ("", "8080", "http://localhost:8080"),
        ("", 8080, "http://localhost:8080"),
        ("", "backend", "http://backend"),
        ("", "https://", "https://localhost:443"),
        ("", "http://backend:81", "http://backend:81"),
        ("", "file:///srv", "file:///srv"),
        ("tcp://", "22", "localhost:22"),
        ("tcp://", "localhost:22", "localhost:22"),
        ("tls://", "443", "tls://localhost:443"),
    ],
    ids=str,
)
def test_the_upstream_of_an_endpoint_is_shown_in_full(
    agent: httpx.Client, url: str, upstream: str | int, expected: str
) -> None:
    assert open_endpoint(agent, url=url, upstream={"url": upstream}).json()["upstream"]["url"] == expected


REFUSED: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"name": None}, (400, 102)),
    ({"name": ""}, (400, 102)),
    ({"upstream": None}, (400, 102)),
    ({"upstream": {}}, (400, 102)),
    ({"upstream": "8080"}, (400, 102)),
    ({"upstream": {"url": "80", "protocol": "http3"}}, (400, 102)),
    ({"upstream": {"url": "80", "proxy_protocol": "3"}}, (400, 102)),
    ({"upstream": {"url": "80", "surprise": 1}}, (400, 102)),
    ({"upstream": {"url": "tcp://localhost:22"}}, (400, 102)),
    ({"surprise": 1}, (400, 102)),
    ({"inspect": "no"}, (400, 102)),
    ({"url": True}, (400, 102)),
    ({"url": "https://not a host"}, (400, 102)),
    ({"bindings": ["public", "internal"]}, (400, 102)),
    ({"bindings": ["private"]}, (400, 102)),
    ({"url": "gopher://shop.berlin.example.com"}, (502, 103, "332")),
    ({"url": "https://shop.berlin.example.com/"}, (502, 103, "9038")),
    ({"url": "https://shop.berlin.example.com/path"}, (502, 103, "9037")),
    ({"url": "https://user@shop.berlin.example.com"}, (502, 103, "9037")),
    ({"url": "https://shop.berlin.example.com:0"}, (502, 103, "9030")),
    ({"url": "tcp://shop.internal"}, (502, 103, "9030")),
    ({"url": "https://shop.berlin.example.com:99999"}, (502, 103, "9030")),
    ({"url": "https://shop.munich.example.com"}, (502, 103, "319")),
    ({"url": "tcp://1.tcp.sandbox.test:20000"}, (502, 103, "307")),
    ({"bindings": ["internal"]}, (502, 103, "9029")),
    ({"url": "https://shop.internal", "bindings": ["public"]}, (502, 103, "9029")),
    ({"url": "https://shop.default", "bindings": ["kubernetes"]}, (502, 103, "9041")),
    ({"url": "http://shop", "bindings": ["kubernetes"]}, (502, 103, "9039")),
    ({"traffic_policy": "on_http_request: 1"}, (502, 103, "2201")),
]


@pytest.mark.parametrize(("definition", "refused"), REFUSED, ids=str)
def test_an_invalid_endpoint_is_refused(
    agent: httpx.Client, definition: dict[str, Any], refused: tuple[Any, ...]
) -> None:
    assert refusal(open_endpoint(agent, **definition))[: len(refused)] == refused
    assert agent.get("/api/endpoints").json()["endpoints"] == []


def test_a_name_is_unique_among_endpoints_and_tunnels(agent: httpx.Client) -> None:
    open_endpoint(agent)
    assert refusal(open_endpoint(agent, url=""))[:2] == (400, 102)
    tunnel = {"name": "shop", "proto": "http", "addr": "80"}
    assert refusal(agent.post("/api/tunnels", json=tunnel))[:2] == (400, 102)
    agent.post("/api/tunnels", json=tunnel | {"name": "old"}).raise_for_status()
    assert refusal(open_endpoint(agent, name="old", url=""))[:2] == (400, 102)
    assert refusal(agent.put("/api/endpoints/old", json=SHOP | {"name": "old", "url": ""}))[:2] == (400, 102)


@pytest.mark.parametrize(
    ("first", "second", "is_online"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_endpoints_share_a_url_only_if_all_use_pooling(
    agent: httpx.Client, first: bool, second: bool, is_online: bool
) -> None:
    open_endpoint(agent, pooling_enabled=first).raise_for_status()
    answer = open_endpoint(agent, name="second", pooling_enabled=second)
    assert answer.status_code == 201 if is_online else refusal(answer) == (502, 103, "334")


# --- update in place --------------------------------------------------------------------------------------------------


def test_an_update_replaces_the_whole_definition(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    before = open_endpoint(agent, description="Shop", inspect=False, traffic_policy=POLICY).json()
    (endpoint,) = sandbox.get("/endpoints")["endpoints"]
    answer = agent.put(before["uri"], json=SHOP | {"upstream": {"url": "9090"}, "metadata": "m"})
    assert answer.status_code == 200
    after = answer.json()
    assert (after["upstream"]["url"], after["metadata"]) == ("http://localhost:9090", "m")
    assert (after["description"], after["inspect"], after["traffic_policy"]) == ("", True, "")
    assert agent.get(before["uri"]).json() == after
    (updated,) = sandbox.get("/endpoints")["endpoints"]
    assert (updated["id"], updated["metadata"], updated["description"]) == (endpoint["id"], "m", "")


def test_an_update_preserves_what_it_omits_as_the_variant(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    """A variant: the public agent's documentation does not say."""
    sandbox.request("PUT", "/_sandbox/variants", {"agent_put_keeps": True})
    open_endpoint(agent, description="Shop", traffic_policy=POLICY).raise_for_status()
    after = agent.put("/api/endpoints/shop", json={"upstream": {"url": "9090"}}).json()
    assert (after["description"], after["traffic_policy"]) == ("Shop", POLICY)


def test_an_answer_can_be_sent_back(agent: httpx.Client) -> None:
    answer = open_endpoint(agent, url="tcp://", upstream={"url": "22"}).json()
    assert agent.put(answer["uri"], json=answer).json() == answer


def test_an_update_of_an_unknown_name_opens_an_endpoint(agent: httpx.Client) -> None:
    answer = agent.put("/api/endpoints/shop", json=SHOP)
    assert answer.status_code == 201
    assert [found["name"] for found in agent.get("/api/endpoints").json()["endpoints"]] == ["shop"]


@pytest.mark.parametrize(
    "change",
    [
        {"url": "https://other.berlin.example.com"},
        {"url": "http://shop.berlin.example.com"},
        {"url": "tcp://"},
        {"pooling_enabled": True},
        {"bindings": ["kubernetes"]},
        {"name": "other"},
    ],
    ids=str,
)
def test_an_update_changes_neither_address_nor_pooling_nor_name(agent: httpx.Client, change: dict[str, Any]) -> None:
    before = open_endpoint(agent).json()
    assert agent.put("/api/endpoints/shop", json=SHOP | change).status_code in (400, 502)
    assert agent.get("/api/endpoints").json()["endpoints"] == [before]


def test_an_agent_without_a_session_opens_and_updates_nothing(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    sandbox.refusal("POST", "/_sandbox/agent", {"authtoken": "made-up"})
    assert refusal(open_endpoint(agent))[:2] == (503, 104)
    assert refusal(agent.put("/api/endpoints/shop", json=SHOP))[:2] == (503, 104)


def test_a_credential_binds_the_hosts_of_its_rules(sandbox: SandboxProcess, agent: httpx.Client) -> None:
    credential = sandbox.post("/credentials", {"acl": ["bind:shop.berlin.example.com"]})
    sandbox.post("/_sandbox/agent", {"authtoken": credential["token"]})
    assert open_endpoint(agent).status_code == 201
    assert refusal(open_endpoint(agent, name="other", url="https://x.berlin.example.com")) == (502, 103, "308")
    assert refusal(open_endpoint(agent, name="random", url="")) == (502, 103, "308")


def test_answers_have_the_keys_of_the_documented_examples_as_a_variant(
    sandbox: SandboxProcess, agent: httpx.Client
) -> None:
    sandbox.request("PUT", "/_sandbox/variants", {"agent_examples": True})
    answer = open_endpoint(agent, description="Shop").json()
    assert answer.keys() == {"name", "uri", "url", "upstream", "inspect", "pooling_enabled", "metrics"}
    assert answer["upstream"] == {"url": "http://localhost:8080", "protocol": "https"}
