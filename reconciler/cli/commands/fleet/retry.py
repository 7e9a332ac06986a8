"""`reconciler fleet retry`: runs the members of a run again that did not succeed."""

from __future__ import annotations

import click

from reconciler.cli.fleets import options
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal.group import Command

STATES = ("failed", "skipped", "stale", "blocked")


@click.command(
    cls=Command,
    examples="""
        reconciler fleet retry a1b2
        reconciler fleet retry a1b2 --only failed
        reconciler fleet retry a1b2 --only blocked --approve 3f9a1c22b0de
        reconciler fleet retry a1b2 --only blocked --approve 3f9a1c22b0de --allow deletes=5
    """,
)
@click.argument("run", metavar="RUN")
@click.option(
    "--only",
    "states",
    type=click.Choice(STATES),
    multiple=True,
    default=("failed",),
    help="Which members: failed (with those that were skipped), skipped, stale or blocked (repeatable). "
    "[default: failed]",
)
@options.approve_option
@options.limits_option
@options.no_wait_option
@options.resume_options
def command(
    common: FleetOptions,
    run: str,
    states: tuple[str, ...],
    shapes: tuple[str, ...],
    limits: dict[str, int],
    no_wait: bool,
) -> int:
    """Run members of RUN again that did not succeed. Members that succeeded are not run again.

    An apply applies the same reviewed plans: a member whose changes differ is stale, and needs a new plan.
    """
    from reconciler.cli.fleets import commands

    return commands.retry(common, run, states, shapes, limits, wait=not no_wait)
