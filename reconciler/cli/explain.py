"""`reconciler explain Kind[.field]`: what a kind is for, a field of it, or a word beside its spec. `explain
Kind/name[.field]`: where what is declared of a resource comes from, and with --live what the platform holds.
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
    from reconciler.model.kind import Field, Kind
    from reconciler.model.manifest import Declaration, Manifest
    from reconciler.model.origin import Trace
    from reconciler.model.snapshot import Snapshot
    from reconciler.model.value import Value
    from reconciler.rendering.origins import LiveValue


@click.command(
    cls=Command,
    examples="""
        reconciler explain TLSEdge
        reconciler explain TLSEdge.tls_termination.min_version
        reconciler explain TLSEdge.moved
        reconciler explain TLSEdge/payments.hostports --env prod
    """,
)
@click.argument("what", metavar="KIND[/NAME][.FIELD]", shell_complete=named.complete)
@click.option("--live", is_flag=True, help="Of a resource: ask the platform too, and say who moved what differs.")
@options.offline
def command(common: options.Options, what: str, live: bool) -> int:
    """Say what a kind, a field or a word beside its spec is for, or where a resource's values come from."""
    if "/" in what:
        return _resource(common, what, live=live)
    if live:
        raise click.UsageError("--live is about a resource; name one, as in TLSEdge/payments")
    from reconciler.rendering import cells, reference

    name, _, path = what.partition(".")
    kind = named.kind(name)
    if not path:
        talk.answer(reference.page(kind, talk.width()))
        words = ", ".join(
            each for each in _beside_spec() if each not in ("kind", "name", "spec") and not _not_taken(kind, each)
        )
        talk.answer("\n".join(("", *cells.wrap(f"Beside spec: {words}", talk.width()))))
        return exits.DONE
    word = path.partition(".")[0]
    beside = {} if word in kind.by_name else _beside_spec()
    if word not in beside:
        talk.answer(reference.field_page(kind, path, named.field(kind, path), talk.width()))
        return exits.DONE
    page = reference.field_page(kind, path, _inside(beside[word], kind, path), talk.width())
    note = _not_taken(kind, word) or "It stands beside spec; docs/manifests.md has an example of each such word."
    talk.answer("\n".join((page, "", *cells.wrap(note, talk.width()))))
    return exits.DONE


def _beside_spec() -> Mapping[str, Field]:
    """What a manifest may say besides its spec."""
    from reconciler.model.kind import Field, Shape, fields_of
    from reconciler.project import envelope, expansion

    doc = "A list, a map, or a ${{ var.NAME }} that holds one: one resource for each item, by ${{ each.key }}."
    words = (*fields_of(envelope.ManifestForm), Field(expansion.KEY, Shape.ANY, doc))
    return {each.name: each for each in words}


def _inside(field: Field, kind: Kind, path: str) -> Field:
    """What a path below one of these words leads to; `deliver.token.to_file` and `deliver.to_file` are the same."""
    before = f"{kind.name}.{field.name}"
    for name in path.split(".")[1:]:
        if field.name == "deliver" and name == kind.one_time:
            continue
        within = field.fields or (field.item.fields if field.item else ())
        found = next((each for each in within if each.name == name), None)
        if found is None:
            known = [each.name for each in within]
            near = named.nearest(name, known) or f"it has {', '.join(known) or 'nothing inside'}"
            raise click.UsageError(f"there is no {name!r} in {before}; {near}")
        field, before = found, f"{before}.{name}"
    return field


def _not_taken(kind: Kind, word: str) -> str:
    """Why this kind's manifests do not say the word; nothing if they may."""
    from reconciler.model.kind import Home

    if kind.home is Home.FILE and word not in ("kind", "name", "spec", "for_each"):
        return f"{kind.name} is rendered to a file, and is no object to have this."
    if word in ("deliver", "rotate") and kind.one_time is None:
        return f"{kind.name} has no one-time secret, and takes no {word}."
    return ""


def _resource(common: options.Options, what: str, *, live: bool) -> int:
    from reconciler.project import config, manifests, tracing, variables
    from reconciler.rendering import origins

    project = config.load(common.project, os.environ, common.environment)
    loaded = manifests.load(project, os.environ, common.variables)
    declared = {**loaded.manifest.declarations, **loaded.rendered}
    address, dotted = _addressed(what, declared)
    path = tracing.path_of(dotted)
    named.check_path(named.kind(address.kind), path)
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
    """What the platform holds at each trace's path; None where no answer ever shows it."""
    from reconciler.cli import session
    from reconciler.model.kind import InputOnly
    from reconciler.project import tracing, validation
    from reconciler.rendering.origins import LiveValue

    asked = session.opened(common)
    snapshot = session.run(session.seen(asked))
    held = _held(asked.manifest, snapshot, address)
    listing = snapshot.of(address.kind)
    if not held and not listing.complete:
        talk.say(f"note: what the platform has of {address.kind} is not known: {listing.why}")
        return [None] * len(traces)
    changed = [each for change in asked.plan(snapshot).changes if change.address == address for each in change.fields]
    fields = named.kind(address.kind).fields
    found: list[LiveValue | None] = []
    for trace in traces:
        path = tracing.path_of(trace.path)
        field, _ = validation.field_at(fields, path)
        if held and field is not None and InputOnly in field:
            found.append(None)
            continue
        about = [
            each
            for each in changed
            if f"{trace.path}.".startswith(f"{each.path}.") or each.path.startswith(f"{trace.path}.")
        ]
        mover = about[0].mover if about else None
        value = tracing.shown(address.kind, path, validation.at(held, path))
        found.append(LiveValue(value, mover if held else None))
    return found


def _held(manifest: Manifest, snapshot: Snapshot, address: Address) -> Mapping[str, Value]:
    """The object that a declaration means, in the write shape and without secrets; nothing if there is none."""
    from reconciler import kinds
    from reconciler.planning import compare, normalize, planner

    meant = {whose: key for key, whose in planner.paired(manifest, snapshot, kinds.planned()).items()}
    live = next((each for each in snapshot.of(address.kind).objects if each.key == meant.get(address)), None)
    kind = kinds.get(address.kind)
    return {} if live is None else compare.shown(kind, normalize.seen(kind, live), address)
