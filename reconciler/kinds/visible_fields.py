"""Live objects as outputs may show them: the fields that a kind declares, without secrets. Pure functions.

Children inside an object are shown as objects of their own kind. A field that no kind declares is masked: nothing says
whether a newer platform keeps a secret in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from reconciler import kinds
from reconciler.kinds.rules import canonical, secret_parts
from reconciler.model.fields.annotations import Behavior, Conceals
from reconciler.model.fields.field import Field, Shape, fields_of
from reconciler.model.kind import Kind
from reconciler.model.value import Json

HIDDEN: Final = "(secret)"
UNKNOWN: Final = "(unknown field, not shown)"
_COMMON: Final = frozenset(
    {"id", "uri", "created_at", "metadata"}
)  # of every object, and `id` and `uri` of a reference
_REFERENCE: Final = frozenset({"id", "uri"})
_POLICY: Final = Field(
    "traffic_policy", Shape.ANY, canonical=canonical.policy, conceals=Conceals(secret_parts.find_in_policy)
)


def show_body(kind: Kind, body: Mapping[str, Json]) -> dict[str, Json]:
    """The response's fields, with secrets and unknown fields masked."""
    known = _fields_of_response(kind)
    return {name: _show_named(kind, known, name, value) for name, value in body.items()}


def _show_named(kind: Kind, known: Mapping[str, Field], name: str, value: Json) -> Json:
    if name == kind.one_time and value is not None:
        return HIDDEN
    child = _children(kind).get(name)
    if child is not None and isinstance(value, list):
        return [show_body(child, item) if isinstance(item, dict) else _show_unknown(item) for item in value]
    if name == kind.key or (name in _COMMON and name not in known):
        return _show_scalar(value)
    return _show(known[name], value) if name in known else _show_reference(kind.fields, name, value)


@cache
def _fields_of_response(kind: Kind) -> Mapping[str, Field]:
    read = {field.name: field for field in fields_of(kind.read)}
    policy = {"traffic_policy": _POLICY} if "traffic_policy" in read else {}
    return read | policy | dict(kind.by_name)


@cache
def _children(kind: Kind) -> Mapping[str, Kind]:
    """The kinds of the children that a response contains, by the key of the list."""
    every = (child for child in kinds.every() if child.parent is not None and child.parent.kind == kind.name)
    return {child.parent.embedded: child for child in every if child.parent is not None and child.parent.embedded}


def _show(field: Field, value: Json) -> Json:
    """The value of a known field. A value that is not of the field's shape is unknown."""
    if value is None:
        return None
    if Behavior.SENSITIVE in field:
        return HIDDEN if value else _show_scalar(value)
    if field.conceals is not None:
        return _show_document(field, value)
    match field.shape:
        case Shape.OBJECT if isinstance(value, dict):
            return _show_object(field.fields, value)
        case Shape.LIST if isinstance(value, list):
            return [_show_item(field, item) for item in value]
        case Shape.LIST if isinstance(value, dict) and field.as_map is not None:
            return {key: item if isinstance(item, (int, float)) else _show_unknown(item) for key, item in value.items()}
        case Shape.LIST if isinstance(value, dict):
            return _show_item(field, value)  # some responses have one item instead of a list
        case Shape.MAP if isinstance(value, dict):
            return {key: _show(field.item, item) if field.item else _show_scalar(item) for key, item in value.items()}
    return _show_scalar(value)


def _show_item(field: Field, item: Json) -> Json:
    return _show(field.item, item) if field.item is not None else _show_scalar(item)


def _show_object(fields: tuple[Field, ...], value: Mapping[str, Json]) -> dict[str, Json]:
    known = {field.name: field for field in fields}
    return {
        name: _show(known[name], item) if name in known else _show_reference(fields, name, item)
        for name, item in value.items()
    }


def _show_reference(fields: tuple[Field, ...], name: str, value: Json) -> Json:
    """The place in a response where a field is read, such as `ip_policies[].id`: the ids and uris there."""
    places = {field.read_as.path.split(".")[0].removesuffix("[]") for field in fields if field.read_as is not None}
    if name not in places:
        return _show_unknown(value)
    if isinstance(value, list):
        return [_show_ids(item) for item in value]
    return _show_ids(value)


def _show_ids(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _show_scalar(item) if name in _REFERENCE else _show_unknown(item) for name, item in value.items()}
    return _show_scalar(value)


def _show_document(field: Field, value: Json) -> Json:
    """A policy or a map of headers: masked where secrets are, as a whole if it is text with a secret inside."""
    assert field.conceals is not None
    if isinstance(value, str):
        document = field.canonical(value) if field.canonical is not None else value
        if isinstance(document, str) or any(True for _ in field.conceals.find(document)):
            document = UNKNOWN if isinstance(document, str) else field.conceals.mark(document, lambda _: HIDDEN)
            return document if value else value
        return value
    return field.conceals.mark(value, lambda _: HIDDEN)


def _show_scalar(value: Json) -> Json:
    return UNKNOWN if isinstance(value, (dict, list)) and value else value


def _show_unknown(value: Any) -> Json:
    return value if value in (None, "", [], {}) else UNKNOWN
