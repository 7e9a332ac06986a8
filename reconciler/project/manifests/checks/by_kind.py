"""Groups declarations by kind, the form that most checks read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler import kinds
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration

ByKind = Mapping[Kind, Sequence[Declaration]]


def group_by_kind(declarations: Iterable[Declaration]) -> ByKind:
    groups: dict[Kind, list[Declaration]] = {}
    for declaration in declarations:
        groups.setdefault(kinds.get(declaration.address.kind), []).append(declaration)
    return groups
