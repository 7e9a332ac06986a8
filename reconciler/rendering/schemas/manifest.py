"""JSON Schemas of manifests: a document of each kind, and any document. For editors; see also `project`.

A schema is more lenient than validation: it knows shapes, choices and lengths, not syntax or rules between fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reconciler import kinds
from reconciler.kinds.rules import canonical
from reconciler.languages import traffic_catalog
from reconciler.model.address import NAME, Address
from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape, fields_of
from reconciler.model.kind import Home, Kind
from reconciler.model.manifest import Lifecycle

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VALUE: Schema = {"$ref": "#/$defs/value"}
_EACH = r"\$\{\{.*\b(each|input|component)\b.*\}\}"  # a name or address within for_each or a component
_ADDRESS = rf"^[A-Z][A-Za-z0-9]*/([A-Za-z0-9][A-Za-z0-9._-]{{0,99}}|.*{_EACH})"
_FILLED: Schema = {"$ref": "#/$defs/filled"}
_PLAIN: dict[Shape, Schema] = {
    Shape.TEXT: {"type": "string"},
    Shape.INTEGER: {"type": "integer"},
    Shape.NUMBER: {"type": "number"},
    Shape.FLAG: {"type": "boolean"},
}
_CHILDREN = next(field for field in fields_of(Lifecycle) if field.name == "unmanaged_children")


def kind_schema(kind: Kind) -> Schema:
    """The schema of one document that declares this kind."""
    described = document(kind)
    defined = definitions() | reference_definitions((kind,)) | entry_definitions((kind,))
    if not any(_uses_policy(one.fields) for one in (kind, *kinds.inline_children(kind.name).values())):
        del defined["policy"]
    return {"$schema": DIALECT, "title": kind.name, **described, "$defs": defined}


def manifest_schema(every: Iterable[Kind], addresses: Iterable[Address] | None = None) -> Schema:
    """The schema of any document; `kind` selects the schema of the kind. `addresses`: see `definitions`."""
    every = sorted(every, key=lambda kind: kind.name)
    return {
        "$schema": DIALECT,
        "title": "Manifest",
        "description": "A manifest: one declared resource. A file can contain several, separated by ---.",
        "type": "object",
        "required": ["kind", "name"],
        "properties": {"kind": {"enum": [kind.name for kind in every], "description": "Kind of the resource."}},
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind.name}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{kind.name}"},
            }
            for kind in every
        ],
        "$defs": {
            **definitions(addresses),
            **reference_definitions(every, addresses),
            **entry_definitions(every),
            **{kind.name: document(kind) for kind in every},
        },
    }


# --- a document -------------------------------------------------------------------------------------------------------


def _base_document(kind: Kind) -> Schema:
    """What any declaration has, and one that is rendered to a file has alone."""
    return {
        "description": doc_of(kind.spec),
        "type": "object",
        "additionalProperties": False,
        "required": ["kind", "name"],
        "properties": {
            "kind": {"const": kind.name},
            "name": _name(),
            "for_each": _for_each(),
            "when": _when(),
            "spec": {"type": "object", "additionalProperties": False, "properties": properties_of(kind.fields)},
        },
    }


def _name() -> Schema:
    return {
        "type": "string",
        "pattern": f"^({NAME.pattern}|.*{_EACH}.*)$",
        "description": "Name of the resource, unique within its kind and stack.",
    }


def _for_each() -> Schema:
    return {
        "description": "Declares one resource for each item, with ${{ each.key }} and ${{ each.value }}.",
        "anyOf": [
            {"type": "array", "items": {"type": ["string", "number", "object"]}},
            {"type": "object"},
            {"type": "string", "pattern": r"^\$\{\{ *(var|input)\..*\}\}$"},
        ],
    }


def _when() -> Schema:
    return {
        "description": "Whether the resource is declared: true, false, or ${{ … }}.",
        "anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"^\$\{\{ *(var|each|input)\..*\}\}$"}],
    }


def common_properties() -> Schema:
    """The properties that a document has whatever it declares."""
    return {"name": _name(), "for_each": _for_each(), "when": _when()}


def moves_by_key(item: Schema) -> Schema:
    """Former names of single items of `for_each`."""
    names = {"anyOf": [item, {"type": "array", "items": item}]}
    return {"type": "object", "additionalProperties": names, "description": "With for_each: by the key of the item."}


def document(kind: Kind) -> Schema:
    """One document, without the `definitions` it refers to."""
    schema = _base_document(kind)
    if kind.home is Home.FILE:
        return schema
    schema["properties"] |= _keys(kind) | {
        key: _map_of(child) for key, child in kinds.inline_children(kind.name).items()
    }
    if needed := [field.name for field in kind.fields if field.required]:
        schema |= _unless_gone(_needs(needed))
    if kind.required_unless_id:
        schema["allOf"] = [
            {"if": {"not": {"required": ["id"]}}, "then": _unless_gone(_needs(list(kind.required_unless_id)))}
        ]
    return schema


def _keys(kind: Kind) -> dict[str, Schema]:
    """What the manifest of an object has besides kind, name and spec."""
    return {
        "id": {"type": "string", "minLength": 1, "description": "Id of an existing object that this manifest manages."},
        "ensure": {
            "enum": ["present", "absent", "forgotten"],
            "default": "present",
            "description": "absent: the object must not exist. forgotten: it is kept and no longer managed.",
        },
        "lifecycle": _lifecycle(kind),
        "moved": {
            "description": "Former addresses of the object, which is kept.",
            "anyOf": [_address(), {"type": "array", "items": _address()}, moves_by_key(_address())],
        },
        **_delivery(kind),
    }


def _map_of(child: Kind) -> Schema:
    """The key under which a parent declares its children."""
    entries = {"type": "object", "additionalProperties": {"$ref": f"#/$defs/{entry_name(child)}"}}
    return {
        "description": f"{child.name} resources of this one, by name: NAME-KEY is the name of each.",
        "anyOf": [{**entries, "propertyNames": {"pattern": f"^({NAME.pattern}|.*{_EACH}.*)$"}}, _FILLED],
    }


def entry_name(child: Kind) -> str:
    """The name of the definition of an inline child."""
    return f"{child.name}.entry"


def entry_definitions(parents: Iterable[Kind]) -> dict[str, Schema]:
    """The definitions of the inline children of these kinds: their spec, and keys of a manifest beside its fields."""
    found = [child for parent in parents for child in kinds.inline_children(parent.name).values()]
    return {entry_name(child): _entry(child) for child in found}


def _entry(child: Kind) -> Schema:
    fields = child.entry_fields
    schema: Schema = {
        "description": doc_of(child.spec),
        "type": "object",
        "additionalProperties": False,
        "properties": {**properties_of(fields), "when": _when(), **_keys(child)},
    }
    if needed := [field.name for field in fields if field.required]:
        schema |= _unless_gone({"required": needed})
    if child.required_unless_id:
        named = [field.name for field in fields if field.name in child.required_unless_id]
        schema["allOf"] = [{"if": {"not": {"required": ["id"]}}, "then": _unless_gone({"required": named})}]
    return schema


def _needs(names: list[str]) -> Schema:
    return {"required": ["spec"], "properties": {"spec": {"required": names}}}


def _unless_gone(then: Schema) -> Schema:
    """Requirements that do not apply to `ensure: absent` and `forgotten`."""
    gone = {"required": ["ensure"], "properties": {"ensure": {"enum": ["absent", "forgotten"]}}}
    return {"if": gone, "then": True, "else": then}


def _lifecycle(kind: Kind) -> Schema:
    flags = {
        "protect": "Deletion needs approval, also after the declaration was removed.",
        "adopt": "Approves the adoption of an existing unmanaged object.",
        "replace": "false: a change that requires a replacement is an error.",
    }
    children: Schema = {
        "enum": list(_CHILDREN.choices),
        "default": _CHILDREN.default,
        "description": "Children on the platform that no manifest declares. report: reported as drift. "
        "delete: deleted after approval.",
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "description": "Exceptions for updates, replacement and deletion.",
        "properties": {
            **{name: {"type": "boolean", "description": text} for name, text in flags.items()},
            **({"unmanaged_children": children} if kinds.children(kind) else {}),
            "ignore": {
                "type": "array",
                "items": {"type": "string", "examples": [field.name for field in kind.fields]},
                "description": "Fields that are not managed.",
            },
        },
    }


_WORD: Schema = {"type": "string", "minLength": 1}
_PATH: Schema = {"type": "string", "minLength": 1, "description": "Path of a file, relative to the project's root."}
_REPOSITORY: Schema = {"type": "string", "pattern": "^[^/]+/[^/]+$", "description": "Repository, as OWNER/NAME."}
_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}
_DURATION: Schema = {"type": "string", "pattern": "^[0-9]{1,6}[smhdw]$", "description": "Such as 90d or 24h."}
_COMMAND: Schema = {"type": "array", "items": {"type": "string"}}
_NAMES: Schema = {
    "type": "array",
    "items": {"type": "string", "pattern": "^(?!RECONCILER_)[A-Za-z_][A-Za-z0-9_]*$"},
    "description": "Environment variables passed to the commands, besides PATH, HOME and the locale.",
}


def _exactly_one(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
        "properties": properties,
    }


def _object(doc: str, required: Iterable[str] | None = None, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "description": doc,
        "additionalProperties": False,
        "required": list(properties if required is None else required),
        "properties": properties,
    }


def _delivery(kind: Kind) -> Schema:
    if kind.one_time is None:
        return {}
    sink = _exactly_one(
        to_file={**_PATH, "description": "File that contains only the secret."},
        to_dotenv=_object("Entry of a dotenv file.", file=_PATH, name=_NAME),
        to_kubernetes_secret=_object(
            "File with a Kubernetes Secret manifest.",
            ("file", "name"),
            file=_PATH,
            name=_WORD,
            key=_WORD,
            namespace=_WORD,
        ),
        to_command=_object(
            "Command that reads the secret from its standard input.", ("run",), run=_COMMAND, check=_COMMAND, env=_NAMES
        ),
        to_github_secret=_object(
            "Secret of GitHub Actions.", ("repository", "name"), repository=_REPOSITORY, name=_NAME, environment=_WORD
        ),
        to_vault=_object(
            "Key of a secret in Vault's KV engine, version 2.", ("path",), path=_WORD, key=_WORD, mount=_WORD
        ),
    )
    return {
        "deliver": {
            "type": "object",
            "additionalProperties": False,
            "properties": {kind.one_time: sink},
            "description": f"Sink of the one-time secret {kind.one_time}.",
        },
        "rotate": _object("Rotation of the one-time secret.", ("after",), after=_DURATION, overlap=_DURATION),
    }


def _address() -> Schema:
    return {"type": "string", "pattern": f"{_ADDRESS}$"}


# --- fields -----------------------------------------------------------------------------------------------------------


def properties_of(fields: Iterable[Field]) -> Schema:
    return {field.name: field_schema(field) for field in fields}


def field_schema(field: Field) -> Schema:
    schema = _shape(field)
    if not field.required and field.default is None and field.shape is not Shape.ANY:
        arms = schema.pop("anyOf", None) or [dict(schema)]
        schema = {"anyOf": [*arms, {"type": "null"}]}
    if field.doc:
        schema = {"description": field.doc, **schema}
    if not field.required and field.default is not None and Behavior.SERVER_DEFAULT not in field:
        schema["default"] = field.default
    return schema


def _shape(field: Field) -> Schema:
    """The schema of a value that is there; what is neither list nor object may be a reference instead."""
    match field.shape:
        case Shape.LIST if field.item is not None:
            return {"anyOf": [{"type": "array", "items": _shape(field.item)}, _FILLED]}
        case Shape.MAP if field.item is not None:
            return {"anyOf": [{"type": "object", "additionalProperties": _shape(field.item)}, _FILLED]}
        case Shape.OBJECT:
            needed = [inner.name for inner in field.fields if inner.required]
            schema = {"type": "object", "additionalProperties": False, "properties": properties_of(field.fields)}
            return {"anyOf": [{**schema, "required": needed} if needed else schema, _FILLED]}
        case Shape.ANY:
            known = [{"$ref": "#/$defs/policy"}] if field.canonical is canonical.policy else [{"type": "object"}]
            return {"anyOf": [{"type": "string", "minLength": 1}, *known, _VALUE]}
    if field.refs:
        return {"anyOf": [_id(field), {"$ref": f"#/$defs/{_reference_name(field.refs)}"}]}
    return {"anyOf": [_plain(field), _VALUE]}


def _id(field: Field) -> Schema:
    """An id, or `${{ … }}` that does not refer to a resource of another kind."""
    return {**_plain(field), "pattern": rf"^(?!\$\{{\{{ *(?!({'|'.join(field.refs)})/)[A-Z])"}


def _plain(field: Field) -> Schema:
    if field.choices:
        return {"enum": list(field.choices)}
    schema = dict(_PLAIN.get(field.shape, {}))
    if field.max_bytes is not None:
        schema["maxLength"] = field.max_bytes  # characters: no text within the bytes has more of them
    if field.between is not None:
        schema["minimum"], schema["maximum"] = field.between
    return schema


def _uses_policy(fields: Iterable[Field]) -> bool:
    return any(field.canonical is canonical.policy or _uses_policy(field.fields) for field in fields)


def definitions(addresses: Iterable[Address] | None = None) -> Schema:
    """What a value may be instead of itself, and the document of a traffic policy.

    addresses  the resources that references may name; None: any
    """

    return {
        "value": {
            "anyOf": [
                _word_of("ref", "A field of another resource; without a field, its id.", **_reference(addresses)),
                *_OUTSIDE,
                {
                    "type": "string",
                    "pattern": r"\$\{\{.*\}\}",
                    "description": "Text with ${{ Kind/name.field }}, ${{ var.name }} or ${{ lower(var.name) }}.",
                },
            ]
        },
        "filled": {
            "type": "string",
            "pattern": r"^\$\{\{ *(each|var|input|split|default)\b.*\}\}$",
            "description": "A list or map from a variable, from for_each, from an input or from a function.",
        },
        "policy": {
            "type": "object",
            "minProperties": 1,
            "properties": {phase: {"type": "array", "items": _rule()} for phase in traffic_catalog.PHASES},
        },
    }


def _word_of(key: str, text: str, **more: Any) -> Schema:
    """A map with one key, whose value is a text."""
    word = {"type": "string", "minLength": 1, **more}
    properties = {key: word}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [key],
        "properties": properties,
        "description": text,
    }


_OUTSIDE = (
    _word_of("from_env", "The value of an environment variable."),
    _word_of("from_file", "The text of a file below the project directory."),
)


def reference_definitions(every: Iterable[Kind], addresses: Iterable[Address] | None = None) -> Schema:
    """What may be in the place of an id, by the kinds that the field takes: references to resources of other kinds are
    invalid. `addresses`: see `definitions`."""
    known = None if addresses is None else tuple(addresses)
    declared = [part for kind in every for part in (kind, *kinds.inline_children(kind.name).values())]
    taken = dict.fromkeys(refs for kind in declared for refs in _find_refs(kind.fields))
    return {_reference_name(refs): _reference_to(refs, known) for refs in sorted(taken)}


def _reference_name(refs: Iterable[str]) -> str:
    return "-".join(("reference", *refs))


def _find_refs(fields: Iterable[Field]) -> Iterator[tuple[str, ...]]:
    for field in fields:
        if field.refs:
            yield field.refs
        yield from _find_refs(field.fields if field.item is None else field.item.fields)


def _reference_to(refs: Sequence[str], addresses: Sequence[Address] | None) -> Schema:
    named = "|".join(refs)
    text = rf"^({named})/([A-Za-z0-9][A-Za-z0-9._-]{{0,99}}$|.*{_EACH})"
    choices: Schema = {"pattern": text, "examples": [f"{kind}/name" for kind in refs]}
    if addresses is not None:
        names = [str(address) for address in sorted(addresses) if address.kind in refs]
        choices = {"anyOf": [{"enum": names}, {"pattern": rf"^({named})/.*({_EACH}|\.id$)"}]}
    return {"anyOf": [_word_of("ref", f"The id of a resource: {' or '.join(refs)}.", **choices), *_OUTSIDE]}


def _reference(addresses: Iterable[Address] | None) -> Schema:
    """The value of `ref`. Its choices are what an editor completes; a field or `each` makes it another text."""
    if addresses is None:
        return {"pattern": _ADDRESS}
    names = sorted(map(str, addresses))
    fields = "|".join(name.replace(".", r"\.") for name in names)  # a pattern of editors knows no other escapes
    fields_of_names = [{"pattern": rf"^({fields})\.[a-z][a-z0-9_.]*$"}] if names else []
    return {"anyOf": [{"enum": names}, *fields_of_names, {"pattern": rf"^[A-Z][A-Za-z0-9]*/.*{_EACH}"}]}


def _rule() -> Schema:
    text = {"anyOf": [{"type": "string"}, _VALUE]}
    action = {
        "type": "object",
        "additionalProperties": False,
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "examples": sorted(traffic_catalog.actions())},
            "config": {"type": ["object", "null"]},
        },
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["actions"],
        "properties": {
            "name": text,
            "expressions": {"type": "array", "items": text},
            "actions": {"type": "array", "minItems": 1, "items": action},
        },
    }


def doc_of(shape: type) -> str:
    return " ".join((shape.__doc__ or "").split())
