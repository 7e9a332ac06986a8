"""Reasons of failed connections: certificates, TLS, proxies, sockets; and the effect of a client on its process."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.api import transport
from reconciler.api.agent import open_agent
from reconciler.api.client import Account
from reconciler.api.errors import Unreachable
from reconciler.api.platform import open_platform, open_reader
from reconciler.engine.ports import Failure, Refused
from reconciler.model.value import Secret
from tests.api.certificates import authority, server_context
from tests.api.wire import KEY, answer, listen, wire
from tests.harness.engine import VirtualClock


async def connect_and_fail(base_url: str, method: str = "POST") -> Failure:
    clock = VirtualClock()
    async with open_platform(Account(base_url, Secret(KEY, "test")), clock=clock) as platform:
        with pytest.raises(Failure) as failed:
            await (platform.get("/x") if method == "GET" else platform.send(method, "/x", {}))
    assert clock.slept == []  # a retry would fail in the same way
    return failed.value


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_self_signed_certificate_is_reported(tmp_path: Path, method: str) -> None:
    async with wire(answer({}), tls=server_context(tmp_path, issuer="localhost")) as server:
        base_url = f"https://localhost:{server.port}"
        failure = await connect_and_fail(base_url, method)
    assert isinstance(failure, Refused)
    assert str(failure) == (
        f"cannot reach {base_url}: its certificate is not trusted: self-signed certificate; "
        "set SSL_CERT_FILE to a file with the certificate of its authority"
    )
    assert server.requests == []


async def test_an_authority_in_ssl_cert_file_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with wire(answer({"id": "x"}), tls=server_context(tmp_path)) as server:
        account = Account(f"https://localhost:{server.port}", Secret(KEY, "test"))
        failure = await connect_and_fail(account.base_url, "GET")
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
async def test_an_invalid_certificate_is_reported_without_the_remedy_of_an_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, days: int, why: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority(tmp_path)))
    async with wire(answer({}), tls=server_context(tmp_path, name, days=days)) as server:
        failure = await connect_and_fail(f"https://localhost:{server.port}")
    assert isinstance(failure, Refused)
    assert str(failure).endswith(f": its certificate is not trusted: {why}")


async def respond_without_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Responds as servers of plain HTTP do to a request that they cannot read."""
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    await writer.drain()


async def test_a_plain_http_port_is_reported_as_without_tls() -> None:
    async with listen(respond_without_tls) as port:
        failure = await connect_and_fail(f"https://127.0.0.1:{port}", "GET")
        assert isinstance(failure, Refused)
        assert str(failure) == f"cannot reach https://127.0.0.1:{port}: it does not speak TLS"


async def test_an_agent_without_tls_is_reported_in_the_same_words() -> None:
    async with listen(respond_without_tls) as port, open_agent(f"https://127.0.0.1:{port}", read_only=False) as agent:
        assert agent is not None
        with pytest.raises(Refused, match=f"cannot reach the agent at https://127.0.0.1:{port}: it does not speak TLS"):
            await agent.send("POST", "/api/tunnels", {})


async def close_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(200)
    writer.close()


async def test_a_server_that_closes_the_connection_is_transient() -> None:
    async with (
        listen(close_connection) as port,
        open_platform(Account(f"https://127.0.0.1:{port}", Secret(KEY, "t"))) as platform,
    ):
        with pytest.raises(Unreachable, match=r"cannot reach .*: (it closed the connection|connection reset by peer)$"):
            await platform.send("POST", "/x", {})


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("absent.pem", "SSL_CERT_FILE or SSL_CERT_DIR cannot be read: no such file or directory"),
        ("empty.pem", "the file in SSL_CERT_FILE contains no certificate"),
    ],
)
async def test_unreadable_certificates_are_reported(
    file: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.pem").write_text("")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / file))
    with pytest.raises(Refused, match=message):
        async with open_reader(Account("https://localhost:1", Secret(KEY, "test"))):
            pass


# --- reasons of failures ----------------------------------------------------------------------------------------------


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
def test_a_refusal_by_the_proxy_is_reported_with_its_status(status: int, why: str, lasting: bool) -> None:
    found = transport.explain_proxy(status)
    assert (found.why, found.sent, found.lasting) == (why, False, lasting)


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (OSError(errno.EHOSTUNREACH, "x"), "no route to host"),
        (TimeoutError(errno.ETIMEDOUT, "x"), "connection timed out"),
        (socket.gaierror(-2, "Name not known"), "name not known"),
        (ConnectionResetError(), "it closed the connection"),
        (ConnectionAbortedError("SSL handshake is taking longer than 60.0 seconds"), "it closed the connection"),
        (OSError("odd"), "odd"),
    ],
)
def test_a_failed_connection_is_reported_with_the_error_of_the_system(failure: OSError, why: str) -> None:
    found = transport.explain(failure)
    assert (found.why, found.sent, found.lasting) == (why, False, False)
    found = transport.explain(failure, proxy="proxy.example:3128")
    assert (found.why, found.sent) == (f"the proxy proxy.example:3128: {why}", False)


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (None, "it closed the connection"),
        (BrokenPipeError(errno.EPIPE, "x"), os.strerror(errno.EPIPE).lower()),
        (OSError(0, "odd"), "[Errno 0] odd"),
        (OSError("odd\nline"), "odd line"),
        (ssl.SSLError(1, "x"), "TLS failed: connection closed"),
        (RuntimeError("x" * 300), "x" * 199 + "…"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_a_lost_connection_is_reported_with_the_error_of_the_system(failure: Exception | None, why: str) -> None:
    assert transport.reason(failure) == why


@pytest.mark.parametrize(
    ("reason", "why", "lasting"),
    [
        ("WRONG_VERSION_NUMBER", "it does not speak TLS", True),
        ("HTTP_REQUEST", "it does not speak TLS", True),
        ("TLSV1_ALERT_INTERNAL_ERROR", "TLS handshake failed: tlsv1 alert internal error", False),
        (None, "TLS handshake failed: connection closed", False),
    ],
)
def test_a_failed_handshake_has_sent_nothing(reason: str | None, why: str, lasting: bool) -> None:
    error = ssl.SSLError(1, "x")
    error.reason = reason  # type: ignore[assignment]
    found = transport.explain(error)
    assert (found.why, found.sent, found.lasting) == (why, False, lasting)


@pytest.mark.parametrize(
    ("code", "message", "why"),
    [
        (20, "unable to get local issuer certificate", "unable to get local issuer certificate; set SSL_CERT_FILE"),
        (10, "certificate has expired", "certificate has expired"),
        (62, "Hostname mismatch, certificate is not valid for 'x'.", "hostname mismatch, certificate is not valid"),
        (64, "IP address mismatch", "IP address mismatch"),
    ],
)
def test_an_untrusted_certificate_is_a_lasting_failure(code: int, message: str, why: str) -> None:
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_code, error.verify_message = code, message
    found = transport.explain(error)
    assert (found.sent, found.lasting, "set SSL_CERT_FILE" in found.why) == (False, True, code == 20)
    assert found.why.startswith(f"its certificate is not trusted: {why}")
    assert not found.why.endswith(".")


def test_the_error_of_a_certificate_is_shortened() -> None:
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_code, error.verify_message = 10, "x" * 300
    assert transport.explain(error).why == f"its certificate is not trusted: {'x' * 199}…"


# --- the process ------------------------------------------------------------------------------------------------------


_UNCHANGED = """
import asyncio, gc, os, signal, ssl, sys
before = ({**vars(ssl.SSLContext)}, {**os.environ}, gc.get_threshold(), [*sys.meta_path], os.getcwd(),
    [signal.getsignal(number) for number in signal.valid_signals()])
from reconciler.api.client import Account
from reconciler.api.platform import open_platform
from reconciler.engine.ports import Failure
from reconciler.model.value import Secret
async def main():
    async with open_platform(Account(sys.argv[1], Secret("key", "test"), agent=sys.argv[1])) as platform:
        try:
            await platform.send("POST", "/x", {})
        except Failure as failure:
            assert "cannot reach" in str(failure), failure
asyncio.run(main())
assert before == ({**vars(ssl.SSLContext)}, {**os.environ}, gc.get_threshold(), [*sys.meta_path], os.getcwd(),
    [signal.getsignal(number) for number in signal.valid_signals()])
assert not {"httpx", "urllib.request"} & set(sys.modules)
from httpx import _main
assert _main is not None
"""


def run(script: str, *words: str) -> None:
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:1", "https://127.0.0.1:1"])
def test_a_client_changes_nothing_in_its_process(base_url: str) -> None:
    run(_UNCHANGED, base_url)
