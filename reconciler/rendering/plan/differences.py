"""What differs between two lists, or between two objects: on one line, without what both have."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from reconciler.model.canonical import is_sorted
from reconciler.model.value import Hidden, Secret, Value, references
from reconciler.rendering.terminal_text import sanitize

Show = Callable[[Value], str]


class Difference(Struct, frozen=True):
    """The items or members of one side only, as texts without secrets, and the number of those that both sides have.

    An item of a list whose order may matter has its place, unless it is at the end: `"x" (item 1)`.
    """

    removed: tuple[str, ...]
    added: tuple[str, ...]
    same: int


def find_difference(old: Value, new: Value, show: Show) -> Difference | None:
    """The difference; None if the values are neither lists nor objects, or have nothing in common."""
    match old, new:
        case dict(), dict():
            return _compare_members(old, new, show)
        case ((list() | tuple()), (list() | tuple())):
            return _compare_items(old, new, show)
    return None


def _compare_members(old: Mapping[str, Value], new: Mapping[str, Value], show: Show) -> Difference | None:
    removed, added = list[str](), list[str]()
    same, is_nested = 0, False
    for name in sorted(old.keys() | new.keys()):
        if name in old and name in new:
            if _key(old[name], show) == _key(new[name], show):
                same += 1
                continue
            if (inner := find_difference(old[name], new[name], show)) is not None:
                is_nested = True
                removed += [f"{sanitize(name)}: {text}" for text in inner.removed]
                added += [f"{sanitize(name)}: {text}" for text in inner.added]
                continue
        removed += [f"{sanitize(name)}: {show(old[name])}"] if name in old else []
        added += [f"{sanitize(name)}: {show(new[name])}"] if name in new else []
    return Difference(tuple(removed), tuple(added), same) if same or is_nested else None


def _compare_items(old: Sequence[Value], new: Sequence[Value], show: Show) -> Difference | None:
    before, after = ([_key(item, show) for item in side] for side in (old, new))
    is_opaque = any(references([old, new])) or any(_list_sensitive([old, new]))
    is_ordered = is_opaque or not (is_sorted(old) and is_sorted(new))
    removed, added = list[str](), list[str]()
    same = 0
    for tag, start, end, new_start, new_end in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        if tag == "equal":
            same += end - start
            continue
        removed += _name_items(old, start, end, show, is_ordered=is_ordered)
        added += _name_items(new, new_start, new_end, show, is_ordered=is_ordered)
    return Difference(tuple(removed), tuple(added), same) if same else None


def _name_items(items: Sequence[Value], start: int, end: int, show: Show, *, is_ordered: bool) -> Iterator[str]:
    has_place = is_ordered and end < len(items)
    for number in range(start, end):
        yield show(items[number]) + (f" (item {number + 1})" if has_place else "")


def _key(value: Value, show: Show) -> Hashable:
    """Equal for values that look the same and whose sensitive parts are the same."""
    return show(value), tuple(_list_sensitive(value))


def _list_sensitive(value: Value) -> Iterator[Hashable]:
    match value:
        case Hidden(digest):
            yield digest
        case Secret():
            yield id(value)
        case dict():
            for name in sorted(value):
                yield from _list_sensitive(value[name])
        case list() | tuple():
            for item in value:
                yield from _list_sensitive(item)
