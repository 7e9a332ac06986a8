"""Whoever has to go by a proxy says so in the environment. A real one stands between, and counts what came by."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
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
from tests.api.certificates import authority, serving
from tests.api.wire import KEY, answer, listening, wire
from tests.harness.engine import VirtualClock

PLATFORM = "platform.example"
PASSWORD = "canary/p@ss"
QUOTED = "canary%2Fp%40ss"


@dataclass
class Tunnel:
    """A proxy that knows CONNECT. Wherever it is asked to lead, it leads to `target`."""

    target: int = 0
    refusal: bytes = b""
    asked: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.splitlines()[0])
        self.logins += [line.split(": ")[1] for line in head.splitlines() if _is_login(line)]
        if self.refusal:
            writer.write(self.refusal)
            await writer.drain()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(_copied(reader, back), _copied(there, writer))
        finally:
            back.close()


def _is_login(line: str) -> bool:
    return line.lower().startswith("proxy-authorization: ")


async def _copied(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(65536):
        sink.write(chunk)
        await sink.drain()
    sink.close()


@asynccontextmanager
async def tunnel(target: int = 0, refusal: bytes = b"") -> AsyncIterator[tuple[Tunnel, int]]:
    made = Tunnel(target, refusal)
    async with listening(made.serve) as port:
        yield made, port


@pytest.fixture(autouse=True)
def _no_proxy_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
async def test_requests_use_the_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority(tmp_path)))
    async with wire(answer({"id": "x"}), tls=serving(tmp_path, PLATFORM)) as there, tunnel(there.port) as (by, port):
        monkeypatch.setenv(variable, f"http://ops:{QUOTED}@127.0.0.1:{port}")
        async with open_platform(Account(f"https://{PLATFORM}:4443", Secret(KEY, "test"))) as platform:
            assert await platform.get("/x") == {"id": "x"}
            assert await platform.send("POST", "/x", {}) == {"id": "x"}
    assert by.asked == [f"CONNECT {PLATFORM}:4443 HTTP/1.1"]  # one connection, which was kept
    assert by.logins == [f"Basic {b64encode(f'ops:{PASSWORD}'.encode()).decode()}"]
    assert [request.method for request in there.asked] == ["GET", "POST"]
    assert all("proxy-authorization" not in request.headers for request in there.asked)


@pytest.mark.parametrize(
    "spelt", ["*", "example", ".example", PLATFORM, f"{PLATFORM}:4443", f"other.example,{PLATFORM}"]
)
def test_hosts_in_no_proxy_need_no_proxy(monkeypatch: pytest.MonkeyPatch, spelt: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    origin = Origin.parse(f"https://{PLATFORM}:4443")
    assert proxy_of(origin) is not None
    monkeypatch.setenv("NO_PROXY", spelt)
    assert proxy_of(origin) is None


async def test_hosts_on_this_machine_need_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain http by a proxy would show it the key."""
    async with tunnel() as (by, port), wire(answer({})) as there:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        async with open_reader(there.account()) as reader:
            await reader.get("/x")
        await asyncio.to_thread(Webhook(f"{there.base_url}/hook").post, "{}", 0.0)
        with pytest.raises(Refused):
            await asyncio.to_thread(GitHub(there.base_url, Secret(KEY, "test"), "octo/infra", 1).find_comment, bool)
    assert by.asked == []
    assert len(there.asked) > 2


async def failing(refusal: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Failure, Tunnel]:
    async with tunnel(refusal=refusal) as (by, port):
        monkeypatch.setenv("HTTPS_PROXY", f"http://ops:{QUOTED}@127.0.0.1:{port}")
        account = Account(f"https://{PLATFORM}", Secret(KEY, "test"))
        async with open_platform(account, clock=VirtualClock()) as platform:
            with pytest.raises(Failure) as failed:
                await platform.send("POST", "/x", {})
    return failed.value, by


async def test_a_login_rejected_by_the_proxy_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    said = f"HTTP/1.1 407 {PASSWORD} is wrong\r\nContent-Length: 0\r\n\r\n".encode()
    failure, by = await failing(said, monkeypatch)
    assert isinstance(failure, Refused)
    assert str(failure) == (
        f"cannot reach https://{PLATFORM}: the proxy returned 407 Proxy Authentication Required; "
        "check the user and password in HTTPS_PROXY"
    )
    assert len(by.asked) == 1


async def test_a_503_of_the_proxy_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    failure, _ = await failing(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", monkeypatch)
    assert isinstance(failure, Unreachable)  # not Lost: the create never left
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
    assert str(proxy.url) == url
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
    assert str(getattr(proxy_of(origin), "url", "")) == "http://all.example"
    monkeypatch.setenv("HTTPS_PROXY", "http://https.example")
    assert str(getattr(proxy_of(origin), "url", "")) == "http://https.example"


def test_the_default_scheme_of_a_proxy_is_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    proxy = proxy_of(Origin.parse(f"https://{PLATFORM}"))
    assert proxy is not None
    assert proxy.url == httpx.URL("http://proxy.example:3128")


async def test_webhooks_and_code_hosts_use_the_same_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    hook, review = Webhook("https://hooks.example/x"), "https://api.example"
    async with tunnel(refusal=b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n") as (by, port):
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        for told in (
            lambda: hook.post("{}", 0.0),
            lambda: GitHub(review, Secret(KEY, "test"), "octo/infra", 1).find_comment(bool),
        ):
            with pytest.raises(Refused, match=r"cannot reach .*: the proxy returned 403 Forbidden"):
                await asyncio.to_thread(told)
    assert by.asked == ["CONNECT hooks.example:443 HTTP/1.1", "CONNECT api.example:443 HTTP/1.1"]
