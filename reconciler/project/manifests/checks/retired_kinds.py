"""Warns of kinds that the platform has retired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.model.dialect import Dialect
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Problem, Severity


def find_retired_kinds(declarations: Iterable[Declaration], profile: Dialect) -> Iterator[Problem]:
    """Kinds that the platform of this profile no longer offers, each told once."""
    found: dict[str, list[Declaration]] = {}
    for declaration in declarations:
        if declaration.address.kind in profile.retired and declaration.ensure is Ensure.PRESENT:
            found.setdefault(declaration.address.kind, []).append(declaration)
    for kind, those in found.items():
        more = f"; {len(those)} are declared" if len(those) > 1 else ""
        text = f"{profile.name} no longer creates objects of the kind {kind} ({profile.retired_code}){more}"
        remedy = "declare a CloudEndpoint with a traffic policy instead"
        first = those[0]
        yield Problem(text, remedy, str(first.address), first.position, Severity.WARNING, code="retired-kind")
