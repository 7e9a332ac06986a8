"""One live object as a manifest would describe it: its spec in the write shape, and what has to be left to others.

Knows nothing of names and of other objects, but for whom an id belongs to; see `survey`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from reconciler.kinds.rules import traffic_policy as traffic
from reconciler.model.address import Address
from reconciler.model.canonical import canonicalize, leaf_at, read
from reconciler.model.fields.annotations import InputOnly, PathOnly, Sensitive, ServerDefault
from reconciler.model.fields.field import Field, Shape
from reconciler.model.fields.spec import Part, Spec
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import Json, Ref, Template, Value

OwnerLookup = Callable[[str, str], Address | None]
"""Who an id of a kind belongs to, if it is declared or about to be."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Text that reads better in a file of its own, with the ending that says what it is."""

    text: str
    ending: str

    @property
    def document(self) -> dict[str, Any] | None:
        """The traffic policy that the text spells, if a manifest can hold it as YAML."""
        found = None if self.ending == "pem" else traffic.parse(self.text)
        return found if found and _is_writable(found) else None


def _is_writable(value: Json) -> bool:
    """Whether the keys of a document mean nothing else in a manifest."""
    match value:
        case dict():
            plain = all(key not in ("", "<<") and "${{" not in key for key in value)
            return plain and all(map(_is_writable, value.values()))
        case list():
            return all(map(_is_writable, value))
    return True


def describe(
    kind: Kind, live: Live, whose: OwnerLookup, applied: Collection[str] = ()
) -> tuple[dict[str, Value], list[str]]:
    """The spec, without what is a default, and the paths of what no manifest may hold: secrets, and what is not shown.

    `applied` are paths of what is known to have been set.
    """
    spec = {field.name: value for field in kind.fields if (value := _describe_field(live, field, whose)) is not None}
    ignored = list(_find_hidden_paths(kind.fields, live.body, applied))
    for path, leaf in list(_find_rejected_fields(kind, spec, ignored)):
        if Sensitive in leaf:
            ignored.append(path)  # it is set, and not shown
        elif ServerDefault in leaf:
            spec.pop(path, None)  # the platform spells out what follows from another field
    return spec, list(dict.fromkeys(ignored))


def _describe_field(live: Live, each: Field, whose: OwnerLookup) -> Value:
    if PathOnly in each:
        return _describe_value(each, live.parent_id, whose)
    if each.name == "metadata":
        return live.metadata or None
    return _describe_value(each, read(each, live.body), whose)


def _describe_value(each: Field, value: Json, whose: OwnerLookup) -> Value:
    """As a manifest would say it; None for what it need not say, and for what it must not."""
    if value is None or InputOnly in each or Sensitive in each:
        return None
    match each.shape:
        case Shape.OBJECT if isinstance(value, dict) and not (each.default and _is_default(each, value)):
            return _describe_object(each.fields, value, whose)
        case _ if not each.required and _is_default(each, value):
            return None
        case Shape.LIST if isinstance(value, list) and each.item is not None:
            return [_describe_item(each.item, item, whose) for item in value]
        case Shape.ANY if isinstance(value, str):
            return Attachment(value, "json" if value.lstrip().startswith("{") else "policy")
        case Shape.TEXT if isinstance(value, str):
            return _describe_text(each, value, whose)
    return value


def _describe_object(fields: Sequence[Field], value: Mapping[str, Json], whose: OwnerLookup) -> dict[str, Value]:
    inside = {sub.name: _describe_value(sub, read(sub, value), whose) for sub in fields}
    return {name: inner for name, inner in inside.items() if inner is not None}


def _describe_item(item: Field, value: Json, whose: OwnerLookup) -> Value:
    if item.shape is Shape.OBJECT and isinstance(value, dict):
        return _describe_object(item.fields, value, whose)
    return _describe_text(item, value, whose) if isinstance(value, str) else value


def _describe_text(each: Field, value: str, whose: OwnerLookup) -> Value:
    target = next((found for kind in each.refs if (found := whose(kind, value)) is not None), None)
    if target is not None:
        return Ref(target)
    return Attachment(value, "pem") if "-----BEGIN" in value else value


def _is_default(each: Field, value: Json) -> bool:
    if value == "" and each.default in (None, ""):
        return True
    return bool(canonicalize(each, value) == canonicalize(each, each.default))


def _find_rejected_fields(kind: Kind, spec: Mapping[str, Value], ignored: Sequence[str]) -> Iterator[tuple[str, Field]]:
    """The fields that the rules between fields find wrong, with their dotted paths."""
    whole: dict[str, Value] = {name: _mask_documents(value) for name, value in spec.items()}
    for path in ignored:
        whole = _add_unknown(whole, path.split("."))
    try:
        valid = kind.spec.model_validate(whole)
    except ValidationError:
        return  # told when the manifest is read
    for path in _find_rejected_paths(valid):
        leaf = leaf_at(kind.fields, path)
        if leaf is not None:
            yield path, leaf


def _find_rejected_paths(part: BaseModel, path: str = "") -> Iterator[str]:
    if isinstance(part, (Spec, Part)):
        yield from (path + ".".join(map(str, finding.path)) for finding in part.findings())
    for name, inner in part:
        if isinstance(inner, BaseModel):
            yield from _find_rejected_paths(inner, f"{path}{name}.")


def _add_unknown(spec: Mapping[str, Value], path: Sequence[str]) -> dict[str, Value]:
    """With something that is not known yet at a path, as far as what surrounds it is there."""
    head, *rest = path
    if not rest:
        return {**spec, head: Template(())}
    inner = spec.get(head)
    return {**spec, head: _add_unknown(inner, rest)} if isinstance(inner, dict) else dict(spec)


def _mask_documents(value: Value) -> Value:
    match value:
        case Attachment():
            return value.text if value.ending == "pem" else Template(())
        case dict():
            return {key: _mask_documents(each) for key, each in value.items()}
        case list():
            return [_mask_documents(each) for each in value]
    return value


def _find_hidden_paths(
    fields: Sequence[Field], body: Mapping[str, Any], applied: Collection[str], path: str = ""
) -> Iterator[str]:
    """The paths of secrets, and of what responses never show."""
    for field in fields:
        here = f"{path}{field.name}"
        value = read(field, body)
        if Sensitive in field or InputOnly in field:
            if (Sensitive in field and (value or InputOnly in field)) or field.required or here in applied:
                yield here
        elif field.shape is Shape.OBJECT and isinstance(value, dict):
            yield from _find_hidden_paths(field.fields, value, applied, f"{here}.")
