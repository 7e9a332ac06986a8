"""Accounts as list responses, converted to what the analysis takes."""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from reconciler import kinds
from reconciler.access.account import Account, Resource
from reconciler.access.compare import Difference, compare
from reconciler.access.programs import Builder
from reconciler.model.snapshot import Live
from reconciler.planning.access import read_fields

Objects = Mapping[str, Sequence[dict[str, Any]]]
"""Live objects by kind. The body of a child has the id of its parent."""


def read_resources(account: Objects) -> Iterator[Resource]:
    for name, bodies in account.items():
        for body in bodies:
            yield _read(name, marshal.dumps(body))


@lru_cache(65536)
def _read(name: str, body: bytes) -> Resource:
    """An object from its kind and its body, which has a fast form here: most accounts have the same objects."""
    kind, found = kinds.get(name), marshal.loads(body)  # noqa: S302 - written by the line above
    parent = str(found[kind.parent.field]) if kind.parent is not None else None
    live = Live(name, str(found.get("id") or found.get("name")), found, parent)
    return Resource(kind, live.id, live.id, read_fields(kind, live))


def compare_accounts(before: Objects, after: Objects, *, builder: Builder | None = None) -> tuple[Difference, ...]:
    """The changes of access. `builder` has the names of the secrets that examples mention."""
    builder = builder or Builder()
    return compare(read_account(before, builder), read_account(after, builder))


def read_account(objects: Objects, builder: Builder | None = None) -> Account:
    return Account(read_resources(objects), builder)
