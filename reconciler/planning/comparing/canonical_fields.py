"""Live objects in canonical form, the comparison of two forms, and declared values as requests carry them.

The form itself is in `model.canonical`. Knows nothing of which object belongs to which
declaration; see `matching.match`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from reconciler.model.canonical import CanonicalFields, absences, canonicalize_live, read
from reconciler.model.fields.annotations import Immutable, InputOnly, PathOnly, ServerDefault
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import (
    JsonTemplate,
    Ref,
    Template,
    Value,
    canonical,
    is_known,
    json_text,
    reveal,
)

UNREAD = object()
"""Stands for a value that responses never show."""


def canonical_live(kind: Kind, live: Live) -> CanonicalFields:
    """The live side, in the write shape."""
    return {column.field.name: canonical_live_value(column, live) for column in columns(kind)}


def canonical_live_value(column: Column, live: Live) -> Value:
    """The live side of one field."""
    field = column.field
    if PathOnly in field:
        return live.parent_id
    if InputOnly in field or (column.is_lasting and read(field, live.body) is None):
        return UNREAD  # a response without a lasting value shows less, and is no reason to make it anew
    return live.metadata if field.name == "metadata" else canonicalize_live(field, read(field, live.body))


class Column(NamedTuple):
    """A field at the top of a spec, with what comparing thousands of objects asks of it."""

    field: Field
    name: str
    is_lasting: bool  # every object has a value there for as long as it lives
    is_optional: bool  # what is not declared is the platform's to choose
    is_unread: bool
    is_direct: bool  # responses carry the value as it is, under its own name
    blanks: frozenset[type]  # of which an empty value in a response says that nothing is set


@cache
def columns(kind: Kind) -> tuple[Column, ...]:
    return tuple(
        Column(
            field,
            field.name,
            is_lasting=field.required and (Immutable in field or field.immutable_part is not None),
            is_optional=ServerDefault in field,
            is_unread=InputOnly in field,
            is_direct=not (field.read_as or field.as_map or PathOnly in field or field.name == "metadata"),
            blanks=frozenset(absence.__class__ for absence in absences(field) if not absence),
        )
        for field in kind.fields
    )


def agrees(field: Field, want: Value, have: Value) -> bool:
    """Whether the platform holds what is declared, as far as responses show it."""
    if have is UNREAD:
        return True
    if field.shape is Shape.OBJECT and isinstance(want, dict) and isinstance(have, dict):
        return all(
            agrees(sub, want[sub.name], have.get(sub.name))
            for sub in field.fields
            if sub.name in want and InputOnly not in sub
        )
    if field.shape is Shape.ANY and want == have and is_known(want):
        return canonical(want) == canonical(have)  # Python takes true for 1
    return bool(want == have)


def natural_key(kind: Kind, form: CanonicalFields) -> tuple[Any, ...] | None:
    """The natural key, or None while any part of it is not known."""
    if not kind.identity:
        return None
    values = [form.get(name) for name in kind.identity]
    if any(value is None or value is UNREAD or not is_known(value) for value in values):
        return None
    return tuple(canonical(reveal(value)) for value in values)


def body_value(field: Field, value: Value) -> Value:
    """A declared value as a request carries it: nulls left out, inline documents as text."""
    match field.shape:
        case Shape.OBJECT if isinstance(value, dict):
            by_name = {sub.name: sub for sub in field.fields}
            return {
                key: body_value(by_name[key], each) if key in by_name else each
                for key, each in value.items()
                if each is not None
            }
        case Shape.LIST if isinstance(value, list) and field.item is not None:
            return [body_value(field.item, each) for each in value]
        case Shape.ANY if isinstance(value, (dict, list)):
            return _encode_document(value)
    return value


def _encode_document(document: Value) -> Value:
    """An inline document as JSON text, with what is not known yet in its place."""
    parts: list[str | Ref | Template] = []
    for piece in _json_pieces(document):
        if isinstance(piece, str) and parts and isinstance(parts[-1], str):
            parts[-1] += piece
        else:
            parts.append(piece)
    return parts[0] if is_known(document) else JsonTemplate(tuple(parts))


def _json_pieces(value: Value) -> Iterator[str | Ref | Template]:
    match value:
        case Ref() | Template():
            yield value
        case dict():
            for index, (key, each) in enumerate(value.items()):
                yield f"{', ' if index else '{'}{json_text(str(key))}: "
                yield from _json_pieces(each)
            yield "}" if value else "{}"
        case list():
            yield "["
            for index, each in enumerate(value):
                yield ", " if index else ""
                yield from _json_pieces(each)
            yield "]"
        case _:
            yield json_text(value)
