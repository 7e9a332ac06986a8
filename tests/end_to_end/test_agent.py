"""Tunnels of an agent, declared: applied through the agent's own API, gone with the agent, and started again."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.harness.platform import SandboxProcess, open_client
from tests.harness.project import Project, resource

ORDERS = {"name": "orders", "proto": "http", "addr": "8080", "domain": "orders.berlin.example.com"}
SSH = {"name": "ssh", "proto": "tcp", "addr": "22"}
DOMAIN = resource("ReservedDomain", "berlin", domain="*.berlin.example.com")


@pytest.fixture(scope="module")
def beside() -> Iterator[SandboxProcess]:
    with SandboxProcess(agent=True) as running:
        yield running


@pytest.fixture
def agent(beside: SandboxProcess, project: Project) -> Iterator[httpx.Client]:
    """The agent's API beside an empty platform, both known to the project."""
    beside.reset()
    project.use(beside)
    project.environ["RECONCILER_AGENT_URL"] = beside.agent_url
    with open_client(beside.agent_url) as client:
        yield client


def list_running(agent: httpx.Client) -> dict[str, Any]:
    return {tunnel["name"]: tunnel for tunnel in agent.get("/api/tunnels").json()["tunnels"]}


def test_declared_tunnels_run_after_an_apply_and_nothing_is_left_to_do(project: Project, agent: httpx.Client) -> None:
    project.declare(DOMAIN, resource("AgentTunnel", "orders", **ORDERS), resource("AgentTunnel", "ssh", **SSH))
    assert project("apply", "-y").code == 0
    assert list_running(agent)["orders"]["public_url"] == "https://orders.berlin.example.com"
    assert list_running(agent).keys() == {"orders", "ssh"}
    assert project("plan", "--detailed-exitcode").code == 0


def test_a_declared_tunnel_is_one_way_in_and_another_of_the_agent_is_ephemeral(
    project: Project, agent: httpx.Client
) -> None:
    project.declare(DOMAIN, resource("AgentTunnel", "orders", **ORDERS))
    assert project("apply", "-y").code == 0
    by_hand = {"name": "by-hand", "proto": "http", "addr": "9090", "domain": "hand.berlin.example.com"}
    assert agent.post("/api/tunnels", json=by_hand).status_code == 201
    listed = project("access", "--host", "*.berlin.example.com", "--format", "json")
    assert listed.code == 0, listed.err
    found = [(entry["host"], entry["resources"], entry["origin"]) for entry in json.loads(listed.out)["entries"]]
    assert found == [
        ("hand.berlin.example.com", ["agent at https://hand.berlin.example.com"], "ephemeral"),
        ("orders.berlin.example.com", ["AgentTunnel/orders"], ""),
    ]


def test_tunnels_that_ended_with_the_agent_are_drift_and_apply_starts_them_again(
    project: Project, agent: httpx.Client, beside: SandboxProcess
) -> None:
    project.declare(DOMAIN, resource("AgentTunnel", "orders", **ORDERS), resource("AgentTunnel", "ssh", **SSH))
    assert project("apply", "-y").code == 0
    beside.post("/_sandbox/agent", {})
    assert list_running(agent) == {}
    drift = project("drift")
    assert drift.code == 2
    assert "AgentTunnel/orders" in drift.out
    assert "ReservedDomain" not in drift.out
    assert project("apply", "-y").code == 0
    assert list_running(agent).keys() == {"orders", "ssh"}


def test_a_tunnel_with_a_changed_field_is_stopped_and_started_again(project: Project, agent: httpx.Client) -> None:
    project.declare(DOMAIN, resource("AgentTunnel", "orders", **ORDERS))
    assert project("apply", "-y").code == 0
    project.declare(DOMAIN, resource("AgentTunnel", "orders", **{**ORDERS, "addr": "9090", "inspect": False}))
    assert project("apply", "-y").code == 0
    assert list_running(agent)["orders"]["config"] == {"addr": "http://localhost:9090", "inspect": False}
    assert project("plan", "--detailed-exitcode").code == 0


def test_a_tunnel_that_is_not_declared_any_more_is_stopped_with_approval(project: Project, agent: httpx.Client) -> None:
    project.declare(DOMAIN, resource("AgentTunnel", "orders", **ORDERS))
    assert project("apply", "-y").code == 0
    project.declare(DOMAIN)
    assert project("apply", "-y").code == 4
    assert project("apply", "-y", "--allow", "delete:AgentTunnel=1").code == 0
    assert list_running(agent) == {}


def test_a_plan_file_is_stale_while_its_tunnel_runs_already(project: Project, agent: httpx.Client) -> None:
    project.declare(DOMAIN, resource("AgentTunnel", "orders", **ORDERS))
    assert project("apply", "-y", "--target", "ReservedDomain/*").code == 0
    assert project("plan", "--out", "plan.json").code == 0
    agent.post("/api/tunnels", json=ORDERS).raise_for_status()
    assert project("apply", "-y", "plan.json").code == 3
    agent.delete("/api/tunnels/orders").raise_for_status()
    assert project("apply", "-y", "plan.json").code == 0
    assert list_running(agent).keys() == {"orders"}


def test_a_tunnel_of_the_same_name_is_in_sync_if_it_is_as_declared_and_ends_only_by_its_name(
    project: Project, agent: httpx.Client
) -> None:
    project.declare(DOMAIN, resource("AgentTunnel", "orders", **ORDERS))
    assert project("apply", "-y", "--target", "ReservedDomain/*").code == 0
    agent.post("/api/tunnels", json=ORDERS).raise_for_status()
    assert project("plan", "--detailed-exitcode").code == 0
    assert project("apply", "-y").code == 0
    project.declare(DOMAIN)
    assert project("apply", "-y", "--allow", "delete:AgentTunnel=1").code == 4
    assert project("apply", "-y", "--allow", "delete:AgentTunnel/orders=1").code == 0
    assert list_running(agent) == {}


def test_an_undeclared_tunnel_of_the_agent_is_not_stopped(project: Project, agent: httpx.Client) -> None:
    agent.post("/api/tunnels", json={"name": "by-hand", "proto": "tcp", "addr": "22"}).raise_for_status()
    project.declare(DOMAIN, resource("AgentTunnel", "orders", **ORDERS))
    assert project("apply", "-y").code == 0
    assert list_running(agent).keys() == {"by-hand", "orders"}


def test_the_platform_s_error_for_a_refused_tunnel_is_printed(project: Project, agent: httpx.Client) -> None:
    project.declare(resource("AgentTunnel", "orders", **ORDERS))
    result = project("apply", "-y")
    assert result.code in (1, 5)
    assert "You must reserve the hostname 'orders.berlin.example.com'" in result.out + result.err


def test_tunnels_of_an_unreachable_agent_are_unknown_and_not_created(project: Project, agent: httpx.Client) -> None:
    project.declare(DOMAIN, resource("AgentTunnel", "orders", **ORDERS))
    assert project("apply", "-y").code == 0
    project.environ["RECONCILER_AGENT_URL"] = unreachable_url()
    result = project("plan")
    assert result.code == 1
    assert "the list of AgentTunnel objects is incomplete: cannot reach the agent" in " ".join(result.out.split())
    assert "+ AgentTunnel" not in result.out


def test_an_agent_that_cannot_be_reached_is_no_matter_where_no_tunnel_is_declared(
    project: Project, agent: httpx.Client
) -> None:
    project.environ["RECONCILER_AGENT_URL"] = unreachable_url()
    project.declare(DOMAIN)
    assert project("apply", "-y").code == 0


UPSTREAMS = {
    "http": ["8080", "localhost:8080", "http://localhost:8080", "HTTP://LocalHost", "backend", "https://backend:8443"],
    "tcp": ["22", "localhost:22", "[::1]:22", "tcp://localhost:22"],
    "tls": ["443", "8443", "localhost:443", "tls://localhost:443", "tls://backend:8443"],
}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "http": [{"inspect": True}, {"inspect": False}, {"domain": "Shop.berlin.example.com"}],
    "tcp": [{"inspect": False}, {"remote_addr": {"ref": "ReservedAddress/ssh.addr"}}],
    "tls": [{"inspect": False}, {"domain": "tls.berlin.example.com"}],
}
READINGS: list[dict[str, bool]] = [{}, {"agent_examples": True}, {"agent_tls_inspected": True}]


@pytest.mark.parametrize("reading", READINGS, ids=["live agents", "documented examples", "tls inspected"])
def test_a_tunnel_differs_in_no_field_that_its_manifest_omits(
    project: Project, agent: httpx.Client, beside: SandboxProcess, reading: dict[str, bool]
) -> None:
    """A difference that no apply removes interrupts the tunnel at each apply, since it is stopped and started again."""
    assert beside.request("PUT", "/_sandbox/variants", reading).status_code == 204
    tunnels = [{"proto": proto, "addr": addr} for proto, every in UPSTREAMS.items() for addr in every]
    tunnels += [{"proto": proto, "addr": "9", **options} for proto, every in OPTIONS.items() for options in every]
    declared = [resource("AgentTunnel", f"t{n}", name=f"t{n}", **fields) for n, fields in enumerate(tunnels)]
    project.declare(DOMAIN, resource("ReservedAddress", "ssh", region="us"), *declared)
    assert project("apply", "-y").code == 0
    assert list_running(agent).keys() == {f"t{n}" for n in range(len(tunnels))}
    planned = project("plan", "--detailed-exitcode")
    assert (planned.code, planned.out.count("AgentTunnel/")) == (0, 0), planned.out
    assert project("drift").code == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"proto": "tcp", "addr": "22", "inspect": True}, "AgentTunnel/t.inspect: does not apply to a tcp tunnel"),
        ({"proto": "tls", "addr": "443", "inspect": True}, "AgentTunnel/t.inspect: does not apply to a tls tunnel"),
        ({"proto": "tcp", "addr": "backend"}, "'backend' has no port, which a tunnel of tcp needs; write backend:PORT"),
        ({"proto": "tls", "addr": "tls://backend"}, "has no port, which a tunnel of tls needs; write backend:PORT"),
    ],
    ids=str,
)
def test_an_option_that_agents_do_not_have_for_the_protocol_is_an_error(
    project: Project, agent: httpx.Client, fields: dict[str, Any], message: str
) -> None:
    project.declare(resource("AgentTunnel", "t", name="t", **fields))
    result = project("validate")
    assert (result.code, message in " ".join(result.err.split())) == (1, True), result.err


def test_no_key_is_sent_to_an_agent(project: Project, agent: httpx.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        project.environ["RECONCILER_AGENT_URL"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        project.declare(resource("AgentTunnel", "orders", **ORDERS))
        process = project.start("plan")
        connection, _ = listener.accept()
        with connection:
            heard = connection.recv(65536).decode()
        process.communicate()
    assert heard.startswith("GET /api/tunnels HTTP/1.1")
    assert "authorization" not in heard.lower()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://agent.example.com:4040", "is unencrypted; use https"),
        ("localhost:4040", "is not a URL; write it like http://127.0.0.1:4040"),
    ],
)
def test_an_invalid_address_of_an_agent_is_reported_with_its_position(
    project: Project, address: str, message: str
) -> None:
    project.write("reconciler.yaml", f"version: 1\nstack: prod\nagent: {{base_url: '{address}'}}\n")
    result = project("validate")
    assert result.code == 1
    assert "reconciler.yaml:3:19: agent.base_url" in result.err
    assert message in result.err


def unreachable_url() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
