"""Lays layers of one document over each other by JSON merge patch (RFC 7396), and keeps where each value came from.

A map merges with a map, null takes away, anything else takes the place of what lies below. `{ref: …}` and the like are
values and no maps: they are replaced whole. Knows nothing of what the layers are for.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from reconciler.model.manifest import Path
from reconciler.model.problem import Position
from reconciler.model.value import Json
from reconciler.project.documents import phrases
from reconciler.project.yaml.positions import Again, Places
from reconciler.project.yaml.reader import Document


class Role(StrEnum):
    """What a layer is to the reader of an explanation."""

    DEFAULTS = "defaults of the kind"
    MANIFEST = "manifest"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A value in a file, or the key that it has there: where it was written, and how it is found there."""

    places: Places
    path: Path
    of_key: bool = False

    @property
    def position(self) -> Position:
        return self.places.key(self.path) if self.of_key else self.places.nearest(self.path)

    @property
    def written_value(self) -> Json:
        return self.path[-1] if self.of_key else find_path(self.places.root, self.path)[0]

    def below(self, part: str | int) -> SourceLocation:
        return SourceLocation(self.places, (*self.path, part))


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's value, written in `places` at `below`.

    grafts    values that were put in whole, and where they were written
    fed       of a value with something put in, where that was written
    """

    role: Role
    value: Json
    places: Places
    below: Path = ()
    grafts: Mapping[Path, SourceLocation] = field(default_factory=dict)
    fed: Mapping[Path, Sequence[SourceLocation]] = field(default_factory=dict)

    def spot(self, path: Path) -> SourceLocation:
        for length in range(len(path), -1, -1) if self.grafts else ():
            if (graft := self.grafts.get(path[:length])) is not None:
                return SourceLocation(graft.places, (*graft.path, *path[length:]))
        return self.template(path)

    def template(self, path: Path) -> SourceLocation:
        """As before anything was put in."""
        return SourceLocation(self.places, (*self.below, *path))


def is_atom(value: Json) -> bool:
    """Whether it is replaced whole, and never merged into."""
    return not isinstance(value, dict) or (len(value) == 1 and next(iter(value)) in phrases.EXPRESSIONS)


def apply_patch(value: Json, patch: Json, *, keep_nulls: bool = False) -> Json:
    """The value with the patch applied; neither is changed. `keep_nulls`: a null that takes nothing away stays."""
    if is_atom(patch):
        return patch
    merged = {} if is_atom(value) else dict(value)
    for key, item in patch.items():
        if item is not None:
            merged[key] = apply_patch(merged.get(key), item, keep_nulls=keep_nulls)
        elif key in merged:
            del merged[key]
        elif keep_nulls:
            merged[key] = None
    return merged


class MergedDocument(Places):
    """The places of a document made of layers, the topmost last; `own` is the layer that the document is."""

    __slots__ = ("layers", "own")

    def __init__(self, root: Json, layers: Sequence[Layer], own: Layer) -> None:
        super().__init__(own.places.start.file, root, array("Q", [0]))
        self.layers = tuple(layers)
        self.own = own

    def release(self, again: Again) -> None:
        """Nothing: its layers are those of other documents as well."""

    def layer(self, path: Path) -> Layer:
        """The layer that a value comes from; of a map that several write, the document's own, or else the lowest.
        KeyError if there is no such value."""
        if not find_path(self.root, path)[1]:
            raise KeyError(path)
        found = None
        for layer in reversed(self.layers):
            value, is_whole = find_path(layer.value, path)
            if is_atom(value):
                found = found or (layer if is_whole else None)
                break
            if is_whole:
                found = found if found is self.own else layer
        if found is None:
            raise KeyError(path)
        return found

    def __getitem__(self, path: Path) -> Position:
        spot = self.layer(path).spot(path)
        return spot.places[spot.path]

    def key(self, path: Path) -> Position:
        spot = self.layer(path).spot(path)
        return spot.places.key(spot.path)

    @property
    def start(self) -> Position:
        return self.own.spot(()).position

    def __contains__(self, path: object) -> bool:
        try:
            self[path]  # type: ignore[index]  # anything may be asked for
        except (KeyError, TypeError):
            return False
        return True

    def __iter__(self) -> Iterator[Path]:
        return (path for path in super().__iter__() if path in self)


def merge(layers: Sequence[Layer], own: Layer, *, sound: bool = True) -> Document:
    """The document of these layers, the topmost last."""
    first, *rest = layers
    value = first.value
    for layer in rest:
        value = apply_patch(value, layer.value, keep_nulls=layer is own)
    return Document(value, MergedDocument(value, layers, own), sound)


def layers_of(places: Mapping[Path, Position]) -> tuple[Layer, ...]:
    """What a document is made of: of most, the one layer that it is."""
    if isinstance(places, MergedDocument):
        return places.layers
    return (Layer(Role.MANIFEST, places.root, places),) if isinstance(places, Places) else ()


def find_path(value: Json, path: Path) -> tuple[Json, bool]:
    """The value at the path, or that at which the path leaves the layer; and which of the two it is."""
    here = value
    part: Any
    for part in path:
        if here.__class__ not in (dict, list):
            return here, False
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            return here, False
    return here, True
