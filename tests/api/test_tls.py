"""A certificate that will not do, or a port without TLS: told in words, once, and nothing was sent. Real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reconciler.api.agent import open_agent
from reconciler.api.client import Account
from reconciler.api.errors import Unreachable
from reconciler.api.platform import open_platform, open_reader
from reconciler.engine.ports import Failure, Refused
from reconciler.model.value import Secret
from tests.api.certificates import authority, serving
from tests.api.wire import KEY, answer, listening, wire
from tests.harness.engine import VirtualClock


async def failing(base_url: str, method: str = "POST") -> Failure:
    clock = VirtualClock()
    async with open_platform(Account(base_url, Secret(KEY, "test")), clock=clock) as platform:
        with pytest.raises(Failure) as failed:
            await (platform.get("/x") if method == "GET" else platform.send(method, "/x", {}))
    assert clock.slept == []  # another try would find the same
    return failed.value


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_self_signed_certificate_is_called_so(tmp_path: Path, method: str) -> None:
    async with wire(answer({}), tls=serving(tmp_path, issuer="localhost")) as there:
        base_url = f"https://localhost:{there.port}"
        failure = await failing(base_url, method)
    assert isinstance(failure, Refused)
    assert str(failure) == (
        f"cannot reach {base_url}: its certificate is not trusted: self-signed certificate; "
        "set SSL_CERT_FILE to a file with the certificate of its authority"
    )
    assert there.asked == []


async def test_an_authority_of_ones_own_is_trusted_once_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with wire(answer({"id": "x"}), tls=serving(tmp_path)) as there:
        account = Account(f"https://localhost:{there.port}", Secret(KEY, "test"))
        failure = await failing(account.base_url, "GET")
        assert (
            "unable to get local issuer certificate; set SSL_CERT_FILE to a file with the certificate of its authority"
            in str(failure)
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(authority(tmp_path)))
        async with open_reader(account) as reader:
            assert await reader.get("/x") == {"id": "x"}


@pytest.mark.parametrize(
    ("name", "days", "why"),
    [
        ("localhost", -1, "certificate has expired"),
        ("other.example", 1, "hostname mismatch, certificate is not valid for 'localhost'"),
    ],
)
async def test_a_certificate_that_no_authority_can_mend_is_not_sent_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, days: int, why: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority(tmp_path)))
    async with wire(answer({}), tls=serving(tmp_path, name, days=days)) as there:
        failure = await failing(f"https://localhost:{there.port}")
    assert isinstance(failure, Refused)
    assert str(failure).endswith(f": its certificate is not trusted: {why}")


async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As servers of plain http answer what they cannot read."""
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    await writer.drain()


async def test_a_port_of_plain_http_is_said_to_speak_no_tls() -> None:
    async with listening(plain) as port:
        failure = await failing(f"https://127.0.0.1:{port}", "GET")
        assert isinstance(failure, Refused)
        assert str(failure) == f"cannot reach https://127.0.0.1:{port}: it does not speak TLS"


async def test_an_agent_without_tls_is_told_in_the_same_words() -> None:
    async with listening(plain) as port, open_agent(f"https://127.0.0.1:{port}", read_only=False) as agent:
        assert agent is not None
        with pytest.raises(Refused, match=f"cannot reach the agent at https://127.0.0.1:{port}: it does not speak TLS"):
            await agent.send("POST", "/api/tunnels", {})


async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(200)
    writer.close()


async def test_a_server_that_goes_away_meanwhile_may_be_back_later() -> None:
    async with (
        listening(closing) as port,
        open_platform(Account(f"https://127.0.0.1:{port}", Secret(KEY, "t"))) as platform,
    ):
        with pytest.raises(Unreachable, match=r"cannot reach .*: (it closed the connection|connection reset by peer)$"):
            await platform.send("POST", "/x", {})


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("absent.pem", "SSL_CERT_FILE or SSL_CERT_DIR cannot be read: no such file or directory"),
        ("empty.pem", "the file in SSL_CERT_FILE contains no certificate"),
    ],
)
async def test_certificates_that_cannot_be_read_are_said_to_be_so(
    file: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.pem").write_text("")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / file))
    with pytest.raises(Refused, match=told):
        async with open_reader(Account("https://localhost:1", Secret(KEY, "test"))):
            pass
