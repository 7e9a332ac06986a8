"""One request and its response: limits of time and size, over a scripted transport and over sockets."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any, Self

import pytest

from reconciler.api.errors import Unreachable
from reconciler.api.exchange import NoResponse, Response, ask, open_connection
from reconciler.api.headers import Headers
from reconciler.api.origin import Origin
from reconciler.api.response_reader import Receiver
from reconciler.api.transport import Broken, Request
from reconciler.engine.ports import Failure, Lost, Refused, Transient
from tests.api.certificates import server_context
from tests.api.wire import CUT, Serve, answer, listen, wire

ORIGIN = Origin.parse("https://api.example.com")


class Scripted:
    """A transport that returns chunks, or raises."""

    def __init__(self, *chunks: bytes | Exception, opens: bool = True) -> None:
        self._chunks, self._opens = chunks, opens
        self.read = 0
        self.closed = 0

    async def exchange(self, request: Request, receiver: Receiver) -> None:
        if not self._opens:
            raise Broken("name not known", sent=False)
        if not receiver.begin(200, Headers()):
            return
        for chunk in self._chunks:
            if isinstance(chunk, Exception):
                raise chunk
            self.read += 1
            receiver.feed(chunk)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed += 1


async def send(scripted: Scripted, largest: int, **more: Any) -> Response:
    async with open_connection(ORIGIN, seconds=5, transport=scripted, **more) as connection:
        return await connection.send("POST", f"{ORIGIN}/x", {}, b"", largest=largest)


async def test_a_body_above_the_size_limit_is_refused() -> None:
    assert (await send(Scripted(b"12", b"34"), 4)).content == b"1234"
    with pytest.raises(NoResponse) as failed:
        await send(Scripted(b"12", b"345", b"6"), 4)
    assert str(failed.value) == "the response of https://api.example.com is larger than 0 MB"
    assert (failed.value.sent, failed.value.lasting) == (True, True)


async def test_a_body_is_read_up_to_the_size_limit() -> None:
    scripted = Scripted(b"12", b"345", b"6")
    with pytest.raises(NoResponse, match="larger than 0 MB"):
        await send(scripted, 4)
    assert (scripted.read, scripted.closed) == (2, 1)
    scripted = Scripted(b"12")
    assert ((await send(scripted, 0)).content, scripted.read, scripted.closed) == (b"", 0, 1)


async def test_an_error_names_the_peer_and_the_connection_is_closed() -> None:
    scripted = Scripted(b"12", ConnectionResetError(errno.ECONNRESET, "x"))
    with pytest.raises(NoResponse) as failed:
        await send(scripted, 9, peer="Vault at here")
    assert str(failed.value.as_failure("POST")) == "lost the connection to Vault at here: connection reset by peer"
    assert (failed.value.sent, failed.value.lasting, scripted.closed) == (True, False, 1)
    with pytest.raises(NoResponse) as failed:
        await send(Scripted(opens=False), 9)
    assert str(failed.value.as_failure("POST")) == "cannot reach https://api.example.com: name not known"
    assert failed.value.sent is False


@pytest.mark.parametrize("failure", [OSError("x"), RuntimeError("x"), ConnectionResetError(errno.ECONNRESET, "x")])
async def test_an_unknown_error_counts_as_one_after_sending(failure: Exception) -> None:
    """A create that may have been sent is searched for, and not repeated."""
    with pytest.raises(NoResponse) as failed:
        await send(Scripted(failure), 9)
    assert failed.value.sent is True


@pytest.mark.parametrize(("status", "success"), [(199, False), (200, True), (299, True), (300, False)])
def test_only_a_2xx_is_success(status: int, success: bool) -> None:
    assert Response(status, Headers(), b"").is_success is success


@pytest.mark.parametrize(
    ("method", "sent", "lasting", "kind"),
    [
        ("POST", True, False, Lost),
        ("POST", True, True, Lost),
        ("DELETE", True, False, Lost),
        ("GET", True, False, Transient),
        ("GET", True, True, Refused),
        ("POST", False, False, Unreachable),
        ("GET", False, False, Unreachable),
        ("POST", False, True, Refused),
    ],
)
def test_the_outcome_of_a_change_is_unknown_only_if_it_may_have_been_sent(
    method: str, sent: bool, lasting: bool, kind: type[Failure]
) -> None:
    failure = NoResponse("what", "why canary", sent=sent, lasting=lasting).as_failure(
        method, lambda text: text.replace("canary", "(key)")
    )
    assert (type(failure), str(failure)) == (kind, "what: why (key)")
    assert str(NoResponse("what", sent=sent).as_failure(method)) == "what"
    assert str(NoResponse("what", "why canary", sent=sent)) == "what"


# --- ask --------------------------------------------------------------------------------------------------------------


SECRET = "/hook/canaryOfTheAddress"


async def ask_in_thread(base_url: str, *, largest: int = 2**20, seconds: float = 10.0) -> Response:
    origin = Origin.parse(base_url)
    return await asyncio.to_thread(
        ask, origin, "POST", f"{base_url}{SECRET}?x=%2F", {"X-Mark": "1"}, b"{}", seconds=seconds, largest=largest
    )


async def ask_and_fail(base_url: str, *, largest: int = 2**20, seconds: float = 10.0) -> Failure:
    with pytest.raises(Failure) as failed:
        await ask_in_thread(base_url, largest=largest, seconds=seconds)
    assert "canary" not in str(failed.value)
    return failed.value


async def test_a_response_is_returned_whatever_its_status() -> None:
    async with wire(answer({"x": 1}, 302, Location="http://127.0.0.1:1/")) as server:
        response = await ask_in_thread(server.base_url)
    assert (response.status, response.is_success, response.content) == (302, False, b'{"x": 1}')
    (request,) = server.requests
    assert (request.method, request.body, request.headers["x-mark"]) == ("POST", b"{}", "1")


def send_drops(head: bytes, drop: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + head)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.05)

    return serve


@pytest.mark.parametrize(
    "serve",
    [send_drops(b"Content-Length: 100000\r\n\r\n", b" "), send_drops(b"", b"x: y\r\n")],
    ids=["body", "headers"],
)
async def test_a_response_that_never_ends_is_ended_by_the_timeout(serve: Serve) -> None:
    async with listen(serve) as port:
        failure = await ask_and_fail(f"http://127.0.0.1:{port}", seconds=0.4)
    assert isinstance(failure, Transient)
    assert str(failure) == f"no response from http://127.0.0.1:{port} within 0.4 s"


async def send_endlessly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 2**16 + b"\r\n")
        await writer.drain()


async def test_an_endless_response_is_ended_at_the_size_limit() -> None:
    async with listen(send_endlessly) as port:
        failure = await ask_and_fail(f"http://127.0.0.1:{port}", largest=2**20)
    assert isinstance(failure, Refused)
    assert str(failure) == f"the response of http://127.0.0.1:{port} is larger than 1 MB"


async def test_a_body_is_not_read_if_no_content_is_requested() -> None:
    async with listen(send_endlessly) as port:
        response = await ask_in_thread(f"http://127.0.0.1:{port}", largest=0)
    assert (response.status, response.content) == (200, b"")


@pytest.mark.parametrize("content", [CUT, b"not http at all\r\n\r\n" + CUT])
async def test_a_lost_connection_is_reported_without_the_path(content: bytes) -> None:
    async with wire(content) as server:
        failure = await ask_and_fail(server.base_url)
    assert isinstance(failure, Transient)
    assert str(failure).startswith(f"lost the connection to {server.base_url}: ")


async def test_an_untrusted_certificate_is_reported(tmp_path: Path) -> None:
    async with wire(answer({}), tls=server_context(tmp_path, issuer="localhost")) as server:
        failure = await ask_and_fail(f"https://localhost:{server.port}")
    assert isinstance(failure, Refused)
    assert str(failure) == (
        f"cannot reach https://localhost:{server.port}: its certificate is not trusted: self-signed certificate; "
        "set SSL_CERT_FILE to a file with the certificate of its authority"
    )


async def test_unreadable_certificates_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/absent.pem")
    assert "SSL_CERT_FILE or SSL_CERT_DIR cannot be read" in str(await ask_and_fail("https://localhost:1"))
