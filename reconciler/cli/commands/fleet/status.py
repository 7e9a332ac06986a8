"""`reconciler fleet status`: the last run and what it waits for, a pause, and earlier runs."""

from __future__ import annotations

import click

from reconciler.cli.fleets import options
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler fleet status
        reconciler fleet status a1b2
        reconciler fleet status --health
    """,
)
@click.argument("run", required=False, metavar="[RUN]", default="")
@click.option("--runs", "number", metavar="N", type=click.IntRange(0, 1000), default=5, show_default=True,
              help="Number of earlier runs to list.")  # fmt: skip
@click.option("--health", is_flag=True,
              help="Show what is not healthy, by the last `fleet drift --health` or by RUN.")  # fmt: skip
@options.report_options
def command(common: FleetOptions, run: str, number: int, health: bool) -> int:
    """Show how far the last run is, or RUN, what it waits for, and the runs before.

    With --health: what is not healthy in how many members, and why. Sends no request. Exits 7 if something is degraded;
    2 if something progresses, is unknown or drifted; otherwise 0.
    """
    from reconciler.cli.fleets import commands

    return commands.show_status(common, run, number, health=health)
