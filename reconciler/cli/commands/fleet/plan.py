"""`reconciler fleet plan`: plans every member, and shows each shape of changes once. Changes nothing."""

from __future__ import annotations

import click

from reconciler.cli.fleets import options
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal import exit_codes
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler fleet plan
        reconciler fleet plan --select region=eu --select 'name=shop-*'
        reconciler fleet plan --format text --format markdown=.reconciler/plan.md --format html=.reconciler/plan.html
        reconciler fleet plan --workers 4 --detailed-exitcode
    """,
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if there are changes.")
@options.run_options
def command(common: FleetOptions, detailed_exitcode: bool) -> int:
    """Plan every member, and show each shape of changes and each failure reason once.

    Members have the same shape if their changes differ only in values of their own variables. `fleet apply RUN` applies
    the plans; a member whose account or manifests changed since is stale, alone.
    """
    from reconciler.cli.fleets import commands

    return commands.run_once(common, "plan", changes=exit_codes.CHANGES if detailed_exitcode else exit_codes.DONE)
