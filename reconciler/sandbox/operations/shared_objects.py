"""Objects in two collections: stored once, and returned by the second one with ids and paths of its own."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model.kind import Kind
from reconciler.sandbox.base.database import Document
from reconciler.sandbox.wire.queries import Query, check_id
from reconciler.sandbox.wire.responses import View


def rename_id(identity: str, kind: Kind, other: Kind) -> str:
    """The id of the same object in the other kind."""
    return identity.replace(kind.id_prefix, other.id_prefix, 1) if identity.startswith(kind.id_prefix) else identity


def render_as(kind: Kind, kept: Kind, response: Document, view: View) -> Document:
    """The response of the second kind, from that of the kind that the object is stored as."""
    identity = rename_id(response["id"], kept, kind)
    return {**response, "id": identity, "uri": f"{view.base}{kind.path}/{identity}"}


def translate_query(query: Query, kind: Kind, kept: Kind) -> Query:
    """The query with its ids translated to those of the stored kind."""
    if query.before is None:
        return query
    check_id("before_id", query.before, kind.id_prefix)
    return replace(query, before=rename_id(query.before, kind, kept))
