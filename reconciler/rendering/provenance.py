"""Text of `explain Kind/name`: each declared value with the places that it comes from. Secrets are hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from reconciler.model.change import ChangedBy
from reconciler.model.provenance import Origin, Trace
from reconciler.model.value import Hidden, Ref, Secret, Template, Value, canonical
from reconciler.rendering.plan.outline import SENSITIVE, UNSET
from reconciler.rendering.terminal_text import cut, sanitize
from reconciler.rendering.terminal_text import width as cells_of

_LIVE = "on the platform"


class LiveValue(Struct, frozen=True):
    """The value on the platform, hidden if it is sensitive, and what changed it if it differs from the declared one."""

    value: Value
    changed_by: ChangedBy | None = None


def render_provenance(subject: str, traces: Sequence[Trace], live: Sequence[LiveValue | None], width: int) -> str:
    """A paragraph for each value: the value, then a line for each place that sets or overrides it."""
    return "\n\n".join(
        "\n".join(_paragraph(subject, trace, value, width)) for trace, value in zip(traces, live, strict=True)
    )


def _paragraph(subject: str, trace: Trace, live: LiveValue | None, width: int) -> Iterator[str]:
    name = f"{subject}.{trace.path}" if trace.path else subject
    yield cut(f"{sanitize(name)}: {_format(trace.value)}", width)
    rows = [_row(origin) for origin in trace.origins]
    if live is not None:
        label = f"{_LIVE}, {live.changed_by.text}" if live.changed_by else _LIVE
        rows.append(("", label, _format(live.value), ""))
    columns = [max(cells_of(row[column]) for row in rows) for column in (0, 1)]
    for row in rows:
        where, what = (cell + " " * (columns[place] - cells_of(cell)) for place, cell in enumerate(row[:2]))
        value, mark = row[2:]
        yield cut(f"  {where}  {what}  {value}".rstrip(), width - cells_of(mark)) + mark


def _row(origin: Origin) -> tuple[str, str, str, str]:
    where = sanitize(str(origin.position)) if origin.position else ""
    what = ("  " if origin.feeds else "") + sanitize(origin.what)
    written = origin.gist or (_format(origin.written) if origin.written is not None or not origin.feeds else "")
    return where, what, written, "" if origin.counts else " (overridden)"


def _format(value: Value) -> str:
    match value:
        case None:
            return UNSET
        case Secret() | Hidden():
            return SENSITIVE
        case Ref() | Template():
            return sanitize(str(value))
    return sanitize(canonical(_plain(value)).decode(errors="backslashreplace"))


def _plain(value: Value) -> Value:
    match value:
        case Secret() | Hidden():
            return SENSITIVE
        case Ref() | Template():
            return str(value)
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value
