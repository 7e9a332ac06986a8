"""Finds kinds and fields by the names that the user typed, and suggests the nearest name if there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from reconciler.model.suggestions import did_you_mean

if TYPE_CHECKING:
    from reconciler.model.fields.field import Field
    from reconciler.model.kind import Kind
    from reconciler.model.manifest import Path


def kind(name: str) -> Kind:
    """The kind with this name. Raises UsageError if there is none."""
    from reconciler import kinds

    match = kinds.find(name)
    if match is None:
        now = kinds.RENAMED.get(name)
        near = (
            f"write {now}, the kind of the same objects"
            if now
            else did_you_mean(name, (kind.name for kind in kinds.declarable()))
        )
        raise click.UsageError(f"unknown kind {name!r}; {near or '`reconciler kinds` lists all kinds'}")
    return match


def field(of: Kind, path: str) -> Field:
    """The field at a dotted path. Raises UsageError if there is none."""
    fields, inner, before = of.fields, None, of.name
    for name in path.split("."):
        inner = _find_field(fields, name, before, of)
        fields, before = inner.fields or (inner.item.fields if inner.item else ()), f"{before}.{name}"
    assert inner is not None  # a path has at least one name
    return inner


def check_path(of: Kind, path: Path) -> None:
    """Raises UsageError if no spec of the kind can have a value at the path."""
    from reconciler.model.fields.field import Field, Shape

    here, before = Field(of.name, Shape.OBJECT, fields=of.fields), of.name
    for part in path:
        match here.shape, part:
            case Shape.ANY, _:
                return
            case (Shape.LIST, int()) | (Shape.MAP, str()) if here.item is not None:
                here = here.item
            case Shape.OBJECT, str():
                here = _find_field(here.fields, part, before, of)
            case Shape.LIST, _:
                raise click.UsageError(f"select an item of the list, as in {before}[0]")
            case _:
                what = "items" if isinstance(part, int) else "fields"
                raise click.UsageError(f"no {what} in {before}: its type is {here.shape}")
        before += f"[{part}]" if isinstance(part, int) else f".{part}"


def _find_field(fields: Sequence[Field], name: str, before: str, of: Kind) -> Field:
    match = next((field for field in fields if field.name == name), None)
    if match is None:
        near = (
            did_you_mean(name, (field.name for field in fields)) or f"`reconciler explain {of.name}` lists all fields"
        )
        raise click.UsageError(f"unknown field {name!r} in {before}; {near}")
    return match


def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of kinds, and of fields after a dot."""
    from reconciler import kinds

    name, dot, path = incomplete.partition(".")
    match = kinds.find(name) if dot else None
    if match is None:
        return [CompletionItem(kind.name) for kind in kinds.declarable() if kind.name.startswith(incomplete)]
    return [CompletionItem(f"{name}.{field.name}") for field in match.fields if field.name.startswith(path)]
