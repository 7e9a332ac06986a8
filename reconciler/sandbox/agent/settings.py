"""Checks settings of the emulated agent against a table of fields: unknown keys, and values of the wrong type.

Messages do not repeat values, which may be secrets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.model.fields.field import Field, Shape
from reconciler.model.value import Json

Path = tuple[str | int, ...]
_FOUND: dict[type, str] = {bool: "!!bool", int: "!!int", float: "!!float", str: "!!str", list: "!!seq", dict: "!!map"}
_EXPECTED = {
    Shape.TEXT: "string",
    Shape.INTEGER: "int64",
    Shape.NUMBER: "float64",
    Shape.FLAG: "bool",
    Shape.LIST: "list",
    Shape.MAP: "map",
    Shape.OBJECT: "map",
}
_TYPES: dict[Shape, tuple[type, ...]] = {
    Shape.TEXT: (str, int, float),
    Shape.INTEGER: (int,),
    Shape.NUMBER: (int, float),
    Shape.FLAG: (bool,),
}


def check(
    fields: Sequence[Field], settings: Mapping[str, Any], type_: str, at: Path = ()
) -> Iterator[tuple[Path, str]]:
    """Yields the path and the text of each unknown key and each value of the wrong type. `type_`: of the settings."""
    known = {field.name: field for field in fields}
    for key, item in settings.items():
        if key not in known:
            yield (*at, key), f"field {key} not found in type {type_}"
        elif item is not None:
            yield from _check(known[key], item, type_, (*at, key))


def _check(field: Field, value: Json, type_: str, at: Path) -> Iterator[tuple[Path, str]]:
    inner = f"{type_.partition('.')[0]}.{field.name.title().replace('_', '')}"
    match field.shape, value:
        case Shape.OBJECT, dict():
            yield from check(field.fields, value, inner, at)
        case Shape.LIST, list() if field.item is not None:
            for index, item in enumerate(value):
                yield from _check(field.item, item, type_, (*at, index))
        case Shape.MAP, dict() if field.item is not None:
            for key, item in value.items():
                yield from _check(field.item, item, type_, (*at, key))
        case Shape.ANY, _:
            return
        case _ if not _fits(field.shape, value):
            yield at, describe_wrong_type(value, _EXPECTED[field.shape])


def _fits(shape: Shape, value: Json) -> bool:
    """Whether a plain value has the type: a number is a text too, as in `addr: 80`."""
    return isinstance(value, _TYPES.get(shape, ())) and isinstance(value, bool) is (shape is Shape.FLAG)


def describe_wrong_type(value: Json, expected: str) -> str:
    return f"cannot unmarshal {_FOUND.get(type(value), '!!null')} into {expected}"


def to_text(fields: Sequence[Field], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Checked settings, with numbers as text where the field is text."""
    known = {field.name: field for field in fields}
    return {key: _to_text(known[key], item) for key, item in settings.items()}


def _to_text(field: Field, value: Json) -> Json:
    match field.shape, value:
        case Shape.OBJECT, dict():
            return to_text(field.fields, value)
        case Shape.LIST, list() if field.item is not None:
            return [_to_text(field.item, item) for item in value]
        case Shape.MAP, dict() if field.item is not None:
            return {key: _to_text(field.item, item) for key, item in value.items()}
        case Shape.TEXT, int() | float():
            return str(value)
    return value
