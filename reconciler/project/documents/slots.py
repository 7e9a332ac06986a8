"""Slots: the fields of a spec with what `resolve` needs of them (shape, references, whether they are secret)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Final

from msgspec import Struct

from reconciler.model.fields.annotations import Behavior, Conceals
from reconciler.model.fields.field import Field, Shape, fields_of
from reconciler.model.fields.form import Form
from reconciler.model.value import Json


class Slot(Struct, frozen=True):
    """A field as `resolve` needs it. Everything inside a sensitive field is sensitive.

    conceals   finds secrets inside a document or map, and `canonical` reads the document from its text
    is_plain   a text in it is no id, and not secret
    """

    shape: Shape
    sensitive: bool
    refs: tuple[str, ...]
    item: Slot | None
    fields: Mapping[str, Slot]
    conceals: Conceals | None = None
    canonical: Callable[[Json], Json] | None = None
    is_plain: bool = False

    def has_secrets(self, text: str) -> bool:
        """Whether the text of a document has secrets inside."""
        if self.conceals is None or self.canonical is None or self.shape is not Shape.ANY:
            return False
        return _has_secrets(text, self.canonical, self.conceals.find)


@lru_cache(maxsize=512)  # thousands of resources may have the same document
def _has_secrets(text: str, read: Callable[[Json], Json], find: Callable[[Json], Iterator[object]]) -> bool:
    document = read(text)
    return not isinstance(document, str) and any(True for _ in find(document))


SECRET_TEXT: Final = Slot(Shape.TEXT, sensitive=True, refs=(), item=None, fields={})
"""The slot of a secret inside a document."""


def _slot(of: Field, sensitive: bool = False) -> Slot:
    sensitive = sensitive or Behavior.SENSITIVE in of.behaviors
    return Slot(
        of.shape,
        sensitive,
        of.refs,
        _slot(of.item, sensitive) if of.item else None,
        {field.name: _slot(field, sensitive) for field in of.fields},
        of.conceals,
        of.canonical if of.conceals is not None else None,
        not (sensitive or of.refs or of.conceals),
    )


@cache
def slots_of(model: type[Form]) -> Mapping[str, Slot]:
    return {field.name: _slot(field) for field in fields_of(model)}


def is_plain_text(items: Iterable[Json], slot: Slot) -> bool:
    """Whether the items are plain text: no expression, no id, no secret."""
    if slot.sensitive or slot.refs:
        return False
    return all(item.__class__ is str and "${" not in item for item in items)
