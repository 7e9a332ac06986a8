"""`reconciler rename`: renames a declared resource in the manifests, with all references. Changes no object."""

from __future__ import annotations

import click

from reconciler.cli.terminal import addresses, exit_codes, options, output
from reconciler.cli.terminal.group import Command
from reconciler.model.address import NAME, Address


def _parse_address(_context: click.Context, _parameter: click.Parameter, text: str) -> Address:
    from reconciler.project import component_files

    component, slash, name = text.partition("/")
    if slash and component_files.NAME.fullmatch(component) and NAME.fullmatch(name):
        return Address(component, name)  # an instance, if it is no kind
    try:
        return Address.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command(
    cls=Command,
    examples="""
        reconciler rename TLSEdge/pay TLSEdge/payments
        reconciler rename TLSEdge/pay TLSEdge/payments --dry-run
        reconciler rename service/shop service/store
    """,
)
@click.argument("old", metavar="KIND/OLD", callback=_parse_address, shell_complete=addresses.complete)
@click.argument("new", metavar="KIND/NEW", callback=_parse_address, shell_complete=addresses.complete)
@click.option("--dry-run", is_flag=True, help="Print the diff without writing it.")
@options.project_options
def command(common: options.Options, old: Address, new: Address, dry_run: bool) -> int:
    """Rename a resource in the manifests, and print the diff.

    Writes the new name, `moved` with the old address, and all references, also in patches and defaults of environments.
    The next apply keeps the object and updates its owner record. COMPONENT/NAME is an instance of a component: all of
    its resources get new names.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.operations import accept_drift
    from reconciler.operations.authoring import project_texts, rename_resource

    renamed = rename_resource.rename_resource(workspaces.source_of(common), old, new)
    if not dry_run:
        project_texts.write(renamed)
    output.print_result(accept_drift.diff_texts(renamed.texts))
    for note in (*renamed.notes, *renamed.mentions):
        output.print_note(f"note: {note}")
    return exit_codes.DONE
