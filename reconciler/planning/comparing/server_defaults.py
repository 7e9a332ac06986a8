"""What the platform chooses where nothing is declared (`ServerDefault`), of what can change in place.

A choice stays as it is when something beside it changes, and a deleted line gives what it said back to the platform.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from reconciler.model import owner_record
from reconciler.model.fields.annotations import Immutable, ServerDefault
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.value import Json, Value
from reconciler.planning.comparing.canonical_fields import UNREAD


class ServerChoice(NamedTuple):
    """A field that is the platform's to choose; inside an object of the spec if its path has a dot."""

    path: str
    field: Field
    top: Field
    default: Json  # as far as it is documented


@cache
def server_defaults(kind: Kind) -> tuple[ServerChoice, ...]:
    """Those that can be given back: where the platform chooses anew, or says what it takes by default."""
    return tuple(_find_server_defaults(kind.fields))


def _find_server_defaults(
    fields: tuple[Field, ...], above: str = "", top: Field | None = None
) -> Iterator[ServerChoice]:
    for field in fields:
        path, first = above + field.name, top or field
        if Immutable in field:
            continue
        if ServerDefault in field and (top is not None or field.default):
            yield ServerChoice(path, field, first, field.default)
        elif field.shape is Shape.OBJECT:
            yield from _find_server_defaults(field.fields, f"{path}.", first)


def find_reverted_defaults(
    kind: Kind, spec: Mapping[str, Value], applied: Mapping[str, str], ignored: Collection[str] = ()
) -> Iterator[ServerChoice]:
    """What was applied the last time and is declared no more, though what it is a part of still is."""
    for default in server_defaults(kind):
        if (
            _is_left_out(spec, default.path)
            and not _is_within(default.path, ignored)
            and owner_record.holds(applied, default.path)
        ):
            yield default._replace(default=default.field.default_beside(spec))


def _is_left_out(spec: Value, path: str) -> bool:
    head, _, rest = path.partition(".")
    if not isinstance(spec, Mapping):
        return False
    return _is_left_out(spec.get(head), rest) if rest else spec.get(head) is None


def _is_within(path: str, paths: Collection[str]) -> bool:
    return any(path == each or path.startswith(f"{each}.") for each in paths)


def keep_live_defaults(field: Field, value: Value, live: Value, given: Collection[str], path: str = "") -> Value:
    """A declared value with the live choices in it, but for those given back: an object is replaced as a whole."""
    if field.shape is not Shape.OBJECT or not isinstance(value, dict) or not isinstance(live, dict):
        return value
    path = f"{path or field.name}."
    whole = dict(value)
    for sub in field.fields:
        said, there = value.get(sub.name), live.get(sub.name)
        if said is not None:
            whole[sub.name] = keep_live_defaults(sub, said, there, given, path + sub.name)
        elif ServerDefault in sub and there not in (None, UNREAD) and path + sub.name not in given:
            whole[sub.name] = there
    return whole
