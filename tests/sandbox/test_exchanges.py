"""Captured requests of the sandbox's agent: stored by a control path, listed, replayed and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.harness.platform import SandboxProcess, open_client

PATH = "/api/requests/http"


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
    """An agent that captured three requests of two endpoints; the last one has no response yet."""
    captured = [
        {"tunnel_name": "orders", "uri": "/first", "headers": {"X-A": ["1", "2"]}, "body": "{}"},
        {"tunnel_name": "shop", "method": "POST", "uri": "/second", "status_code": 502},
        {"tunnel_name": "shop", "uri": "/third", "status_code": None},
    ]
    sandbox.post("/_sandbox/agent/requests", captured)
    with open_client(sandbox.agent_url) as client:
        yield client


def uris(agent: httpx.Client, **query: Any) -> list[str]:
    return [found["request"]["uri"] for found in agent.get(PATH, params=query).json()["requests"]]


def test_captured_requests_are_listed_newest_first_by_name_and_limit(agent: httpx.Client) -> None:
    assert agent.get(PATH).json()["uri"] == PATH
    assert uris(agent) == ["/third", "/second", "/first"]
    assert uris(agent, limit=1) == ["/third"]
    assert uris(agent, tunnel_name="shop") == ["/third", "/second"]
    assert uris(agent, tunnel_name="unknown") == []
    assert agent.get(PATH, params={"limit": "many"}).status_code == 400


def test_a_captured_request_has_its_response_or_null(agent: httpx.Client) -> None:
    third, second, first = agent.get(PATH).json()["requests"]
    assert third["response"] is None
    assert (second["response"]["status"], second["response"]["status_code"]) == ("502 Bad Gateway", 502)
    assert first["request"]["headers"] == {"X-A": ["1", "2"]}
    assert agent.get(first["uri"]).json() == first
    assert len(first["id"]) == 16


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({}, "shop"),
        ({"tunnel_name": None}, "shop"),
        ({"tunnel_name": "orders"}, "orders"),
        ({"tunnelName": "x"}, "shop"),
    ],
    ids=str,
)
def test_a_replay_is_captured_for_the_named_endpoint_or_that_of_the_request(
    agent: httpx.Client, body: dict[str, Any], name: str
) -> None:
    second = agent.get(PATH).json()["requests"][1]
    assert agent.post(PATH, json={"id": second["id"], **body}).status_code == 204
    newest = agent.get(PATH).json()["requests"][0]
    assert (newest["tunnel_name"], newest["request"]) == (name, second["request"])
    assert newest["id"] != second["id"]
    assert len(uris(agent)) == 4


def test_an_unknown_captured_request_is_not_found_or_replayed(agent: httpx.Client) -> None:
    assert agent.get(f"{PATH}/0123456789abcdef").status_code == 404
    assert agent.post(PATH, json={"id": "0123456789abcdef"}).status_code == 404
    assert agent.post(PATH, json={"id": "0123456789abcdef", "tunnel_name": 1}).status_code == 404
    assert len(uris(agent)) == 3


def test_captured_requests_are_deleted_at_once_and_end_with_the_agent(
    sandbox: SandboxProcess, agent: httpx.Client
) -> None:
    assert agent.request("DELETE", PATH, json={}).status_code == 204
    assert uris(agent) == []
    sandbox.post("/_sandbox/agent/requests", {"tunnel_name": "orders"})
    sandbox.post("/_sandbox/agent", {})
    assert uris(agent) == []
