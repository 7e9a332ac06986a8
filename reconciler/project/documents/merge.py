"""Merges the layers of a document (defaults, manifest, environment) by JSON merge patch (RFC 7396), with positions.

Maps are merged, null removes a key, any other value replaces the one below. `{ref: …}`, `{from_env: …}` and
`{from_file: …}` are values, not maps: they are replaced as a whole.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from reconciler.languages.yaml.positions import Places
from reconciler.languages.yaml.reader import Document
from reconciler.model.manifest import Path
from reconciler.model.problem import Position
from reconciler.model.value import Json
from reconciler.project.documents import entries, phrases
from reconciler.project.documents.scope import Scope


class Role(StrEnum):
    """What a layer is called in `explain`."""

    DEFAULTS = "defaults of the kind"
    MANIFEST = "manifest"
    ENVIRONMENT = "environment"


class SourceLocation(Struct, frozen=True):
    """A value in a file, or its key: the positions of its document and its path there.

    scope   the use of the component whose file it is; None in manifests and settings
    """

    places: Places
    path: Path
    of_key: bool = False
    scope: Scope | None = None

    @property
    def position(self) -> Position:
        return self.places.key(self.path) if self.of_key else self.places.nearest(self.path)

    @property
    def written_value(self) -> Json:
        return self.path[-1] if self.of_key else find_path(self.places.root, self.path)[0]

    def below(self, part: str | int) -> SourceLocation:
        return SourceLocation(self.places, (*self.path, part), scope=self.scope)


class Layer(Struct, frozen=True):
    """One layer: a value from the document `places`, at the path `below`.

    grafts    by path in that document, the source of each value that `for_each` or an input inserted as a whole
    fed       by path in that document, the sources of the texts that `for_each` or an input inserted into a value
    is_entry  the value there is an entry of inline children: the fields of the spec stand beside the other keys
    scope     the use of the component whose file the document is in
    """

    role: Role
    value: Json
    places: Places
    below: Path = ()
    grafts: Mapping[Path, SourceLocation] = field(default_factory=dict)
    fed: Mapping[Path, Sequence[SourceLocation]] = field(default_factory=dict)
    is_entry: bool = False
    scope: Scope | None = None

    def spot(self, path: Path) -> SourceLocation:
        source = self.source(path)
        for length in range(len(source), -1, -1) if self.grafts else ():
            if (graft := self.grafts.get(source[:length])) is not None:
                return SourceLocation(graft.places, (*graft.path, *source[length:]), scope=graft.scope)
        return SourceLocation(self.places, source, scope=self.scope)

    def template(self, path: Path) -> SourceLocation:
        """The location in the manifest itself, before `for_each` inserted values."""
        return SourceLocation(self.places, self.source(path), scope=self.scope)

    def source(self, path: Path) -> Path:
        """The path in the document `places`."""
        return (*self.below, *(entries.to_entry(path) if self.is_entry else path))

    def path_of(self, source: Path) -> Path:
        """The path in the layer's value of a path in the document `places`."""
        below = source[len(self.below) :]
        return entries.to_manifest(below) if self.is_entry else below

    @property
    def start(self) -> Position:
        """The position of the beginning: of an entry, that of its key, or of the nearest key around it."""
        path = self.below if self.is_entry else ()
        while path and path not in self.places:
            path = path[:-1]
        return self.places.key(path) if self.is_entry else self.spot(()).position


def is_atom(value: Json) -> bool:
    """Whether a value is replaced as a whole, never merged: everything but maps, and `{ref: …}` and the like."""
    return not isinstance(value, dict) or (len(value) == 1 and next(iter(value)) in phrases.EXPRESSIONS)


def apply_patch(value: Json, patch: Json, *, keep_nulls: bool = False) -> Json:
    """Returns the value with the patch applied; modifies neither. `keep_nulls`: keeps a null that removes nothing."""
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
    """Positions of a merged document. `layers` are ordered, the topmost last; `own` is the manifest itself."""

    __slots__ = ("layers", "own")

    def __init__(self, root: Json, layers: Sequence[Layer], own: Layer) -> None:
        super().__init__(own.places.start.file, root, array("Q", [0]))
        self.layers = tuple(layers)
        self.own = own

    def layer(self, path: Path) -> Layer:
        """The layer that a value comes from. For a map merged from several: the document's own layer, else the lowest.

        Raises KeyError if there is no value at the path.
        """
        if not find_path(self.root, path)[1]:
            raise KeyError(path)
        source = None
        for layer in reversed(self.layers):
            value, is_whole = find_path(layer.value, path)
            if is_atom(value):
                source = source or (layer if is_whole else None)
                break
            if is_whole:
                source = source if source is self.own else layer
        if source is None:
            raise KeyError(path)
        return source

    def __getitem__(self, path: Path) -> Position:
        if not path:
            return self.start
        spot = self.layer(path).spot(path)
        return spot.places[spot.path]

    def key(self, path: Path) -> Position:
        spot = self.layer(path).spot(path)
        return spot.places.key(spot.path)

    @property
    def start(self) -> Position:
        return self.own.start

    def __contains__(self, path: object) -> bool:
        try:
            self[path]  # type: ignore[index]  # any object can be asked for
        except (KeyError, TypeError):
            return False
        return True

    def __iter__(self) -> Iterator[Path]:
        return (path for path in super().__iter__() if path in self)


def merge(layers: Sequence[Layer], own: Layer, *, sound: bool = True) -> Document:
    """Merges layers, the topmost last, into one document."""
    first, *rest = layers
    value = first.value
    for layer in rest:
        value = apply_patch(value, layer.value, keep_nulls=layer is own)
    return Document(value, MergedDocument(value, layers, own), sound)


def layers_of(places: Mapping[Path, Position]) -> tuple[Layer, ...]:
    """The layers of a document; a document that was not merged is its only layer."""
    if isinstance(places, MergedDocument):
        return places.layers
    return (Layer(Role.MANIFEST, places.root, places),) if isinstance(places, Places) else ()


def own_layer(document: Document) -> Layer:
    """The layer of the manifest itself, without defaults and patches."""
    if isinstance(document.places, MergedDocument):
        return document.places.own
    return Layer(Role.MANIFEST, document.value, document.places)


def scope_of(places: Mapping[Path, Position]) -> Scope | None:
    """The use of the component that declares a document; None for one of a manifest."""
    return places.own.scope if isinstance(places, MergedDocument) else None


def scopes_in(places: Mapping[Path, Position]) -> Callable[[Path], Scope | None] | None:
    """The use of the component whose file has the value at a path of the spec; None if no component has a part in it.

    A value that an input inserted is not of the component, but of the file that gave it.
    """
    if not isinstance(places, MergedDocument) or places.own.scope is None:
        return None

    def find(path: Path) -> Scope | None:
        full: Path = ("spec", *path)
        while not find_path(places.root, full)[1]:
            full = full[:-1]
        return places.layer(full).spot(full).scope

    return find


def find_path(value: Json, path: Path) -> tuple[Json, bool]:
    """Returns the value at the path and True, or the last value on the way and False."""
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
