"""`reconciler history`: the calls of earlier runs with their outcomes, latest first."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.store.reading import RecordedCall


_MAX_LIMIT = 1_000_000_000  # within the integers of every database


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
    type=click.IntRange(1, _MAX_LIMIT),
    default=100,
    help="Maximum number of calls. [default: 100]",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
@options.project_options
def command(common: options.Options, limit: int, form: str) -> int:
    """List the API calls of earlier runs and their outcomes, latest first."""
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.history import read_calls

    project = workspaces.source_of(common).read_settings()
    past = workspaces.run(read_calls(project, limit))
    if form == "json":
        output.print_result(
            "".join(json.dumps(asdict(recorded_call)).replace("##", "#\\u0023") + "\n" for recorded_call in past)
        )
    elif past:
        output.print_result("".join(f"{_line(recorded_call)}\n" for recorded_call in past))
    elif not common.quiet:
        output.print_note("No calls recorded yet.")
    return exit_codes.DONE


def _line(past: RecordedCall) -> str:
    moment = datetime.fromtimestamp(past.at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    from reconciler.rendering.terminal_text import sanitize

    why = f": {past.why}" if past.why else ""
    return sanitize(f"{moment}  {past.command:<7}  {past.outcome:<9}  {past.call}{why}")
