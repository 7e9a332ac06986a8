"""The keys of a manifest other than its spec, such as `deliver` and `moved`, for `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.model.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.model.fields.field import Field
    from reconciler.model.kind import Kind


def fields(kind: Kind) -> Mapping[str, Field]:
    """The keys at the top level of a manifest of the kind, by name."""
    from reconciler import kinds
    from reconciler.model.fields.field import Field, Shape, fields_of
    from reconciler.project.documents.manifest_document import ManifestDocument
    from reconciler.project.manifests import for_each

    doc = "A list or map, or ${{ var.NAME }}: declares one resource for each item, which uses ${{ each.key }}."
    when = "true, false, or an expression such as ${{ var.NAME }}: whether the resource is declared."
    keys = [*fields_of(ManifestDocument), Field(for_each.KEY, Shape.ANY, doc), Field("when", Shape.ANY, when)]
    for key, child in kinds.inline_children(kind.name).items():
        doc = f"Resources of the kind {child.name} that belong to this one: a map from name to spec."
        keys.append(Field(key, Shape.MAP, doc, item=Field(key, Shape.OBJECT, fields=child.entry_fields)))
    return {field.name: field for field in keys}


def find_inside(field: Field, kind: Kind, path: str) -> Field:
    """The field at a path below a manifest key. Raises UsageError if there is none.

    `deliver.token.to_file` and `deliver.to_file` are the same.
    """
    before = f"{kind.name}.{field.name}"
    for name in path.split(".")[1:]:
        if field.name == "deliver" and name == kind.one_time:
            continue
        within = field.fields or (field.item.fields if field.item else ())
        inner = next((field for field in within if field.name == name), None)
        if inner is None:
            names = [field.name for field in within]
            hint = (
                did_you_mean(name, names) or f"its fields are {', '.join(names)}" if names else "it is a single value"
            )
            raise click.UsageError(f"unknown field {name!r} in {before}; {hint}")
        field, before = inner, f"{before}.{name}"
    return field


def why_not_taken(kind: Kind, word: str) -> str:
    """Why manifests of this kind do not support a key; empty if they do."""
    from reconciler.model.kind import Home

    if kind.home is Home.FILE and word not in ("kind", "name", "spec", "for_each", "when"):
        return f"{kind.name} does not support {word}: it is rendered to a file and has no object on the platform."
    if word in ("deliver", "rotate") and kind.one_time is None:
        return f"{kind.name} does not support {word}: it has no one-time secret."
    return ""
