"""The form of a child that is declared inline in the manifest of its parent: an entry of a map, by its name.

An entry has the fields of the child's spec, and beside them the keys of a manifest. The parent and the kind are known,
and the name is that of the parent, a dash, and the entry's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.manifest import Path
from reconciler.model.value import Json

KEYS: Final = ("when", "id", "ensure", "moved", "lifecycle", "deliver", "rotate")
"""Keys of a manifest that an entry can have. No kind of children has a field of such a name."""


def to_entry(path: Path) -> Path:
    """The path in an entry of a path in the manifest that it stands for."""
    if path[:1] == ("spec",):
        return path[1:]
    return () if path[:1] in (("kind",), ("name",)) else path


def to_manifest(path: Path) -> Path:
    """The path in the manifest that an entry stands for, of a path in the entry."""
    return path if path[:1] and path[0] in KEYS else ("spec", *path)


def address_of(child: Kind, parent: str, key: str) -> Address:
    """The address of an entry. `parent` is the name of the parent."""
    return Address(child.name, f"{parent}-{key}")


def to_values(entry: Mapping[str, Json]) -> dict[str, Json]:
    """The values of the manifest that an entry stands for, without kind, name and parent."""
    values: dict[str, Json] = {key: item for key, item in entry.items() if key in KEYS}
    return {**values, "spec": {key: item for key, item in entry.items() if key not in KEYS}}
