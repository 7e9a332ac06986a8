"""The local API of an agent beside the platform: the requests to it, and the failures of its responses."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from reconciler.api import agent
from reconciler.api.origin import Origin
from reconciler.api.platform import HTTPPlatform, open_platform, open_reader
from reconciler.engine.ports import Failure, Gone, Lost, Refused, Transient
from tests.api.wire import CUT, answer, wire

AGENT = Origin.parse("http://127.0.0.1:4040")
BODY: dict[str, Any] = {"error_code": 103, "status_code": 502, "msg": "failed to start tunnel"}


def refusal(why: str) -> dict[str, Any]:
    return {**BODY, "details": {"err": why}}


@pytest.mark.parametrize(
    ("path", "is_of_agent"),
    [
        ("/api/tunnels", True),
        ("/api/tunnels/orders", True),
        ("/api/endpoints", True),
        ("/api/endpoints/shop", True),
        ("/endpoints", False),
        ("/api_keys", False),
        ("/agent_ingresses", False),
        ("/api", False),
        ("/api/tunnelsome", False),
        ("/tunnels", False),
        ("/endpoints/api/tunnels", False),
    ],
)
def test_paths_of_tunnels_are_those_of_the_agent(path: str, is_of_agent: bool) -> None:
    assert agent.is_agent_path(path) is is_of_agent


@pytest.mark.parametrize(
    ("method", "status", "body", "failure", "code"),
    [
        ("POST", 502, refusal("not reserved\n\nERR_NGROK_319\n"), Refused, "ERR_NGROK_319"),
        ("POST", 502, refusal("session closed"), Lost, ""),
        ("POST", 503, {"error_code": 104, "msg": "not ready"}, Transient, ""),
        ("POST", 429, None, Transient, ""),
        ("POST", 500, "panic", Lost, ""),
        ("GET", 500, None, Transient, ""),
        ("DELETE", 404, {"error_code": 100, "msg": "no tunnel"}, Gone, ""),
        ("POST", 400, {"error_code": 102, "msg": "invalid", "details": {"err": 7}}, Refused, ""),
        ("POST", 400, ["odd"], Refused, ""),
    ],
)
def test_an_error_of_the_agent_is_mapped_to_a_failure_of_the_engine(
    method: str, status: int, body: Any, failure: type[Failure], code: str
) -> None:
    found = agent.failure_of(method, status, body, AGENT)
    assert (type(found), found.code) == (failure, code)


def test_a_refusal_by_the_agent_is_not_about_permissions_of_the_key() -> None:
    found = agent.failure_of("GET", 403, {"msg": "no"}, AGENT)
    assert isinstance(found, Refused)
    assert not found.is_permission


def test_a_message_of_the_agent_is_printed_without_control_sequences() -> None:
    body = {"msg": "\x1b[31mred", "details": {"err": "\x1b]0;title\x07"}}
    assert "\x1b" not in str(agent.failure_of("POST", 400, body, AGENT))


def test_a_failure_names_its_agent() -> None:
    assert (
        str(agent.failure_of("GET", 500, None, AGENT))
        == "no reason given (the agent at http://127.0.0.1:4040, status 500)"
    )


async def test_a_server_without_a_list_of_tunnels_is_reported_as_no_agent() -> None:
    async with wire(answer(None, 404)) as local, agent.open_agent(local.base_url, read_only=True) as opened:
        assert opened is not None
        with pytest.raises(Refused, match=f"check that {local.base_url} is the address of an agent"):
            await opened.list("/api/tunnels", "tunnels")


async def _send(opening: AbstractAsyncContextManager[HTTPPlatform]) -> None:
    async with opening as both:
        assert await both.send("POST", "/api/tunnels", {"name": "orders"}) == {"name": "orders"}
        assert await both.send("POST", "/ip_policies", {}) == {"id": "x"}


async def test_requests_to_the_agent_are_sent_without_the_key() -> None:
    async with wire(answer({"id": "x"}, 201)) as platform, wire(answer({"name": "orders"}, 201)) as local:
        await _send(open_platform(platform.account(agent=local.base_url)))
    assert [request.target for request in local.requests] == ["/api/tunnels"]
    assert [request.target for request in platform.requests] == ["/ip_policies"]
    assert "authorization" not in local.requests[0].headers


async def test_paths_of_the_agent_are_read_from_the_agent() -> None:
    async with (
        wire() as platform,
        wire(answer({"name": "orders"})) as local,
        open_reader(platform.account(agent=local.base_url)) as reader,
    ):
        assert await reader.get("/api/tunnels/orders") == {"name": "orders"}
    assert ([request.target for request in local.requests], platform.requests) == (["/api/tunnels/orders"], [])


async def test_the_outcome_of_a_start_is_unknown_if_the_connection_breaks() -> None:
    async with wire(CUT) as local, agent.open_agent(local.base_url, read_only=False) as opened:
        assert opened is not None
        with pytest.raises(Lost):
            await opened.send("POST", "/api/tunnels", {"name": "orders"})


async def test_a_read_only_client_sends_only_get_to_an_agent() -> None:
    async with agent.open_agent("http://127.0.0.1:4040", read_only=True) as opened:
        assert opened is not None
        with pytest.raises(Refused, match="this client must not send"):
            await opened.send("POST", "/api/tunnels", {})


@pytest.mark.parametrize("body", [{"tunnels": None}, {"tunnels": ["x"]}, [], None, {}])
async def test_a_response_without_a_list_of_tunnels_is_refused(body: Any) -> None:
    async with wire(answer(body)) as local, agent.open_agent(local.base_url, read_only=True) as opened:
        assert opened is not None
        with pytest.raises(Refused, match="check that it is the address of an agent"):
            await opened.list("/api/tunnels", "tunnels")


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (400, {"msg": "no", "details": {"err": "why\nERR_NGROK_9"}}, "no: why ERR_NGROK_9"),
        (400, {"msg": " ", "details": {"err": "why"}}, "why"),
        (400, {"msg": "no", "details": {"err": " "}}, "no"),
        (400, {"msg": 7, "details": ["why"]}, "no reason given"),
    ],
)
def test_a_failure_has_the_messages_of_the_agent_and_the_platform(status: int, body: Any, text: str) -> None:
    expected = f"{text} (the agent at http://127.0.0.1:4040, status {status})"
    assert str(agent.failure_of("POST", status, body, AGENT)) == expected


@pytest.mark.parametrize(
    ("method", "status", "failure", "reported"),
    [
        ("POST", 499, Refused, 0),
        ("POST", 404, Gone, 404),
        ("POST", 429, Transient, 429),
        ("DELETE", 503, Transient, 503),
        ("DELETE", 502, Lost, 0),
    ],
)
def test_a_status_of_the_agent_is_mapped_by_method(
    method: str, status: int, failure: type[Failure], reported: int
) -> None:
    found = agent.failure_of(method, status, None, AGENT)
    assert (type(found), found.status) == (failure, reported)


@pytest.mark.parametrize(("method", "failure"), [("GET", Refused), ("POST", Lost), ("DELETE", Lost)])
async def test_a_response_of_the_agent_that_is_not_json_is_refused(method: str, failure: type[Failure]) -> None:
    async with (
        wire(answer(b"<html>", content_type="text/html")) as local,
        agent.open_agent(local.base_url, read_only=False) as opened,
    ):
        assert opened is not None
        with pytest.raises(Failure, match="is not JSON; check that it is the address of an agent") as failed:
            await opened.send(method, "/api/tunnels", None if method == "GET" else {})
    assert type(failed.value) is failure


async def test_requests_to_an_agent_have_a_content_type_only_with_a_body() -> None:
    answers = (answer({"tunnels": [{"name": "x"}]}), answer(b" "), answer({"name": "x"}, 201))
    async with wire(*answers) as local, agent.open_agent(local.base_url, read_only=False) as opened:
        assert opened is not None
        assert await opened.list("/api/tunnels", "tunnels") == [{"name": "x"}]
        assert await opened.send("DELETE", "/api/tunnels/x") is None
        assert await opened.send("POST", "/api/tunnels", {"name": "ü"}) == {"name": "x"}
        with pytest.raises(Refused, match="must not send PATCH /api/tunnels/x"):
            await opened.send("PATCH", "/api/tunnels/x", {})
    assert [(request.method, request.body) for request in local.requests] == [
        ("GET", b""),
        ("DELETE", b""),
        ("POST", '{"name":"ü"}'.encode()),
    ]
    assert [request.headers.get("content-type") for request in local.requests] == [None, None, "application/json"]


async def test_no_agent_is_opened_without_an_address() -> None:
    async with agent.open_agent(None, read_only=False) as opened:
        assert opened is None
    async with wire(answer({"name": "x"})) as platform, open_platform(platform.account()) as client:
        assert await client.get("/api/tunnels/x") == {"name": "x"}  # like any other path
