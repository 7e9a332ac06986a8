"""Finds objects that are declared twice: by id or by unique key."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Position, Problem
from reconciler.model.value import Ref, Template, canonical, has_secret
from reconciler.planning.comparing.name_references import resolve_names
from reconciler.project.documents.envelope import Draft
from reconciler.project.documents.merge import MergedDocument
from reconciler.project.manifests.checks.by_kind import ByKind


def find_duplicate_objects(by_kind: ByKind) -> Iterator[Problem]:
    """Reports declarations of the same object: equal ids, or equal values in fields that are unique on the platform."""
    by_id: dict[tuple[str, str], Declaration] = {}
    by_key: dict[tuple[str, Hashable], Declaration] = {}
    named = _resolve_names(by_kind)
    for kind, declarations in by_kind.items():
        for declaration in declarations:
            if declaration.ensure is not Ensure.PRESENT:
                continue
            if declaration.id is not None:
                first = by_id.setdefault((kind.name, declaration.id), declaration)
                if first is not declaration:
                    yield _report_duplicate(
                        declaration,
                        first,
                        f"id ({declaration.id})",
                        declaration.positions.get(("id",), declaration.position),
                    )
            key = _identity_key(named.get(declaration.address, declaration), kind) if kind.unique else None
            if key is None or (first := by_key.setdefault((kind.name, key), declaration)) is declaration:
                continue
            if kind.is_unique(declaration.spec) or kind.is_unique(first.spec):
                what, share = ", ".join(kind.identity), kind.identity_shared_while
                remedy = f"keep one of the two, or set {share} in both" if share else "keep one of the two"
                yield _report_duplicate(declaration, first, what, declaration.at(kind.identity[-1]), remedy)


def _resolve_names(by_kind: ByKind) -> Mapping[Address, Declaration]:
    catalog = {kind.name: kind for kind in by_kind}
    if not any(kind.alias for kind in by_kind):
        return {}
    return resolve_names(
        {declaration.address: declaration for declarations in by_kind.values() for declaration in declarations}, catalog
    )


def _report_duplicate(
    second: Declaration, first: Declaration, what: str, where: Position, remedy: str = "keep one of the two"
) -> Problem:
    text = f"has the same {what} as {first.address} ({first.position})"
    return Problem(
        text, remedy, str(second.address), where, code="duplicate-object", values={"first": str(first.address)}
    )


def _identity_key(declaration: Declaration, kind: Kind) -> Hashable | None:
    """The natural key of an object; None if it is known only after an apply."""
    if not kind.identity:
        return None
    parts: list[Hashable] = []
    for name in kind.identity:
        field = kind.by_name[name]
        value = declaration.spec.get(name, field.default)
        if value.__class__ is Ref:
            parts.append((value.target, value.output))
        elif value.__class__ is not str and (value is None or isinstance(value, Template) or has_secret(value)):
            return None
        else:
            own = field.canonical(value) if field.canonical else value
            parts.append(own if own.__class__ is str else canonical(own))
    return tuple(parts)


def report_duplicate_address(second: Draft, first: Declaration) -> Problem:
    """The problem of a second manifest with the address of a declaration."""
    return Problem(
        f"declared twice, first at {first.position}",
        "rename or remove one",
        second.subject,
        second.document.places.nearest(("name",)),
        code="duplicate-address",
        values={"first": str(first.position)},
    )


def find_conflicting_moves(declarations: Mapping[Address, Declaration]) -> Iterator[Problem]:
    """Reports former addresses that another declaration has now, or also lists in `moved`."""
    claimed: dict[Address, Declaration] = {}
    for declaration in declarations.values():
        for before in declaration.moved:
            where = declaration.positions.get(("moved",), declaration.position)
            other = declarations.get(before) or claimed.setdefault(before, declaration)
            if other is not declaration:
                text = (
                    f"{before} is still declared ({other.position})"
                    if before == other.address
                    else f"{before} is also a former address of {other.address} ({other.position})"
                )
                subject, values = f"{declaration.address}.moved", {"first": str(other.address)}
                is_one_line = before != other.address and other.positions.get(("moved",)) == where
                remedy = _advise_item(declaration) if is_one_line else "remove one of the two"
                yield Problem(text, remedy, subject, where, code="invalid-move", values=dict(values))


def _advise_item(declaration: Declaration) -> str:
    """The remedy for a former name that every item of `for_each` has."""
    own = declaration.positions.own if isinstance(declaration.positions, MergedDocument) else None
    if own is None or own.is_entry:
        return "write ${{ each.key }} where the former names differ"
    written = own.spot(("moved",)).written_value
    former = next((str(name) for name in (written if isinstance(written, list) else [written])), "OLDNAME")
    return f"name the item that had it: moved: {{KEY: {former}}}"
