"""Kinds and fields as the user names them: found, or refused with the nearest name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from reconciler.model.fields.field import Field
    from reconciler.model.kind import Kind
    from reconciler.model.manifest import Path


def kind(name: str) -> Kind:
    """The kind of that name; UsageError if there is none."""
    from reconciler import kinds

    found = kinds.find(name)
    if found is None:
        near = suggest(name, (kind.name for kind in kinds.declarable()))
        raise click.UsageError(f"there is no kind {name!r}; {near or '`reconciler kinds` lists them'}")
    return found


def field(of: Kind, path: str) -> Field:
    """The field at a dotted path; UsageError if there is none."""
    fields, found, before = of.fields, None, of.name
    for name in path.split("."):
        found = _find_field(fields, name, before, of)
        fields, before = found.fields or (found.item.fields if found.item else ()), f"{before}.{name}"
    assert found is not None  # a path has at least one name
    return found


def check_path(of: Kind, path: Path) -> None:
    """UsageError if no spec of the kind can have a value at the path."""
    from reconciler.model.fields.field import Field, Shape

    here, before = Field(of.name, Shape.OBJECT, fields=of.fields), of.name
    for part in path:
        match here.shape, part:
            case Shape.ANY, _:
                return  # free in form
            case (Shape.LIST, int()) | (Shape.MAP, str()) if here.item is not None:
                here = here.item
            case Shape.OBJECT, str():
                here = _find_field(here.fields, part, before, of)
            case Shape.LIST, _:
                raise click.UsageError(f"name an item of the list, as in {before}[0]")
            case _:
                what = "items" if isinstance(part, int) else "fields"
                raise click.UsageError(f"there are no {what} in {before}: its shape is {here.shape}")
        before += f"[{part}]" if isinstance(part, int) else f".{part}"


def _find_field(fields: Sequence[Field], name: str, before: str, of: Kind) -> Field:
    found = next((field for field in fields if field.name == name), None)
    if found is None:
        near = suggest(name, (field.name for field in fields)) or f"`reconciler explain {of.name}` lists them"
        raise click.UsageError(f"{before} has no field {name!r}; {near}")
    return found


def suggest(name: str, known: Iterable[str]) -> str:
    """`did you mean …?`, or nothing if no name is near."""
    by_letters = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_letters, n=1)
    return f"did you mean {by_letters[near[0]]!r}?" if near else ""


def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of kinds for the shell; the folder listing tells them without loading any."""
    from reconciler import kinds

    name, dot, path = incomplete.partition(".")
    found = kinds.find(name) if dot else None
    if found is None:
        return [CompletionItem(kind.name) for kind in kinds.declarable() if kind.name.startswith(incomplete)]
    return [CompletionItem(f"{name}.{field.name}") for field in found.fields if field.name.startswith(path)]
