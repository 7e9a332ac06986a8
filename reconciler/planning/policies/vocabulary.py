"""What the expressions of policies may use: variables, the fields of each, and functions, with their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, get_args, get_origin, get_type_hints

from msgspec.structs import fields as list_struct_fields

from reconciler import kinds
from reconciler.languages.cel_types import TypedLanguage
from reconciler.model.access_entry import AccessEntry
from reconciler.model.change import Action
from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape

_SCALARS: Final = MappingProxyType(
    {Shape.TEXT: "string", Shape.INTEGER: "int", Shape.NUMBER: "double", Shape.FLAG: "bool"}
)
_RESOURCE: Final = MappingProxyType(
    {
        "kind": "string",
        "name": "string",
        "address": "string",
        "declared": "bool",
        "ensure": "string",
        "id": "string",
        "protect": "bool",
        "delivers": "list<string>",
        "rotates": "bool",
    }
)
_ENTRY_TYPES: Final = MappingProxyType({str: "string", bool: "bool", int: "int"})


def _list_entry_fields() -> dict[str, str]:
    hints = get_type_hints(AccessEntry)
    return {field.name: _name_python_type(hints[field.name]) for field in list_struct_fields(AccessEntry)}


def _name_python_type(of: Any) -> str:
    return f"list<{_name_python_type(get_args(of)[0])}>" if get_origin(of) is tuple else _ENTRY_TYPES[of]


MESSAGES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "Plan": {
            "stack": "string",
            "account": "string",
            "commit": "string",
            "counts": "Counts",
            "calls": "int",
            "resources": "list<Resource>",
            "changes": "list<PlannedChange>",
        },
        "Counts": {str(action): "int" for action in Action},
        "PlannedChange": {"address": "string", "kind": "string", "action": "string"},
        "Change": {
            "action": "string",
            "reason": "string",
            "id": "string",
            "protected": "bool",
            "risks": "list<string>",
            "former": "string",
            "live": "any",
            "fields": "list<FieldChange>",
        },
        "FieldChange": {"path": "string", "old": "any", "new": "any", "changed_by": "string", "replaces": "bool"},
        "Entry": _list_entry_fields(),
        "Secret": {"source": "string"},
    }
)
"""The fields of the maps that all policies read. `Resource` and its spec depend on the kinds."""
VARIABLES: Final = MappingProxyType(
    {
        "resource": "Resource",
        "change": "Change",
        "plan": "Plan",
        "access": "list<Entry>",
        "entry": "Entry",
        "now": "timestamp",
    }
)
FUNCTIONS: Final[Mapping[str, Sequence[tuple[str, str]]]] = MappingProxyType(
    {
        "refs": (("Resource", "list<Resource>"), ("Entry", "list<Resource>")),
        "referrers": (("Resource", "list<Resource>"),),
    }
)


@lru_cache(maxsize=64)
def make_typed_language(scope: tuple[str, ...]) -> TypedLanguage:
    """The variables and functions of a policy for resources of these kinds; empty: of every kind."""
    messages = dict(MESSAGES)
    variables, functions = dict(VARIABLES), {name: list(overloads) for name, overloads in FUNCTIONS.items()}
    _add_resource(messages, "Resource", [kind.fields for kind in kinds.list_planned()])
    known = [kind.fields for name in scope if (kind := kinds.find(name)) is not None]
    if known:
        _add_resource(messages, "Resource__scope", known)
        variables["resource"] = "Resource__scope"
        for name in functions:
            functions[name].append(("Resource__scope", "list<Resource>"))
    return TypedLanguage(messages, variables, functions)


def _add_resource(messages: dict[str, Mapping[str, str]], name: str, specs: Sequence[Sequence[Field]]) -> None:
    spec = f"Spec__{name}"
    messages[name] = {**_RESOURCE, "spec": spec}
    _add_fields(messages, spec, specs)


def _add_fields(messages: dict[str, Mapping[str, str]], name: str, alternatives: Sequence[Sequence[Field]]) -> None:
    """Adds the message of a map that has the fields of one of several alternatives."""
    found: dict[str, list[Field]] = {}
    for fields in alternatives:
        for field in fields:
            found.setdefault(field.name, []).append(field)
    messages[name] = {}  # takes its place before those inside it
    messages[name] = {field: _name_type(messages, f"{name}_{field}", of) for field, of in found.items()}


def _name_type(messages: dict[str, Mapping[str, str]], name: str, alternatives: Sequence[Field]) -> str:
    """The type of a field; `any` if it is not one."""
    if all(_is_plain_object(field) for field in alternatives):
        _add_fields(messages, name, [field.fields for field in alternatives])
        return name
    items = [field.item for field in alternatives if field.shape is Shape.LIST and field.as_map is None]
    known = [item for item in items if item is not None]
    if len(known) == len(alternatives):
        return f"list<{_name_type(messages, name, known)}>"
    types = set(map(_name_scalar, alternatives))
    return types.pop() if len(types) == 1 else "any"


def _is_plain_object(field: Field) -> bool:
    return field.shape is Shape.OBJECT and bool(field.fields)


def _name_scalar(field: Field) -> str:
    """The type of a field without parts. A field that may refer to a resource has the text or `{"ref": …}`."""
    if Behavior.SENSITIVE in field.behaviors:
        return "Secret"
    if field.refs or field.conceals is not None:
        return "any"
    return _SCALARS.get(field.shape, "any")


def list_messages() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each variable with the fields that the documentation lists."""
    yield "resource", {**_RESOURCE, "spec": "any"}
    for variable, message in (("change", "Change"), ("plan", "Plan"), ("entry", "Entry")):
        yield variable, MESSAGES[message]
