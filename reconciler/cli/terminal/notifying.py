"""The option `drift --notify`: parses its targets, and sends them a notification of drift and health."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, output

if TYPE_CHECKING:
    from reconciler.api.notifications import Mail, Webhook
    from reconciler.model.plan import Plan

KEY = "RECONCILER_NOTIFY_KEY"
SERVER = "RECONCILER_SMTP_URL"
SENDER = "RECONCILER_MAIL_FROM"
_SLACK = "slack:"
_MAIL = "mailto:"
_FROM_ENV = "env:"
_MIN_KEY_LENGTH = 16  # characters; a shorter key can be guessed from one signed request

option = click.option(
    "--notify",
    "notify_targets",
    metavar="TARGET",
    multiple=True,
    help="Notify if there is drift, or with --health if drift or health changed since the last check: webhook URL, "
    "slack:URL, mailto:ADDRESS, or env:NAME for a variable that contains one of them (repeatable).",
)


def notify(targets: Sequence[str], plan: Plan, now: float, *, quiet: bool) -> None:
    """Sends the drift and health of a plan to each target. A failure is printed as a warning."""
    receivers = [_parse_target(target) for target in targets]
    if not receivers:
        return
    from reconciler.api.notifications import Mail
    from reconciler.engine.ports import Failure
    from reconciler.operations.run_context import read_run_context
    from reconciler.rendering.notice import build_notice

    message = build_notice(plan, read_run_context(os.environ).run_address)
    for receiver, is_slack in receivers:
        try:
            if isinstance(receiver, Mail):
                receiver.send(message.subject, message.text)
            else:
                receiver.post(message.slack if is_slack else message.json, now)
        except Failure as failure:
            output.print_note(f"warning: notification failed: {failure}")
        else:
            if not quiet:
                output.print_note(f"Notified {receiver}.")


def check(targets: Sequence[str]) -> None:
    """Raises Stop for an invalid target, before the account is read."""
    for target in targets:
        _parse_target(target)


def _parse_target(target: str) -> tuple[Webhook | Mail, bool]:
    """The receiver, and whether it expects Slack's format. Raises Stop for an invalid target."""
    from reconciler.api.notifications import Mail, Webhook
    from reconciler.engine.ports import Refused

    source = "--notify"
    if target.startswith(_FROM_ENV):
        source = target.removeprefix(_FROM_ENV)
        target = os.environ.get(source, "").strip()
        if not target:
            raise _usage_error(f"{source} is not set; set it to the URL of a webhook, slack:URL or mailto:ADDRESS")
    try:
        if target.startswith(_MAIL):
            recipients = [address.strip() for address in target.removeprefix(_MAIL).split(",") if address.strip()]
            mail = Mail(
                _require_variable(SERVER, "set it to smtp://user:password@host:port"),
                _require_variable(SENDER, "set it to the sender's address"),
                recipients,
            )
            mail.check()
            return mail, False
        is_slack = target.startswith((_SLACK, "https://hooks.slack.com/"))
        webhook = Webhook(target.removeprefix(_SLACK), None if is_slack else _read_key())
        webhook.check()
    except Refused as refused:
        raise _usage_error(f"{source}: {refused}") from None
    return webhook, is_slack


def _read_key() -> bytes | None:
    text = os.environ.get(KEY)
    if not text:
        return None
    if len(text) < _MIN_KEY_LENGTH:
        raise _usage_error(f"{KEY} must be at least {_MIN_KEY_LENGTH} characters long")
    return text.encode(errors="surrogateescape")


def _require_variable(name: str, remedy: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise _usage_error(f"{name} is not set; {remedy}")
    return value


def _usage_error(what: str) -> exit_codes.Stop:
    return exit_codes.Stop(exit_codes.USAGE, f"error: {what}")
