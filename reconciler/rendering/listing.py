"""Live objects of one kind or of all kinds, as a table or as JSON.

Shows only what `kinds.visible_fields` allows, and escapes the text of the platform.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from reconciler.kinds.visible_fields import show_body
from reconciler.model.json_text import write_json
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import Json
from reconciler.rendering import terminal_text

_DESCRIPTIVE = (
    "name",
    "url",
    "public_url",
    "domain",
    "addr",
    "hostports",
    "cidr",
    "match",
    "type",
    "email",
    "description",
)
_HEAD = ("ID", "NAME", "MANAGED BY", "CREATED")
_LONGEST = 60  # cells of a column other than the id, which is never cut
_SHORTEST = 10  # cells of the columns that are cut
_GAP = 2  # cells between columns
_OWNER = 2  # the index of this column
_TIME_OF_DAY = re.compile(r"(?<=^\d{4}-\d\d-\d\d)T.*")


def render_table(kind: Kind, lives: Sequence[Live], width: int) -> str:
    """`ID  NAME  MANAGED BY  CREATED` in so many cells, in the order of the platform. Ids and owners are never cut.

    If a line does not fit, CREATED is the date without the time; then it is left out, and then the owner is below.
    """
    rows = [_HEAD, *(_row(kind, live) for live in lives)]
    if _excess(_measure(rows), width) > 0:
        rows = [(*row[:3], _TIME_OF_DAY.sub("", row[3])) for row in rows]
    widths = _fit(rows, width)
    return "".join(f"{_join_cells(row, widths)}\n" for row in rows) if lives else ""


def _fit(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column on the first line of a row.

    If it is too wide, the name is cut first, then the date is left out, and then the owner, which gets its own line.
    """
    whole = _measure(rows)
    for columns in range(len(whole), _OWNER, -1):
        widths = _cut_name(whole[:columns], width)
        if _excess(widths, width) <= 0:
            return widths
    return _cut_name(whole[:_OWNER], width)


def _cut_name(widths: list[int], width: int) -> list[int]:
    widths[1] -= max(0, min(_excess(widths, width), widths[1] - _SHORTEST))
    return widths


def _measure(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(terminal_text.width(row[column]) for row in rows) for column in range(len(rows[0]))]


def _excess(widths: Sequence[int], width: int) -> int:
    """The cells that a row has too many."""
    return sum(widths) + _GAP * (len(widths) - 1) - width


def render_json(kind: Kind, lives: Sequence[Live], *, complete: bool) -> str:
    """One JSON object: the objects as far as they may be shown, and whether the list is complete."""
    objects = [show_body(kind, live.body) for live in lives]
    return _to_json({"kind": kind.name, "complete": complete, "objects": objects})


def _to_json(value: Json) -> str:
    text = write_json(value)  # escapes what is unsafe
    return text.replace("##", "#\\u0023")  # the runner of a pipeline would execute `##[…]`


class Row(Struct, frozen=True):
    """An object with the stack and address that manage it; both are empty if it is unmanaged."""

    kind: Kind
    live: Live
    stack: str = ""
    address: str = ""


def render_all_table(rows: Sequence[Row], width: int) -> str:
    """The objects below a heading for each kind, with `ID  NAME  MANAGED BY`. Ids and owners are never cut; the ids of
    parents are left out."""
    cells = [(f"  {_sanitize(row.live.id)}", *map(_sanitize, _tell(row))) for row in rows]
    head = ("  ID", "NAME", "MANAGED BY")
    widths = _fit([head, *cells], width)
    counts = Counter(row.kind.name for row in rows)
    lines = [_join_cells(head, widths)]
    for before, row, texts in zip((None, *rows), rows, cells, strict=False):
        if before is None or before.kind.name != row.kind.name:
            lines.append(f"{row.kind.name} ({counts[row.kind.name]})")
        lines.append(_join_cells(texts, widths))
    return "".join(f"{line}\n" for line in lines) if rows else ""


def _tell(row: Row) -> tuple[str, str]:
    return _describe(row.kind, row.live.body), f"{row.stack} {row.address}".strip()


def _sanitize(text: str) -> str:
    return terminal_text.cut(terminal_text.sanitize(text), _LONGEST)


def render_all_json(rows: Sequence[Row], incomplete: Mapping[str, str]) -> str:
    """One JSON object: the objects as they may be shown, each with kind and owner, and why lists are incomplete."""
    objects = [
        {
            "kind": row.kind.name,
            "id": row.live.locator,
            "owner": {"stack": row.stack, "address": row.address or None} if row.stack else None,
            "body": show_body(row.kind, row.live.body),
        }
        for row in rows
    ]
    return _to_json({"complete": not incomplete, "incomplete": dict(incomplete), "objects": objects})


def _join_cells(row: Sequence[str], widths: Sequence[int]) -> str:
    """The cells of a row, as far as there is a width for them. Without one, the owner is on the next line."""
    cells = (_fill(text, width) for text, width in zip(row, widths, strict=False))
    below = f"\n      {row[_OWNER]}" if len(widths) == _OWNER and row[_OWNER] else ""
    return "  ".join(cells).rstrip() + below


def _fill(text: str, width: int) -> str:
    """The text in a cell of this width."""
    text = terminal_text.cut(text, width)
    return text + " " * (width - terminal_text.width(text))


def _row(kind: Kind, live: Live) -> tuple[str, ...]:
    owner = live.owner
    managed_by = f"{owner.stack} {owner.address}" if owner is not None else ""
    created = live.body.get("created_at") or live.body.get("started_at") or ""
    row = (live.locator, _describe(kind, live.body), managed_by, str(created))
    locator, *rest = (terminal_text.sanitize(text) for text in row)
    return locator, *(terminal_text.cut(text, _LONGEST) for text in rest)


def _describe(kind: Kind, body: Mapping[str, Json]) -> str:
    """The first text field of the natural key, or of those that usually identify an object."""
    references = {field.name for field in kind.fields if field.refs}
    names = [name for name in (*kind.identity, *_DESCRIPTIVE) if name != kind.key and name not in references]
    for name in names:
        value = body.get(name)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = " ".join(value)
        if isinstance(value, str) and value and "\n" not in value:
            return value
    return ""
