"""`drift --notify`: real webhooks and a real mail server are told of drift, and of nothing else."""

from __future__ import annotations

import contextlib
import email
import hashlib
import hmac
import json
import socket
import threading
import time
from asyncio import Server
from collections.abc import Iterator
from email.message import Message
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.api.certificates import server_context
from tests.end_to_end.webhook import PATH, Hook
from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

KEY = "canary" + "NotifyKeyOfTheTests"
PASSWORD = "canary" + "MailPassword"
OFFICE = resource("IPPolicy", "office", description="Office")


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


def test_a_slack_message_names_the_changed_fields_and_the_manifest(drifted: Project, hook: Hook) -> None:
    result = drifted("drift", "--notify", f"slack:{hook.url}")
    assert (result.code, result.err) == (2, f"Notified {hook.url.removesuffix(PATH)}.\n")
    ((path, headers, body),) = hook.posted
    assert (path, headers["Content-Type"]) == (PATH, "application/json")
    assert json.loads(body)["text"].splitlines()[:2] == [
        "*Drift in prod: 1 resource changed on the platform*",
        "- IPPolicy/office: changed on the platform: description (manifests/all.yaml:1)",
    ]


def test_a_webhook_gets_json_without_a_value_in_it(drifted: Project, hook: Hook) -> None:
    drifted("drift", "--notify", hook.url)
    ((_, headers, body),) = hook.posted
    report = json.loads(body)
    assert (report["format"], report["version"], report["stack"]) == ("reconciler drift", 2, "prod")
    assert report["changes"] == [
        {
            "address": "IPPolicy/office",
            "action": "update",
            "changed_by": "platform",
            "fields": ["description"],
            "parent": None,
            "position": "manifests/all.yaml:1",
        }
    ]
    assert b"OfWhatSomebodyWrote" not in body
    assert "X-Reconciler-Signature" not in headers


@pytest.fixture
def opened(on_sandbox: Project, sandbox: Sandbox) -> Project:
    """Somebody opened the ledger to every address in the dashboard."""
    on_sandbox.declare(
        resource("ReservedDomain", "ledger", domain="ledger.example.com"),
        resource("TunnelGroupBackend", "web", labels={"app": "web"}),
        OFFICE,
        resource(
            "IPPolicyRule", "office", ip_policy_id={"ref": "IPPolicy/office"}, cidr="203.0.113.0/24", action="allow"
        ),
        resource(
            "TLSEdge",
            "ledger",
            hostports=["ledger.example.com:443"],
            backend={"backend_id": {"ref": "TunnelGroupBackend/web"}},
            ip_restriction={"ip_policy_ids": [{"ref": "IPPolicy/office"}]},
        ),
    )
    on_sandbox("apply", "-y", "-q")
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    opening = {"cidr": "0.0.0.0/0", "action": "allow", "description": "canary" + "OfWhatSomebodyWrote"}
    sandbox.post("/ip_policy_rules", {"ip_policy_id": policy["id"], **opening})
    return on_sandbox


def test_every_notification_begins_with_the_entry_points_that_drift_opens(
    opened: Project, hook: Hook, mailing: Post
) -> None:
    mail = "mailto:ops@example.com"
    result = opened("drift", "--notify", f"slack:{hook.url}", "--notify", hook.url, "--notify", mail)
    assert result.code == 2
    (_, _, slack), (_, _, document) = hook.posted
    subject = "Drift in prod: tls://ledger.example.com is open to 0.0.0.0/0 (manifests: 203.0.113.0/24); "
    first = (
        "- Access was widened on the platform: tls://ledger.example.com from 203.0.113.0/24 → 0.0.0.0/0, "
        "because of IPPolicyRule/ipr_"
    )
    title, entry, *_ = json.loads(slack)["text"].splitlines()
    assert title.startswith(f"*{subject}")
    assert (entry.startswith(first), entry.endswith(", which was added")) == (True, True)
    (access,) = json.loads(document)["access"]
    assert access.pop("causes")[0].startswith("IPPolicyRule/ipr_")
    assert access == {
        "entry_points": ["tls://ledger.example.com"],
        "verdict": "widens",
        "certain": True,
        "before": "203.0.113.0/24",
        "after": "0.0.0.0/0",
        "example": "tls://ledger.example.com from 192.0.2.1",
    }
    ((_, message),) = mailing.delivered
    assert message["Subject"].startswith(subject)
    content = message.get_payload(decode=True)
    assert isinstance(content, bytes)
    text = content.decode()
    assert text.splitlines()[2].startswith(first)
    assert all("OfWhatSomebodyWrote" not in sent for sent in (slack.decode(), document.decode(), text))


def test_a_failed_access_test_is_notified_although_no_managed_resource_changed(
    opened: Project, sandbox: Sandbox, hook: Hook
) -> None:
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    rules = sandbox.get("/ip_policy_rules")["ip_policy_rules"]
    sandbox.delete(f"/ip_policy_rules/{next(rule['id'] for rule in rules if rule['cidr'] == '0.0.0.0/0')}")
    restriction = sandbox.post(
        "/ip_restrictions", {"type": "dashboard", "enforced": True, "ip_policy_ids": [policy["id"]]}
    )
    opened.write("tests/access.yaml", "- {from: 203.0.113.9, to: dashboard, expect: deny}\n")
    result = opened("drift", "--notify", f"slack:{hook.url}", "--notify", hook.url)
    assert result.code == 2
    (_, _, slack), (_, _, document) = hook.posted
    assert json.loads(slack)["text"].splitlines()[:2] == [
        "*Drift in prod: 1 access test fails*",
        "- Access test failed: dashboard from 203.0.113.9: expected deny, found allow: 203.0.113.0/24 "
        f"(IPPolicy/office, IPPolicyRule/office, IPRestriction/{restriction['id']})",
    ]
    assert len(json.loads(document)["failed_tests"]) == 1


def test_a_notification_about_other_drift_names_no_entry_point(drifted: Project, hook: Hook) -> None:
    drifted("drift", "--notify", hook.url)
    ((_, _, body),) = hook.posted
    assert json.loads(body)["access"] == []


def test_with_a_key_the_request_is_signed_with_its_time(drifted: Project, hook: Hook) -> None:
    drifted.environ["RECONCILER_NOTIFY_KEY"] = KEY
    drifted("drift", "--notify", hook.url)
    ((_, headers, body),) = hook.posted
    at, _, signature = headers["X-Reconciler-Signature"].removeprefix("t=").partition(",v1=")
    assert signature == hmac.new(KEY.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def test_one_mail_is_sent_to_all_recipients(drifted: Project, mailing: Post) -> None:
    result = drifted("drift", "--notify", "mailto:ops@example.com, night@example.com")
    assert (result.code, result.err) == (2, "Notified mail to ops@example.com, night@example.com.\n")
    ((recipients, message),) = mailing.delivered
    assert recipients == ["ops@example.com", "night@example.com"]
    assert (message["From"], message["Subject"]) == (
        "drift@example.com",
        "Drift in prod: 1 resource changed on the platform",
    )
    assert "- IPPolicy/office: changed on the platform: description" in str(message.get_payload())


def test_the_address_of_a_hook_is_read_from_an_environment_variable(drifted: Project, hook: Hook) -> None:
    drifted.environ["HOOK"] = f"slack:{hook.url}"
    result = drifted("drift", "--notify", "env:HOOK")
    assert (len(hook.posted), PATH in result.err) == (1, False)


def test_no_notification_is_sent_without_drift(drifted: Project, hook: Hook, mailing: Post) -> None:
    drifted("apply", "-y", "-q")
    assert drifted("drift", "--notify", hook.url, "--notify", "mailto:ops@example.com").code == 0
    assert (hook.posted, mailing.delivered) == ([], [])


@pytest.mark.parametrize("status", [500, 302])
def test_a_failed_notification_is_a_warning_and_the_exit_code_is_unchanged(
    drifted: Project, hook: Hook, status: int
) -> None:
    hook.status = status
    result = drifted("drift", "--notify", hook.url)
    assert (result.code, result.err) == (
        2,
        f"warning: notification failed: {hook.url.removesuffix(PATH)} returned status {status}\n",
    )
    assert len(hook.posted) == 1


def test_a_failed_notification_does_not_prevent_the_others(drifted: Project, hook: Hook, mailing: Post) -> None:
    drifted.environ["RECONCILER_SMTP_URL"] = drifted.environ["RECONCILER_SMTP_URL"].replace(PASSWORD, "wrong")
    result = drifted(
        "drift", "--notify", "mailto:ops@example.com", "--notify", "http://127.0.0.1:9/", "--notify", hook.url
    )
    assert result.err.splitlines() == [
        "warning: notification failed: mail to ops@example.com: the server does not accept the user or password",
        "warning: notification failed: cannot reach http://127.0.0.1:9: connection refused",
        f"Notified {hook.url.removesuffix(PATH)}.",
    ]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("http://example.com/hook", "of a webhook: plain http is not encrypted; use https"),
        ("foo", "this is not the address of a webhook: write https://host/path"),
        ("ftp://example.com", "this is not the address of a webhook: write https://host/path"),
        ("https://example.com/hook\x01", "this is not the address of a webhook: write https://host/path"),
        ("https://me:word@example.com", "this is not the address of a webhook: it must not contain a user name"),
        ("https://hooks..example/x", "of a webhook: hooks..example is not a valid host name"),
        (
            "https://hööks.example/x",
            "of a webhook: it contains characters other than ASCII: write a host name as xn--",
        ),
        ("env:NOT_THERE", "NOT_THERE is not set"),
        ("mailto:ops@example.com", "RECONCILER_SMTP_URL is not set"),
    ],
)
def test_an_invalid_notification_address_is_a_usage_error_before_any_request(
    on_sandbox: Project, sandbox: Sandbox, where: str, message: str
) -> None:
    sandbox.forget_log()
    answer = on_sandbox("drift", "--notify", where)
    assert (answer.code, message in answer.err, sandbox.log()) == (64, True, []), answer.err


def test_the_reason_why_a_hook_or_mail_server_is_unreachable_is_printed(drifted: Project, tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    port, closing = listener.getsockname()[1], threading.Event()
    context = server_context(tmp_path)

    def serve() -> None:
        while not closing.is_set():
            with contextlib.suppress(OSError), listener.accept()[0] as taken:
                context.wrap_socket(taken, server_side=True).close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    drifted.environ |= {"RECONCILER_MAIL_FROM": "drift@example.com", "RECONCILER_SMTP_URL": f"smtps://localhost:{port}"}
    hook, mail = f"https://localhost:{port}/secret", "mailto:ops@example.com"
    untrusted = drifted("drift", "--notify", hook, "--notify", mail)
    closing.set()
    thread.join()
    listener.close()
    refused = drifted("drift", "--notify", mail)
    why = "its certificate is not trusted: unable to get local issuer certificate"
    begin = "warning: notification failed: mail to ops@example.com: the server cannot be reached or rejected the mail"
    assert untrusted.err.splitlines() == [
        f"warning: notification failed: cannot reach https://localhost:{port}: {why}; "
        "set SSL_CERT_FILE to a file with the certificate of its authority",
        f"{begin}: {why}",
    ]
    assert refused.err == f"{begin}: connection refused\n"


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("http://mail.example.com", "this is not the address of a mail server"),
        ("smtp://mail..example.com", "this is not the address of a mail server"),
        (f"smtp://{'a' * 64}.example.com", "this is not the address of a mail server"),
        (
            "smtp://us%C3%A9r:word@mail.example.com",
            "the user or password of the mail server contains characters other than",
        ),
        ("smtp://user:wörd@mail.example.com", "the user or password of the mail server contains characters other than"),
    ],
)
def test_a_mail_server_that_can_never_be_reached_is_a_usage_error_too(
    on_sandbox: Project, server: str, message: str
) -> None:
    on_sandbox.environ |= {"RECONCILER_MAIL_FROM": "drift@example.com", "RECONCILER_SMTP_URL": server}
    answer = on_sandbox("drift", "--notify", "mailto:ops@example.com")
    assert (answer.code, message in answer.err) == (64, True), answer.err
    assert "rd@mail" not in answer.err


def test_a_webhook_on_this_machine_needs_no_certificates(drifted: Project, hook: Hook) -> None:
    drifted.environ["SSL_CERT_FILE"] = "/absent.pem"
    result = drifted("drift", "--notify", "https://127.0.0.1:9/", "--notify", hook.url)
    assert result.code == 2
    assert result.err.splitlines() == [
        "warning: notification failed: the certificates in SSL_CERT_FILE or SSL_CERT_DIR cannot be read: "
        "no such file or directory",
        f"Notified {hook.url.removesuffix(PATH)}.",
    ]


def test_drift_is_printed_before_notifications_are_sent(drifted: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reconciler.cli.terminal.notifying.notify", interrupt)
    assert "IPPolicy/office" in drifted("drift", "--notify", "http://127.0.0.1:9/").out


def test_a_mail_server_that_drips_is_not_waited_for(drifted: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.api.notifications.MAIL_TIMEOUT", 0.4)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as taken:
            while True:
                taken.sendall(b"2")
                time.sleep(0.05)

    threading.Thread(target=serve, daemon=True).start()
    server = f"smtp://127.0.0.1:{listener.getsockname()[1]}"
    drifted.environ |= {"RECONCILER_MAIL_FROM": "drift@example.com", "RECONCILER_SMTP_URL": server}
    result = drifted("drift", "--notify", "mailto:ops@example.com")
    listener.close()
    assert (result.code, result.err) == (
        2, "warning: notification failed: mail to ops@example.com: the server did not accept the mail within 0.4 s\n",
    )  # fmt: skip


@pytest.mark.parametrize("recipient", ["", "nobody", "a@b\nBcc: c@d", "Ops <ops@example.com>"])
def test_an_invalid_mail_address_is_a_usage_error(on_sandbox: Project, mailing: Post, recipient: str) -> None:
    assert on_sandbox("drift", "--notify", f"mailto:{recipient}").code == 64
