"""Objects that two kinds share: kept once, as those of the one, and shown by the other under its own ids and paths."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.kind import Kind
from reconciler.sandbox.base.database import Document
from reconciler.sandbox.wire.queries import Query, check_id
from reconciler.sandbox.wire.responses import View


def rename_id(identity: str, kind: Kind, other: Kind) -> str:
    """The id by which the other kind knows the same object."""
    return identity.replace(kind.id_prefix, other.id_prefix, 1) if identity.startswith(kind.id_prefix) else identity


def render_as(kind: Kind, kept: Kind, shown: Document, view: View) -> Document:
    """An object as the kind shows it that it is not kept as."""
    identity = rename_id(shown["id"], kept, kind)
    return {**shown, "id": identity, "uri": f"{view.base}{kind.path}/{identity}"}


def translate_query(query: Query, kind: Kind, kept: Kind) -> Query:
    """The page that is asked for, by the ids that are kept."""
    if query.before is None:
        return query
    check_id("before_id", query.before, kind.id_prefix)
    return replace(query, before=rename_id(query.before, kind, kept))
