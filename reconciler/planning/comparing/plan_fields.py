"""Fields as a plan carries them: secrets as salted digests, and the fields that a create sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from reconciler.model.address import Address
from reconciler.model.canonical import CanonicalFields, collect_applied, leaves
from reconciler.model.change import ChangedBy, FieldChange
from reconciler.model.fields.annotations import CreateOnly, PathOnly
from reconciler.model.fields.field import Shape
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration
from reconciler.model.value import Hidden, Secret, UnreadSecret, Value, digest, has_secret
from reconciler.planning.comparing.canonical_fields import UNREAD

_INDEX = re.compile(r"\[[0-9]+\]")


def hide_secrets(value: Value, address: Address, path: str) -> Value:
    """The value with each secret as a digest salted with its address and path; None for a value that was not read.

    Two plans of one secret at one place carry the same digest, so that a plan file can be compared with the account.
    """
    if value is UNREAD:
        return None
    if isinstance(value, UnreadSecret) and not value.is_assumed:
        return Hidden("", value.source)
    if isinstance(value, Secret):
        return Hidden(digest(value, f"{address}:{secret_path(path)}"))
    if has_secret(value):
        match value:
            case dict():
                return {key: hide_secrets(item, address, f"{path}.{key}") for key, item in value.items()}
            case list():
                return [hide_secrets(item, address, path) for item in value]
    return value


def secret_path(path: str) -> str:
    """The path of a secret as the salt of its digest has it: without indexes, since lists are shown as a whole too."""
    return _INDEX.sub("", path)


def show_fields(kind: Kind, form: CanonicalFields, address: Address) -> dict[str, Value]:
    """All fields of a live object without secrets, by name, as a plan records them in `Observed`."""
    return {name: hide_secrets(value, address, name) for name, value in form.items() if value is not UNREAD}


def list_created_fields(kind: Kind, want: CanonicalFields, declaration: Declaration) -> tuple[FieldChange, ...]:
    """The field changes of a create: every leaf that differs from its default, and values that only a create sends."""
    return tuple(
        FieldChange(
            path,
            None,
            hide_secrets(value, declaration.address, path),
            ChangedBy.GIT,
            position=declaration.at(*path.split(".")),
        )
        for path, value in _list_created(kind, want, declaration.spec)
    )


def _show_defaults(kind: Kind, want: CanonicalFields, path: str) -> Iterator[tuple[str, Value]]:
    """The values that an object has which is set with only defaults, as an update that sets it would list them."""
    field = kind.by_name.get(path)
    inside = leaves(field, want[path]) if field is not None and field.shape is Shape.OBJECT else ()
    places = [(place, value) for place, _, value in inside if value not in (None, "", [], {})]
    yield from places or ((path, {}),)


def _list_created(kind: Kind, want: CanonicalFields, spec: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    """The place of the object, which no owner record holds, then what one would record, then what is never compared."""
    yield from ((field.name, want[field.name]) for field in kind.fields if PathOnly in field and field.name in want)
    for path, value in collect_applied(kind, want).items():
        yield from _show_defaults(kind, want, path) if value == {} else ((path, value),)
    for field in kind.fields:
        if CreateOnly in field and spec.get(field.name) is not None:
            yield field.name, spec[field.name]
