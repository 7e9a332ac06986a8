"""Warns of kinds that the platform has retired: it no longer creates objects of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.model.dialect import Dialect
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Problem, Severity


def find_retired_kinds(declarations: Iterable[Declaration], profile: Dialect) -> Iterator[Problem]:
    """Warns once for each declared kind that the platform of this profile has retired."""
    by_kind: dict[str, list[Declaration]] = {}
    for declaration in declarations:
        if declaration.address.kind in profile.retired and declaration.ensure is Ensure.PRESENT:
            by_kind.setdefault(declaration.address.kind, []).append(declaration)
    for kind, retired in by_kind.items():
        more = f"; {len(retired)} are declared" if len(retired) > 1 else ""
        text = f"{profile.name} no longer creates objects of the kind {kind} ({profile.retired_code}){more}"
        remedy = "declare a CloudEndpoint with a traffic policy instead"
        first = retired[0]
        yield Problem(text, remedy, str(first.address), first.position, Severity.WARNING, code="retired-kind")
