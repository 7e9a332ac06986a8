"""`reconciler fleet apply`: applies reviewed plans to the members, wave by wave."""

from __future__ import annotations

import click

from reconciler.cli.commands.apply import auto_approve_option
from reconciler.cli.fleets import options
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler fleet apply
        reconciler fleet apply 20261123-101500-a1b2
        reconciler fleet apply a1b2 --auto-approve --approve 3f9a1c22b0de
        reconciler fleet apply a1b2 --auto-approve --allow members=100 --no-wait
    """,
)
@click.argument("run", required=False, metavar="[RUN]", default="")
@options.approve_option
@options.limits_option
@options.no_wait_option
@auto_approve_option
@options.run_options
def command(
    common: FleetOptions,
    run: str,
    shapes: tuple[str, ...],
    limits: dict[str, int],
    no_wait: bool,
    auto_approve: bool,
) -> int:
    """Apply the plans of RUN, or new ones, wave by wave.

    Shows the plans and asks for confirmation once. Shapes whose plans need an approval are applied only with --approve.
    Each member plans again, and is stale if its changes are not the reviewed ones.
    """
    from reconciler.cli.commands.apply import require_terminal
    from reconciler.cli.fleets import applying

    require_terminal("fleet apply", auto_approve)
    review = applying.Review(run, shapes, limits, ask=not auto_approve)
    return applying.apply(common, review, wait=not no_wait)
