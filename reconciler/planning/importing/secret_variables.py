"""Replaces the secrets inside policies and headers of a proposed declaration by references to environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.fields.field import Field, Shape
from reconciler.model.value import Secret, Value, replace_at
from reconciler.planning.importing.describe import Attachment
from reconciler.planning.importing.naming import to_kebab_case

_ROUGH = re.compile(r"[^A-Z0-9]+")


class FromEnvironment(Struct, frozen=True):
    """A value that the manifest reads with `{from_env: NAME}`."""

    name: str


class Replaced(Struct, frozen=True):
    """A spec without secrets inside. `secrets`: the text of each by the name of its variable.

    unwritable   the fields whose secrets cannot be replaced, because a manifest cannot hold the document as YAML
    """

    spec: dict[str, Value]
    secrets: Mapping[str, Secret]
    unwritable: tuple[str, ...] = ()


def replace_secrets(address: Address, fields: Sequence[Field], spec: Mapping[str, Value]) -> Replaced:
    """The proposed spec with variables in the places of secrets, named after the address and the setting."""
    replacer = _Replacer(address)
    replaced = {name: replacer.replace(_find_field(fields, name), value) for name, value in spec.items()}
    return Replaced(replaced, replacer.secrets, tuple(replacer.unwritable))


def _find_field(fields: Sequence[Field], name: str) -> Field | None:
    return next((field for field in fields if field.name == name), None)


class _Replacer:
    def __init__(self, address: Address) -> None:
        self._address = address
        self.secrets: dict[str, Secret] = {}
        self.unwritable: list[str] = []

    def replace(self, field: Field | None, value: Value) -> Value:
        if field is None:
            return value
        if field.conceals is not None:
            return self._replace_document(field, value)
        if field.shape is Shape.OBJECT and isinstance(value, dict):
            return {name: self.replace(_find_field(field.fields, name), part) for name, part in value.items()}
        if field.item is not None and isinstance(value, list):
            return [self.replace(field.item, part) for part in value]
        return value

    def _replace_document(self, field: Field, value: Value) -> Value:
        assert field.conceals is not None
        document: Any = value
        if isinstance(value, Attachment):
            document = value.document
            read = field.canonical(value.text) if document is None and field.canonical else document
            if isinstance(read, str) or (document is None and any(True for _ in field.conceals.find(read))):
                self.unwritable.append(field.name)
                return value
        paths = list(field.conceals.find(document))
        if not paths:
            return value
        for path in paths:
            document = replace_at(document, [path], lambda text, path=path: self._name(field, path, text))  # type: ignore[misc]
        return document

    def _name(self, field: Field, path: tuple[str | int, ...], text: str) -> FromEnvironment:
        setting = next((part for part in reversed(path) if isinstance(part, str)), field.name)
        base = _ROUGH.sub("_", f"{to_kebab_case(self._address.kind)}_{self._address.name}_{setting}".upper()).strip("_")
        name, number = base, 1
        while name in self.secrets:
            number += 1
            name = f"{base}_{number}"
        self.secrets[name] = Secret(text, "live")
        return FromEnvironment(name)
