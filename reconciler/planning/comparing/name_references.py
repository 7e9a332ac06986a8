"""Replaces references by name with references by id, so that a declaration has one natural key either way.

Some kinds refer to another object by its id or, with an alias field, by its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.canonical import read
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.value import Ref, Value

if TYPE_CHECKING:
    from reconciler.model.snapshot import Live


def resolve_names(
    declarations: Mapping[Address, Declaration],
    kinds: Mapping[str, Kind],
    live: Callable[[str], Iterable[Live]] = lambda kind: (),
) -> dict[Address, Declaration]:
    """The declarations that refer to an object by name, rewritten to refer to it by id; the others are left out.

    A name is that of a declared object, or else of the object that live objects of the declaration's kind name so.
    `live` returns the live objects of a kind.
    """
    resolved: dict[Address, Declaration] = {}
    for kind in kinds.values():
        alias = kind.alias
        if alias is None or alias.name_of is None:
            continue
        id_field = kind.by_name[alias.name_of]
        referring = [
            declaration
            for address, declaration in declarations.items()
            if address.kind == kind.name
            and declaration.spec.get(alias.name)
            and alias.name not in declaration.lifecycle.ignore
        ]
        names = _find_names(id_field, declarations, kinds) if referring else {}
        ids = _find_ids(alias, id_field, live(kind.name)) if referring else {}
        for declaration in referring:
            name = declaration.spec[alias.name]
            target = _find_target(name, kinds) or names.get(name) or ids.get(name)
            if target is not None:
                resolved[declaration.address] = _refer_to(declaration, alias, id_field, target)
    return resolved


def _find_names(
    id_field: Field, declarations: Mapping[Address, Declaration], kinds: Mapping[str, Kind]
) -> dict[Value, Ref]:
    """A reference to each declared object that the field may refer to, by name; of two with one name the first."""
    names: dict[Value, Ref] = {}
    for address in sorted(address for address in declarations if address.kind in id_field.refs):
        declaration = declarations[address]
        (name,) = kinds[address.kind].identity
        if declaration.ensure is Ensure.PRESENT and isinstance(declaration.spec.get(name), str):
            names.setdefault(declaration.spec[name], Ref(address))
    return names


def _find_ids(alias: Field, id_field: Field, lives: Iterable[Live]) -> dict[Value, str]:
    """The id for each name, by live objects that show both.

    A name with two ids is left out: an object that is renamed during a refresh may appear under both names.
    """
    ids_by_name: dict[Value, set[str]] = defaultdict(set)
    for live in lives:
        name, id = read(alias, live.body), read(id_field, live.body)
        if isinstance(name, str) and isinstance(id, str):
            ids_by_name[name].add(id)
    return {name: ids.pop() for name, ids in ids_by_name.items() if len(ids) == 1}


def _find_target(value: Value, kinds: Mapping[str, Kind]) -> Ref | None:
    """A reference to the id, for a reference to the name of a declared object."""
    if not isinstance(value, Ref):
        return None
    kind = kinds.get(value.target.kind)
    return Ref(value.target) if kind is not None and kind.identity == (value.output,) else None


def _refer_to(declaration: Declaration, alias: Field, id_field: Field, target: Value) -> Declaration:
    spec = {name: value for name, value in declaration.spec.items() if name != alias.name}
    positions = {**declaration.positions, ("spec", id_field.name): declaration.at(alias.name)}
    return replace(declaration, spec={**spec, id_field.name: target}, positions=positions)
