"""Kinds and fields as the user names them: found, or refused with the nearest name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from reconciler.model.kind import Field, Kind


def kind(name: str) -> Kind:
    """The kind of that name; UsageError if there is none."""
    from reconciler import kinds

    found = kinds.find(name)
    if found is None:
        near = nearest(name, (each.name for each in kinds.declarable()))
        raise click.UsageError(f"there is no kind {name!r}; {near or '`reconciler kinds` lists them'}")
    return found


def field(of: Kind, path: str) -> Field:
    """The field at a dotted path; UsageError if there is none."""
    fields, found, before = of.fields, None, of.name
    for name in path.split("."):
        found = next((each for each in fields if each.name == name), None)
        if found is None:
            near = nearest(name, (each.name for each in fields))
            raise click.UsageError(
                f"{before} has no field {name!r}; {near or f'`reconciler explain {of.name}` lists them'}"
            )
        fields, before = found.fields or (found.item.fields if found.item else ()), f"{before}.{name}"
    assert found is not None  # a path has at least one name
    return found


def nearest(name: str, known: Iterable[str]) -> str:
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
        return [CompletionItem(each.name) for each in kinds.declarable() if each.name.startswith(incomplete)]
    return [CompletionItem(f"{name}.{each.name}") for each in found.fields if each.name.startswith(path)]
