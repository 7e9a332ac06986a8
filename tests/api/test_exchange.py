"""One request and its response over any transport, and what the errors of the real one mean."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import httpx
import pytest

from reconciler.api import transport
from reconciler.api.errors import Unreachable
from reconciler.api.exchange import NoResponse, Response, open_connection
from reconciler.api.origin import Origin
from reconciler.engine.ports import Failure, Lost, Refused, Transient

ORIGIN = Origin.parse("https://api.example.com")
WHERE: Any = SimpleNamespace(host="proxy.example", port=3128, ssl=None)


class Scripted(httpx.AsyncBaseTransport):
    """A transport that answers with chunks, or raises."""

    def __init__(self, *chunks: bytes | Exception) -> None:
        self._chunks = chunks
        self.read = 0
        self.closed = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=self._iterate())

    async def _iterate(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, Exception):
                raise chunk
            self.read += 1
            yield chunk

    async def aclose(self) -> None:
        self.closed += 1


async def sent(through: Scripted, largest: int, **more: Any) -> Response:
    async with open_connection(ORIGIN, seconds=5, transport=through, **more) as connection:
        return await connection.send("POST", f"{ORIGIN}/x", httpx.Headers(), b"", largest=largest)


async def test_a_body_may_be_as_large_as_allowed_and_no_larger() -> None:
    assert (await sent(Scripted(b"12", b"34"), 4)).content == b"1234"
    with pytest.raises(NoResponse) as failed:
        await sent(Scripted(b"12", b"345", b"6"), 4)
    assert str(failed.value) == "the response of https://api.example.com is larger than 0 MB"
    assert (failed.value.sent, failed.value.lasting) == (True, True)


async def test_a_body_is_read_no_further_than_allowed() -> None:
    through = Scripted(b"12", b"345", b"6")
    with pytest.raises(NoResponse, match="larger than 0 MB"):
        await sent(through, 4)
    assert (through.read, through.closed) == (2, 1)
    through = Scripted(b"12")
    assert ((await sent(through, 0)).content, through.read, through.closed) == (b"", 0, 1)


async def test_an_error_names_the_peer_and_the_connection_is_closed() -> None:
    through = Scripted(b"12", ConnectionResetError(errno.ECONNRESET, "x"))
    with pytest.raises(NoResponse) as failed:
        await sent(through, 9, peer="Vault at here")
    assert str(failed.value.as_failure("POST")) == "lost the connection to Vault at here: connection reset by peer"
    assert (failed.value.sent, failed.value.lasting, through.closed) == (True, False, 1)
    with pytest.raises(NoResponse) as failed:
        await sent(Scripted(aiohttp.ClientConnectorError(WHERE, OSError(errno.ECONNREFUSED, "x"))), 9)
    assert str(failed.value.as_failure("POST")) == "cannot reach https://api.example.com: connection refused"
    assert failed.value.sent is False


@pytest.mark.parametrize(("status", "success"), [(199, False), (200, True), (299, True), (300, False)])
def test_a_2xx_is_success(status: int, success: bool) -> None:
    assert Response(status, httpx.Headers(), b"").is_success is success


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
def test_a_missing_response_leaves_a_change_in_doubt_if_it_may_have_been_sent(
    method: str, sent: bool, lasting: bool, kind: type[Failure]
) -> None:
    failure = NoResponse("what", "why canary", sent=sent, lasting=lasting).as_failure(
        method, lambda text: text.replace("canary", "(key)")
    )
    assert (type(failure), str(failure)) == (kind, "what: why (key)")
    assert str(NoResponse("what", sent=sent).as_failure(method)) == "what"
    assert str(NoResponse("what", "why canary", sent=sent)) == "what"


@pytest.mark.parametrize(
    ("status", "why", "lasting"),
    [
        (400, "the proxy returned 400 Bad Request", True),
        (407, "the proxy returned 407 Proxy Authentication Required; check the user and password in HTTPS_PROXY", True),
        (408, "the proxy returned 408 Request Timeout", False),
        (429, "the proxy returned 429 Too Many Requests", False),
        (499, "the proxy returned 499", True),
        (500, "the proxy returned 500 Internal Server Error", False),
        (502, "the proxy returned 502 Bad Gateway", False),
    ],
)
def test_a_proxy_that_opens_no_connection_is_told_with_its_status(status: int, why: str, lasting: bool) -> None:
    failure = aiohttp.ClientHttpProxyError(WHERE, (), status=status, message="canary")
    assert transport.explain(failure, 10) == transport.Broken(why, sent=False, lasting=lasting)


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (aiohttp.ConnectionTimeoutError("x"), "no connection within 10 s"),
        (aiohttp.ClientConnectorError(WHERE, OSError(errno.EHOSTUNREACH, "x")), "no route to host"),
        (aiohttp.ClientConnectorError(WHERE, socket.gaierror(-2, "Name not known")), "name not known"),
        (aiohttp.ClientConnectorError(WHERE, OSError("x")), "it closed the connection"),
        (
            aiohttp.ClientProxyConnectionError(WHERE, OSError(errno.ECONNREFUSED, "x")),
            "the proxy proxy.example:3128: connection refused",
        ),
        (aiohttp.ClientOSError(errno.EPIPE, "x"), os.strerror(errno.EPIPE).lower()),
        (OSError(0, "odd"), "[Errno 0] odd"),
        (OSError("odd"), "odd"),
        (aiohttp.ClientResponseError(WHERE, (), message="bad\nchunk"), "bad chunk"),
        (aiohttp.ClientError("Cannot connect to host api.example.com:443 ssl:default [it is odd]"), "[it is odd]"),
        (RuntimeError("x" * 300), "x" * 199 + "…"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_why_a_connection_failed_is_told_in_the_words_of_the_machine(failure: Exception, why: str) -> None:
    assert transport.explain(failure, 10).why == why
    assert transport.explain(failure, 10).lasting is False


@pytest.mark.parametrize(
    ("reason", "why", "lasting"),
    [
        ("WRONG_VERSION_NUMBER", "it does not speak TLS", True),
        ("HTTP_REQUEST", "it does not speak TLS", True),
        ("TLSV1_ALERT_INTERNAL_ERROR", "TLS handshake failed: tlsv1 alert internal error", False),
        (None, "TLS handshake failed: connection closed", False),
    ],
)
def test_a_handshake_that_fails_has_sent_nothing(reason: str | None, why: str, lasting: bool) -> None:
    error = ssl.SSLError(1, "x")
    error.reason = reason  # type: ignore[assignment]
    found = transport.explain(aiohttp.ClientConnectorSSLError(WHERE, error), 10)
    assert found == transport.Broken(why, sent=False, lasting=lasting)


@pytest.mark.parametrize(
    ("code", "message", "why"),
    [
        (20, "unable to get local issuer certificate", "unable to get local issuer certificate; set SSL_CERT_FILE"),
        (10, "certificate has expired", "certificate has expired"),
        (62, "Hostname mismatch, certificate is not valid for 'x'.", "hostname mismatch, certificate is not valid"),
        (64, "IP address mismatch", "IP address mismatch"),
    ],
)
def test_a_certificate_that_is_not_trusted_is_lasting(code: int, message: str, why: str) -> None:
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_code, error.verify_message = code, message
    found = transport.explain(aiohttp.ClientConnectorCertificateError(WHERE, error), 10)
    assert (found.sent, found.lasting, "set SSL_CERT_FILE" in found.why) == (False, True, code == 20)
    assert found.why.startswith(f"its certificate is not trusted: {why}")
    assert not found.why.endswith(".")


def test_what_a_certificate_says_of_itself_is_shortened() -> None:
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_code, error.verify_message = 10, "x" * 300
    found = transport.explain(aiohttp.ClientConnectorCertificateError(WHERE, error), 10)
    assert found.why == f"its certificate is not trusted: {'x' * 199}…"
