"""The fields of a spec as resolving reads them: shape, references, and whether a secret is inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from pydantic import BaseModel

from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape, fields_of
from reconciler.model.value import Json


@dataclass(frozen=True, slots=True)
class Slot:
    """A field as resolving needs it. What is inside a sensitive field is sensitive."""

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
    """Whether nothing among these stands for something else."""
    if slot.sensitive:
        return False
    return all(item.__class__ is str and "${{" not in item and not (slot.refs and "/" in item) for item in items)
