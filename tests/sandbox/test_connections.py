"""Connections: requests are answered alike in one piece and in several, and in order."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.harness.platform import KEY, SandboxProcess

pytestmark = pytest.mark.usefixtures("over_socket")

SAME = f"Host: a\r\nAuthorization: Bearer {KEY}\r\nService-Version: 2\r\n"
JSON = "Content-Type: application/json\r\n"


def _request(line: str, headers: str = SAME, body: str = "") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{line} HTTP/1.1\r\n{headers}{length}\r\n{body}".encode()


REQUESTS = {
    "a list": _request("GET /bot_users?limit=2"),
    "a create": _request("POST /bot_users", SAME + JSON, '{"name": "a"}'),
    "a body that is not JSON": _request("POST /bot_users", SAME + JSON, '{"name": a}'),
    "a delete": _request("DELETE /bot_users/bot_2"),
    "a path in percent signs": _request("GET /bot%5Fusers"),
    "a path that is not there": _request("GET /%2F?a=%2F&b"),
    "an address as the target": _request("GET http://a/bot_users"),
    "a method that is not there": _request("PUT /bot_users"),
    "no key": _request("GET /bot_users", "Host: a\r\nService-Version: 2\r\n"),
    "the version of the public service": _request("GET /endpoints", SAME.replace("Service", "Ngrok")),
    "headers in capitals": _request("GET /bot_users", SAME.upper().replace(KEY.upper(), KEY)),
    "a host that is none": _request("GET /bot_users", SAME.replace("Host: a", "Host: a/b")),
    "a connection that is kept": _request("GET /bot_users", f"{SAME}Connection: Keep-Alive\r\n"),
    "a header without a value": _request("GET /bot_users", f"{SAME}X-Nothing:\r\n"),
    "a header twice": _request("GET /bot_users", f"{SAME}Service-Version: 1\r\n"),
    "another length": _request("POST /bot_users", f"{SAME}{JSON}Content-Length: 3\r\n", '{"name": "a"}'),
    "a length that is none": _request("POST /bot_users", f"{SAME}{JSON}Content-Length: +2\r\n") + b"{}",
    "no host": _request("GET /bot_users", SAME.replace("Host: a\r\n", "")),
    "a connection that ends": _request("GET /bot_users", f"{SAME}Connection: close\r\n"),
    "an upgrade": _request("GET /bot_users", f"{SAME}Connection: upgrade\r\nUpgrade: h2c\r\n"),
    "a body in chunks": _request("POST /bot_users", f"{SAME}{JSON}Transfer-Encoding: chunked\r\n")
    + b'd\r\n{"name": "a"}\r\n0\r\n\r\n',
    "a body that waits to be asked for": _request("POST /bot_users", f"{SAME}{JSON}Expect: 100-continue\r\n", "{}"),
    "an older version": _request("GET /bot_users").replace(b"HTTP/1.1", b"HTTP/1.0"),
    "a method without a body in the answer": _request("HEAD /bot_users"),
    "a tab": _request("GET /bot_users", SAME.replace("Host: a", "Host:\ta")),
    "a header in two lines": _request("GET /bot_users", f"{SAME}X-Long: a\r\n b\r\n"),
    "a name with a space": _request("GET /bot_users", f"{SAME}X Long: a\r\n"),
    "a bracket in a name": _request("GET /bot_users", f"{SAME}X[0]: a\r\n"),
    "a value beyond ASCII": _request("GET /bot_users", f"{SAME}X-Name: ü\r\n"),
    "a line that ends early": _request("GET /bot_users").replace(b"\r\nHost", b"\nHost"),
    "two requests": _request("GET /bot_users") * 2,
}


@contextmanager
def _connect(sandbox: SandboxProcess) -> Iterator[socket.socket]:
    address = urlsplit(sandbox.base_url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def _read_response(connection: socket.socket, patience: float = 0.15) -> str:
    """Reads until nothing is received for a while, or the peer resets the connection without reading the rest."""
    connection.settimeout(10)
    response = connection.recv(2**16)
    connection.settimeout(patience)
    try:
        while part := connection.recv(2**16):
            response += part
        response += b" and the connection ends"
    except TimeoutError:
        pass
    except ConnectionResetError:
        response += b" and the connection ends"
    return re.sub(r"(?<=_)\w{27}|(?<=date: )[^\r]+|\d{4}-\d\d-\d\dT[^\"]+", "…", response.decode())


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_in_pieces_is_answered_as_a_whole_one(sandbox: SandboxProcess, name: str) -> None:
    raw, answers = REQUESTS[name], []
    for pieces in ([raw], [raw[:5], raw[5:-1], raw[-1:]]):
        sandbox.reset()
        with _connect(sandbox) as connection:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.02)
            answers.append(_read_response(connection))
    assert answers[0] == answers[1]
    assert answers[0].startswith("HTTP/1.1 ")


def test_several_requests_are_answered_on_one_connection(sandbox: SandboxProcess) -> None:
    with _connect(sandbox) as connection:
        for raw in (
            REQUESTS["a list"],
            REQUESTS["a body in chunks"],
            REQUESTS["a create"],
            REQUESTS["two requests"],
        ) * 2:
            connection.sendall(raw)
            response = _read_response(connection, 0.1)
            assert response.count("HTTP/1.1 ") == (2 if raw == REQUESTS["two requests"] else 1)
    assert len(sandbox.log()) == 10


def test_a_request_during_a_delayed_one_is_answered_after_it(
    start_sandbox: Callable[..., SandboxProcess],
) -> None:
    with _connect(start_sandbox(latency_ms=100)) as connection:
        connection.sendall(REQUESTS["a create"])
        time.sleep(0.02)
        connection.sendall(REQUESTS["a list"])
        response = _read_response(connection)
    assert response.index("201 Created") < response.index("200 OK")


@pytest.mark.parametrize("latency", [0, 10])
def test_an_internal_error_ends_the_request_and_not_the_sandbox(
    start_sandbox: Callable[..., SandboxProcess], latency: int
) -> None:
    sandbox = start_sandbox(latency_ms=latency)
    sandbox.plant("vaults", {"id": f"vault_{'0' * 27}"})  # without the fields that a vault of the sandbox has
    body = f'{{"name": "a", "value": "b", "vault_id": "vault_{"0" * 27}"}}'
    with _connect(sandbox) as connection:
        connection.sendall(_request("POST /vault_secrets", SAME + JSON, body))
        response = _read_response(connection)
    assert response.startswith("HTTP/1.1 500 Internal Server Error\r\n")
    assert '"status_code": 500' in response
    assert not response.endswith("the connection ends")
    assert sandbox.get("/vault_secrets")["secrets"] == []


def test_a_delayed_response_is_sent_before_the_process_ends(start_sandbox: Callable[..., SandboxProcess]) -> None:
    sandbox = start_sandbox(latency_ms=500)
    with _connect(sandbox) as connection:
        connection.sendall(REQUESTS["a create"])
        time.sleep(0.1)
        ending = threading.Thread(target=sandbox.stop)
        ending.start()
        response = _read_response(connection, 3)
        ending.join()
    assert response.startswith("HTTP/1.1 201 Created\r\n")
    assert response.endswith("the connection ends")
