"""A transport of httpx in place of the network: what it is asked for, and what its errors mean."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator

import httpx
import pytest

from reconciler.api import httpx_transport
from reconciler.api.exchange import NoResponse, open_connection
from reconciler.api.httpx_transport import HttpxTransport
from reconciler.api.origin import Origin
from reconciler.api.transport import Broken, Request
from tests.api.test_response_reader import Recorder

ORIGIN = Origin.parse("https://api.example.com")


class Breaking(httpx.AsyncBaseTransport):
    """A transport that fails, or whose response breaks off."""

    def __init__(self, failure: Exception, *pieces: bytes) -> None:
        self._failure, self._pieces = failure, pieces
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if not self._pieces:
            raise self._failure
        return httpx.Response(201, headers=[("X", "a"), ("x", "b")], content=self._iterate())

    async def _iterate(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        raise self._failure


@pytest.mark.parametrize(
    ("failure", "sent"),
    [
        (httpx.ConnectError("x"), False),
        (httpx.UnsupportedProtocol("x"), False),
        (httpx.ProxyError("x"), False),
        (httpx.ConnectTimeout("x"), False),
        (httpx.ReadError("x"), True),
        (httpx.WriteError("x"), True),
        (httpx.ReadTimeout("x"), True),
        (httpx.RemoteProtocolError("x"), True),
        (OSError("x"), True),
        (RuntimeError("x"), True),
    ],
)
async def test_an_unknown_error_counts_as_one_after_sending(failure: Exception, sent: bool) -> None:
    """A create that may have been sent is searched for, and not repeated."""
    async with open_connection(ORIGIN, seconds=5, transport=Breaking(failure)) as connection:
        with pytest.raises(NoResponse) as failed:
            await connection.send("POST", f"{ORIGIN}/x", {}, largest=9)
    assert failed.value.sent is sent


def test_a_connection_that_broke_after_sending_is_known_by_its_cause() -> None:
    wrapped = httpx.ConnectError("as libraries report a connection that broke after sending")
    wrapped.__cause__ = ConnectionResetError(errno.ECONNRESET, "reset")
    assert httpx_transport.explain(wrapped).sent is True
    assert httpx_transport.explain(wrapped).why == "connection reset by peer"


async def test_a_connection_that_is_not_opened_in_time_has_sent_nothing() -> None:
    request = Request("POST", f"{ORIGIN}/x", {}, b"")
    async with HttpxTransport(Breaking(httpx.ConnectTimeout("x")), 0.5) as transport:
        with pytest.raises(Broken, match=r"no connection within 0.5 s") as broken:
            await transport.exchange(request, Recorder())
    assert broken.value.sent is False


async def test_a_request_and_its_response_are_passed_on() -> None:
    given = Breaking(httpx.ReadError("odd"), b"{", b"}")
    recorder = Recorder()
    async with HttpxTransport(given, None) as transport:
        with pytest.raises(Broken) as broken:
            await transport.exchange(Request("PUT", f"{ORIGIN}/x?y=%20", {"X-Mark": "1"}, b"[]"), recorder)
    assert (recorder.status, recorder.headers.get("x"), recorder.body) == (201, "a, b", b"{}")
    assert (broken.value.why, broken.value.sent) == ("odd", True)
    (request,) = given.requests
    assert (request.method, str(request.url), request.headers["x-mark"], request.content) == (
        "PUT",
        f"{ORIGIN}/x?y=%20",
        "1",
        b"[]",
    )
