"""Slots: the fields of a spec with what `resolve` needs of them (shape, references, whether they are secret)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from msgspec import Struct
from pydantic import BaseModel

from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape, fields_of
from reconciler.model.value import Json


class Slot(Struct, frozen=True):
    """A field as `resolve` needs it. Everything inside a sensitive field is sensitive."""

    shape: Shape
    sensitive: bool
    refs: tuple[str, ...]
    item: Slot | None
    fields: Mapping[str, Slot]


def _slot(of: Field, sensitive: bool = False) -> Slot:
    sensitive = sensitive or Behavior.SENSITIVE in of.behaviors
    return Slot(
        of.shape,
        sensitive,
        of.refs,
        _slot(of.item, sensitive) if of.item else None,
        {field.name: _slot(field, sensitive) for field in of.fields},
    )


@cache
def slots_of(model: type[BaseModel]) -> Mapping[str, Slot]:
    return {field.name: _slot(field) for field in fields_of(model)}


def is_plain_text(items: Iterable[Json], slot: Slot) -> bool:
    """Whether the items are plain text: no expression, no reference, no secret."""
    if slot.sensitive:
        return False
    return all(item.__class__ is str and "${{" not in item and not (slot.refs and "/" in item) for item in items)
