"""`reconciler drift`: what moved since the last apply, and who moved it. A plan that is shown and dropped."""

from __future__ import annotations

import click

from reconciler.cli import exits, options
from reconciler.cli.group import Command
from reconciler.cli.plan import formats


@click.command(
    cls=Command,
    examples="""
        reconciler drift
        reconciler drift --exclude 'BotUser/*' --format json=drift.json
    """,
)
@formats
@options.reading
def command(common: options.Options, chosen: list[tuple[str, str]]) -> int:
    """Show what moved since the last apply, and who moved it; exit 2 if anything did."""
    from reconciler.cli import plan, session
    from reconciler.rendering.text import Flavour

    opened = session.opened(common)
    made = session.run(session.planned(opened))
    plan.show(made, opened, common, chosen, Flavour.DRIFT)
    session.tell_problems(made)
    return session.exit_of(made, changes=exits.CHANGES)
