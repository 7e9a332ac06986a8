"""Where declared values come from, as text. What is secret comes hidden, whatever place it was written in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.model.change import ChangedBy
from reconciler.model.provenance import Origin, Trace
from reconciler.model.value import Hidden, Ref, Secret, Template, Value, canonical
from reconciler.rendering.plan.outline import SENSITIVE, UNSET
from reconciler.rendering.terminal_text import cut, sanitize
from reconciler.rendering.terminal_text import width as cells_of

_LIVE = "on the platform"


@dataclass(frozen=True, slots=True)
class LiveValue:
    """What the platform holds, hidden where it is sensitive, and who moved it if it differs from what is declared."""

    value: Value
    changed_by: ChangedBy | None = None


def text(subject: str, traces: Sequence[Trace], live: Sequence[LiveValue | None], width: int) -> str:
    """A paragraph for each value: what it is, and a line for each place that has a say in it."""
    return "\n\n".join(
        "\n".join(_paragraph(subject, trace, there, width)) for trace, there in zip(traces, live, strict=True)
    )


def _paragraph(subject: str, trace: Trace, live: LiveValue | None, width: int) -> Iterator[str]:
    name = f"{subject}.{trace.path}" if trace.path else subject
    yield cut(f"{sanitize(name)}: {_shown(trace.value)}", width)
    rows = [_row(origin) for origin in trace.origins]
    if live is not None:
        said = f"{_LIVE}, {live.changed_by}" if live.changed_by else _LIVE
        rows.append(("", said, _shown(live.value), ""))
    columns = [max(cells_of(row[column]) for row in rows) for column in (0, 1)]
    for row in rows:
        where, what = (each + " " * (columns[place] - cells_of(each)) for place, each in enumerate(row[:2]))
        value, mark = row[2:]
        yield cut(f"  {where}  {what}  {value}".rstrip(), width - cells_of(mark)) + mark


def _row(origin: Origin) -> tuple[str, str, str, str]:
    where = sanitize(str(origin.position)) if origin.position else ""
    what = ("  " if origin.feeds else "") + sanitize(origin.what)
    written = origin.gist or (_shown(origin.written) if origin.written is not None or not origin.feeds else "")
    return where, what, written, "" if origin.counts else " (covered)"


def _shown(value: Value) -> str:
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
