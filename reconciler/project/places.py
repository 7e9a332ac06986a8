"""Where each value of a YAML document was written, held as one number per key and value."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.model.manifest import Path
from reconciler.model.problem import Position
from reconciler.model.value import Json

COLUMN_BITS: Final = 25  # a line can be as long as a file
_COLUMN: Final = (1 << COLUMN_BITS) - 1


class Places(Mapping[Path, Position]):
    """Where each value of a document was written.

    Kept as one number per key and value, in the order of the text; a place is looked up by walking the document.
    A map or list that begins on a line below its key is found at the key.
    """

    __slots__ = ("_file", "_marks", "_root", "_start")

    def __init__(self, file: str, root: Json, marks: array[int], start: int = 0) -> None:
        """`marks` are those of the whole file; the document's own begin at `start`."""
        self._file = file
        self._root = root
        self._marks = marks
        self._start = start

    def __getitem__(self, path: Path) -> Position:
        index, key_index = self._find(path)
        mark = self._marks[index]
        if key_index is not None:
            key_mark = self._marks[key_index]
            if key_mark >> COLUMN_BITS != mark >> COLUMN_BITS and isinstance(self._value(path), (dict, list)):
                mark = key_mark
        return position(self._file, mark)

    def key(self, path: Path) -> Position:
        """Where the last key of the path was written."""
        index, key_index = self._find(path)
        return position(self._file, self._marks[index if key_index is None else key_index])

    def nearest(self, path: Path) -> Position:
        """Where the value was written, or the nearest thing around it that was."""
        while path not in self:
            path = path[:-1]
        return self[path]

    @property
    def root(self) -> Json:
        """The document that the places are of."""
        return self._root

    @property
    def start(self) -> Position:
        """Where the document itself begins."""
        return position(self._file, self._marks[self._start])

    def __contains__(self, path: object) -> bool:
        try:
            self._find(path)  # type: ignore[arg-type]  # anything may be asked for
        except (KeyError, TypeError):
            return False
        return True

    def __iter__(self) -> Iterator[Path]:
        return _paths(self._root, ())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _value(self, path: Path) -> Json:
        value = self._root
        for part in path:
            value = value[part]
        return value

    def _find(self, path: Path) -> tuple[int, int | None]:
        """The indexes of the value's mark and of its key's."""
        value, index = self._root, self._start
        key_index: int | None = None
        for part in path:
            child, key_index = index + 1, None
            if isinstance(value, dict):
                for key, item in value.items():
                    if key == part:
                        key_index, index, value = child, child + 1, item
                        break
                    child += 1 + size(item)
                else:
                    raise KeyError(path)
            elif isinstance(value, list) and isinstance(part, int) and 0 <= part < len(value):
                index, value = child + sum(map(size, value[:part])), value[part]
            else:
                raise KeyError(path)
        return index, key_index


def key_mark(marks: array[int], container: dict[str, Json], key: str, end: int) -> int:
    """The mark of an earlier key of the map whose contents end just before `end`: counted from the back."""
    for name, item in reversed(container.items()):
        end -= 1 + size(item)
        if name == key:
            break
    return marks[end]


def size(value: Json) -> int:
    """How many marks a value has: its own, and those of the keys and values inside."""
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
