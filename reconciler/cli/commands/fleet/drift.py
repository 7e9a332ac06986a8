"""`reconciler fleet drift`: shows what changed on the platform since the last apply, in all members."""

from __future__ import annotations

import click

from reconciler.cli.fleets import options
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler fleet drift
        reconciler fleet drift --format junit=.reconciler/drift.xml
        reconciler fleet drift --select tier=canary
        reconciler fleet drift --health
    """,
)
@click.option("--health", is_flag=True,
              help="Also judge whether the objects work; exit 7 if one is degraded and nothing drifted.")  # fmt: skip
@options.run_options
def command(common: FleetOptions, health: bool) -> int:
    """Show what changed on the platform since the last apply, in all members. Exits 2 if there is drift."""
    from reconciler.cli.fleets import commands

    return commands.run_once(common, "drift", health=health)
