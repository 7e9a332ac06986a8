"""`reconciler adopt`: adopts the named unmanaged objects. Creates and deletes nothing."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconciler.cli.commands.apply import auto_approve_option, require_terminal
from reconciler.cli.terminal import addresses, lookup, options
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.model.address import Address


@click.command(
    cls=Command,
    examples="""
        reconciler adopt ReservedDomain/shop TLSEdge/payments
        reconciler adopt IPPolicy/office --id ipp_2ZJ1HRm5ZkQYyOQ0P1rD0V8n1aT
    """,
)
@click.argument("names", nargs=-1, required=True, metavar="KIND/NAME...", shell_complete=addresses.complete)
@click.option("--id", "id", metavar="ID", help="Id of the object to adopt, for one KIND/NAME.")
@auto_approve_option
@options.adopt_options
def command(common: options.Options, names: tuple[str, ...], id: str | None, auto_approve: bool) -> int:
    """Adopt existing unmanaged objects for declared resources.

    Writes an owner record on each object, so that the next apply manages it. An object is found by its natural key, or
    by --id. Nothing is created or deleted. An `id:` that the owner record makes needless is removed from the manifest.
    """
    addresses = _addresses(names, id)
    require_terminal("adopt", auto_approve)
    from reconciler.cli.applying import presenter
    from reconciler.cli.applying.summary import Wording
    from reconciler.cli.terminal import workspaces

    opened = workspaces.open_workspace(replace(common, targets=tuple(map(str, addresses)), adopt=True))
    operation = functools.partial(opened.adopt, addresses, id=id)
    return presenter.run_apply(
        operation, opened, common, Wording("Adopt these objects?", "Adopted:"), ask=not auto_approve
    )


def _addresses(names: tuple[str, ...], id: str | None) -> tuple[Address, ...]:
    from reconciler.model.address import Address
    from reconciler.model.dialect import to_specification_id

    try:
        addresses = tuple(dict.fromkeys(Address.parse(name) for name in names))
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    for address in addresses:
        lookup.kind(address.kind)
    if id is None:
        return addresses
    if len(addresses) > 1:
        raise click.UsageError(f"--id takes one KIND/NAME, got {len(addresses)}; adopt the objects one by one")
    prefix = lookup.kind(addresses[0].kind).id_prefix
    if not prefix or not to_specification_id(id, prefix).startswith(prefix):
        raise click.UsageError(f"{id!r} is not an id of {addresses[0].kind}; its ids begin with {prefix!r}")
    return addresses
