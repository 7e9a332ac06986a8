"""`reconciler history`: how the calls of earlier runs ended, the latest first."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.store.store import Past


_MOST = 1_000_000_000  # more than anybody reads, and no more than any database counts


@click.command(
    cls=Command,
    examples="""
        reconciler history
        reconciler history --limit 5 --format json
    """,
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, _MOST),
    default=100,
    show_default=True,
    help="At most so many calls.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to show it."
)
@options.offline
def command(common: options.Options, limit: int, form: str) -> int:
    """List how the calls of earlier runs ended, the latest first."""
    from reconciler.cli import session
    from reconciler.project.settings import config

    project = config.load(common.project, os.environ, common.environment)
    past = session.run(session.past(project, limit))
    if form == "json":
        output.answer("".join(json.dumps(asdict(each)).replace("##", "#\\u0023") + "\n" for each in past))
    elif past:
        output.answer("".join(f"{_line(each)}\n" for each in past))
    elif not common.quiet:
        output.say("Nothing was recorded yet.")
    return exit_codes.DONE


def _line(past: Past) -> str:
    moment = datetime.fromtimestamp(past.at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    from reconciler.rendering.terminal_text import clean

    why = f": {past.why}" if past.why else ""
    return clean(f"{moment}  {past.command:<7}  {past.outcome:<9}  {past.call}{why}")
