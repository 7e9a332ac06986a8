"""Agents in processes of their own: their tunnels on the sandbox, and their sessions after a loss of the connection."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest

from reconciler.testing import AgentProcess
from tests.harness.platform import SandboxProcess

CONFIG = """\
version: "2"
metadata: berlin
tunnels:
  shop: {labels: [app=shop], addr: 8080}
"""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(db=tmp_path_factory.mktemp("platform") / "platform.db") as running:
        yield running


@pytest.fixture(scope="module")
def agent(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """An agent that opens one tunnel with a label."""
    config = tmp_path_factory.mktemp("agent") / "agent.yml"
    config.write_text(CONFIG)
    with AgentProcess(sandbox.base_url, config=config, version="2.3.41") as running:
        yield running


def list_labels(sandbox: SandboxProcess) -> list[dict[str, str]]:
    return [tunnel["labels"] for tunnel in sandbox.get("/tunnels")["tunnels"]]


def list_sessions(sandbox: SandboxProcess) -> list[Any]:
    return list(sandbox.get("/tunnel_sessions")["tunnel_sessions"])


def wait_for(condition: Callable[[], object]) -> None:
    """Waits until the sandbox or the agent has noticed what happened to the other."""
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within ten seconds")


def connect(sandbox: SandboxProcess, **body: object) -> AbstractContextManager[httpx.Response]:
    """Connects as an agent does, inside the block."""
    return httpx.stream("POST", f"{sandbox.base_url}/_sandbox/agents", json=body, trust_env=False)


def open_tunnel(agent: AgentProcess, label: str) -> None:
    settings = {"name": label, "labels": [f"app={label}"], "addr": "9000"}
    assert httpx.post(f"{agent.url}/api/tunnels", json=settings, trust_env=False).status_code == 201


def list_names(agent: AgentProcess) -> list[str]:
    answer = httpx.get(f"{agent.url}/api/tunnels", trust_env=False)
    return [tunnel["name"] for tunnel in answer.json()["tunnels"]]


def test_an_agent_opens_its_file_and_shows_its_version(sandbox: SandboxProcess, agent: AgentProcess) -> None:
    assert list_labels(sandbox) == [{"app": "shop"}]
    [session] = list_sessions(sandbox)
    assert (session["agent_version"], session["metadata"]) == ("2.3.41", "berlin")


def test_an_agent_that_lost_its_connection_opens_the_same_again(sandbox: SandboxProcess, agent: AgentProcess) -> None:
    open_tunnel(agent, "cart")
    sandbox.kill()
    wait_for(lambda: httpx.get(f"{agent.url}/api/status", trust_env=False).json()["status"] == "connecting")
    assert httpx.get(f"{agent.url}/api/tunnels", trust_env=False).status_code == 503
    sandbox.restart()
    wait_for(lambda: list_sessions(sandbox))
    assert list_labels(sandbox) == [{"app": "cart"}, {"app": "shop"}]
    assert list_names(agent) == ["shop", "cart"]
    assert len(list_sessions(sandbox)) == 1


def test_two_agents_have_endpoints_of_the_same_name(sandbox: SandboxProcess, agent: AgentProcess) -> None:
    with connect(
        sandbox, definitions=[["AgentTunnel", {"name": "shop", "labels": ["app=till"], "addr": "1"}]]
    ) as other:
        assert other.status_code == 200
        wait_for(lambda: len(list_sessions(sandbox)) == 2)
        assert {"app": "till"} in list_labels(sandbox)
        assert "shop" in list_names(agent)
    wait_for(lambda: len(list_sessions(sandbox)) == 1)
    assert {"app": "till"} not in list_labels(sandbox)
    assert "shop" in list_names(agent)


def test_an_agent_with_an_unknown_token_is_refused(sandbox: SandboxProcess) -> None:
    sessions = list_sessions(sandbox)
    with connect(sandbox, authtoken="unknown") as refused:
        assert refused.status_code == 502
        assert "ERR_NGROK_107" in json.loads(refused.read())["details"]["err"]
    assert list_sessions(sandbox) == sessions


def test_a_web_page_cannot_connect_an_agent(sandbox: SandboxProcess) -> None:
    headers = {"Host": "attacker.example.com", "Content-Type": "application/json"}
    assert sandbox.request("POST", "/_sandbox/agents", {}, headers=headers).status_code == 403
    assert sandbox.request("POST", "/_sandbox/agents", {"unknown": 1}).status_code == 400
    assert sandbox.request("GET", "/_sandbox/agents/unknown/api/status").status_code == 404


def test_a_restart_by_the_management_api_opens_the_file_and_a_stop_ends_the_process(
    sandbox: SandboxProcess, agent: AgentProcess
) -> None:
    [session] = list_sessions(sandbox)
    sandbox.post(f"/tunnel_sessions/{session['id']}/restart", {})
    wait_for(lambda: [found["id"] for found in list_sessions(sandbox)] not in ([], [session["id"]]))
    assert list_labels(sandbox) == [{"app": "shop"}]
    sandbox.post(f"/tunnel_sessions/{list_sessions(sandbox)[0]['id']}/stop", {})
    assert agent.wait() == 0
    assert list_sessions(sandbox) == []
