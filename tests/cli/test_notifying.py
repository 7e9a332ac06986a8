"""The targets of `drift --notify`: which receiver each form names, and what is missing for it."""

from __future__ import annotations

import pytest

from reconciler.api.notifications import Mail, Webhook
from reconciler.cli.terminal import exit_codes, notifying

HOOK = "https://hooks.example.com/x"
SMTP = {"RECONCILER_SMTP_URL": "smtp://mail.example.com", "RECONCILER_MAIL_FROM": "from@example.com"}
KEY = {"RECONCILER_NOTIFY_KEY": "k" * 16}


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECONCILER_NOTIFY_KEY", "RECONCILER_SMTP_URL", "RECONCILER_MAIL_FROM"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("target", "environ", "is_slack", "is_signed"),
    [
        (HOOK, {}, False, False),
        (HOOK, KEY, False, True),
        (f"slack:{HOOK}", KEY, True, False),
        ("https://hooks.slack.com/services/x", KEY, True, False),
        ("https://example.com/hooks.slack.com/", KEY, False, True),
        ("env:HOOK", {"HOOK": f" {HOOK}\n"}, False, False),
        ("env:HOOK", {"HOOK": f"slack:{HOOK}"}, True, False),
    ],
)
def test_a_webhook_is_signed_unless_it_is_of_slack(
    monkeypatch: pytest.MonkeyPatch, target: str, environ: dict[str, str], is_slack: bool, is_signed: bool
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    receiver, slack = notifying._parse_target(target)
    assert isinstance(receiver, Webhook)
    assert (slack, receiver.key) == (is_slack, KEY["RECONCILER_NOTIFY_KEY"].encode() if is_signed else None)
    assert "slack:" not in receiver.address


@pytest.mark.parametrize(
    ("target", "recipients"),
    [
        ("mailto:a@example.com", ["a@example.com"]),
        ("mailto:a@example.com, b@example.com", ["a@example.com", "b@example.com"]),
        ("mailto:a@example.com,,", ["a@example.com"]),
    ],
)
def test_a_mail_has_each_recipient(monkeypatch: pytest.MonkeyPatch, target: str, recipients: list[str]) -> None:
    for name, value in SMTP.items():
        monkeypatch.setenv(name, value)
    receiver, is_slack = notifying._parse_target(target)
    assert isinstance(receiver, Mail)
    assert (is_slack, list(receiver.recipients), receiver.sender) == (False, recipients, "from@example.com")


@pytest.mark.parametrize(
    ("target", "environ", "problem"),
    [
        (HOOK, {"RECONCILER_NOTIFY_KEY": "k" * 15}, "RECONCILER_NOTIFY_KEY must be at least 16 characters long"),
        ("env:HOOK", {}, "HOOK is not set; set it to the URL of a webhook, slack:URL or mailto:ADDRESS"),
        ("env:HOOK", {"HOOK": " "}, "HOOK is not set; set it to the URL of a webhook, slack:URL or mailto:ADDRESS"),
        ("mailto:a@example.com", {}, "RECONCILER_SMTP_URL is not set; set it to smtp://user:password@host:port"),
        ("mailto:a@example.com", {**SMTP, "RECONCILER_MAIL_FROM": " "},
         "RECONCILER_MAIL_FROM is not set; set it to the sender's address"),
    ],
)  # fmt: skip
def test_a_missing_setting_of_a_target_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, target: str, environ: dict[str, str], problem: str
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(exit_codes.Stop) as stop:
        notifying.check([target])
    assert (stop.value.code, stop.value.lines) == (64, (f"error: {problem}",))
