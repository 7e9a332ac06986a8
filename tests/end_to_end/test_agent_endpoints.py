"""Endpoints of an agent, declared: applied through the agent's own API, updated in place, gone with the agent.

The agent is in this process; that of `test_agent.py` has a socket.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from reconciler.testing import Sandbox
from tests.harness.project import Project, resource

POLICY = {"on_http_request": [{"actions": [{"type": "deny"}]}]}
SHOP: dict[str, Any] = {"name": "shop", "url": "https://shop.berlin.example.com", "upstream": {"url": "8080"}}
DOMAIN = resource("ReservedDomain", "berlin", domain="*.berlin.example.com")


class InProcess(httpx.BaseTransport):
    """Requests of a client to an agent in this process."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run(self._transport.handle_async_request(request))


@pytest.fixture
def beside() -> Iterator[Sandbox]:
    with Sandbox(host="emulator", agent=True) as running:
        yield running


@pytest.fixture
def agent(beside: Sandbox, project: Project) -> Iterator[httpx.Client]:
    """The agent's API beside an empty platform, both known to the project."""
    project.use(beside)
    project.environ["RECONCILER_AGENT_URL"] = beside.agent_url
    assert beside.transport is not None
    with httpx.Client(base_url=beside.agent_url, transport=InProcess(beside.transport)) as client:
        yield client


def declare(project: Project, *definitions: dict[str, Any]) -> None:
    """Declares the domain and an endpoint for each definition, with the address of its name."""
    endpoints = [resource("AgentEndpoint", definition["name"], **definition) for definition in definitions]
    project.declare(DOMAIN, *endpoints)


def apply(project: Project, *definitions: dict[str, Any], allow: tuple[str, ...] = ()) -> None:
    """Applies the definitions, after which nothing differs."""
    declare(project, *definitions)
    result = project("apply", "-y", *(word for what in allow for word in ("--allow", what)))
    assert result.code == 0, result.out + result.err
    planned = project("plan", "--detailed-exitcode")
    assert planned.code == 0, planned.out


def list_running(agent: httpx.Client) -> dict[str, Any]:
    return {endpoint["name"]: endpoint for endpoint in agent.get("/api/endpoints").json()["endpoints"]}


def test_declared_endpoints_are_open_after_an_apply_and_nothing_is_left_to_do(
    project: Project, agent: httpx.Client
) -> None:
    shop = SHOP | {"traffic_policy": POLICY, "description": "Shop", "metadata": "team: web"}
    apply(project, shop, {"name": "ssh", "url": "tcp://", "upstream": {"url": "localhost:22"}})
    found = list_running(agent)
    assert found["shop"]["url"] == "https://shop.berlin.example.com"
    assert (found["shop"]["description"], json.loads(found["shop"]["traffic_policy"])) == ("Shop", POLICY)
    assert found["shop"]["metadata"] == "team: web"  # no owner record beside it
    assert found["ssh"]["url"].startswith("tcp://0.tcp.sandbox.test:")


def test_an_endpoint_is_updated_in_place_by_its_whole_definition(
    project: Project, agent: httpx.Client, beside: Sandbox
) -> None:
    apply(project, SHOP | {"description": "Shop", "traffic_policy": POLICY, "inspect": False})
    before = [endpoint["id"] for endpoint in beside.get("/endpoints")["endpoints"]]
    declare(project, SHOP | {"upstream": {"url": "9090", "protocol": "http2"}, "metadata": "m", "inspect": False})
    planned = project("plan", "--format", "json")
    (call,) = [row for row in json.loads(planned.out)["calls"] if row["address"] == "AgentEndpoint/shop"]
    assert call["is_whole"] is True
    assert project("apply", "-y").code == 0
    assert [endpoint["id"] for endpoint in beside.get("/endpoints")["endpoints"]] == before
    shop = list_running(agent)["shop"]
    assert shop["upstream"] == {"url": "http://localhost:9090", "protocol": "http2"}
    assert (shop["description"], shop["traffic_policy"], shop["metadata"], shop["inspect"]) == ("", "", "m", False)
    assert project("plan", "--detailed-exitcode").code == 0


CHANGES: list[dict[str, Any]] = [
    {"url": "https://other.berlin.example.com"},
    {"url": "http://shop.berlin.example.com"},
    {"pooling_enabled": True},
    {"name": "store"},
    {"url": "https://shop.internal", "bindings": ["internal"]},
    {"url": "tcp://", "upstream": {"url": "22"}},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_of_address_bindings_pooling_or_name_replaces_the_endpoint(
    project: Project, agent: httpx.Client, beside: Sandbox, change: dict[str, Any]
) -> None:
    apply(project, SHOP)
    (before,) = beside.get("/endpoints")["endpoints"]
    project.declare(DOMAIN, resource("AgentEndpoint", "shop", **{**SHOP, **change}))
    result = project("apply", "-y")
    assert result.code == 0, result.out + result.err
    (after,) = beside.get("/endpoints")["endpoints"]
    assert before["id"] != after["id"]
    assert list(list_running(agent)) == [change.get("name", "shop")]
    assert project("plan", "--detailed-exitcode").code == 0


def test_an_endpoint_that_is_declared_at_another_address_with_another_name_gets_the_url_of_the_deleted_one(
    project: Project, agent: httpx.Client
) -> None:
    apply(project, SHOP)
    apply(project, SHOP | {"name": "store"}, allow=("delete:AgentEndpoint=1",))
    assert list(list_running(agent)) == ["store"]


def test_endpoints_of_a_pool_share_a_url(project: Project, agent: httpx.Client) -> None:
    pooled = SHOP | {"pooling_enabled": True}
    apply(project, pooled, pooled | {"name": "second", "upstream": {"url": "8081"}})
    assert list_running(agent).keys() == {"shop", "second"}
    apply(project, pooled, pooled | {"name": "second", "upstream": {"url": "8082"}})


def test_endpoints_that_ended_with_the_agent_are_drift_and_apply_opens_them_again(
    project: Project, agent: httpx.Client, beside: Sandbox
) -> None:
    apply(project, SHOP)
    beside.post("/_sandbox/agent", {})
    drift = project("drift")
    assert (drift.code, "AgentEndpoint/shop" in drift.out, "ReservedDomain" in drift.out) == (2, True, False)
    apply(project, SHOP)
    assert list_running(agent).keys() == {"shop"}


def test_a_change_on_the_agent_is_drift_and_is_reverted(project: Project, agent: httpx.Client) -> None:
    apply(project, SHOP)
    agent.put("/api/endpoints/shop", json=SHOP | {"description": "by hand", "traffic_policy": json.dumps(POLICY)})
    drift = project("drift")
    assert (drift.code, "description" in drift.out, "traffic_policy" in drift.out) == (2, True, True)
    apply(project, SHOP)
    assert (list_running(agent)["shop"]["description"], list_running(agent)["shop"]["traffic_policy"]) == ("", "")


def test_an_endpoint_that_is_no_longer_declared_is_closed_with_approval(project: Project, agent: httpx.Client) -> None:
    apply(project, SHOP)
    declare(project)
    assert project("apply", "-y").code == 4
    assert list_running(agent).keys() == {"shop"}
    apply(project, allow=("delete:AgentEndpoint=1",))
    assert list_running(agent) == {}


def test_destroy_closes_declared_endpoints_only(project: Project, agent: httpx.Client) -> None:
    agent.post("/api/endpoints", json={"name": "by-hand", "upstream": {"url": "80"}}).raise_for_status()
    apply(project, SHOP)
    allowed = ("--allow", "delete:AgentEndpoint=1", "--allow", "delete:ReservedDomain=1", "--allow", "empty:*=1")
    result = project("destroy", "-y", *allowed)
    assert result.code == 0, result.out + result.err
    assert list_running(agent).keys() == {"by-hand"}


def test_an_endpoint_of_the_same_name_is_in_sync_if_it_is_as_declared_and_ends_only_by_its_name(
    project: Project, agent: httpx.Client
) -> None:
    declare(project, SHOP)
    assert project("apply", "-y", "--target", "ReservedDomain/*").code == 0
    agent.post("/api/endpoints", json=SHOP).raise_for_status()
    assert project("plan", "--detailed-exitcode").code == 0
    assert project("apply", "-y").code == 0
    declare(project)
    assert project("apply", "-y", "--allow", "delete:AgentEndpoint=1").code == 4
    assert project("apply", "-y", "--allow", "delete:AgentEndpoint/shop=1").code == 0
    assert list_running(agent) == {}


def test_an_endpoint_of_the_same_name_that_differs_is_adopted_with_approval(
    project: Project, agent: httpx.Client
) -> None:
    declare(project, SHOP | {"description": "Shop"})
    assert project("apply", "-y", "--target", "ReservedDomain/*").code == 0
    agent.post("/api/endpoints", json=SHOP).raise_for_status()
    assert project("apply", "-y").code == 4
    assert project("apply", "-y", "--allow", "adopt:AgentEndpoint=1").code == 0
    assert list_running(agent)["shop"]["description"] == "Shop"
    assert project("plan", "--detailed-exitcode").code == 0


def test_the_endpoint_of_a_renamed_resource_is_unchanged(
    project: Project, agent: httpx.Client, beside: Sandbox
) -> None:
    apply(project, SHOP)
    (before,) = beside.get("/endpoints")["endpoints"]
    assert project("rename", "AgentEndpoint/shop", "AgentEndpoint/store").code == 0
    assert project("apply", "-y").code == 0
    (after,) = beside.get("/endpoints")["endpoints"]
    assert before["id"] == after["id"]


def test_an_owner_record_in_the_metadata_of_an_endpoint_manages_nothing(
    project: Project, agent: httpx.Client, beside: Sandbox
) -> None:
    """An owner record is text that everyone can write: on an agent it manages nothing."""
    apply(project, {"name": "copied", "upstream": {"url": "80"}})
    (domain,) = beside.get("/reserved_domains")["reserved_domains"]
    record = domain["metadata"].replace("ReservedDomain/berlin", "AgentEndpoint/planted")
    assert "AgentEndpoint/planted" in record
    planted = {"name": "planted", "upstream": {"url": "81"}, "metadata": record}
    agent.post("/api/endpoints", json=planted).raise_for_status()
    result = project("apply", "-y", "--allow", "delete:AgentEndpoint=9")
    assert result.code == 0, result.out + result.err
    assert list_running(agent).keys() == {"copied", "planted"}


def test_endpoints_of_an_unreachable_agent_are_unknown_and_not_created(project: Project, agent: httpx.Client) -> None:
    apply(project, SHOP)
    project.environ["RECONCILER_AGENT_URL"] = "http://127.0.0.1:9"
    result = project("plan")
    assert result.code == 1
    assert "the list of AgentEndpoint objects is incomplete: cannot reach the agent" in " ".join(result.out.split())
    assert "+ AgentEndpoint" not in result.out


def test_open_endpoints_are_listed_and_imported_if_their_kind_is_named(project: Project, agent: httpx.Client) -> None:
    project.declare(DOMAIN)
    assert project("apply", "-y").code == 0
    opened = SHOP | {"description": "Shop", "traffic_policy": json.dumps(POLICY)}
    agent.post("/api/endpoints", json=opened).raise_for_status()
    agent.post("/api/endpoints", json={"name": "ssh", "url": "tcp://", "upstream": {"url": "22"}}).raise_for_status()
    found = json.loads(project("list", "AgentEndpoint", "--format", "json").out)
    assert [row["name"] for row in found["objects"]] == ["shop", "ssh"]
    assert "AgentEndpoint" not in project("import", "--dry-run").out
    result = project("import", "--kind", "AgentEndpoint", "--out", "manifests/imported")
    assert result.code == 0, result.out + result.err
    planned = project("plan", "--detailed-exitcode")
    assert planned.code == 0, planned.out
    assert project("apply", "-y").code == 0
    assert project("explain", "AgentEndpoint/shop").code == 0
    assert list_running(agent).keys() == {"shop", "ssh"}


# --- answers that the agent's documentation leaves open ---------------------------------------------------------------

DEFINITIONS: list[dict[str, Any]] = [
    {"upstream": {"url": "8080"}},
    {"upstream": {"url": "http://"}},
    {"upstream": {"url": "https://"}},
    {"upstream": {"url": "https://backend:8443", "protocol": "http2"}},
    {"upstream": {"url": "backend"}, "url": "http://"},
    {"upstream": {"url": "localhost:8080"}, "url": "Shop.berlin.example.com", "bindings": ["public"]},
    {"upstream": {"url": "8080"}, "url": "https://", "inspect": False},
    {"upstream": {"url": "8080"}, "url": "https://x.internal:8443", "description": "d", "metadata": "m"},
    {"upstream": {"url": "8080"}, "url": "http://web.default", "bindings": ["kubernetes"]},
    {"upstream": {"url": "8080"}, "url": "https://y.internal", "traffic_policy": POLICY},
    {"upstream": {"url": "22"}, "url": "tcp://"},
    {"upstream": {"url": "localhost:22"}, "url": "tcp://", "inspect": False},
    {"upstream": {"url": "localhost:22", "proxy_protocol": "2"}, "url": "TCP://"},
    {"upstream": {"url": "443"}, "url": "tls://"},
    {"upstream": {"url": "tls://backend:443"}, "url": "tls://z.berlin.example.com"},
]
READINGS: list[dict[str, bool]] = [
    {},
    {"agent_examples": True},
    {"agent_tls_inspected": True},
    {"agent_put_keeps": True},
    {"agent_examples": True, "agent_put_keeps": True, "agent_tls_inspected": True},
]


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_an_endpoint_is_in_sync_and_updated_in_place_whatever_the_agent_answers(
    project: Project, agent: httpx.Client, beside: Sandbox, reading: dict[str, bool]
) -> None:
    assert beside.request("PUT", "/_sandbox/variants", reading).status_code == 204
    names = [f"e{number}" for number in range(len(DEFINITIONS))]
    definitions = [{"name": name, **fields} for name, fields in zip(names, DEFINITIONS, strict=True)]
    apply(project, *definitions)
    assert list_running(agent).keys() == set(names)
    assert project("drift").code == 0
    before = {endpoint["name"]: endpoint["id"] for endpoint in beside.get("/endpoints")["endpoints"]}
    all_of_them = (f"update:*={len(definitions)}",)
    apply(project, *({**definition, "description": "changed"} for definition in definitions), allow=all_of_them)
    apply(project, *definitions, allow=all_of_them)
    after = {endpoint["name"]: endpoint for endpoint in beside.get("/endpoints")["endpoints"]}
    assert {name: endpoint["id"] for name, endpoint in after.items()} == before
    assert {name: endpoint["description"] for name, endpoint in after.items()} == {
        name: fields.get("description", "") for name, fields in zip(names, DEFINITIONS, strict=True)
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "tcp://", "upstream": {"url": "22"}, "inspect": True}, "t.inspect: does not apply to tcp"),
        ({"url": "tls://", "upstream": {"url": "443"}, "inspect": True}, "t.inspect: does not apply to tls"),
        (
            {"url": "tcp://", "upstream": {"url": "backend"}},
            "'backend' has no port, which an endpoint of tcp needs; write backend:PORT",
        ),
        ({"upstream": {"url": "tcp://localhost:22"}}, "begins with tcp://, which agents refuse"),
        (
            {"url": "https://example.com:81", "upstream": {"url": "80"}},
            "http and https have port 80 or 443",
        ),
        ({"url": "https://a.example.com/x", "upstream": {"url": "80"}}, "has a path"),
        ({"upstream": {"url": "80"}, "bindings": ["public", "internal"]}, "at most one binding"),
        (
            {"url": "https://a.internal", "upstream": {"url": "80"}, "bindings": ["public"]},
            "requires the binding internal",
        ),
        ({"url": "https://a.example.com", "upstream": {"url": "80"}, "bindings": []}, "is empty"),
        ({}, "upstream: missing required field"),
        ({"upstream": {}}, "upstream.url: missing required field"),
    ],
    ids=str,
)
def test_a_definition_that_agents_refuse_is_an_error(
    project: Project, agent: httpx.Client, fields: dict[str, Any], message: str
) -> None:
    project.declare(resource("AgentEndpoint", "t", name="t", **fields))
    result = project("validate")
    assert (result.code, message in " ".join(result.err.split())) == (1, True), result.err
