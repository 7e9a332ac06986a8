"""Requests to applications in this process: what the application gets, and what a reset connection means."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from reconciler.api.transport import Broken, Request
from reconciler.testing.transport import AppTransport, cut
from tests.api.test_response_reader import Recorder

ADDRESS = "https://app:8443/a%2Fb c/ü?after=x&q=1 2"


class App:
    """Responds with the pieces. `resets`: and then resets the connection."""

    def __init__(self, *pieces: bytes, resets: bool = False) -> None:
        self._pieces, self._resets = pieces, resets
        self.requests: list[tuple[Any, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests.append((scope, (await receive())["body"]))
        if self._resets:
            cut(scope)
        if self._pieces:
            headers = [(b"X-Mark", b"a"), (b"x-mark", b"\xe9")]
            await send({"type": "http.response.start", "status": 201, "headers": headers})
        for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece})


async def exchange(app: App, address: str = ADDRESS, *, takes_body: bool = True) -> Recorder:
    recorder = Recorder(takes_body=takes_body)
    request = Request("PUT", address, {"Authorization": "Bearer x"}, b"{}")
    async with AppTransport({"app": app}) as transport:
        await transport.exchange(request, recorder)
    return recorder


async def test_the_application_gets_the_request_as_over_a_socket() -> None:
    app = App(b"")
    await exchange(app)
    ((scope, body),) = app.requests
    assert body == b"{}"
    assert (scope["method"], scope["server"], scope["headers"]) == (
        "PUT",
        ("app", 8443),
        [(b"authorization", b"Bearer x")],
    )
    assert (scope["raw_path"], scope["path"]) == (b"/a%2Fb%20c/%C3%BC", "/a/b c/ü")
    assert scope["query_string"] == b"after=x&q=1%202"


async def test_a_client_of_httpx_sends_the_same_request() -> None:
    ours, others = App(b"ok"), App(b"ok")
    await exchange(ours)
    async with httpx.AsyncClient(transport=AppTransport({"app": others})) as client:
        response = await client.put(ADDRESS, content=b"{}", headers={"Authorization": "Bearer x"})
    assert (response.status_code, response.text, response.headers["x-mark"]) == (201, "ok", "a, é")
    ((one, body),), ((other, same),) = ours.requests, others.requests
    assert body == same
    assert {name for name in one if one[name] != other[name]} == {"headers"}
    assert {*one["headers"]} < {*other["headers"]}


async def test_the_response_is_passed_on() -> None:
    recorder = await exchange(App(b"on", b"e"))
    assert (recorder.status, recorder.headers.get("X-Mark"), recorder.body) == (201, "a, é", b"one")
    assert (await exchange(App(b"one"), takes_body=False)).body == b""


async def test_a_reset_connection_has_sent_the_request() -> None:
    with pytest.raises(Broken, match="connection reset by peer") as broken:
        await exchange(App(resets=True))
    assert broken.value.sent is True
    recorder = Recorder()
    async with AppTransport({"app": App(b"half", resets=True)}) as transport:
        with pytest.raises(Broken, match="connection reset by peer") as broken:
            await transport.exchange(Request("GET", ADDRESS, {}, b""), recorder)
    assert (broken.value.sent, recorder.status, recorder.body) == (True, 201, b"half")


async def test_a_client_of_httpx_gets_an_error_for_a_reset_connection() -> None:
    for app in (App(resets=True), App(b"half", resets=True)):
        async with httpx.AsyncClient(transport=AppTransport({"app": app})) as client:
            with pytest.raises(httpx.ReadError, match="connection reset by peer"):
                await client.get(ADDRESS)


async def test_nothing_is_sent_to_a_host_without_an_application() -> None:
    with pytest.raises(Broken, match="no application serves other") as broken:
        await exchange(App(), "https://other/x")
    assert broken.value.sent is False
