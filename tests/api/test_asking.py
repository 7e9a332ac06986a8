"""One request to a code host or a webhook: how long it may take, how much it may say, and how its failures read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reconciler.api.exchange import Response, ask
from reconciler.api.origin import Origin
from reconciler.engine.ports import Failure, Refused, Transient
from tests.api.certificates import serving
from tests.api.wire import CUT, Serve, answer, listening, wire

SECRET = "/hook/canaryOfTheAddress"


async def asked(base_url: str, *, largest: int = 2**20, seconds: float = 10.0) -> Response:
    origin = Origin.parse(base_url)
    return await asyncio.to_thread(
        ask, origin, "POST", f"{base_url}{SECRET}?x=%2F", {"X-Mark": "1"}, b"{}", seconds=seconds, largest=largest
    )


async def failing(base_url: str, *, largest: int = 2**20, seconds: float = 10.0) -> Failure:
    with pytest.raises(Failure) as failed:
        await asked(base_url, largest=largest, seconds=seconds)
    assert "canary" not in str(failed.value)
    return failed.value


async def test_an_answer_is_what_was_answered_whatever_it_is() -> None:
    async with wire(answer({"x": 1}, 302, Location="http://127.0.0.1:1/")) as there:
        said = await asked(there.base_url)
    assert (said.status, said.is_success, said.content) == (302, False, b'{"x": 1}')
    (request,) = there.asked
    assert (request.method, request.body, request.headers["x-mark"]) == ("POST", b"{}", "1")


def dripping(head: bytes, drop: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + head)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.05)

    return serve


@pytest.mark.parametrize(
    "serve", [dripping(b"Content-Length: 100000\r\n\r\n", b" "), dripping(b"", b"x: y\r\n")], ids=["body", "headers"]
)
async def test_an_answer_that_never_ends_is_not_waited_for(serve: Serve) -> None:
    async with listening(serve) as port:
        failure = await failing(f"http://127.0.0.1:{port}", seconds=0.4)
    assert isinstance(failure, Transient)
    assert str(failure) == f"no response from http://127.0.0.1:{port} within 0.4 s"


async def pouring(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 2**16 + b"\r\n")
        await writer.drain()


async def test_an_answer_without_end_is_cut_off() -> None:
    async with listening(pouring) as port:
        failure = await failing(f"http://127.0.0.1:{port}", largest=2**20)
    assert isinstance(failure, Refused)
    assert str(failure) == f"the response of http://127.0.0.1:{port} is larger than 1 MB"


async def test_a_body_that_nobody_wants_is_not_read() -> None:
    async with listening(pouring) as port:
        said = await asked(f"http://127.0.0.1:{port}", largest=0)
    assert (said.status, said.content) == (200, b"")


@pytest.mark.parametrize("content", [CUT, b"not http at all\r\n\r\n" + CUT])
async def test_a_connection_that_breaks_is_told_without_the_address(content: bytes) -> None:
    async with wire(content) as there:
        failure = await failing(there.base_url)
    assert isinstance(failure, Transient)
    assert str(failure).startswith(f"lost the connection to {there.base_url}: ")


async def test_a_certificate_that_is_not_trusted_is_called_so(tmp_path: Path) -> None:
    async with wire(answer({}), tls=serving(tmp_path, issuer="localhost")) as there:
        failure = await failing(f"https://localhost:{there.port}")
    assert isinstance(failure, Refused)
    assert str(failure) == (
        f"cannot reach https://localhost:{there.port}: its certificate is not trusted: self-signed certificate; "
        "set SSL_CERT_FILE to a file with the certificate of its authority"
    )


async def test_certificates_that_cannot_be_read_are_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/absent.pem")
    assert "SSL_CERT_FILE or SSL_CERT_DIR cannot be read" in str(await failing("https://localhost:1"))
