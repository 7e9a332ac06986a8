"""Puts references in the place of names: one object has one identity, whichever way its declaration spells it, and what
is referred to may come to be called otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from reconciler.model.address import Address
from reconciler.model.canonical import read
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.snapshot import Live
from reconciler.model.value import Ref, Value


def resolve_names(
    declarations: Mapping[Address, Declaration],
    kinds: Mapping[str, Kind],
    live: Callable[[str], Iterable[Live]] = lambda kind: (),
) -> dict[Address, Declaration]:
    """The declarations that refer to something by its name, as they would by its id: to what is declared under that
    name, or else to what live objects of their kind say bears it."""
    found: dict[Address, Declaration] = {}
    for kind in kinds.values():
        alias = kind.alias
        if alias is None or alias.name_of is None:
            continue
        meant = kind.by_name[alias.name_of]
        referring = [
            each
            for address, each in declarations.items()
            if address.kind == kind.name and each.spec.get(alias.name) and alias.name not in each.lifecycle.ignore
        ]
        names = _find_names(meant, declarations, kinds) if referring else {}
        ids = _find_ids(alias, meant, live(kind.name)) if referring else {}
        for each in referring:
            said = each.spec[alias.name]
            target = _find_target(said, kinds) or names.get(said) or ids.get(said)
            if target is not None:
                found[each.address] = _refer_to(each, alias, meant, target)
    return found


def _find_names(
    meant: Field, declarations: Mapping[Address, Declaration], kinds: Mapping[str, Kind]
) -> dict[Value, Ref]:
    found: dict[Value, Ref] = {}
    for address in sorted(address for address in declarations if address.kind in meant.refs):
        each = declarations[address]
        (name,) = kinds[address.kind].identity
        if each.ensure is Ensure.PRESENT and isinstance(each.spec.get(name), str):
            found.setdefault(each.spec[name], Ref(address))
    return found


def _find_ids(alias: Field, meant: Field, lives: Iterable[Live]) -> dict[Value, str]:
    """What is renamed while lists are read may lend its name to two: then nobody knows."""
    found: dict[Value, set[str]] = defaultdict(set)
    for live in lives:
        name, id = read(alias, live.body), read(meant, live.body)
        if isinstance(name, str) and isinstance(id, str):
            found[name].add(id)
    return {name: ids.pop() for name, ids in found.items() if len(ids) == 1}


def _find_target(said: Value, kinds: Mapping[str, Kind]) -> Ref | None:
    """Of a reference to somebody's name."""
    kind = kinds.get(said.target.kind) if isinstance(said, Ref) else None
    return Ref(said.target) if kind is not None and kind.identity == (said.output,) else None


def _refer_to(declaration: Declaration, alias: Field, meant: Field, target: Value) -> Declaration:
    spec = {name: value for name, value in declaration.spec.items() if name != alias.name}
    where = {**declaration.positions, ("spec", meant.name): declaration.at(alias.name)}
    return replace(declaration, spec={**spec, meant.name: target}, positions=where)
