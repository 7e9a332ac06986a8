"""JSON Schema of a policy file's documents, for editors. Nothing in them is a reference or comes from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.model.fields.field import Field, Shape, fields_of
from reconciler.model.fields.form import Form
from reconciler.rendering.schemas import manifest as manifest_schema


def policy_schema(form: type[Form]) -> manifest_schema.Schema:
    """The schema of one policy; `form` is its shape as it is read."""
    described = {"description": manifest_schema.doc_of(form), **_object(fields_of(form))}
    return {"$schema": manifest_schema.DIALECT, "title": "Policy", **described}


def _object(fields: Sequence[Field]) -> dict[str, Any]:
    needed = [field.name for field in fields if field.required]
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _of(field) for field in fields},
    }
    return schema | ({"required": needed} if needed else {})


def _of(field: Field) -> dict[str, Any]:
    return ({"description": field.doc} if field.doc else {}) | _shape(field)


def _shape(field: Field) -> dict[str, Any]:
    match field.shape:
        case Shape.OBJECT:
            return _object(field.fields)
        case Shape.LIST if field.item is not None:
            return {"type": "array", "items": _shape(field.item)}
    return {"enum": list(field.choices)} if field.choices else {"type": "string"}
