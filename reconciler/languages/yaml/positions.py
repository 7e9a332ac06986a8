"""Positions of the values of a YAML document, stored as one number per key and value."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.model.manifest import Path
from reconciler.model.problem import Position
from reconciler.model.value import Json

COLUMN_BITS: Final = 25  # a line can be as long as a file
_COLUMN: Final = (1 << COLUMN_BITS) - 1
_LARGE: Final = 64  # marks
_MANY: Final = 32  # keys of a map


class Places(Mapping[Path, Position]):
    """Positions of the values of a document, by path.

    Stored as one number per key and value, in the order of the text; a lookup walks the document. A map or list that
    begins on a line below its key has the position of the key.
    """

    __slots__ = ("_file", "_first", "_large", "_marks", "_offsets", "root")

    def __init__(self, file: str, root: Json, marks: array[int], first: int = 0) -> None:
        """`root`: the value of the document. `marks`: of the whole file, those of the document from `first`."""
        self._file = file
        self._marks = marks
        self._first = first
        # Kept small, since a project has thousands: most documents are small, and their positions never asked for.
        self._large: dict[int, int] | None = None  # the sizes of large values, by the identity of the value
        self._offsets: dict[int, dict[str, int]] | None = None  # of keys in large maps, by the identity of the map
        self.root = root

    def __getitem__(self, path: Path) -> Position:
        if not path:
            return self.start
        index, key_index = self._find(path)
        marks = self._marks
        mark = marks[index]
        if key_index is not None:
            key_mark = marks[key_index]
            if key_mark >> COLUMN_BITS != mark >> COLUMN_BITS and isinstance(self._value(path), (dict, list)):
                mark = key_mark
        return position(self._file, mark)

    def key(self, path: Path) -> Position:
        """The position of the last key of the path."""
        if not path:
            return self.start
        index, key_index = self._find(path)
        return position(self._file, self._marks[index if key_index is None else key_index])

    def nearest(self, path: Path) -> Position:
        """The position of the value, or of the nearest existing value around it."""
        while path not in self:
            path = path[:-1]
        return self[path]

    def items_of(self, path: Path) -> list[Position]:
        """The positions of the items of a list, in one pass."""
        index, _ = self._find(path)
        found = []
        mark = index + 1
        for item in self._value(path):
            found.append(position(self._file, self._marks[mark]))
            mark += size(item)
        return found

    @property
    def start(self) -> Position:
        """The position of the document's beginning."""
        return position(self._file, self._marks[self._first])

    def __contains__(self, path: object) -> bool:
        if path == ():
            return True
        try:
            self._find(path)  # type: ignore[arg-type]  # any object can be asked for
        except (KeyError, TypeError):
            return False
        return True

    def __iter__(self) -> Iterator[Path]:
        return _paths(self.root, ())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _value(self, path: Path) -> Json:
        value = self.root
        for part in path:
            value = value[part]
        return value

    def _find(self, path: Path) -> tuple[int, int | None]:
        """Indexes of the marks of the value and of its key."""
        value, index = self.root, self._first
        key_index: int | None = None
        for part in path:
            key_index = None
            if isinstance(value, dict):
                key_index = index + self._offset(value, part)
                index, value = key_index + 1, value[part]
            elif isinstance(value, list) and isinstance(part, int) and 0 <= part < len(value):
                index, value = index + 1 + sum(map(self._size, value[:part])), value[part]
            else:
                raise KeyError(path)
        return index, key_index

    def _offset(self, value: dict[str, Json], key: str | int) -> int:
        """The mark of a key, counted from that of its map. Raises KeyError."""
        known = self._offsets.get(id(value)) if self._offsets else None
        if known is not None:
            return known[key]  # type: ignore[index]  # a number is no key of it
        offsets: dict[str, int] = {}
        offset = 1
        for name, item in value.items():
            if name == key and len(value) < _MANY:
                return offset
            offsets[name] = offset
            offset += 1 + self._size(item)
        if len(value) >= _MANY:
            self._offsets = self._offsets or {}
            self._offsets[id(value)] = offsets
        return offsets[key]  # type: ignore[index]

    def _size(self, value: Json) -> int:
        """As `size`. Many lookups pass the same large value, such as a long list of instances."""
        known = self._large.get(id(value)) if self._large else None
        if known is not None:
            return known
        found = size(value)
        if found > _LARGE:
            self._large = self._large or {}
            self._large[id(value)] = found
        return found


def key_mark(marks: array[int], container: dict[str, Json], key: str, end: int) -> int:
    """The mark of a key of the map whose content ends before `end`, counted from the end."""
    for name, item in reversed(container.items()):
        end -= 1 + size(item)
        if name == key:
            break
    return marks[end]


def size(value: Json) -> int:
    """Number of marks of a value: its own, and those of the keys and values inside."""
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(size, value.values()))
    if isinstance(value, list):
        return 1 + sum(map(size, value))
    return 1


def _paths(value: Json, path: Path) -> Iterator[Path]:
    yield path
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _paths(item, (*path, key))


def position(file: str, mark: int) -> Position:
    return Position(file, (mark >> COLUMN_BITS) + 1, (mark & _COLUMN) + 1)
