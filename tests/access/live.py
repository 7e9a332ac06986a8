"""Accounts as list responses, converted to what the analysis takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler import kinds
from reconciler.access.account import Account, Resource
from reconciler.access.compare import Difference, compare
from reconciler.access.programs import Builder
from reconciler.model.snapshot import Live
from reconciler.planning.access import read_fields

Objects = Mapping[str, Sequence[Mapping[str, Any]]]
"""Live objects by kind. The body of a child has the id of its parent."""


def read_resources(account: Objects) -> Iterator[Resource]:
    for name, bodies in account.items():
        kind = kinds.get(name)
        for body in bodies:
            parent = str(body[kind.parent.field]) if kind.parent is not None else None
            live = Live(name, str(body.get("id") or body.get("name")), body, parent)
            yield Resource(kind, live.id, live.id, read_fields(kind, live))


def compare_accounts(before: Objects, after: Objects, *, builder: Builder | None = None) -> tuple[Difference, ...]:
    """The changes of access. `builder` has the names of the secrets that examples mention."""
    builder = builder or Builder()
    return compare(Account(read_resources(before), builder), Account(read_resources(after), builder))
