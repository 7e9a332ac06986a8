"""The references by id between live objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.model.canonical import read
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import Json


def find_live_references(kind: Kind, live: Live) -> Iterator[tuple[str, tuple[str, str]]]:
    """(field, (kind, id)) for each object that a live object refers to by id, its parent among them.

    An id in a field that may refer to several kinds is yielded once for each of them.
    """
    for field in kind.fields:
        yield from ((field.name, target) for target in _find_field_references(field, live.body))
    if kind.parent is not None and live.parent_id is not None:
        yield kind.parent.field, (kind.parent.kind, live.parent_id)


def _find_field_references(field: Field, body: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    value = read(field, body)
    if field.refs:
        ids = value if isinstance(value, list) else [value]
        yield from ((kind, id) for id in ids if isinstance(id, str) for kind in field.refs)
        return
    parts, fields = (value, field.item.fields) if field.item and isinstance(value, list) else ([value], field.fields)
    for part in parts if fields else ():
        for sub in fields if isinstance(part, dict) else ():
            yield from _find_field_references(sub, part)
