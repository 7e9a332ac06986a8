"""`reconciler destroy`: deletes all objects that the stack manages."""

from __future__ import annotations

import click

from reconciler.cli.commands.apply import auto_approve_option, require_terminal
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
@auto_approve_option
@options.destroy_options
def command(common: options.Options, auto_approve: bool) -> int:
    """Delete all objects that this stack manages.

    Shows the plan and asks for confirmation. Objects of other stacks and unmanaged objects are not deleted.
    """
    require_terminal("destroy", auto_approve)
    from reconciler.cli.applying import presenter
    from reconciler.cli.applying.summary import Wording
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.project_openers import open_without_manifests

    opened = workspaces.open_workspace(common, open_without_manifests)
    wording = Wording("Destroy these objects?", "Destroyed:")
    return presenter.run_apply(opened.destroy, opened.to_destroy(), common, wording, ask=not auto_approve)
