"""`reconciler fleet pause`: no further task starts until the fleet is resumed, or until a time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

from reconciler.cli.fleets import options
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal.group import Command

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def parse_until(_context: click.Context, _parameter: click.Parameter, text: str | None) -> timedelta | datetime | None:
    """A duration from now such as 2h, or a time with its zone."""
    if text is None:
        return None
    if match := re.fullmatch(r"([0-9]{1,6})([smhdw])", text):
        return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a duration, such as 2h, nor a time, such as 2026-12-01T08:00Z"
        ) from None
    if moment.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no time zone; write {moment.replace(tzinfo=UTC).isoformat()} for UTC")
    return moment


@click.command(
    cls=Command,
    examples="""
        reconciler fleet pause --until 2h --reason 'incident 4711'
        reconciler fleet pause --until 2026-12-01T08:00Z
    """,
)
@click.option(
    "--until",
    metavar="TIME",
    callback=parse_until,
    help="End of the pause: a duration such as 2h, or a time. [default: until it is resumed]",
)
@click.option("--reason", metavar="TEXT", default="", help="Reason, which status and progress show.")
@options.file_options
def command(common: FleetOptions, until: timedelta | datetime | None, reason: str) -> int:
    """Start no further task in any run of the fleet. Running tasks finish."""
    from reconciler.cli.fleets import commands

    return commands.pause(common, until, reason)
