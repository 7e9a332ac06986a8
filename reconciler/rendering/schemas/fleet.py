"""JSON Schema of the fleet file, `fleet.yaml`, for editors."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.fields.field import Field, Shape, fields_of
from reconciler.model.fields.form import Form
from reconciler.rendering.schemas import manifest as manifest_schema
from reconciler.rendering.schemas.manifest import Schema

_PLAIN: dict[Shape, Schema] = {
    Shape.TEXT: {"type": "string"},
    Shape.INTEGER: {"type": "integer"},
    Shape.NUMBER: {"type": "number"},
    Shape.FLAG: {"type": "boolean"},
}
_NAME: Schema = {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,62}$"}
_DURATION: Schema = {"type": "string", "pattern": "^[0-9]{1,6}[smhdw]$"}
_AMOUNT: Schema = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^([0-9]{1,2}|100)%$"}],
}
_SELECT: Schema = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
}
_BY_NAME: dict[str, Schema] = {
    "fleet": _NAME,
    "name": _NAME,
    "select": _SELECT,
    "max_failures": _AMOUNT,
    "max_changed": _AMOUNT,
    "min_success_time": _DURATION,
    "progress_deadline": _DURATION,
    "start_spread": _DURATION,
    "variables": {"type": "object"},
    "version": {"const": 1},
}
"""Fields whose Python type says too little."""


def fleet_schema(form: type[Form]) -> Schema:
    """The schema of `fleet.yaml`, which has this form."""
    schema = _object(fields_of(form))
    file = {"type": "string", "pattern": "\\.(csv|json|ya?ml)$", "description": "File that lists the members."}
    members = schema["properties"]["members"]
    schema["properties"]["members"] = {
        "description": members.pop("description"),
        "anyOf": [members, file],
    }
    schema["properties"]["api_key"] |= {"minProperties": 1, "maxProperties": 1}
    return {
        "$schema": manifest_schema.DIALECT,
        "title": "Fleet",
        "description": manifest_schema.doc_of(form),
        **schema,
    }


def _object(fields: Sequence[Field]) -> Schema:
    needed = [field.name for field in fields if field.required]
    schema: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _of(field) for field in fields},
    }
    return {**schema, "required": needed} if needed else schema


def _of(field: Field) -> Schema:
    schema = {"description": field.doc, **_shape(field)} if field.doc else _shape(field)
    if field.default is not None and field.default not in ([], {}) and field.shape is not Shape.OBJECT:
        schema["default"] = field.default
    return schema


def _shape(field: Field) -> Schema:
    if field.name in _BY_NAME:
        return dict(_BY_NAME[field.name])
    match field.shape:
        case Shape.OBJECT:
            return _object(field.fields)
        case Shape.LIST if field.item is not None:
            return {"type": "array", "items": _shape_of_item(field.item)}
        case Shape.MAP if field.item is not None:
            return {"type": "object", "additionalProperties": _shape_of_item(field.item)}
    schema = dict(_PLAIN[field.shape])
    if field.between is not None:
        schema["minimum"], schema["maximum"] = field.between
    return schema


def _shape_of_item(item: Field) -> Schema:
    return _object(item.fields) if item.shape is Shape.OBJECT else dict(_PLAIN[item.shape])
