"""Describes one live object as the spec of a manifest, with the paths that a manifest must ignore.

`survey` chooses the objects and their names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from reconciler.kinds.rules import traffic_policy as traffic
from reconciler.model.address import Address
from reconciler.model.canonical import canonicalize, is_shown, leaf_at, read
from reconciler.model.fields.annotations import InputOnly, PathOnly, Sensitive, ServerDefault
from reconciler.model.fields.field import Field, Shape
from reconciler.model.fields.form import Form
from reconciler.model.fields.spec import Part, Spec
from reconciler.model.kind import Kind
from reconciler.model.numerals import SpelledFloat, SpelledInteger, in_json
from reconciler.model.snapshot import Live
from reconciler.model.value import Json, Ref, Template, Value

OwnerLookup = Callable[[str, str], Address | None]
"""Finds the address of a kind and id, if the object is declared or will be; None otherwise."""


class Attachment(Struct, frozen=True):
    """A text for a file of its own, with the ending of the file: `pem`, `json` or `policy`."""

    text: str
    ending: str

    @property
    def document(self) -> dict[str, Any] | None:
        """The traffic policy in the text, if a manifest can hold it as YAML; None otherwise."""
        document = None if self.ending == "pem" else traffic.parse(self.text)
        return document if document is not None and _is_writable(document) else None


def _is_writable(value: Json) -> bool:
    """Whether no key of a document has a special meaning in a manifest, and JSON can represent its numbers."""
    match value:
        case SpelledFloat() | SpelledInteger():
            return repr(in_json(value)) == value.spelling
        case dict():
            plain = all(key not in ("", "<<") and "${{" not in key for key in value)
            return plain and all(map(_is_writable, value.values()))
        case list():
            return all(map(_is_writable, value))
    return True


def describe(
    kind: Kind, live: Live, find_owner: OwnerLookup, applied: Collection[str] = ()
) -> tuple[dict[str, Value], list[str]]:
    """The spec of a live object, and the paths to ignore.

    The spec has the write shape, without defaults, with references for ids that `find_owner` knows. The ignored paths
    are secrets and values that responses never show, if they are set; `applied` are paths that are known to be set.
    """
    spec = {
        field.name: value for field in kind.fields if (value := _describe_field(live, field, find_owner)) is not None
    }
    ignored = list(_find_hidden_paths(kind.fields, live.body, applied))
    for path, leaf in list(_find_rejected_fields(kind, spec, ignored)):
        if Sensitive in leaf:
            ignored.append(path)  # it is set, but not shown
        elif ServerDefault in leaf:
            spec.pop(path, None)  # the platform derives it from another field
    return spec, list(dict.fromkeys(ignored))


def _describe_field(live: Live, field: Field, find_owner: OwnerLookup) -> Value:
    if PathOnly in field:
        return _describe_value(field, live.parent_id, find_owner)
    if field.name == "metadata":
        return live.metadata or None
    return _describe_value(field, read(field, live.body), find_owner)


def _describe_value(field: Field, value: Json, find_owner: OwnerLookup) -> Value:
    """The value for a manifest; None for defaults, secrets and values that responses do not show."""
    if value is None or (InputOnly in field and field.read_as is None) or Sensitive in field:
        return None
    if field.choices and ServerDefault in field and value not in field.choices:
        return None  # the platform's own word for its choice, which it does not accept
    match field.shape:
        case Shape.OBJECT if isinstance(value, dict) and not (field.default and _is_default(field, value)):
            return _describe_object(field.fields, value, find_owner)
        case _ if not field.required and _is_default(field, value):
            return None
        case Shape.LIST if isinstance(value, list) and field.item is not None:
            return [_describe_item(field.item, item, find_owner) for item in value]
        case Shape.ANY if isinstance(value, str):
            return Attachment(value, "json" if value.lstrip().startswith("{") else "policy")
        case Shape.TEXT if isinstance(value, str):
            return _describe_text(field, value, find_owner)
    return value


def _describe_object(fields: Sequence[Field], value: Mapping[str, Json], find_owner: OwnerLookup) -> dict[str, Value]:
    inside = {sub.name: _describe_value(sub, read(sub, value), find_owner) for sub in fields}
    return {name: inner for name, inner in inside.items() if inner is not None}


def _describe_item(item: Field, value: Json, find_owner: OwnerLookup) -> Value:
    if item.shape is Shape.OBJECT and isinstance(value, dict):
        return _describe_object(item.fields, value, find_owner)
    return _describe_text(item, value, find_owner) if isinstance(value, str) else value


def _describe_text(field: Field, value: str, find_owner: OwnerLookup) -> Value:
    target = next((owner for kind in field.refs if (owner := find_owner(kind, value)) is not None), None)
    if target is not None:
        return Ref(target)
    return Attachment(value, "pem") if "-----BEGIN" in value else value


def _is_default(field: Field, value: Json) -> bool:
    if value == "" and field.default in (None, ""):
        return True
    return bool(canonicalize(field, value) == canonicalize(field, field.default))


def _find_rejected_fields(kind: Kind, spec: Mapping[str, Value], ignored: Sequence[str]) -> Iterator[tuple[str, Field]]:
    """The fields that the validation rules between fields reject, with their dotted paths."""
    whole: dict[str, Value] = {name: _mask_documents(value) for name, value in spec.items()}
    for path in ignored:
        whole = _add_unknown(whole, path.split("."))
    valid = kind.spec.model_try(whole)
    if not isinstance(valid, Form):
        return  # reported when the manifest is loaded
    for path in _find_rejected_paths(valid):
        leaf = leaf_at(kind.fields, path)
        if leaf is not None:
            yield path, leaf


def _find_rejected_paths(part: Form, path: str = "") -> Iterator[str]:
    if isinstance(part, (Spec, Part)):
        yield from (path + ".".join(map(str, finding.path)) for finding in part.findings())
    for name, inner in part:
        if isinstance(inner, Form):
            yield from _find_rejected_paths(inner, f"{path}{name}.")


def _add_unknown(spec: Mapping[str, Value], path: Sequence[str]) -> dict[str, Value]:
    """The spec with an unresolved value at a path, if the object that encloses it exists."""
    head, *rest = path
    if not rest:
        return {**spec, head: Template(())}
    inner = spec.get(head)
    return {**spec, head: _add_unknown(inner, rest)} if isinstance(inner, dict) else dict(spec)


def _mask_documents(value: Value) -> Value:
    """The value with documents as unresolved values, which the rules between fields do not check."""
    match value:
        case Attachment():
            return value.text if value.ending == "pem" else Template(())
        case dict():
            return {key: _mask_documents(part) for key, part in value.items()}
        case list():
            return [_mask_documents(item) for item in value]
    return value


def _find_hidden_paths(
    fields: Sequence[Field], body: Mapping[str, Any], applied: Collection[str], path: str = ""
) -> Iterator[str]:
    """The paths of secrets and of fields that responses never show, if they are set or required."""
    for field in fields:
        here = f"{path}{field.name}"
        value = read(field, body)
        if Sensitive in field or not is_shown(field, body):
            if (Sensitive in field and (value or InputOnly in field)) or field.required or here in applied:
                yield here
        elif field.shape is Shape.OBJECT and isinstance(value, dict):
            yield from _find_hidden_paths(field.fields, value, applied, f"{here}.")
