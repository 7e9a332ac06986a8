"""JSON Schemas of components: of their files, and of the documents that use them.

The inputs of a component are known where a project is: `schema --all` in a project checks and completes `with`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from reconciler.rendering.schemas import manifest as manifest_schema
from reconciler.rendering.schemas.manifest import Schema

FILE: Final = "component.json"
_VALUE: Schema = {"$ref": "#/$defs/value"}
_FILLED: Schema = {"$ref": "#/$defs/filled"}
_ARMS: Final[Mapping[str, list[Schema]]] = {
    "string": [{"type": "string"}, _VALUE],
    "integer": [{"type": "integer"}, _VALUE],
    "number": [{"type": "number"}, _VALUE],
    "boolean": [{"type": "boolean"}, _VALUE],
    "list": [{"type": "array"}, _FILLED],
    "map": [{"type": "object"}, _FILLED],
}
_INPUT: Final = "^[A-Za-z_][A-Za-z0-9_-]*$"
_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"}


class InputForm(Struct, frozen=True):
    """An input of a component: its type, what it is for, and whether a use must set it."""

    type: str
    description: str = ""
    is_required: bool = False
    default: Any = None


Forms = Mapping[str, Mapping[str, InputForm]]
"""The inputs of the components of a project, by the names of both."""


def component_schema() -> Schema:
    """The schema of each document of a component: its inputs in the first one, manifests in the others."""
    return {
        "$schema": manifest_schema.DIALECT,
        "title": "Component",
        "description": "A component: a document with its inputs, and others with its resources, separated by ---.",
        "type": "object",
        "properties": {"inputs": _inputs()},
        "if": {"required": ["inputs"]},
        "then": {"additionalProperties": False, "properties": {"inputs": True}},
        "else": {"$ref": "manifest.json"},
    }


def add_uses(manifest: Schema, components: Forms) -> Schema:
    """The schema of manifests, in which a document may also use a component."""
    schema = {key: value for key, value in manifest.items() if key not in ("required", "allOf")}
    names: Schema = {"enum": sorted(components)} if components else _NAME
    word = {**names, "description": "The component that the document uses."}
    return {
        **schema,
        "properties": {**manifest["properties"], "component": word},
        "if": {"required": ["component"]},
        "then": {"$ref": "#/$defs/use"},
        "else": {"required": manifest["required"], "allOf": manifest["allOf"]},
        "$defs": {**manifest["$defs"], "use": _use(word, components)},
    }


def _inputs() -> Schema:
    return {
        "type": "object",
        "description": "The inputs of the component, by name.",
        "propertyNames": {"pattern": _INPUT},
        "additionalProperties": {
            "type": "object",
            "additionalProperties": False,
            "required": ["type"],
            "properties": {
                "type": {"enum": list(_ARMS), "description": "The type of the value."},
                "default": {"description": "The value if the use sets none. null: a field with it is left out."},
                "description": {"type": "string", "description": "What the input is for."},
            },
        },
    }


def _use(word: Schema, components: Forms) -> Schema:
    properties = manifest_schema.common_properties()
    name: Schema = {"type": "string", "minLength": 1}
    return {
        "description": "The use of a component, which declares all of its resources.",
        "type": "object",
        "additionalProperties": False,
        "required": ["component", "name"],
        "properties": {
            "component": word,
            "name": {
                **properties["name"],
                "description": "Name of the instance, which precedes those of its resources.",
            },
            "with": {"type": ["object", "null"], "description": "Values of the inputs."},
            "for_each": properties["for_each"],
            "when": properties["when"],
            "moved": {
                "description": "Former names of the instance, whose resources are kept.",
                "anyOf": [name, {"type": "array", "items": name}, manifest_schema.moves_by_key(name)],
            },
        },
        # An empty list is no valid schema, and an editor then checks nothing.
        **({"allOf": [_inputs_of(*component) for component in sorted(components.items())]} if components else {}),
    }


def _inputs_of(name: str, inputs: Mapping[str, InputForm]) -> Schema:
    needed = [name for name, form in inputs.items() if form.is_required]
    values: Schema = {
        "type": "object" if needed else ["object", "null"],
        "additionalProperties": False,
        "properties": {name: _input(form) for name, form in inputs.items()},
    }
    if needed:
        values["required"] = needed
    then: Schema = {"properties": {"with": values}}
    if needed:
        then["required"] = ["with"]
    return {"if": {"properties": {"component": {"const": name}}, "required": ["component"]}, "then": then}


def _input(form: InputForm) -> Schema:
    schema: Schema = {"anyOf": [*_ARMS[form.type], *([] if form.is_required else [{"type": "null"}])]}
    if form.description:
        schema["description"] = form.description
    if form.default is not None:
        schema["default"] = form.default
    return schema
