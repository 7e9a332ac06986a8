"""`reconciler destroy`: a plan of nothing, carried out."""

from __future__ import annotations

import click

from reconciler.cli.commands.apply import approve, refuse_to_guess
from reconciler.cli.terminal import options
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler destroy
        reconciler destroy -y --allow delete:ReservedDomain=1
        reconciler destroy --target 'TLSEdge/*'
    """,
)
@approve
@options.destroying
def command(common: options.Options, auto_approve: bool) -> int:
    """Delete everything this stack owns, and nothing else."""
    refuse_to_guess("destroy", auto_approve)
    from reconciler.cli import applying, session
    from reconciler.cli.terminal.apply_summary import Wording

    wording = Wording("destroy", "Delete all of these?", "Destroyed:")
    opened = session.opened(common, destroy=True)
    return session.run(applying.apply(opened, common, None, ask=not auto_approve, wording=wording))
