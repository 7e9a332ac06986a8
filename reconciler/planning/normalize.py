"""Brings both sides to one form: what is declared and what is live, as canonical values of the kind's own fields.

In this form absence is its documented default, order and spelling that mean nothing are gone, and sensitive text is a
`Secret` on both sides. Knows nothing of which object belongs to which declaration; see `identify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from reconciler.model.kind import (
    Field,
    Immutable,
    InputOnly,
    Kind,
    PathOnly,
    Sensitive,
    ServerDefault,
    Shape,
    Unordered,
)
from reconciler.model.snapshot import Live
from reconciler.model.value import (
    Json,
    JsonTemplate,
    Ref,
    Sealed,
    Secret,
    Template,
    Value,
    canonical,
    has_secret,
    is_known,
    json_text,
    reveal,
)

Form = dict[str, Value]  # field name → canonical value
UNREAD = object()
"""Stands for a value that responses never show."""


def wanted(kind: Kind, spec: Mapping[str, Value]) -> Form:
    """The declared side. Fields with a server default are there only when declared."""
    return {
        field.name: wanted_in(field, spec.get(field.name))
        for field in kind.fields
        if ServerDefault not in field or spec.get(field.name) is not None
    }


def wanted_in(field: Field, value: Value) -> Value:
    """The declared side of one field; None: it is not declared."""
    return empty(field) if value is None else canon(field, value)


def seen(kind: Kind, live: Live) -> Form:
    """The live side, in the write shape."""
    return {column.field.name: seen_in(column, live) for column in columns(kind)}


def seen_in(column: Column, live: Live) -> Value:
    """The live side of one field."""
    field = column.field
    if PathOnly in field:
        return live.parent_id
    if InputOnly in field or (column.is_lasting and read(field, live.body) is None):
        return UNREAD  # a response without a lasting value shows less, and is no reason to make it anew
    return live.metadata if field.name == "metadata" else canon_read(field, read(field, live.body))


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
            blanks=frozenset(each.__class__ for each in absences(field) if not each),
        )
        for field in kind.fields
    )


def canon(field: Field, value: Value) -> Value:
    """The canonical form of a declared value."""
    if value.__class__ is str and value and field.is_verbatim:
        return value
    match value:
        case Ref() | Template() | JsonTemplate():
            return value
        case Sealed():
            return value
        case Secret():
            text = field.canonical(value.reveal()) if field.canonical else value.reveal()
            return Secret(str(text), value.source)
        case None:
            return empty(field)
        case "" if field.default in (None, ""):
            return field.default
    match field.shape:
        case Shape.OBJECT if isinstance(value, dict):
            return {
                sub.name: canon(sub, value[sub.name] if value.get(sub.name) is not None else sub.default)
                for sub in field.fields
                if value.get(sub.name) is not None or ServerDefault not in sub
            }
        case Shape.LIST if isinstance(value, list):
            return _canon_list(field, [canon(field.item, each) if field.item else each for each in value])
        case Shape.MAP if isinstance(value, dict):
            return _canon_map(field, value)
    return _canon_plain(field, value)


def canon_read(field: Field, value: Json) -> Value:
    """The canonical form of a value that a response shows."""
    if (value.__class__ is str and value and field.is_verbatim) or value.__class__ is Sealed:
        return value
    if value is None or (value == "" and field.default in (None, "")):
        return empty(field) if not (value is None and ServerDefault in field) else None
    match field.shape:
        case Shape.OBJECT if isinstance(value, dict):
            return {sub.name: canon_read(sub, read(sub, value)) for sub in field.fields if InputOnly not in sub}
        case Shape.LIST if isinstance(value, list):
            item = field.item
            if item is not None and item.shape is Shape.OBJECT:
                value = [
                    {sub.name: canon_read(sub, read(sub, each)) for sub in item.fields}
                    if isinstance(each, dict)
                    else each
                    for each in value
                ]
            elif item is not None:
                value = [canon(item, each) for each in value]
            return _canon_list(field, value)
        case Shape.MAP if isinstance(value, dict):
            return _canon_map(field, value)
    return _canon_plain(field, value)


def _canon_part(item: Field, value: Mapping[str, Json]) -> Value:
    return {sub.name: canon_read(sub, read(sub, value)) for sub in item.fields}


def _canon_map(field: Field, value: Mapping[str, Value]) -> Value:
    items = {key: canon(field.item, each) if field.item else each for key, each in value.items()}
    return field.canonical(items) if field.canonical else items


def _canon_plain(field: Field, value: Json) -> Value:
    if field.canonical:
        value = _spelling(field, value) if value.__class__ is str else field.canonical(value)
    return Secret(value, "live") if Sensitive in field and isinstance(value, str) else value


@lru_cache(maxsize=256)  # what is declared and what is live come one after the other, and mostly agree
def _spelling(field: Field, text: str) -> Value:
    return field.canonical(text) if field.canonical else text


def _canon_list(field: Field, items: list[Value]) -> Value:
    items = field.canonical(items) if field.canonical else items
    if Unordered not in field:
        return items
    return [each for _, each in sorted({_sort_key(each): each for each in items}.items())]


def _sort_key(value: Value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (Ref, Template)):
        return str(value)
    return canonical(value).decode(errors="surrogatepass") if is_known(value) and not has_secret(value) else repr(value)


@cache
def empty(field: Field) -> Value:
    """What absence means, in canonical form."""
    if field.default is not None:
        return canon(field, field.default)
    match field.shape:
        case Shape.LIST:
            return []
        case Shape.MAP:
            return {}
    return None


@cache
def absences(field: Field) -> tuple[Json, ...]:
    """The values with which a response says that nothing is set, besides leaving the field out."""
    if InputOnly in field:
        return ()
    candidates: tuple[Json, ...] = ("", [], {}, False, 0, field.default)
    return (None, *(each for each in candidates if each is not None and canon_read(field, each) == empty(field)))


def read(field: Field, body: Mapping[str, Json]) -> Json:
    """The field's value as a response spells it, or None."""
    if field.read_as is None:
        value = body.get(field.name)
        return field.as_map.read(value) if field.as_map and isinstance(value, Mapping) else value
    if field.read_as.unless and body.get(field.read_as.unless) is not None:
        return None
    path = _steps(field.read_as.path)
    if path[0][0] not in body:
        return body.get(field.name)  # some responses echo the write shape
    return _follow(body, path)


@cache
def _steps(path: str) -> tuple[tuple[str, bool], ...]:
    """The names on the way, and of each whether a list stands there."""
    return tuple((part.removesuffix("[]"), part.endswith("[]")) for part in path.split("."))


def _follow(value: Json, path: tuple[tuple[str, bool], ...]) -> Json:
    for index, (name, is_list) in enumerate(path):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
        if is_list:
            # One Ref where a list of them is meant is a list of one.
            items = value if isinstance(value, list) else [] if value is None else [value]
            return [_follow(each, path[index + 1 :]) for each in items]
    return value


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


def leaves(field: Field, value: Value, path: str = "") -> Iterator[tuple[str, Field, Value]]:
    """The values below a field that are compared and recorded each for itself, with their dotted paths."""
    path = path or field.name
    if field.shape is Shape.OBJECT and isinstance(value, dict):
        for sub in field.fields:
            if sub.name in value:
                yield from leaves(sub, value[sub.name], f"{path}.{sub.name}")
    else:
        yield path, field, value


def applied(kind: Kind, form: Form) -> dict[str, Value]:
    """What an owner record has to remember: every leaf that is not its default, and objects that are there at all."""
    record: dict[str, Value] = {}
    for field in kind.fields:
        if field.name not in form or PathOnly in field:
            continue
        value = form[field.name]
        told = {
            path: each
            for path, leaf, each in leaves(field, value)
            if ServerDefault in leaf or each != canon(leaf, leaf.default)
        }
        if not told and value != canon(field, field.default):
            told = {field.name: {}}
        record.update(told)
    return record


def identity(kind: Kind, form: Form) -> tuple[Any, ...] | None:
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
            return _as_text(value)
    return value


def _as_text(document: Value) -> Value:
    """An inline document as JSON text, with what is not known yet in its place."""
    parts: list[str | Ref | Template] = []
    for piece in _spelt(document):
        if isinstance(piece, str) and parts and isinstance(parts[-1], str):
            parts[-1] += piece
        else:
            parts.append(piece)
    return parts[0] if is_known(document) else JsonTemplate(tuple(parts))


def _spelt(value: Value) -> Iterator[str | Ref | Template]:
    match value:
        case Ref() | Template():
            yield value
        case dict():
            for index, (key, each) in enumerate(value.items()):
                yield f"{', ' if index else '{'}{json_text(str(key))}: "
                yield from _spelt(each)
            yield "}" if value else "{}"
        case list():
            yield "["
            for index, each in enumerate(value):
                yield ", " if index else ""
                yield from _spelt(each)
            yield "]"
        case _:
            yield json_text(value)
