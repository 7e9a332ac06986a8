"""Mutable fields whose value the platform chooses if none is declared (`ServerDefault`).

A chosen value is kept when a field beside it is updated. When a line is deleted from a manifest, its field is reverted
to the platform's choice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from reconciler.model import owner_record
from reconciler.model.fields.annotations import Immutable, ServerDefault, SometimesReturned
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.value import Json, Value
from reconciler.planning.comparing.canonical_fields import UNREAD, find_item


class ServerChoice(NamedTuple):
    """A field whose value the platform may choose.

    path      dotted if the field is inside an object of the spec
    top       the top-level field that holds it
    default   the documented default, or None
    """

    path: str
    field: Field
    top: Field
    default: Json


@cache
def server_defaults(kind: Kind) -> tuple[ServerChoice, ...]:
    """The fields of a kind that can be reverted: by omission inside an object, or to a documented default."""
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
    """The fields that were applied last, and are no longer declared although the object that holds them is.

    `applied` are the digests of the last apply by path, `ignored` the paths of `lifecycle.ignore`.
    """
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
    return any(path == outer or path.startswith(f"{outer}.") for outer in paths)


def _is_kept(field: Field) -> bool:
    """Whether an update sends the value that the platform chose. Of a field that some agents do not return, others may
    return a word that they do not accept."""
    return ServerDefault in field and SometimesReturned not in field


def keep_live_defaults(field: Field, value: Value, live: Value, reverted: Collection[str], path: str = "") -> Value:
    """A declared value completed with the live values that the platform chose, except at `reverted` paths.

    They are needed because the platform replaces an object inside a spec as a whole.
    """
    if field.shape is not Shape.OBJECT or not isinstance(value, dict) or not isinstance(live, dict):
        return value
    path = f"{path or field.name}."
    whole = dict(value)
    for sub in field.fields:
        declared, chosen = value.get(sub.name), live.get(sub.name)
        if declared is not None:
            whole[sub.name] = keep_live_defaults(sub, declared, chosen, reverted, path + sub.name)
        elif _is_kept(sub) and chosen not in (None, UNREAD) and path + sub.name not in reverted:
            whole[sub.name] = chosen
    return whole


_PLATFORMS = frozenset({"id", "uri", "created_at", "updated_at"})
"""The parts of items that every response of the platform may have, and no request."""


def keep_live_parts(field: Field, value: Value, live: Json) -> Value:
    """A declared list of objects, each completed with what the live object of the same key has besides.

    They are needed because the platform replaces the list as a whole: parts that are not declared, and those that this
    version does not know. `live` is the list as a response has it.
    """
    item = field.item
    if item is None or not item.fields or not isinstance(value, list) or not isinstance(live, list):
        return value
    by_name = {sub.name: sub for sub in item.fields}

    def complete(part: Value) -> Value:
        kept = find_item(item, live, part) if isinstance(part, dict) else None
        if not isinstance(part, dict) or kept is None:
            return part
        others = {
            name: found
            for name, found in kept.items()
            if name not in _PLATFORMS
            and part.get(name) is None
            and found not in (None, "", [], {})
            and (name not in by_name or ServerDefault in by_name[name])
        }
        return {**part, **others}

    return [complete(part) for part in value]
