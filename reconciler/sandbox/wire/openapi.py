"""The OpenAPI 3.1 document of the sandbox, generated from its table of operations.

Describes requests and responses. Rules that the document does not express, such as the syntax of an ACL rule or the
existence of a referenced object, lead to the common error response.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconciler import __version__
from reconciler.kinds import RENAMED
from reconciler.model.fields import judge
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.sandbox import rules
from reconciler.sandbox.base.database import Document
from reconciler.sandbox.operations import modules
from reconciler.sandbox.operations.routes import Act, Operation
from reconciler.sandbox.wire import bodies, queries, responses

Schema = dict[str, Any]

_TYPES = {
    Shape.TEXT: "string",
    Shape.ANY: "string",
    Shape.FLAG: "boolean",
    Shape.INTEGER: "integer",
    Shape.NUMBER: "number",
}
_LIMITS = {"description": 255, "metadata": 4096}
_REF = {"$ref": "#/components/schemas/Ref"}
_ERROR: Schema = {
    "type": "object",
    "description": "Why a request failed. `error_code`, if present, identifies the rule.",
    "required": ["status_code", "msg", "details"],
    "properties": {
        "error_code": {"type": "string", "examples": ["ERR_NGROK_446"]},
        "status_code": {"type": "integer"},
        "msg": {"type": "string"},
        "details": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
_REF_SCHEMA: Schema = {
    "type": "object",
    "description": "A pointer to another object.",
    "required": ["id", "uri"],
    "properties": {"id": {"type": "string"}, "uri": {"type": "string"}},
}
_VERSION: Schema = {
    "name": "Service-Version",
    "in": "header",
    "required": True,
    "description": "The API version. `Ngrok-Version` is accepted in its place.",
    "schema": {"type": "string", "enum": ["2"]},
}


def document(table: Iterable[Operation], base: str) -> Document:
    """The OpenAPI document; `base` is the base address of the sandbox."""
    table = tuple(table)
    paths: Document = {}
    for operation in table:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    schemas: Document = {"Error": _ERROR, "Ref": _REF_SCHEMA}
    kinds = {operation.kind.name: operation.kind for operation in table}.values()
    for kind in kinds:
        schemas |= _schemas(kind)
    for operation in table:
        if operation.act in (Act.CREATE, Act.UPDATE):
            schema = schemas[f"{operation.kind.name}{operation.act.value.capitalize()}"]
            schema["properties"] |= _describe_parameters(operation.parameters)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tunnel platform management API, as the sandbox serves it",
            "version": __version__,
            "description": "Errors share one form. Lists are newest first, in pages of up to 100.",
        },
        "servers": [{"url": base}],
        "security": [{"key": []}],
        "tags": [{"name": kind.name, "description": _doc(kind)} for kind in kinds],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": {"version": _VERSION},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


# --- operations -------------------------------------------------------------------------------------------------------


def _operation(operation: Operation) -> Document:
    kind, field = operation.kind, operation.field
    parameters: list[Schema] = [{"$ref": "#/components/parameters/version"}]
    parameters += [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in operation.parameters
    ]
    parameters += [{"name": name, "in": "query", **_query(name, kind)} for name in queries.parameters(operation)]
    described: Document = {
        "operationId": operation.name,
        "tags": [kind.name],
        "summary": f"{operation.act.value.capitalize()}: {kind.name}{f'.{field.name}' if field else ''}",
        "parameters": parameters,
        "responses": {
            str(operation.status): _success(operation),
            "default": {"description": "The request failed.", "content": _json("Error")},
        },
    }
    body = _request(operation)
    if body is not None:
        described["requestBody"] = {"required": operation.act is Act.CREATE, "content": body}
    return described


def _query(name: str, kind: Kind) -> Schema:
    identity: Schema = {"type": "string"}
    if kind.id_prefix:
        identity["pattern"] = f"^{kind.id_prefix}[0-9A-Za-z]{{27}}$"
    described: dict[str, tuple[str, Schema]] = {
        "limit": ("Objects in a page.", {"type": "integer", "minimum": 1, "maximum": 100, "default": 100}),
        "before_id": ("Only objects older than this one.", identity),
        "filter": ("Only objects for which this CEL expression over `obj` is true.", {"type": "string"}),
        "id": ("Only objects with one of these ids.", {"type": "array", "items": identity}),
        "url": ("Only objects with one of these urls.", {"type": "array", "items": {"type": "string"}}),
    }
    text, schema = described[name]
    return {"description": text, "schema": schema}


def _request(operation: Operation) -> Document | None:
    name = operation.kind.name
    if operation.act is Act.CREATE:
        return _json(f"{name}Create")
    if operation.act is Act.UPDATE:
        return _json(f"{name}Update")
    if operation.act is Act.PUT_MODULE and operation.field is not None:
        return _module_request(operation, f"{name}.{operation.field.name}.Write")
    return None


def _module_request(operation: Operation, schema: str) -> Document:
    """The module by itself, or below `module` with the parameters of the path, as clients of the public service do."""
    module = {"$ref": f"#/components/schemas/{schema}"}
    wrapped = {
        "type": "object",
        "additionalProperties": False,
        "required": ["module"],
        "properties": {"module": module, **_describe_parameters(operation.parameters)},
    }
    return {"application/json": {"schema": {"anyOf": [module, wrapped]}}}


def _describe_parameters(parameters: Iterable[str]) -> Schema:
    """The parameters of the path as a body may repeat them."""
    return {
        name: {"type": ["string", "null"], "description": "The value in the path; any other is refused."}
        for name in parameters
    }


def _success(operation: Operation) -> Document:
    name, field = operation.kind.name, operation.field
    if operation.status == 204:
        return {"description": "The operation succeeded; the response has no body."}
    if operation.act is Act.LIST:
        return {"description": "A page.", "content": _json(f"{name}List")}
    if field is not None:
        return {"description": "The module.", "content": _json(f"{name}.{field.name}")}
    return {"description": "The object.", "content": _json(name)}


def _json(schema: str) -> Document:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


# --- schemas ----------------------------------------------------------------------------------------------------------


def _schemas(kind: Kind) -> Document:
    name = kind.name
    listing = {
        kind.list_key: {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
        "uri": {"type": "string"},
    }
    if kind.id_prefix:
        listing["next_page_uri"] = {"type": ["string", "null"]}
    read = judge.model_of(kind.read).model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = {
        **read.pop("$defs", {}),
        "Ref": _REF_SCHEMA,
        name: _answer(kind, read.get("properties", {})),
        f"{name}Create": _body(
            bodies.list_accepted(kind, update=False), rules.list_required(RENAMED.get(name, name)), _doc(kind)
        ),
        f"{name}Update": _body(bodies.list_accepted(kind, update=True), (), "Changes the supplied fields."),
        f"{name}List": _exact(listing),
    }
    for field in kind.fields:
        if field.module:
            schemas[f"{name}.{field.name}.Write"] = _body(field.fields, modules.REQUIRED.get(field.name, ()), field.doc)
            schemas[f"{name}.{field.name}"] = _module_answer(kind, field)
    return schemas


def _body(fields: Iterable[Field], required: Iterable[str], doc: str) -> Schema:
    fields = tuple(fields)
    schema: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _write_schema(field, field.name in required) for field in fields},
    }
    if doc:
        schema["description"] = doc
    if wanted := [field.name for field in fields if field.name in required]:
        schema["required"] = wanted
    return schema


def _write_schema(field: Field, required: bool = False) -> Schema:
    """The schema of a field in a request. Null is the same as omitted for an optional field."""
    schema: Schema
    match field.shape:
        case Shape.LIST:
            schema = {"type": "array", "items": _write_schema(field.item, True) if field.item else {}}
        case Shape.MAP:
            schema = {"type": "object", "additionalProperties": _write_schema(field.item, True) if field.item else True}
        case Shape.OBJECT:
            schema = _body(field.fields, modules.REQUIRED.get(field.name, ()) if field.module else (), "")
        case _:
            schema = {"type": _TYPES[field.shape]}
    if field.choices:
        schema["enum"] = list(field.choices) if required else [*field.choices, None]
    if field.name in _LIMITS and field.shape is Shape.TEXT:
        schema["maxLength"] = _LIMITS[field.name]
    if field.doc:
        schema["description"] = field.doc
    if not required:
        schema["type"] = [schema["type"], "null"]
    return schema


def _doc(kind: Kind) -> str:
    return " ".join((kind.spec.__doc__ or "").split())


def _exact(properties: Schema, doc: str = "") -> Schema:
    """The schema of a response, in which every key is present."""
    schema: Schema = {"type": "object", "required": sorted(properties), "properties": properties}
    if doc:
        schema["description"] = doc
    return schema


def _answer(kind: Kind, read: Schema) -> Schema:
    properties: Schema = {}
    if kind.id_prefix:
        properties["id"] = {"type": "string", "pattern": f"^{kind.id_prefix}"}
    properties["uri"] = {"type": "string"}
    if not kind.wire.untimed:
        properties["created_at"] = {"type": "string", "format": "date-time"}
    if kind.parent is not None and kind.id_prefix:
        properties[kind.parent.field] = {"type": "string"}
    properties |= {name: {} for name in responses.default_outputs(kind)} | read
    for field in bodies.fields(kind):
        if responses.is_shown(kind, field):
            name, schema = _read_schema(kind, field)
            properties.setdefault(name, {})
            properties[name] = schema or properties[name]
    exact = _exact(properties, _doc(kind))
    exact["required"] = sorted(set(properties) - responses.not_listed(kind) - responses.sparse_keys(kind))
    return exact


def _module_answer(kind: Kind, field: Field) -> Schema:
    return _exact(dict(_read_schema(kind, inner) for inner in field.fields), field.doc)


def _read_schema(kind: Kind, field: Field) -> tuple[str, Schema]:
    """The name and schema of a field in a response; an empty schema if the platform derives the value."""
    if field.read_as is not None:
        name, dot, _ = field.read_as.path.partition(".")
        if not dot:
            return name, {}
        if name.endswith("[]"):
            return name[:-2], {"type": "array", "items": _REF, "description": field.doc}
        return name, {"anyOf": [_REF, {"type": "null"}], "description": field.doc}
    if field.module:
        reference = {"$ref": f"#/components/schemas/{kind.name}.{field.name}"}
        return field.name, {"anyOf": [reference, {"type": "null"}]}
    if field.shape is Shape.OBJECT:
        return field.name, {**_module_answer(kind, field), "type": ["object", "null"]}
    schema = _write_schema(field)
    schema.pop("enum", None)
    return field.name, schema
