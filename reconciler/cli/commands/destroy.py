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
    from reconciler.cli.applying import presenter
    from reconciler.cli.applying.summary import Wording
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.opening.project import open_without_manifests

    opened = workspaces.open_workspace(common, open_without_manifests)
    wording = Wording("Delete all of these?", "Destroyed:")
    return presenter.run_apply(opened.destroy, opened.to_destroy(), common, wording, ask=not auto_approve)
