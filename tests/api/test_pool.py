"""Connections over real sockets: when they are used again, what counts as sent, TLS and proxies."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.api import pool as pools
from reconciler.api.origin import Origin
from reconciler.api.pool import Pool, open_pool, target_of
from reconciler.api.proxies import Proxy
from reconciler.api.transport import Broken, Request
from reconciler.engine.ports import Refused
from tests.api.certificates import authority, server_context
from tests.api.test_proxies import tunnel
from tests.api.test_response_reader import Recorder
from tests.api.wire import CUT, RESET, Wire, answer, listen, wire

OK = answer({})


def pool_to(port: int, connections: int = 1, **more: Any) -> Pool:
    return Pool(Origin("http", "127.0.0.1", port), connections, more.pop("connecting", None), **more)


async def send(pool: Pool, method: str = "GET", target: str = "/x", content: bytes = b"", **headers: str) -> Recorder:
    recorder = Recorder()
    address = f"http://127.0.0.1:1{target}"
    await asyncio.wait_for(pool.exchange(Request(method, address, headers, content), recorder), 10)
    return recorder


async def send_and_fail(pool: Pool, method: str = "POST", **headers: Any) -> Broken:
    with pytest.raises(Broken) as broken:
        await send(pool, method, **headers)
    return broken.value


# --- requests ---------------------------------------------------------------------------------------------------------


async def test_a_request_is_written_as_http() -> None:
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            received.append(await reader.read(65_536))
            writer.write(OK)

    async with listen(serve) as port, pool_to(port) as pool:
        await send(pool, "GET", "/x?y=%20", X_Mark="1")
        await send(pool, "POST", "/x", b"{}")
        await send(pool, "DELETE", "/x")
    host = f"Host: 127.0.0.1:{port}\r\n".encode()
    assert received == [
        b"GET /x?y=%20 HTTP/1.1\r\n" + host + b"X_Mark: 1\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + host + b"Content-Length: 2\r\n\r\n{}",
        b"DELETE /x HTTP/1.1\r\n" + host + b"Content-Length: 0\r\n\r\n",
    ]


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\n", "a\0", "a\tb", "ü", "\x7f"])
async def test_a_header_that_could_be_read_as_another_is_not_sent_and_not_quoted(value: str) -> None:
    async with wire(OK) as server, pool_to(server.port) as pool:
        broken = await send_and_fail(pool, Authorization=f"canary{value}")
        assert (broken.sent, broken.lasting, server.connections) == (False, True, 0)
        assert str(broken) == "the header Authorization must not contain characters other than printable ASCII"


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("https://x", "/"),
        ("https://x/", "/"),
        ("https://x/a/b?c=d&e=%2F", "/a/b?c=d&e=%2F"),
        ("https://x?c=d", "/?c=d"),
        ("https://x/a#b", "/a"),
        ("https://x/ä?ö={}", "/%C3%A4?%C3%B6={}"),
        ('https://x/{a}"`?"<>', "/%7Ba%7D%22%60?%22%3C%3E"),
        ("https://x/a b\r\nX: y", "/a%20bX:%20y"),
        ("https://x/%zz%2", "/%zz%2"),
        ("https://x/@:!$&'()*+,;=[]|^\\~", "/@:!$&'()*+,;=[]|^\\~"),
    ],
)
def test_the_target_of_an_address_is_one_word_of_ascii(address: str, target: str) -> None:
    assert target_of(address) == target


# --- connections ------------------------------------------------------------------------------------------------------


async def test_a_response_in_many_packets_is_read() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65_536):
            for place in range(len(OK)):
                writer.write(OK[place : place + 1])
                await asyncio.sleep(0)

    async with listen(serve) as port, pool_to(port) as pool:
        assert [(await send(pool)).body for _ in range(2)] == [b"{}", b"{}"]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - of objects that have no event for it
            await asyncio.sleep(0)


async def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    async with wire(OK + CUT, OK) as server, pool_to(server.port) as pool:
        await send(pool)
        await until(lambda: not any(line.is_open for line in pool._idle))
        await send(pool, "POST")
    assert [request.connection for request in server.requests] == [1, 2]


async def test_bytes_without_a_request_are_not_taken_for_the_next_response() -> None:
    async with wire(OK + answer({"id": "unrequested"}), answer({"id": "x"})) as server, pool_to(server.port) as pool:
        await send(pool)
        assert (await send(pool)).body == b'{"id": "x"}'
    assert [request.connection for request in server.requests] == [1, 2]

    async def serve_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(OK)
        await writer.drain()
        await late.wait()
        writer.write(answer({"id": "unrequested"}))

    late = asyncio.Event()
    async with listen(serve_late) as port, pool_to(port) as pool:
        await send(pool)
        (line,) = pool._idle
        late.set()
        await until(lambda: not line.is_open)
        assert pool._take_idle() is None


async def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with wire(OK) as server, pool_to(server.port) as pool:
        await send(pool)
        monkeypatch.setattr(pools, "_IDLE", 0.0)
        await send(pool)
    assert [request.connection for request in server.requests] == [1, 2]


@pytest.mark.parametrize(
    ("first", "reused"),
    [
        (OK, True),
        (answer({}, Connection="close"), False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\n\r\n{}" + CUT, False),
    ],
)
async def test_a_connection_is_used_again_if_the_response_allows_it(first: bytes, reused: bool) -> None:
    async with wire(first, OK) as server, pool_to(server.port) as pool:
        assert (await send(pool)).body == b"{}"
        await send(pool)
    assert [request.connection for request in server.requests] == [1, 1 if reused else 2]


async def test_no_more_connections_than_allowed_are_open_at_once() -> None:
    waiting: list[asyncio.Event] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65_536):
            waiting.append(asyncio.Event())
            await waiting[-1].wait()
            writer.write(OK)

    async with listen(serve) as port, pool_to(port, 2) as pool:
        sending = [asyncio.ensure_future(send(pool)) for _ in range(4)]
        await until(lambda: len(waiting) == 2)
        await asyncio.sleep(0.05)
        assert len(waiting) == 2
        waiting[0].set()
        await until(lambda: len(waiting) == 3)
        waiting[1].set()
        await until(lambda: len(waiting) == 4)
        for event in waiting:
            event.set()
        await asyncio.gather(*sending)
        assert len(pool._opened) == 2


async def test_a_request_that_is_cancelled_closes_its_connection() -> None:
    """Its response must not be taken for that of the next request."""
    asked = asyncio.Event()

    def never(_: Wire) -> None:
        asked.set()

    async with wire(never, answer({"id": "x"})) as server, pool_to(server.port) as pool:
        sending = asyncio.ensure_future(send(pool, "POST"))
        await asked.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert (await send(pool)).body == b'{"id": "x"}'
    assert [request.connection for request in server.requests] == [1, 2]


async def test_a_response_before_the_end_of_the_request_closes_the_connection() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(10)
        writer.write(answer({}, 413))
        await asyncio.Event().wait()

    async with listen(serve) as port, pool_to(port) as pool:
        recorder = await send(pool, "POST", content=b" " * 50_000_000)
        assert (recorder.status, recorder.body, pool._idle) == (413, b"{}", [])


async def test_the_end_of_the_pool_closes_its_connections() -> None:
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65_536):
            writer.write(OK)
        closed.set()

    async with listen(serve) as port:
        async with pool_to(port) as pool:
            await send(pool)
        assert all(line.closed.done() for line in pool._opened)
        await asyncio.wait_for(closed.wait(), 10)
    gc.collect()  # which would warn of an open socket


# --- what counts as sent ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_used", [False, True], ids=["new", "used before"])
@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (CUT, "it closed the connection"),
        (RESET, "connection reset by peer"),
        (OK[:20] + CUT, "its response ends in the middle"),
        (OK[:-1] + CUT, "its response ends in the middle"),
        (b"nonsense", "its response is not HTTP/1.1"),
        (
            OK.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n"),
            "its response has an ambiguous length",
        ),
    ],
)
async def test_a_request_on_an_open_connection_counts_as_sent(is_used: bool, broken: bytes, why: str) -> None:
    async with wire(*([OK] if is_used else []), broken) as server, pool_to(server.port) as pool:
        if is_used:
            await send(pool)
        failed = await send_and_fail(pool)
        assert (failed.why, failed.sent, failed.lasting) == (why, True, False)
        assert len(server.requests) == 1 + is_used
        assert pool._idle == []


async def test_a_request_without_a_connection_is_not_sent() -> None:
    async with listen(lambda *_: asyncio.sleep(0)) as port:
        pass
    async with pool_to(port) as pool:
        failed = await send_and_fail(pool)
        assert (failed.why, failed.sent) == ("connection refused", False)


async def test_nothing_is_sent_on_a_connection_that_was_lost_before() -> None:
    async with wire(OK) as server, pool_to(server.port) as pool:
        await send(pool)
        (line,) = pool._idle
        line.abort()
        with pytest.raises(Broken) as broken:
            await line.exchange(b"", None)  # type: ignore[arg-type]
        assert (broken.value.why, broken.value.sent) == ("it closed the connection", False)


async def never_respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def test_a_handshake_without_an_end_is_no_connection() -> None:
    async with listen(never_respond) as port:
        pool = Pool(Origin("https", "127.0.0.1", port), 1, 0.1, ssl.create_default_context())
        async with pool:
            failed = await send_and_fail(pool)
    assert (failed.why, failed.sent, failed.lasting) == ("no connection within 0.1 s", False, False)


async def test_a_failure_of_the_receiver_closes_the_connection() -> None:
    class Full(Recorder):
        def feed(self, piece: bytes) -> None:
            raise MemoryError

    async with wire(OK) as server, pool_to(server.port) as pool:
        with pytest.raises(MemoryError):
            await pool.exchange(Request("GET", "http://x/", {}, b""), Full())
        assert pool._idle == []
        await send(pool)


# --- TLS and proxies --------------------------------------------------------------------------------------------------


async def test_a_connection_with_tls_is_used_again_until_the_server_closes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority(tmp_path)))
    async with (
        wire(OK, OK + CUT, OK, OK[:-1] + CUT, tls=server_context(tmp_path)) as server,
        open_pool(Origin("https", "localhost", server.port), 1, None) as pool,
    ):
        await send(pool)
        await send(pool)
        await until(lambda: not any(line.is_open for line in pool._idle))
        await send(pool)
        assert (await send_and_fail(pool)).sent is True
    assert [request.connection for request in server.requests] == [1, 1, 2, 2]


def test_the_name_of_a_certificate_has_no_final_dot() -> None:
    assert pools._name_in_tls(Origin.parse("https://api.example.com.")) == "api.example.com"


def test_certificates_are_verified_and_shared_until_the_variables_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    usual = pools._load_certificates()
    assert (usual.verify_mode, usual.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert usual.minimum_version >= ssl.TLSVersion.TLSv1_2 or usual.minimum_version == ssl.TLSVersion.MINIMUM_SUPPORTED
    assert usual.cert_store_stats()["x509_ca"] > 50
    assert pools._load_certificates() is usual
    monkeypatch.setenv("SSL_CERT_FILE", str(authority(tmp_path)))
    assert pools._load_certificates().cert_store_stats()["x509_ca"] == 1
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert pools._load_certificates().cert_store_stats()["x509_ca"] == 0


def test_an_unreadable_certificate_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent"))
    with pytest.raises(Refused, match="cannot be read: no such file"):
        open_pool(Origin.parse("https://localhost"), 1, None)
    open_pool(Origin.parse("http://localhost"), 1, None)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_the_origin_is_used_with_tls_through_a_proxy(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority(tmp_path)))
    tls_of_proxy = server_context(tmp_path) if scheme == "https" else None
    async with (
        wire(OK, tls=server_context(tmp_path, "platform.example")) as server,
        tunnel(server.port, tls=tls_of_proxy) as (proxy, port),
    ):
        through = Proxy(Origin(scheme, "localhost", port), {})
        origin = Origin.parse("https://platform.example")
        async with Pool(origin, 1, None, pools._load_certificates(), through) as pool:
            assert [(await send(pool, "POST")).status for _ in range(2)] == [200, 200]
    assert len(server.requests) == 2
    assert proxy.requests == ["CONNECT platform.example:443 HTTP/1.1"]


async def test_the_certificate_of_the_origin_is_verified_through_a_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority(tmp_path)))
    async with (
        wire(OK, tls=server_context(tmp_path, "platform.example")) as server,
        tunnel(server.port) as (_, port),
    ):
        through = Proxy(Origin("http", "localhost", port), {})
        async with Pool(Origin.parse("https://other.example"), 1, None, pools._load_certificates(), through) as pool:
            failed = await send_and_fail(pool)
    assert "certificate is not valid for 'other.example'" in failed.why
    assert (failed.sent, failed.lasting, server.requests) == (False, True, [])


async def test_the_certificate_of_a_proxy_is_verified(tmp_path: Path) -> None:
    async with tunnel(tls=server_context(tmp_path)) as (proxy, port):
        through = Proxy(Origin("https", "localhost", port), {})
        async with Pool(Origin.parse("https://x.example"), 1, None, ssl.create_default_context(), through) as pool:
            failed = await send_and_fail(pool)
    assert failed.why.startswith(f"the proxy localhost:{port}: its certificate is not trusted: ")
    assert (failed.sent, failed.lasting, proxy.requests) == (False, True, [])


async def test_the_connection_to_a_proxy_that_refuses_is_closed() -> None:
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
        assert await reader.read() == b""
        closed.set()

    async with listen(serve) as port:
        through = Proxy(Origin("http", "localhost", port), {})
        async with Pool(Origin.parse("https://x.example"), 1, None, ssl.create_default_context(), through) as pool:
            assert (await send_and_fail(pool)).lasting
            await asyncio.wait_for(closed.wait(), 10)


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (b"", "the proxy 127.0.0.1:{port}: it closed the connection"),
        (b"HTTP/1.1 200 ", "the proxy 127.0.0.1:{port}: its response ends in the middle"),
        (b"nonsense\r\n\r\n", "the proxy 127.0.0.1:{port}: its response is not HTTP/1.1"),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "the proxy returned 302 Found"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "it closed the connection"),
        (b"HTTP/1.1 200 OK\r\n\r\nspoken too soon", "it closed the connection"),
    ],
)
async def test_a_proxy_that_opens_no_tunnel_has_sent_nothing(response: bytes, why: str) -> None:
    async with tunnel(refusal=response or CUT) as (proxy, port):
        through = Proxy(Origin("http", "127.0.0.1", port), {})
        pool = Pool(Origin.parse("https://platform.example"), 1, None, ssl.create_default_context(), through)
        async with pool:
            failed = await send_and_fail(pool)
    assert (failed.why, failed.sent) == (why.format(port=port), False)
    assert len(proxy.requests) == 1
