"""`reconciler fleet report`: a run in any format, or the whole plan of one shape."""

from __future__ import annotations

import click

from reconciler.cli.fleets import options
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler fleet report
        reconciler fleet report a1b2 --format html=.reconciler/run.html --format junit=.reconciler/run.xml
        reconciler fleet report a1b2 --shape 3f9a1c22b0de
        reconciler fleet report --format json | jq '.tasks[] | select(.state == "failed")'
    """,
)
@click.argument("run", required=False, metavar="[RUN]", default="")
@click.option("--shape", metavar="SHAPE", default="", help="Show the whole plan of the member that represents a shape.")
@options.report_options
def command(common: FleetOptions, run: str, shape: str) -> int:
    """Show RUN, or the last run, in any format."""
    from reconciler.cli.fleets import commands

    return commands.report(common, run, shape)
