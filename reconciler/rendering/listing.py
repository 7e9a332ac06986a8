"""Live objects of one kind: a line each for people, or all that the platform shows of them as JSON.

Secrets that a platform echoes are hidden here, and foreign text is made harmless. Knows nothing of plans.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import Json
from reconciler.rendering import terminal_text

HIDDEN = "(secret)"
_TELLING = ("name", "url", "public_url", "domain", "addr", "hostports", "cidr", "match", "type", "email", "description")
_HEAD = ("ID", "WHAT", "WHOSE", "SINCE")
_LONGEST = 60  # cells of a column other than the id, which is there to be copied


def table(kind: Kind, lives: Sequence[Live]) -> str:
    """`ID  WHAT  WHOSE  SINCE`, newest first; nobody's objects have an empty third column."""
    rows = [_HEAD, *(_row(kind, live) for live in lives)]
    widths = [max(terminal_text.width(row[column]) for row in rows) for column in range(len(_HEAD))]
    return "".join(f"{_padded(row, widths)}\n" for row in rows) if lives else ""


def document(kind: Kind, lives: Sequence[Live], *, complete: bool) -> str:
    """One JSON object: what the platform shows, and whether that was all."""
    objects = [dict(_shown(kind, live.body)) for live in lives]
    text = json.dumps({"kind": kind.name, "complete": complete, "objects": objects}, indent=2)  # escapes what is unsafe
    return text.replace("##", "#\\u0023")  # an order to the runner of a pipeline


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    cellwise = (text + " " * (width - terminal_text.width(text)) for text, width in zip(row, widths, strict=True))
    return "  ".join(cellwise).rstrip()


def _row(kind: Kind, live: Live) -> tuple[str, ...]:
    owner = live.owner
    whose = f"{owner.stack} {owner.address}" if owner is not None else ""
    since = live.body.get("created_at") or live.body.get("started_at") or ""
    row = (live.locator, _told(kind, live.body), whose, str(since))
    name, *rest = (terminal_text.sanitize(text) for text in row)
    return name, *(terminal_text.cut(text, _LONGEST) for text in rest)


def _told(kind: Kind, body: Mapping[str, Json]) -> str:
    """What people would call it: its natural key where that is text, else the first thing that tells it apart."""
    references = {field.name for field in kind.fields if field.refs}
    shown = [name for name in (*kind.identity, *_TELLING) if name != kind.key and name not in references]
    for name in shown:
        value = body.get(name)
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            value = " ".join(value)
        if isinstance(value, str) and value and "\n" not in value:
            return value
    return ""


def _shown(kind: Kind, body: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for name, value in body.items():
        field = kind.by_name.get(name)
        if name == kind.one_time and value is not None:
            yield name, HIDDEN
        else:
            yield name, value if field is None else _concealed(field, value)


def _concealed(field: Field, value: Json) -> Json:
    if Behavior.SENSITIVE in field:
        return HIDDEN if value else value
    if isinstance(value, dict) and field.is_sensitive:
        inner: dict[str, Any] = {each.name: each for each in field.fields}
        return {key: _concealed(inner[key], each) if key in inner else each for key, each in value.items()}
    if isinstance(value, list) and field.item is not None and field.is_sensitive:
        return [_concealed(field.item, each) for each in value]
    return value
