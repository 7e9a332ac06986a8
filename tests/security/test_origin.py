"""The key is sent to the configured scheme, host and port only, however an address is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.api.client import Account
from reconciler.api.origin import Origin
from reconciler.api.platform import open_platform
from reconciler.api.pool import target_of
from reconciler.engine.ports import Failure, Refused
from reconciler.model.value import Secret
from reconciler.project.settings.connection import check_platform_url
from tests.api import wire
from tests.harness.engine import VirtualClock
from tests.harness.tiers import is_quick
from tests.security.addresses import fill_in, generate

KEY = "key-canary-8aL2x0Qv"
EACH = 5_500  # next pages, and as many redirects: with both, more than the ten thousand that are promised


def choose_number() -> int:
    """How many of each are tried."""
    return 1_000 if is_quick() else EACH


@dataclass
class Listener:
    """Sends the configured response, and records the heads of all requests."""

    answer: Callable[[str], bytes] = field(default=lambda head: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                self.heads.append(head)
                writer.write(self.answer(head))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def start_listeners(*listeners: Listener) -> AsyncIterator[None]:
    async with AsyncExitStack() as open_:
        for listener in listeners:
            listener.port = await open_.enter_async_context(wire.listen(listener.serve))
        yield


def answer(body: object, status: str = "200 OK", **headers: bytes) -> bytes:
    content = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}".encode(), b"Content-Length: %d" % len(content), b"Content-Type: application/json"]
    lines += [name.replace("_", "-").encode() + b": " + value for name, value in headers.items()]
    return b"\r\n".join(lines) + b"\r\n\r\n" + content


async def read_lists(
    spellings: Iterator[str], respond: Callable[[str], bytes], monkeypatch: pytest.MonkeyPatch
) -> tuple[Listener, Listener, int]:
    """Reads a list for each spelling. Returns the platform's listener, the other one, and the number of spellings."""
    own, other = Listener(), Listener()
    async with start_listeners(own, other):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{other.port}")
        count = 0
        account = Account(f"http://127.0.0.1:{own.port}", Secret(KEY, "test"))
        async with open_platform(account, clock=VirtualClock()) as platform:
            for spelt in spellings:
                count += 1
                address = fill_in(spelt, own.port, other.port)
                first = respond(address)
                own.answer = lambda head, first=first: first if "/edges/tls " in head else answer({"tls_edges": []})  # type: ignore[misc]
                try:
                    async for _ in platform.pages("/edges/tls", "tls_edges"):
                        pass
                except Failure:
                    pass
    return own, other, count


async def test_no_next_page_leads_to_another_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(address: str) -> bytes:
        return answer({"tls_edges": [{"id": "edgtls_1"}], "next_page_uri": address})

    own, other, count = await read_lists(generate(choose_number(), seed=1), page, monkeypatch)
    assert other.connections == 0
    assert len(own.heads) > count == choose_number()  # some of them are spellings of our own address, and are followed
    assert [head for head in own.heads if f"\r\nhost: 127.0.0.1:{own.port}\r\n" not in head.lower()] == []
    assert all(head.startswith(("GET /edges/tls ", "GET /")) and " HTTP/1.1\r\n" in head for head in own.heads)


async def test_no_redirect_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = ["301 Moved", "302 Found", "303 See Other", "307 Again", "308 For Good", "300 Choose", "201 Created"]

    def redirect(address: str) -> bytes:
        status = statuses[len(address) % len(statuses)]
        place = address.replace("\r", "").replace("\n", "").replace("\0", "").encode()
        return answer({}, status, Location=place, Refresh=b"0; url=" + place, Link=b"<" + place + b'>; rel="next"')

    own, other, count = await read_lists(generate(choose_number(), seed=2), redirect, monkeypatch)
    assert other.connections == 0
    # A head that HTTP does not allow is a broken connection, and is tried again.
    assert len(own.heads) >= count == choose_number()
    assert all(head.startswith("GET /edges/tls HTTP/1.1\r\n") for head in own.heads)


ORIGIN = Origin.parse("https://api.example.com:8443/v2")


@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from(
            [*"/\\:@?#.%[]; \t\n", "//", "https:", "api.example.com", ":8443", "evil.com", "é", "%2e", "v2"]
        ),
        max_size=12,
    ).map("".join)
    | st.text(max_size=20).map("https://api.example.com:8443".__add__)
)
@example("https://api.example.com:8443@evil.com/")
@example("https://api.example.com:8443\\@evil.com/")
@example("HTTPS://API.EXAMPLE.COM:8443/x")
def test_each_parser_finds_the_configured_origin_in_a_followed_address(address: str) -> None:
    try:
        followed = ORIGIN.follow(address)
    except Refused:
        return
    spelt, split = httpx.URL(followed), urlsplit(followed)
    assert (spelt.scheme, spelt.host, spelt.port) == ("https", "api.example.com", 8443)
    assert (split.scheme, split.hostname, split.port) == ("https", "api.example.com", 8443)
    assert followed.startswith("https://api.example.com:8443/")
    assert target_of(followed).startswith("/")  # all that is sent of it


@given(st.text("ab-.:@", max_size=4), st.text("ab-.:@", max_size=4), st.sampled_from(["", ":443", ":8443", ":84430"]))
@example("", ".evil.com", ":8443")
@example("", "-evil.com", ":8443")
@example("", "munity", ":8443")
@example("evil-", "", ":8443")
@example("", "", ":84430")
def test_a_host_that_only_resembles_the_configured_one_is_not_followed(before: str, after: str, port: str) -> None:
    try:
        ORIGIN.follow(f"https://{before}api.example.com{after}{port}/v2/x")
    except Refused:
        return
    assert (before, after + port) in (("", ":8443"), ("", ":8443:"))


LOOPBACK = ["127.0.0.1", "127.0.0.1:4000", "127.255.3.4", "[::1]", "[::1]:4000", "localhost", "LOCALHOST:1"]
NOT_LOOPBACK = [
    "127.0.0.1.evil.com",
    "127.0.0.1.nip.io",
    "localhost.evil.com",
    "evil.localhost",
    "localhost.",
    "127.0.0.1.",
    "128.0.0.1",
    "0.0.0.0",
    "10.0.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "127.1",
    "127.0.1",
    "127.0.0.01",
    "0",
    "[::]",
    "[::2]",
    "[::ffff:10.0.0.1]",
    "[fe80::1%25lo]",
    "[::ffff:127.0.0.1.evil.com]",
    "example.com",
    "localhost@evil.com",
    "127.0.0.1@evil.com",
    "evil.com#127.0.0.1",
    "evil.com?localhost",
    "evil.com\\@127.0.0.1",
    "ip6-localhost",
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_plain_http_is_allowed_to_the_loopback_interface(host: str) -> None:
    assert Origin.parse(f"http://{host}").is_loopback
    assert check_platform_url(f"http://{host}") is None


@pytest.mark.parametrize("host", NOT_LOOPBACK)
def test_plain_http_is_refused_to_other_hosts(host: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Origin.parse(f"http://{host}")
    assert check_platform_url(f"http://{host}") is not None


@given(st.text(max_size=30))
def test_an_address_that_the_client_accepts_is_valid_in_the_project_file(host: str) -> None:
    for scheme in ("http", "https"):
        try:
            Origin.parse(f"{scheme}://{host}")
        except ValueError:
            continue
        assert check_platform_url(f"{scheme}://{host}") is None
