"""The registry of resource kinds: `catalog/tls_edge.py` declares the kind `TLSEdge` as its `KIND`.

A kind is loaded when it is asked for; the listing of the folder `catalog` is the registry. Modules of kinds are without
`from __future__ import annotations`: pydantic has to compile each annotation that is text.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache

from reconciler.kinds import catalog
from reconciler.model.kind import Home, Kind


@cache
def find(name: str) -> Kind | None:
    """The kind of that name, or None."""
    try:
        home = importlib.import_module(f"{catalog.__name__}.{_home(name)}")
    except ModuleNotFoundError:
        return None
    kind = getattr(home, "KIND", None)
    return kind if isinstance(kind, Kind) and kind.name == name else None


def get(name: str) -> Kind:
    """The kind of that name; KeyError if there is none."""
    kind = find(name)
    if kind is None:
        raise KeyError(name)
    return kind


@cache
def every() -> tuple[Kind, ...]:
    """All kinds of the platform, by name."""
    return tuple(kind for kind in declarable() if kind.home is Home.PLATFORM)


@cache
def list_planned() -> tuple[Kind, ...]:
    """All kinds whose objects plans are about: those of the platform and those of an agent, by name."""
    return tuple(kind for kind in declarable() if kind.home is not Home.FILE)


@cache
def declarable() -> tuple[Kind, ...]:
    """All kinds that a manifest may declare, by name."""
    names = [module.name for module in pkgutil.iter_modules(catalog.__path__)]
    found: Iterator[Kind] = (importlib.import_module(f"{catalog.__name__}.{name}").KIND for name in names)
    return tuple(sorted(found, key=lambda kind: kind.name))


def children(kind: Kind) -> tuple[Kind, ...]:
    """The kinds whose objects are part of an object of this kind, by name."""
    return tuple(each for each in every() if each.part_of is not None and each.part_of.kind == kind.name)


def with_children() -> tuple[str, ...]:
    """The names of the kinds that have children, in order."""
    return tuple(sorted({kind.part_of.kind for kind in every() if kind.part_of is not None}))


def _home(name: str) -> str:
    """`HTTPSEdgeRoute` lives in `https_edge_route`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
