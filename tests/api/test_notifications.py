"""Webhooks and mails: their content, the addresses that are refused, and the reasons why a mail was not delivered."""

from __future__ import annotations

import asyncio
import email
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from email.policy import default

import pytest

from reconciler.api.notifications import SIGNATURE, Mail, Webhook, signature
from reconciler.engine.ports import Failure, Refused, Transient
from tests.api.wire import answer, wire


@dataclass
class MailServer:
    """A mail server that answers a command with the entry of `replies` that it starts with, and others with 250."""

    replies: dict[str, str] = field(default_factory=dict)
    greeting: str = "220 here"
    commands: list[str] = field(default_factory=list)
    message: bytes = b""
    port: int = 0

    def serve(self, listener: socket.socket) -> None:
        try:
            connection = listener.accept()[0]
        except OSError:
            return
        with connection, connection.makefile("rwb") as stream:
            if not self.greeting:
                return
            self._send(stream, self.greeting)
            while line := stream.readline():
                command = line.decode().strip()
                self.commands.append(command)
                reply = next((text for begin, text in self.replies.items() if command.upper().startswith(begin)), "")
                if reply == "hang up":
                    return
                self._send(stream, reply or {"DATA": "354 go on", "QUIT": "221 bye"}.get(command.upper(), "250 fine"))
                if command.upper() == "DATA" and not reply:
                    lines = list(iter(stream.readline, b".\r\n"))
                    self.message = b"".join(lines)
                    self._send(stream, self.replies.get(".", "250 taken"))
                if command.upper() == "QUIT":
                    return

    @staticmethod
    def _send(stream: object, text: str) -> None:
        stream.write(f"{text}\r\n".encode())  # type: ignore[attr-defined]
        stream.flush()  # type: ignore[attr-defined]

    @property
    def received_mail(self) -> Message:
        return email.message_from_bytes(self.message, policy=default)


@contextmanager
def mail_server(greeting: str = "220 here", **replies: str) -> Iterator[MailServer]:
    server = MailServer({("." if name == "end" else name.upper()): reply for name, reply in replies.items()}, greeting)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.port = listener.getsockname()[1]
        thread = threading.Thread(target=server.serve, args=(listener,), daemon=True)
        thread.start()
        yield server
        thread.join(5)


def mail(server: MailServer, *recipients: str, login: str = "") -> Mail:
    return Mail(f"smtp://{login}127.0.0.1:{server.port}", "drift@example.com", recipients or ("ops@example.com",))


def send_and_fail(server: MailServer, *recipients: str, login: str = "") -> Failure:
    with pytest.raises(Failure) as failed:
        mail(server, *recipients, login=login).send("subject", "text")
    return failed.value


def test_a_mail_is_sent_to_each_recipient_with_its_subject_on_one_line() -> None:
    with mail_server() as server:
        mail(server, "a@example.com", "b@example.com").send("two\n lines", "text\nü")
    envelope = [command for command in server.commands if command.lower().startswith(("mail", "rcpt"))]
    assert [command.partition("<")[2].partition(">")[0] for command in envelope] == [
        "drift@example.com",
        "a@example.com",
        "b@example.com",
    ]
    assert (server.received_mail["Subject"], server.received_mail["From"]) == ("two lines", "drift@example.com")
    assert server.received_mail["To"] == "a@example.com, b@example.com"
    assert server.received_mail.get_content().splitlines() == ["text", "ü"]  # type: ignore[attr-defined]
    assert not any(command.upper().startswith(("STARTTLS", "AUTH")) for command in server.commands)


def test_a_rejected_recipient_is_named() -> None:
    with mail_server(**{"rcpt to:<b": "550 who"}) as server:
        failure = send_and_fail(server, "a@example.com", "b@example.com")
    assert type(failure) is Refused
    assert str(failure) == "mail to a@example.com, b@example.com: the server rejected the recipients b@example.com"
    assert server.message


@pytest.mark.parametrize(("scheme", "port"), [("smtp", 587), ("smtps", 465)])
def test_the_default_port_of_a_mail_server_is_that_of_its_scheme(
    monkeypatch: pytest.MonkeyPatch, scheme: str, port: int
) -> None:
    tried: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], *_: object) -> socket.socket:
        tried.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(Transient):
        Mail(f"{scheme}://127.0.0.1", "drift@example.com", ["ops@example.com"]).send("subject", "text")
    assert tried == [("127.0.0.1", port)]


BEGIN = "mail to ops@example.com: the server cannot be reached or rejected the mail: "


@pytest.mark.parametrize(
    ("replies", "why"),
    [
        ({"greeting": "554 no"}, "it returned 554"),
        ({"mail": "451 later"}, "it returned 451"),
        ({"end": "552 too large"}, "it returned 552"),
        ({"mail": "hang up"}, "it closed the connection"),
        ({"greeting": ""}, "it closed the connection"),
    ],
)
def test_a_rejected_mail_is_reported_without_the_text_of_the_server(replies: dict[str, str], why: str) -> None:
    with mail_server(**replies) as server:
        failure = send_and_fail(server)
    assert (type(failure), str(failure)) == (Transient, BEGIN + why)


def test_no_login_is_sent_to_a_server_that_does_not_support_it() -> None:
    with mail_server() as server:
        failure = send_and_fail(server, login="robot:word@")
    assert str(failure) == f"{BEGIN}it does not support STARTTLS or authentication"
    assert "word" not in " ".join(server.commands)


FAR = ("mail.example.com", "[2001:db8::1]", "127.0.0.1.example.com")
NEAR = ("localhost", "[::1]")


@pytest.mark.parametrize("login", ["", "robot@", "robot:word@"], ids=["nobody", "user", "user and password"])
@pytest.mark.parametrize("supports", [True, False], ids=["STARTTLS", "no STARTTLS"])
@pytest.mark.parametrize("host", [*FAR, *NEAR])
def test_nothing_of_a_mail_is_sent_in_plain_text_to_another_machine(
    monkeypatch: pytest.MonkeyPatch, login: str, supports: bool, host: str
) -> None:
    """The server answers EHLO; after STARTTLS it hangs up, so that all commands in plain text are seen."""
    features = "250-here\r\n250-AUTH PLAIN\r\n250 STARTTLS" if supports else "250-here\r\n250 AUTH PLAIN"
    with mail_server(ehlo=features, starttls="hang up", auth="235 fine") as server:
        connect = socket.create_connection
        monkeypatch.setattr(
            socket, "create_connection", lambda _address, *more: connect(("127.0.0.1", server.port), *more)
        )
        sent = Mail(f"smtp://{login}{host}:2525", "drift@example.com", ["ops@example.com"])
        if host in FAR:
            with pytest.raises(Transient):
                sent.send("subject", "the secret text")
        else:
            sent.send("subject", "the secret text")
    verbs = {command.partition(" ")[0].upper() for command in server.commands}
    if host in FAR:
        assert verbs <= {"EHLO", "STARTTLS", "QUIT"}
        assert ("STARTTLS" in verbs) == supports
    else:
        assert ("STARTTLS" in verbs, "DATA" in verbs, "AUTH" in verbs) == (False, True, bool(login))


@pytest.mark.parametrize("host", ["mail.example.com", "localhost"])
def test_a_mail_server_with_tls_gets_a_handshake_first(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    first: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        with listener.accept()[0] as connection:
            first.append(connection.recv(1))

    connect = socket.create_connection
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        monkeypatch.setattr(socket, "create_connection", lambda _address, *more: connect(address, *more))
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        with pytest.raises(Transient):
            Mail(f"smtps://{host}:465", "drift@example.com", ["ops@example.com"]).send("subject", "text")
        thread.join(5)
    assert first == [b"\x16"]  # the record type of a TLS handshake


def test_a_rejected_login_is_not_retried() -> None:
    with mail_server(ehlo="250-here\r\n250 AUTH PLAIN", auth="535 no") as server:
        failure = send_and_fail(server, login="ro%40bot:wo%3Ard@")
    assert type(failure) is Refused
    assert str(failure) == "mail to ops@example.com: the server does not accept the user or password"
    assert [command for command in server.commands if command.startswith("AUTH")] == [
        "AUTH PLAIN AHJvQGJvdAB3bzpyZA=="  # \0ro@bot\0wo:rd
    ]


def test_an_unreachable_mail_server_is_transient() -> None:
    with mail_server() as server:
        mail(server).send("subject", "text")
    failure = send_and_fail(server)
    assert (type(failure), str(failure)) == (Transient, f"{BEGIN}connection refused")


@pytest.mark.parametrize(
    ("sender", "recipients", "why"),
    [
        ("drift@example.com", [], "no mail address follows mailto:"),
        ("drift@example.com", [""], "no mail address follows mailto:"),
        ("drift@example.com", ["ops@example.com", "ops"], "'ops' is not a mail address"),
        ("drift@example.com", ["ops@example.com\nBcc: x@example.com"], "is not a mail address"),
        ("Drift <drift@example.com>", ["ops@example.com"], "'Drift <drift@example.com>' is not a mail address"),
    ],
)
def test_an_invalid_mail_address_is_refused(sender: str, recipients: list[str], why: str) -> None:
    with pytest.raises(Refused, match=why):
        Mail("smtp://mail.example.com", sender, recipients).check()


@pytest.mark.parametrize(
    ("server", "is_valid"),
    [
        ("smtp://mail.example.com", True),
        ("smtps://robot:word@mail.example.com:465", True),
        ("smtp://[::1]:25", True),
        ("smtp://mail.example.com:port", False),
        ("smtp://", False),
        ("http://mail.example.com", False),
        ("mail.example.com", False),
        ("smtp://us%C3%A9r@mail.example.com", False),
        ("smtp://user:w%C3%B6rd@mail.example.com", False),
    ],
)
def test_the_address_of_a_mail_server_has_a_scheme_and_a_host(server: str, is_valid: bool) -> None:
    checked = Mail(server, "drift@example.com", ["ops@example.com"])
    assert "word" not in repr(checked)
    if is_valid:
        checked.check()
        return
    with pytest.raises(Refused) as refused:
        checked.check()
    assert ("characters other than ASCII" in str(refused.value)) is ("%C3" in server)


@pytest.mark.parametrize("key", [b"key", None])
async def test_a_webhook_receives_the_body_and_with_a_key_a_signature(key: bytes | None) -> None:
    async with wire(answer(None, 204)) as server:
        hook = Webhook(f"{server.base_url}/hook?x=1", key)
        hook.check()
        assert str(hook) == server.base_url
        await asyncio.to_thread(hook.post, '{"a":"ü"}', 1700000000.9)
    (request,) = server.requests
    assert (request.method, request.target, request.body) == ("POST", "/hook?x=1", '{"a":"ü"}'.encode())
    assert request.headers["content-type"] == "application/json"
    expected = signature(request.body, b"key", 1700000000) if key else None
    assert request.headers.get(SIGNATURE.lower()) == expected


def test_a_signature_covers_time_and_body() -> None:
    assert signature(b"{}", b"key", 1) == ("t=1,v1=1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224")


@pytest.mark.parametrize("status", [200, 299, 300, 302, 404, 500])
async def test_a_webhook_succeeds_only_with_a_2xx(status: int) -> None:
    async with wire(answer(None, status, Location="/x")) as server:
        hook = Webhook(f"{server.base_url}/hook-canary")
        if status < 300:
            await asyncio.to_thread(hook.post, "{}", 0.0)
        else:
            with pytest.raises(Refused) as refused:
                await asyncio.to_thread(hook.post, "{}", 0.0)
            assert (refused.value.status, str(refused.value)) == (status, f"{server.base_url} returned status {status}")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("https://hooks.example.com/x?y=z#w", ""),
        ("http://localhost:8080/x", ""),
        ("http://127.0.0.1/x", ""),
        ("http://hooks.example.com/x", "plain http is not encrypted; use https"),
        ("https://user:canary@hooks.example.com/x", "it must not contain a user name or password"),
        ("http://user:canary@localhost/x", "it must not contain a user name or password"),
        ("https://hooks.example.com:canary/x", "write https://host/path"),
        ("ftp://hooks.example.com/canary", "write https://host/path"),
        ("https:///canary", "write https://host/path"),
        ("canary", "write https://host/path"),
    ],
)
def test_the_address_of_a_webhook_is_https_or_loopback_and_is_not_printed(address: str, why: str) -> None:
    hook = Webhook(address)
    assert "canary" not in repr(hook)
    if not why:
        hook.check()
        return
    with pytest.raises(Refused) as refused:
        hook.check()
    assert str(refused.value) == f"this is not the address of a webhook: {why}"
