"""`reconciler fleet resume`: ends a pause, approves a wave, and continues a run."""

from __future__ import annotations

import click

from reconciler.cli.fleets import options
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler fleet resume
        reconciler fleet resume a1b2 --approve-wave half
    """,
)
@click.argument("run", required=False, metavar="[RUN]", default="")
@click.option(
    "--approve-wave", "waves", metavar="NAME", multiple=True, help="Approve the start of a wave (repeatable)."
)
@options.no_wait_option
@options.resume_options
def command(common: FleetOptions, run: str, waves: tuple[str, ...], no_wait: bool) -> int:
    """End a pause, and continue RUN, or the newest run that has not ended.

    A run that was interrupted, or whose process died, continues where it was: tasks that ended do not run again.
    """
    from reconciler.cli.fleets import commands

    return commands.resume(common, run, waves, wait=not no_wait)
