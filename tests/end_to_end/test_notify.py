"""`drift --notify`: real webhooks and a real mail server are told of drift, and of nothing else."""

from __future__ import annotations

import email
import hashlib
import hmac
import json
import threading
from asyncio import Server
from collections.abc import Iterator
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.end_to_end.project import Project, resource
from tests.platform import Sandbox

KEY = "canary" + "NotifyKeyOfTheTests"
PASSWORD = "canary" + "MailPassword"
PATH = "/services/T000/" + "canary" + "HookToken"
OFFICE = resource("IPPolicy", "office", description="Office")


class Hook:
    """A webhook: what was posted to it. `status` is what it answers with."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.posted.append((self.path, dict(self.headers), body))
                self.send_response(hook.status)
                self.send_header("Location", f"{hook.url}elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}{PATH}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.server.shutdown()
    made.server.server_close()


def _octets(content: bytes | str | None) -> bytes:
    assert isinstance(content, bytes)
    return content


class Post:
    """A mail server's post: what was delivered."""

    def __init__(self) -> None:
        self.delivered: list[tuple[list[str], Message]] = []

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        self.delivered.append((envelope.rcpt_tos, email.message_from_bytes(_octets(envelope.content), policy=default)))
        return "250 taken"


def signs_in(_server: object, _session: object, _envelope: object, _mechanism: str, given: Any) -> AuthResult:
    good = isinstance(given, LoginPassword) and given.password == PASSWORD.encode()
    return AuthResult(success=good, handled=good)


class AnyPort(Controller):
    """A controller that knocks on the port that it was given, and not on 0."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]  # theirs


@pytest.fixture
def mailing(on_sandbox: Project) -> Iterator[Post]:
    post = Post()
    controller = AnyPort(post, hostname="127.0.0.1", port=0, authenticator=signs_in, auth_require_tls=False)
    controller.start()
    on_sandbox.environ |= {
        "RECONCILER_SMTP_URL": f"smtp://robot:{PASSWORD}@127.0.0.1:{controller.port}",
        "RECONCILER_MAIL_FROM": "drift@example.com",
    }
    yield post
    controller.stop()


@pytest.fixture
def drifted(on_sandbox: Project, sandbox: Sandbox) -> Project:
    """Somebody edited the office in the dashboard."""
    on_sandbox.declare(OFFICE)
    on_sandbox("apply", "-y", "-q")
    (office,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{office['id']}", {"description": "canary" + "OfWhatSomebodyWrote"})
    return on_sandbox


def test_slack_is_told_who_moved_what_and_where_it_is_declared(drifted: Project, hook: Hook) -> None:
    said = drifted("drift", "--notify", f"slack:{hook.url}")
    assert (said.code, said.err) == (2, f"Notified: {hook.url.removesuffix(PATH)}.\n")
    ((path, headers, body),) = hook.posted
    assert (path, headers["Content-Type"]) == (PATH, "application/json")
    assert json.loads(body)["text"].splitlines()[:2] == [
        "*Drift in prod: 1 resource differs: 1 changed on the platform*",
        "- IPPolicy/office: changed on the platform: description (manifests/all.yaml:1)",
    ]


def test_a_webhook_gets_json_without_a_value_in_it(drifted: Project, hook: Hook) -> None:
    drifted("drift", "--notify", hook.url)
    ((_, headers, body),) = hook.posted
    told = json.loads(body)
    assert (told["format"], told["version"], told["stack"]) == ("reconciler drift", 1, "prod")
    assert told["changes"] == [
        {
            "address": "IPPolicy/office",
            "action": "update",
            "mover": "platform",
            "fields": ["description"],
            "position": "manifests/all.yaml:1",
        }
    ]
    assert b"OfWhatSomebodyWrote" not in body
    assert "X-Reconciler-Signature" not in headers


def test_with_a_key_the_request_is_signed_with_its_time(drifted: Project, hook: Hook) -> None:
    drifted.environ["RECONCILER_NOTIFY_KEY"] = KEY
    drifted("drift", "--notify", hook.url)
    ((_, headers, body),) = hook.posted
    at, _, signature = headers["X-Reconciler-Signature"].removeprefix("t=").partition(",v1=")
    assert signature == hmac.new(KEY.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def test_a_mail_is_sent_to_everybody(drifted: Project, mailing: Post) -> None:
    said = drifted("drift", "--notify", "mailto:ops@example.com, night@example.com")
    assert (said.code, said.err) == (2, "Notified: mail to ops@example.com, night@example.com.\n")
    ((recipients, message),) = mailing.delivered
    assert recipients == ["ops@example.com", "night@example.com"]
    assert (message["From"], message["Subject"]) == (
        "drift@example.com",
        "Drift in prod: 1 resource differs: 1 changed on the platform",
    )
    assert "- IPPolicy/office: changed on the platform: description" in str(message.get_payload())


def test_a_secret_address_comes_from_the_environment(drifted: Project, hook: Hook) -> None:
    drifted.environ["HOOK"] = f"slack:{hook.url}"
    said = drifted("drift", "--notify", "env:HOOK")
    assert (len(hook.posted), PATH in said.err) == (1, False)


def test_without_drift_nobody_is_told(drifted: Project, hook: Hook, mailing: Post) -> None:
    drifted("apply", "-y", "-q")
    assert drifted("drift", "--notify", hook.url, "--notify", "mailto:ops@example.com").code == 0
    assert (hook.posted, mailing.delivered) == ([], [])


@pytest.mark.parametrize("status", [500, 302])
def test_who_cannot_be_told_is_told_of_and_the_exit_code_stays(drifted: Project, hook: Hook, status: int) -> None:
    hook.status = status
    said = drifted("drift", "--notify", hook.url)
    assert (said.code, said.err) == (2, f"warning: not notified: {hook.url.removesuffix(PATH)} answered {status}\n")
    assert len(hook.posted) == 1


def test_one_failure_keeps_nobody_else_from_being_told(drifted: Project, hook: Hook, mailing: Post) -> None:
    drifted.environ["RECONCILER_SMTP_URL"] = drifted.environ["RECONCILER_SMTP_URL"].replace(PASSWORD, "wrong")
    said = drifted(
        "drift", "--notify", "mailto:ops@example.com", "--notify", "http://127.0.0.1:9/", "--notify", hook.url
    )
    assert said.err.splitlines() == [
        "warning: not notified: mail to ops@example.com: the server does not accept the user or password",
        "warning: not notified: http://127.0.0.1:9 cannot be reached: ConnectError",
        f"Notified: {hook.url.removesuffix(PATH)}.",
    ]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("http://example.com/hook", "plain http would send the key readable"),
        ("ftp://example.com", "this is not the address of a webhook"),
        ("env:NOT_THERE", "NOT_THERE is not set"),
        ("mailto:ops@example.com", "RECONCILER_SMTP_URL is not set"),
    ],
)
def test_who_can_never_be_told_is_a_usage_error_before_anything_is_read(
    on_sandbox: Project, sandbox: Sandbox, where: str, said: str
) -> None:
    sandbox.forget_log()
    answer = on_sandbox("drift", "--notify", where)
    assert (answer.code, said in answer.err, sandbox.log()) == (64, True, []), answer.err


@pytest.mark.parametrize("recipient", ["", "nobody", "a@b\nBcc: c@d", "Ops <ops@example.com>"])
def test_what_is_no_mail_address_is_not_written_to(on_sandbox: Project, mailing: Post, recipient: str) -> None:
    assert on_sandbox("drift", "--notify", f"mailto:{recipient}").code == 64
