"""Live objects in canonical form, equality of two forms, natural keys, and declared values as requests carry them.

The canonical form itself is in `model.canonical`; which object belongs to which declaration is decided in
`matching.match`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from reconciler.model.canonical import CanonicalFields, absences, canonicalize_live, empty, is_shown, read, sort_items
from reconciler.model.fields.annotations import Immutable, InputOnly, PathOnly, ServerDefault, SometimesReturned
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import (
    JsonTemplate,
    Ref,
    Secret,
    Template,
    Value,
    canonical,
    is_known,
    json_text,
    reveal,
)

UNREAD = object()
"""Stands for a live value that responses never show."""


def canonical_live(kind: Kind, live: Live) -> CanonicalFields:
    """All fields of a live object in canonical form, by the names of the write shape."""
    return {column.field.name: canonical_live_value(column, live) for column in columns(kind)}


class LiveFields(Mapping[str, Value]):
    """As `canonical_live`, for readers of few fields: each value is made when it is first read.

    UNREAD values are None. `own` has the values of further fields, `form` values that are known.
    """

    __slots__ = ("_columns", "_form", "_known", "_live")

    def __init__(
        self, kind: Kind, live: Live, own: dict[str, Value], form: Mapping[str, Value] = MappingProxyType({})
    ) -> None:
        self._columns, self._live, self._known, self._form = _columns_by_name(kind), live, own, form

    def __getitem__(self, name: str) -> Value:
        if name not in self._known:
            column = self._columns[name]
            value = self._form[name] if name in self._form else canonical_live_value(column, self._live)
            self._known[name] = None if value is UNREAD else value
        return self._known[name]

    def get(self, name: str, default: Any = None) -> Any:
        if name in self._known:
            return self._known[name]
        return self[name] if name in self._columns else default

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter({**self._columns, **self._known})

    def __len__(self) -> int:
        return len({**self._columns, **self._known})


def canonical_live_value(column: Column, live: Live) -> Value:
    """One field of a live object in canonical form; UNREAD if responses do not show it."""
    field = column.field
    if column.is_direct:
        value = live.body.get(column.name)
        return column.absent if value is None or column.is_unread else canonicalize_live(field, value)
    if PathOnly in field:
        return live.parent_id
    if not is_shown(field, live.body) or (column.is_lasting and read(field, live.body) is None):
        return UNREAD  # a response without a lasting value is incomplete, and no reason to replace the object
    if field.name == "metadata" and SometimesReturned not in field:
        return live.metadata
    return canonicalize_live(field, read(field, live.body))


class Column(NamedTuple):
    """A top-level field with its precomputed properties, since thousands of objects are compared by them."""

    field: Field
    name: str
    is_lasting: bool  # required and immutable: an existing object always has a value
    is_optional: bool  # the platform chooses the value if none is declared
    is_unread: bool  # most responses do not show the value
    is_direct: bool  # responses carry the value unchanged, under the name of the field
    blanks: frozenset[type]  # types whose empty value in a response means "not set"
    absent: Value  # the canonical form of a response that does not have the value


@cache
def columns(kind: Kind) -> tuple[Column, ...]:
    """The top-level fields of a kind in the order of its spec."""
    return tuple(
        Column(
            field,
            field.name,
            is_lasting=_is_lasting(field),
            is_optional=ServerDefault in field,
            is_unread=InputOnly in field,
            is_direct=not (field.read_as or field.as_map or PathOnly in field or field.name == "metadata"),
            blanks=frozenset(absence.__class__ for absence in absences(field) if not absence),
            absent=UNREAD if InputOnly in field or _is_lasting(field) else canonicalize_live(field, None),
        )
        for field in kind.fields
    )


def _is_lasting(field: Field) -> bool:
    return field.required and (Immutable in field or field.immutable_part is not None)


@cache
def _columns_by_name(kind: Kind) -> dict[str, Column]:
    return {column.name: column for column in columns(kind)}


def agrees(field: Field, want: Value, have: Value) -> bool:
    """Whether the canonical live value `have` equals the declared one, as far as responses show it.

    Parts of an object that are not declared are not compared.
    """
    if have is UNREAD or (have is None and SometimesReturned in field):
        return True
    if have is None and not want and ServerDefault in field:
        return True  # declared as empty, and not in the response
    if field.shape is Shape.OBJECT and isinstance(want, dict) and isinstance(have, dict):
        return all(
            agrees(sub, want[sub.name], have.get(sub.name))
            for sub in field.fields
            if sub.name in want and InputOnly not in sub
        )
    if field.shape is Shape.LIST and field.item is not None and field.item.shape is Shape.OBJECT:
        return _agree_in_order(field.item, want, have)
    if field.shape is Shape.ANY and is_known(want):
        return is_identical(want, have)
    return bool(want == have) or (field.completed is not None and want in field.forms_of(have))


def drop_choices(field: Field, want: Value, have: Value) -> Value:
    """The live list `have` without the parts of items that the declared list does not have.

    An item is declared if the list has one with the same required parts. Of any other, empty parts are dropped.
    """
    item = field.item
    if item is None or not _choices(item) or not isinstance(want, list) or not isinstance(have, list):
        return have
    return sort_items(field, [_drop_choices_of(item, want, part) for part in have])


def _drop_choices_of(item: Field, want: list[Value], part: Value) -> Value:
    if not isinstance(part, dict):
        return part
    declared = find_item(item, want, part)
    kept = dict(part)
    for sub in _choices(item):
        value = empty(sub) if kept.get(sub.name) is None else kept[sub.name]
        if sub.name in declared if declared is not None else value != empty(sub):
            kept[sub.name] = value
        else:
            kept.pop(sub.name, None)
    return kept


@cache
def _choices(item: Field) -> tuple[Field, ...]:
    """The parts of the items of a list whose value the platform chooses, or another client, if none is declared."""
    return tuple(sub for sub in item.fields if ServerDefault in sub)


def find_item(item: Field, items: Iterable[Value], part: Mapping[str, Value]) -> Mapping[str, Value] | None:
    """The item of a list that has the same required parts, in canonical form."""
    keys = [sub.name for sub in item.fields if sub.required]
    for other in items:
        if isinstance(other, dict) and all(other.get(name) == part.get(name) for name in keys):
            return other
    return None


def _agree_in_order(item: Field, want: Value, have: Value) -> bool:
    if want == have:
        return True
    both = isinstance(want, list) and isinstance(have, list) and len(want) == len(have)
    return both and all(agrees(item, one, other) for one, other in zip(want, have, strict=True))


def is_identical(one: Value, other: Value) -> bool:
    """Whether two documents are equal with the types of their values: in Python, True == 1 == 1.0."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(is_identical(item, other[key]) for key, item in one.items())
        case list(), list():
            return len(one) == len(other) and all(map(is_identical, one, other))
        case Secret(), Secret():
            return one == other
    return one.__class__ is other.__class__ and bool(one == other)


def natural_key(kind: Kind, form: CanonicalFields) -> tuple[Any, ...] | None:
    """The natural key of a canonical form, or None if the kind has none or any part of it is not known."""
    if not kind.identity:
        return None
    values = [form.get(name) for name in kind.identity]
    if any(value is None or value is UNREAD or not is_known(value) for value in values):
        return None
    return tuple(canonical(reveal(value)) for value in values)


def body_value(field: Field, value: Value) -> Value:
    """A declared value as a request carries it: without nulls, and with inline documents as JSON text."""
    match field.shape:
        case Shape.OBJECT if isinstance(value, dict):
            by_name = {sub.name: sub for sub in field.fields}
            return {
                key: body_value(by_name[key], part) if key in by_name else part
                for key, part in value.items()
                if part is not None
            }
        case Shape.LIST if isinstance(value, list) and field.item is not None:
            return [body_value(field.item, item) for item in value]
        case Shape.ANY if isinstance(value, (dict, list)):
            return _encode_document(value)
    return value


def _encode_document(document: Value) -> Value:
    """An inline document as JSON text, or as a template if references in it are not resolved yet."""
    parts: list[str | Ref | Template | Secret] = []
    for piece in _json_pieces(document):
        if isinstance(piece, str) and parts and isinstance(parts[-1], str):
            parts[-1] += piece
        else:
            parts.append(piece)
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else JsonTemplate(tuple(parts))


def _json_pieces(value: Value) -> Iterator[str | Ref | Template | Secret]:
    match value:
        case Ref() | Template() | Secret():
            yield value
        case dict():
            for index, (key, part) in enumerate(value.items()):
                yield f"{', ' if index else '{'}{json_text(str(key))}: "
                yield from _json_pieces(part)
            yield "}" if value else "{}"
        case list():
            yield "["
            for index, item in enumerate(value):
                yield ", " if index else ""
                yield from _json_pieces(item)
            yield "]"
        case _:
            yield json_text(value)
