"""What a manifest says beside its spec, looked up as the user names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import lookup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.model.fields.field import Field
    from reconciler.model.kind import Kind


def fields() -> Mapping[str, Field]:
    """What a manifest may say besides its spec."""
    from reconciler.model.fields.field import Field, Shape, fields_of
    from reconciler.project.documents.manifest_document import ManifestDocument
    from reconciler.project.manifests import for_each

    doc = "A list, a map, or a ${{ var.NAME }} that holds one: one resource for each item, by ${{ each.key }}."
    words = (*fields_of(ManifestDocument), Field(for_each.KEY, Shape.ANY, doc))
    return {field.name: field for field in words}


def find_inside(field: Field, kind: Kind, path: str) -> Field:
    """What a path below one of these words leads to; `deliver.token.to_file` and `deliver.to_file` are the same."""
    before = f"{kind.name}.{field.name}"
    for name in path.split(".")[1:]:
        if field.name == "deliver" and name == kind.one_time:
            continue
        within = field.fields or (field.item.fields if field.item else ())
        found = next((field for field in within if field.name == name), None)
        if found is None:
            known = [field.name for field in within]
            near = lookup.suggest(name, known) or f"it has {', '.join(known) or 'nothing inside'}"
            raise click.UsageError(f"there is no {name!r} in {before}; {near}")
        field, before = found, f"{before}.{name}"
    return field


def why_not_taken(kind: Kind, word: str) -> str:
    """Why this kind's manifests do not say the word; nothing if they may."""
    from reconciler.model.kind import Home

    if kind.home is Home.FILE and word not in ("kind", "name", "spec", "for_each"):
        return f"{kind.name} is rendered to a file and has only kind, name and spec."
    if word in ("deliver", "rotate") and kind.one_time is None:
        return f"{kind.name} has no one-time secret, and takes no {word}."
    return ""
