"""The registry of resource kinds: finds kinds by name, and lists them by where their objects live.

`catalog/tls_edge.py` declares the kind `TLSEdge` as its `KIND`; the files of the folder `catalog` are the registry. A
kind is imported on first use. Modules of kinds do without `from __future__ import annotations`, because each
annotation would have to be compiled from text.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache

from reconciler.kinds import catalog
from reconciler.model.kind import Home, Kind

RENAMED: Mapping[str, str] = {"ServiceUser": "BotUser"}
"""Kinds that a manifest may not declare any more, with the kind that has their objects now."""

_FILES = ("agent_config",)  # modules of kinds whose objects are files; a plan has none, and their import takes long


@cache
def find(name: str) -> Kind | None:
    """The kind with this name, or None."""
    try:
        module = importlib.import_module(f"{catalog.__name__}.{_module_name(name)}")
    except ModuleNotFoundError:
        return None
    kind = getattr(module, "KIND", None)
    return kind if isinstance(kind, Kind) and kind.name == name else None


def get(name: str) -> Kind:
    """The kind with this name; KeyError if there is none."""
    kind = find(name)
    if kind is None:
        raise KeyError(name)
    return kind


@cache
def every() -> tuple[Kind, ...]:
    """The kinds behind the management API, sorted by name."""
    return tuple(kind for kind in list_planned() if kind.home is Home.PLATFORM)


@cache
def list_planned() -> tuple[Kind, ...]:
    """The kinds that plans can change: those of the platform and those of an agent, sorted by name."""
    return tuple(kind for kind in _load(skipped=_FILES) if kind.home is not Home.FILE)


@cache
def declarable() -> tuple[Kind, ...]:
    """All kinds that a manifest may declare, sorted by name."""
    return _load()


def _load(skipped: Collection[str] = ()) -> tuple[Kind, ...]:
    names = [module.name for module in pkgutil.iter_modules(catalog.__path__) if module.name not in skipped]
    found: Iterator[Kind] = (importlib.import_module(f"{catalog.__name__}.{name}").KIND for name in names)
    return tuple(sorted(found, key=lambda kind: kind.name))


def children(kind: Kind) -> tuple[Kind, ...]:
    """The kinds whose objects are children of objects of this kind, sorted by name."""
    return tuple(child for child in every() if child.part_of is not None and child.part_of.kind == kind.name)


@cache
def inline_children(name: str) -> Mapping[str, Kind]:
    """The kinds of children that a manifest of the kind `name` can declare, by the key of their map."""
    parts = (kind for kind in every() if kind.part_of is not None and kind.part_of.kind == name)
    return {kind.part_of.inline: kind for kind in parts if kind.part_of is not None and kind.part_of.inline}


def with_children() -> tuple[str, ...]:
    """The names of the kinds that have children, sorted."""
    return tuple(sorted({kind.part_of.kind for kind in every() if kind.part_of is not None}))


def _module_name(name: str) -> str:
    """The module that declares a kind: `https_edge_route` for `HTTPSEdgeRoute`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
