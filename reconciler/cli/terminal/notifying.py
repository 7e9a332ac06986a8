"""`drift --notify`: who is told, as the flags and the environment say. Who cannot be told is told of here."""

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
_SHORTEST = 16  # characters: what is shorter can be guessed from one signed request

option = click.option(
    "--notify",
    "targets_told",
    metavar="WHERE",
    multiple=True,
    help="Tell of drift: a webhook's address, slack:ADDRESS, mailto:ADDRESS, or env:NAME, which holds one.",
)


def notify(wheres: Sequence[str], plan: Plan, now: float, *, quiet: bool) -> None:
    """Everybody, if there is drift. A failure to tell somebody is told, and changes nothing else."""
    told = [_parse_target(place) for place in wheres]
    if not plan.has_drift or not told:
        return
    from reconciler.api.notifications import Mail
    from reconciler.engine.ports import Failure
    from reconciler.rendering.notice import build_notice

    said = build_notice(plan)
    for target, is_slack in told:
        try:
            if isinstance(target, Mail):
                target.send(said.subject, said.text)
            else:
                target.post(said.slack if is_slack else said.json, now)
        except Failure as failure:
            output.print_note(f"warning: not notified: {failure}")
        else:
            if not quiet:
                output.print_note(f"Notified: {target}.")


def check(wheres: Sequence[str]) -> None:
    """Stop, before anything is looked at, if one of them can never be told."""
    for place in wheres:
        _parse_target(place)


def _parse_target(where: str) -> tuple[Webhook | Mail, bool]:
    """Whom to tell, and whether in Slack's way."""
    from reconciler.api.notifications import Mail, Webhook
    from reconciler.engine.ports import Refused

    source = "--notify"
    if where.startswith(_FROM_ENV):
        source = where.removeprefix(_FROM_ENV)
        where = os.environ.get(source, "").strip()
        if not where:
            raise _usage_error(f"{source} is not set; let it hold a webhook's address")
    try:
        if where.startswith(_MAIL):
            recipients = [each.strip() for each in where.removeprefix(_MAIL).split(",") if each.strip()]
            mail = Mail(
                _require_variable(SERVER, "set it to smtp://user:password@host:port"),
                _require_variable(SENDER, _WHO),
                recipients,
            )
            mail.check()
            return mail, False
        is_slack = where.startswith((_SLACK, "https://hooks.slack.com/"))
        webhook = Webhook(where.removeprefix(_SLACK), None if is_slack else _read_key())
        webhook.check()
    except Refused as refused:
        raise _usage_error(f"{source}: {refused}") from None
    return webhook, is_slack


_WHO = "set it to the address that mails come from"


def _read_key() -> bytes | None:
    text = os.environ.get(KEY)
    if not text:
        return None
    if len(text) < _SHORTEST:
        raise _usage_error(f"{KEY} is too short to keep anybody out; give {_SHORTEST} characters")
    return text.encode(errors="surrogateescape")


def _require_variable(name: str, remedy: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise _usage_error(f"{name} is not set; {remedy}")
    return value


def _usage_error(what: str) -> exit_codes.Stop:
    return exit_codes.Stop(exit_codes.USAGE, f"error: {what}")
