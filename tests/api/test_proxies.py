"""Requests through the proxy of the environment, a real one that records its requests."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext

import pytest

from reconciler.api.client import Account
from reconciler.api.code_hosts import GitHub
from reconciler.api.errors import Unreachable
from reconciler.api.notifications import Webhook
from reconciler.api.origin import Origin
from reconciler.api.platform import open_platform, open_reader
from reconciler.api.proxies import proxy_of
from reconciler.engine.ports import Failure, Refused
from reconciler.model.value import Secret
from tests.api.certificates import authority, server_context
from tests.api.wire import CUT, KEY, answer, listen, wire
from tests.harness.engine import VirtualClock

PLATFORM = "platform.example"
PASSWORD = "canary/p@ss"
QUOTED = "canary%2Fp%40ss"


@dataclass
class Tunnel:
    """A proxy that supports CONNECT and connects each client to `target`."""

    target: int = 0
    refusal: bytes = b""
    requests: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.requests.append(head.splitlines()[0])
        self.logins += [line.split(": ")[1] for line in head.splitlines() if _is_login(line)]
        if self.refusal:
            writer.write(self.refusal.removesuffix(CUT))
            await writer.drain()
            writer.close()
            return
        target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self.target)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(_copy(reader, target_writer), _copy(target_reader, writer))
        finally:
            target_writer.close()


def _is_login(line: str) -> bool:
    return line.lower().startswith("proxy-authorization: ")


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(65536):
        sink.write(chunk)
        await sink.drain()
    sink.close()


@asynccontextmanager
async def tunnel(
    target: int = 0, refusal: bytes = b"", tls: SSLContext | None = None
) -> AsyncIterator[tuple[Tunnel, int]]:
    proxy = Tunnel(target, refusal)
    async with listen(proxy.serve, tls) as port:
        yield proxy, port


@pytest.fixture(autouse=True)
def _remove_proxies_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
async def test_requests_use_the_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority(tmp_path)))
    async with (
        wire(answer({"id": "x"}), tls=server_context(tmp_path, PLATFORM)) as server,
        tunnel(server.port) as (proxy, port),
    ):
        monkeypatch.setenv(variable, f"http://ops:{QUOTED}@127.0.0.1:{port}")
        async with open_platform(Account(f"https://{PLATFORM}:4443", Secret(KEY, "test"))) as platform:
            assert await platform.get("/x") == {"id": "x"}
            assert await platform.send("POST", "/x", {}) == {"id": "x"}
    assert proxy.requests == [f"CONNECT {PLATFORM}:4443 HTTP/1.1"]  # one connection, which was reused
    assert proxy.logins == [f"Basic {b64encode(f'ops:{PASSWORD}'.encode()).decode()}"]
    assert [request.method for request in server.requests] == ["GET", "POST"]
    assert all("proxy-authorization" not in request.headers for request in server.requests)


@pytest.mark.parametrize(
    "value", ["*", "example", ".example", PLATFORM, f"{PLATFORM}:4443", f"other.example,{PLATFORM}"]
)
def test_hosts_in_no_proxy_need_no_proxy(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    origin = Origin.parse(f"https://{PLATFORM}:4443")
    assert proxy_of(origin) is not None
    monkeypatch.setenv("NO_PROXY", value)
    assert proxy_of(origin) is None


async def test_hosts_on_this_machine_need_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of plain HTTP would receive the key."""
    async with tunnel() as (proxy, port), wire(answer({})) as server:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        async with open_reader(server.account()) as reader:
            await reader.get("/x")
        await asyncio.to_thread(Webhook(f"{server.base_url}/hook").post, "{}", 0.0)
        with pytest.raises(Refused):
            await asyncio.to_thread(GitHub(server.base_url, Secret(KEY, "test"), "octo/infra", 1).find_comment, bool)
    assert proxy.requests == []
    assert len(server.requests) > 2


async def send_and_fail(refusal: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Failure, Tunnel]:
    async with tunnel(refusal=refusal) as (proxy, port):
        monkeypatch.setenv("HTTPS_PROXY", f"http://ops:{QUOTED}@127.0.0.1:{port}")
        account = Account(f"https://{PLATFORM}", Secret(KEY, "test"))
        async with open_platform(account, clock=VirtualClock()) as platform:
            with pytest.raises(Failure) as failed:
                await platform.send("POST", "/x", {})
    return failed.value, proxy


async def test_a_login_rejected_by_the_proxy_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = f"HTTP/1.1 407 {PASSWORD} is wrong\r\nContent-Length: 0\r\n\r\n".encode()
    failure, proxy = await send_and_fail(refusal, monkeypatch)
    assert isinstance(failure, Refused)
    assert str(failure) == (
        f"cannot reach https://{PLATFORM}: the proxy returned 407 Proxy Authentication Required; "
        "check the user and password in HTTPS_PROXY"
    )
    assert len(proxy.requests) == 1


async def test_a_503_of_the_proxy_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    failure, _ = await send_and_fail(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", monkeypatch)
    assert isinstance(failure, Unreachable)  # not Lost: the create was not sent
    assert str(failure) == f"cannot reach https://{PLATFORM}: the proxy returned 503 Service Unavailable"


async def test_an_unreachable_proxy_is_named_without_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    async with tunnel() as (_, port):
        pass
    monkeypatch.setenv("HTTPS_PROXY", f"http://ops:{QUOTED}@127.0.0.1:{port}")
    async with open_platform(Account(f"https://{PLATFORM}", Secret(KEY, "test")), clock=VirtualClock()) as platform:
        with pytest.raises(Unreachable) as failed:
            await platform.send("POST", "/x", {})
    assert str(failed.value) == f"cannot reach https://{PLATFORM}: the proxy 127.0.0.1:{port}: connection refused"


@pytest.mark.parametrize(
    "address",
    [
        "socks5://ops:canary@proxy:1080",
        "http://ops:canary/1@proxy:3128",
        "http://ops:canary#1@proxy:3128",
        "http://ops:canary@pro xy:3128",
        "http://:1",
    ],
)
def test_an_unsupported_proxy_is_refused_without_its_login(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", address)
    with pytest.raises(Refused, match="is not a valid proxy URL; write") as refused:
        proxy_of(Origin.parse(f"https://{PLATFORM}"))
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "url", "login"),
    [
        ("http://proxy.example", "http://proxy.example", None),
        ("https://proxy.example:3129/", "https://proxy.example:3129", None),
        ("http://[::1]:3128", "http://[::1]:3128", None),
        ("http://ops@proxy.example:3128", "http://proxy.example:3128", "ops:"),
        ("http://:word@proxy.example:3128", "http://proxy.example:3128", ":word"),
        ("http://o%40ps:w%3A%C3%B6rd@proxy.example:3128", "http://proxy.example:3128", "o@ps:w:örd"),
    ],
)
def test_the_login_of_a_proxy_is_sent_in_a_header(
    monkeypatch: pytest.MonkeyPatch, address: str, url: str, login: str | None
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", address)
    proxy = proxy_of(Origin.parse(f"https://{PLATFORM}"))
    assert proxy is not None
    sent = proxy.headers.get("Proxy-Authorization")
    assert str(proxy.origin) == url
    assert sent == (login and f"Basic {b64encode(login.encode()).decode()}")


@pytest.mark.parametrize(
    "address",
    [
        "http://o%3Aps:word@proxy.example",
        "http://proxy.example/x",
        "http://proxy.example?x",
        "http://proxy.example#x",
        "http://proxy.example:port",
        "ftp://proxy.example",
    ],
)
def test_a_proxy_url_with_more_than_login_host_and_port_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", address)
    with pytest.raises(Refused, match="is not a valid proxy URL"):
        proxy_of(Origin.parse(f"https://{PLATFORM}"))


def test_the_proxy_of_the_scheme_has_precedence_over_all_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = Origin.parse(f"https://{PLATFORM}")
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert proxy_of(origin) is None
    monkeypatch.setenv("ALL_PROXY", "http://all.example")
    assert str(getattr(proxy_of(origin), "origin", "")) == "http://all.example"
    monkeypatch.setenv("HTTPS_PROXY", "http://https.example")
    assert str(getattr(proxy_of(origin), "origin", "")) == "http://https.example"


def test_the_default_scheme_of_a_proxy_is_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    proxy = proxy_of(Origin.parse(f"https://{PLATFORM}"))
    assert proxy is not None
    assert str(proxy.origin) == "http://proxy.example:3128"


async def test_webhooks_and_code_hosts_use_the_same_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    hook, review = Webhook("https://hooks.example/x"), "https://api.example"
    async with tunnel(refusal=b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n") as (proxy, port):
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        for send in (
            lambda: hook.post("{}", 0.0),
            lambda: GitHub(review, Secret(KEY, "test"), "octo/infra", 1).find_comment(bool),
        ):
            with pytest.raises(Refused, match=r"cannot reach .*: the proxy returned 403 Forbidden"):
                await asyncio.to_thread(send)
    assert proxy.requests == ["CONNECT hooks.example:443 HTTP/1.1", "CONNECT api.example:443 HTTP/1.1"]
