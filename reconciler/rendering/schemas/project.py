"""JSON Schemas of a project's other files: `reconciler.yaml` with its defaults, and `environments/NAME.yaml`.

A patch says only what differs: nothing in it is required, and null takes away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import MappingProxyType
from typing import Any

from reconciler.model.address import NAME, Address
from reconciler.model.fields.field import fields_of
from reconciler.model.fields.form import Form
from reconciler.model.kind import Kind
from reconciler.rendering.schemas import component
from reconciler.rendering.schemas import manifest as manifest_schema
from reconciler.rendering.schemas.access_tests import access_tests_schema
from reconciler.rendering.schemas.component import Forms
from reconciler.rendering.schemas.fleet import fleet_schema
from reconciler.rendering.schemas.manifest import Schema
from reconciler.rendering.schemas.policy import policy_schema

_NOT_SET = ("version", "variables", "defaults")  # of a project file: what no environment sets as it is there
_CONDITIONS = ("required", "if", "then", "else", "allOf", "minProperties", "default")


def project_schema(form: type[Form], kinds: Iterable[Kind]) -> Schema:
    """The schema of `reconciler.yaml`, which has this form."""
    fields = fields_of(form)
    return {
        "$schema": manifest_schema.DIALECT,
        "title": "Project",
        "description": manifest_schema.doc_of(form),
        "type": "object",
        "additionalProperties": False,
        "required": [field.name for field in fields if field.required],
        "properties": {
            **manifest_schema.properties_of(fields),
            "version": {"const": 1},
            "variables": _variables(),
            "defaults": _defaults(sorted(kinds, key=lambda kind: kind.name)),
        },
        "$defs": {name: schema for name, schema in manifest_schema.definitions().items() if name != "policy"},
    }


def editor_schemas(
    form: type[Form],
    fleet_form: type[Form],
    policy_form: type[Form],
    kinds: Iterable[Kind],
    addresses: Collection[Address] | None = None,
    components: Forms = MappingProxyType({}),
) -> dict[str, Schema]:
    """The schemas for all files of a project and of a fleet, by file name.

    form, fleet_form, policy_form  the forms of these files
    addresses                      the resources that references may name; None: any
    components                     those of the project, whose uses are checked
    """
    kinds = tuple(kinds)
    return {
        "access-tests.json": access_tests_schema(),
        component.FILE: component.component_schema(),
        "environment.json": environment_schema(form, kinds, addresses),
        "fleet.json": fleet_schema(fleet_form),
        "manifest.json": component.add_uses(manifest_schema.manifest_schema(kinds, addresses), components),
        "policy.json": policy_schema(policy_form),
        "project.json": project_schema(form, kinds),
    }


def environment_schema(form: type[Form], kinds: Iterable[Kind], addresses: Iterable[Address] | None = None) -> Schema:
    """The schema of `environments/NAME.yaml`; `form` is that of the project file."""
    kinds = sorted(kinds, key=lambda kind: kind.name)
    settings = {
        field.name: manifest_schema.field_schema(field) for field in fields_of(form) if field.name not in _NOT_SET
    }
    return {
        "$schema": manifest_schema.DIALECT,
        "title": "Environment",
        "description": "Settings, variables and patches (Kind/name) of one environment.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **{name: _nullable(_partial(schema)) for name, schema in settings.items()},
            "variables": {"type": "object", "description": "Values for variables that reconciler.yaml declares."},
            "defaults": _nullable(_defaults(kinds)),
        },
        "patternProperties": {
            f"^{kind.name}/{NAME.pattern}$": {"anyOf": [{"$ref": f"#/$defs/{kind.name}"}, {"type": "null"}]}
            for kind in kinds
        },
        "$defs": {
            **manifest_schema.definitions(addresses),
            **manifest_schema.reference_definitions(kinds, addresses),
            **{name: _nullable(_partial(entry)) for name, entry in manifest_schema.entry_definitions(kinds).items()},
            **{kind.name: _patch(kind) for kind in kinds},
        },
    }


def _defaults(kinds: Iterable[Kind]) -> Schema:
    """`defaults:` by kind: names of fields are checked, their values by `reconciler validate`."""
    return {
        "type": "object",
        "additionalProperties": False,
        "description": "Defaults by kind, applied below each manifest of the kind.",
        "properties": {kind.name: _defaults_of(kind) for kind in kinds},
    }


def _defaults_of(kind: Kind) -> Schema:
    whole = manifest_schema.document(kind)["properties"]
    spec = {"type": "object", "additionalProperties": False, "properties": {field.name: {} for field in kind.fields}}
    parts = {name: _partial(whole[name]) for name in ("lifecycle", "rotate") if name in whole}
    return {"type": "object", "additionalProperties": False, "properties": {"spec": spec, **parts}}


def _patch(kind: Kind) -> Schema:
    whole = _partial(manifest_schema.document(kind))
    properties = {
        name: schema for name, schema in whole["properties"].items() if name not in ("kind", "name", "for_each", "when")
    }
    return {**whole, "properties": properties}


def _partial(node: Any) -> Any:
    """The schema without required keys, and with null allowed for every value."""
    match node:
        case {"properties": dict(properties)}:
            kept = {key: _partial(item) for key, item in node.items() if key not in (*_CONDITIONS, "properties")}
            return {**kept, "properties": {name: _nullable(_partial(schema)) for name, schema in properties.items()}}
        case {"anyOf": list(arms)}:
            return {**node, "anyOf": [_partial(arm) for arm in arms]}
        case {"items": _}:
            return node  # a patch replaces a list as a whole, so its items are complete
    return node


def _nullable(node: Schema) -> Schema:
    arms = node.get("anyOf", [])
    if {"type": "null"} in arms:
        return node
    if arms:
        return {**node, "anyOf": [*arms, {"type": "null"}]}
    inner = {key: item for key, item in node.items() if key != "description"}
    outer = {"description": node["description"]} if "description" in node else {}
    return {**outer, "anyOf": [inner, {"type": "null"}]}


def _variables() -> Schema:
    types = ["string", "integer", "number", "boolean", "list", "map"]
    declared = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "type": {"enum": types, "description": "Type of the variable; values of --var are converted to it."},
            "default": {"description": "Default value. A variable without one must be set."},
            "description": {"type": "string"},
        },
    }
    value = {"anyOf": [declared, {"type": ["string", "number", "boolean", "array"]}, {"$ref": "#/$defs/value"}]}
    text = "Values for ${{ var.name }}, or their declarations; environments and --var override them."
    return {"type": "object", "description": text, "additionalProperties": value}
