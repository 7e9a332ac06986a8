"""`reconciler explain Kind[.field]`: what a kind or a field is for. `explain Kind/name[.field]`: where what is declared
of a resource comes from, and with --live what the platform holds.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from reconciler.cli import exits, named, options, talk
from reconciler.cli.group import Command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconciler.model.address import Address
    from reconciler.model.manifest import Declaration
    from reconciler.model.origin import Trace
    from reconciler.rendering.origins import LiveValue


@click.command(
    cls=Command,
    examples="""
        reconciler explain TLSEdge
        reconciler explain TLSEdge.tls_termination.min_version
        reconciler explain TLSEdge/payments.hostports --env prod
    """,
)
@click.argument("what", metavar="KIND[/NAME][.FIELD]", shell_complete=named.complete)
@click.option("--live", is_flag=True, help="Of a resource: ask the platform too, and say who moved what differs.")
@options.offline
def command(common: options.Options, what: str, live: bool) -> int:
    """Say what a kind or field is for, or where a resource's values come from."""
    if "/" in what:
        return _resource(common, what, live=live)
    if live:
        raise click.UsageError("--live is about a resource; name one, as in TLSEdge/payments")
    from reconciler.rendering import reference

    name, _, path = what.partition(".")
    kind = named.kind(name)
    if not path:
        talk.answer(reference.page(kind, talk.width()))
        return exits.DONE
    talk.answer(reference.field_page(kind, path, named.field(kind, path), talk.width()))
    return exits.DONE


def _resource(common: options.Options, what: str, *, live: bool) -> int:
    from reconciler.project import config, manifests, tracing, variables
    from reconciler.rendering import origins

    project = config.load(common.project, os.environ, common.environment)
    loaded = manifests.load(project, os.environ, common.variables)
    declared = {**loaded.manifest.declarations, **loaded.rendered}
    address, dotted = _addressed(what, declared)
    path = tracing.path_of(dotted)
    if path:
        named.field(named.kind(address.kind), ".".join(part for part in path if isinstance(part, str)))
    settings = variables.settled(project.settings, common.variables, [])
    found = tracing.traces(declared[address], path, project, settings, declared)
    there = _live(common, address, found) if live else [None] * len(found)
    talk.answer(origins.text(str(address), found, there, talk.width()))
    return exits.DONE


def _addressed(what: str, declared: Mapping[Address, Declaration]) -> tuple[Address, str]:
    """The longest declared address that the text begins with, and the rest."""
    from reconciler.model.address import Address

    kind, _, rest = what.partition("/")
    name = rest
    while Address(kind, name) not in declared:
        name, dot, _ = name.rpartition(".")
        if not dot:
            near = named.nearest(what, (str(each) for each in declared if each.kind == kind))
            near = near or named.nearest(f"{kind}/{rest.partition('.')[0]}", map(str, declared))
            raise click.UsageError(f"{what!r} is not declared; {near or '`reconciler validate` checks what is'}")
    return Address(kind, name), rest[len(name) + 1 :]


def _live(common: options.Options, address: Address, traces: Sequence[Trace]) -> list[LiveValue | None]:
    from reconciler.cli import session
    from reconciler.project import tracing, validation
    from reconciler.rendering.origins import LiveValue

    made = session.run(session.planned(session.opened(common)))
    seen = made.seen.get(address)
    if seen is None:
        return [LiveValue(None) for _ in traces]
    changed = [each for change in made.changes if change.address == address for each in change.fields]
    found: list[LiveValue | None] = []
    for trace in traces:
        about = [
            each
            for each in changed
            if f"{trace.path}.".startswith(f"{each.path}.") or each.path.startswith(f"{trace.path}.")
        ]
        mover = about[0].mover if about else None
        found.append(LiveValue(validation.at(seen.fields, tracing.path_of(trace.path)), mover))
    return found
