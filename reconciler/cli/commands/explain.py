"""`reconciler explain Kind[.field]`: what a kind is for, a field of it, or a word beside its spec. `explain
Kind/name[.field]`: where what is declared of a resource comes from, and with --live what the platform holds.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, lookup, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconciler.model.address import Address
    from reconciler.model.kind import Field, Kind
    from reconciler.model.manifest import Declaration, Manifest
    from reconciler.model.provenance import Trace
    from reconciler.model.snapshot import Snapshot
    from reconciler.model.value import Value
    from reconciler.rendering.provenance import LiveValue


@click.command(
    cls=Command,
    examples="""
        reconciler explain TLSEdge
        reconciler explain TLSEdge.tls_termination.min_version
        reconciler explain TLSEdge.moved
        reconciler explain TLSEdge/payments.hostports --env prod
    """,
)
@click.argument("what", metavar="KIND[/NAME][.FIELD]", shell_complete=lookup.complete)
@click.option("--live", is_flag=True, help="Of a resource: ask the platform too, and say who moved what differs.")
@options.offline
def command(common: options.Options, what: str, live: bool) -> int:
    """Say what a kind, a field or a word beside its spec is for, or where a resource's values come from."""
    if "/" in what:
        return _resource(common, what, live=live)
    if live:
        raise click.UsageError("--live is about a resource; name one, as in TLSEdge/payments")
    from reconciler.rendering import terminal_text
    from reconciler.rendering.reference import terminal as reference

    name, _, path = what.partition(".")
    kind = lookup.kind(name)
    if not path:
        output.answer(reference.page(kind, output.width()))
        words = ", ".join(
            each for each in _beside_spec() if each not in ("kind", "name", "spec") and not _not_taken(kind, each)
        )
        output.answer("\n".join(("", *terminal_text.wrap(f"Beside spec: {words}", output.width()))))
        return exit_codes.DONE
    word = path.partition(".")[0]
    beside = {} if word in kind.by_name else _beside_spec()
    if word not in beside:
        output.answer(reference.field_page(kind, path, lookup.field(kind, path), output.width()))
        return exit_codes.DONE
    page = reference.field_page(kind, path, _inside(beside[word], kind, path), output.width())
    note = _not_taken(kind, word) or "It stands beside spec; docs/manifests.md has an example of each such word."
    output.answer("\n".join((page, "", *terminal_text.wrap(note, output.width()))))
    return exit_codes.DONE


def _beside_spec() -> Mapping[str, Field]:
    """What a manifest may say besides its spec."""
    from reconciler.model.kind import Field, Shape, fields_of
    from reconciler.project.documents import envelope
    from reconciler.project.manifests import for_each

    doc = "A list, a map, or a ${{ var.NAME }} that holds one: one resource for each item, by ${{ each.key }}."
    words = (*fields_of(envelope.ManifestForm), Field(for_each.KEY, Shape.ANY, doc))
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
            near = lookup.nearest(name, known) or f"it has {', '.join(known) or 'nothing inside'}"
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
    from reconciler.project.manifests import load as manifests
    from reconciler.project.manifests import trace as value_trace
    from reconciler.project.settings import config, variables
    from reconciler.rendering import provenance

    project = config.load(common.project, os.environ, common.environment)
    loaded = manifests.load(project, os.environ, common.variables)
    declared = {**loaded.manifest.declarations, **loaded.rendered}
    address, dotted = _addressed(what, declared)
    path = value_trace.path_of(dotted)
    lookup.check_path(lookup.kind(address.kind), path)
    settings = variables.settled(project.settings, common.variables, [])
    found = value_trace.traces(declared[address], path, project, settings, declared)
    there = _live(common, address, found) if live else [None] * len(found)
    output.answer(provenance.text(str(address), found, there, output.width()))
    return exit_codes.DONE


def _addressed(what: str, declared: Mapping[Address, Declaration]) -> tuple[Address, str]:
    """The longest declared address that the text begins with, and the rest."""
    from reconciler.model.address import Address

    kind, _, rest = what.partition("/")
    name = rest
    while Address(kind, name) not in declared:
        name, dot, _ = name.rpartition(".")
        if not dot:
            near = lookup.nearest(what, (str(each) for each in declared if each.kind == kind))
            near = near or lookup.nearest(f"{kind}/{rest.partition('.')[0]}", map(str, declared))
            raise click.UsageError(f"{what!r} is not declared; {near or '`reconciler validate` checks what is'}")
    return Address(kind, name), rest[len(name) + 1 :]


def _live(common: options.Options, address: Address, traces: Sequence[Trace]) -> list[LiveValue | None]:
    """What the platform holds at each trace's path; None where no answer ever shows it."""
    from reconciler.cli import session
    from reconciler.model.kind import InputOnly
    from reconciler.project.documents import validation
    from reconciler.project.manifests import trace as value_trace
    from reconciler.rendering.provenance import LiveValue

    asked = session.opened(common)
    snapshot = session.run(session.seen(asked))
    held = _held(asked.manifest, snapshot, address)
    listing = snapshot.of(address.kind)
    if not held and not listing.complete:
        output.say(f"note: what the platform has of {address.kind} is not known: {listing.why}")
        return [None] * len(traces)
    changed = [each for change in asked.plan(snapshot).changes if change.address == address for each in change.fields]
    fields = lookup.kind(address.kind).fields
    found: list[LiveValue | None] = []
    for trace in traces:
        path = value_trace.path_of(trace.path)
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
        value = value_trace.shown(address.kind, path, validation.at(held, path))
        found.append(LiveValue(value, mover if held else None))
    return found


def _held(manifest: Manifest, snapshot: Snapshot, address: Address) -> Mapping[str, Value]:
    """The object that a declaration means, in the write shape and without secrets; nothing if there is none."""
    from reconciler import kinds
    from reconciler.planning import planner
    from reconciler.planning.comparing import canonical_fields, compare

    meant = {whose: key for key, whose in planner.paired(manifest, snapshot, kinds.planned()).items()}
    live = next((each for each in snapshot.of(address.kind).objects if each.key == meant.get(address)), None)
    kind = kinds.get(address.kind)
    return {} if live is None else compare.shown(kind, canonical_fields.seen(kind, live), address)
