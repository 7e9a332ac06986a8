"""`reconciler forget`: declares resources `ensure: forgotten` in the manifests. Changes no object."""

from __future__ import annotations

import click

from reconciler.cli.terminal import addresses, exit_codes, options, output
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler forget IPPolicy/office
        reconciler forget 'TLSEdge/shop-*' ReservedDomain/shop --dry-run
        reconciler forget IPPolicy/office --env staging
    """,
)
@click.argument("named", nargs=-1, required=True, metavar="KIND/NAME...", shell_complete=addresses.complete)
@click.option("--dry-run", is_flag=True, help="Print the diff without writing it.")
@options.project_options
def command(common: options.Options, named: tuple[str, ...], dry_run: bool) -> int:
    """Stop managing resources: edit the manifests so that the next apply keeps their objects and removes their owner
    records. Prints the diff.

    Writes `ensure: forgotten` for each resource and its children; with --env, in the file of that environment only.
    Reads the account and writes `id:` too if a resource that stays refers to a forgotten one, or if no unique field
    identifies the object. After the apply, another stack can adopt the object.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations import accept_drift
    from reconciler.operations.authoring import forget_resources, project_texts

    forgetting = forget_resources.forget_resources(workspaces.source_of(common), named, ReadProgress(common.quiet))
    edited = workspaces.run(forgetting)
    if not dry_run:
        project_texts.write(edited)
    output.print_result(accept_drift.diff_texts(edited.texts))
    for note in edited.notes:
        output.print_note(f"note: {note}")
    return exit_codes.DONE
