"""Drift as a message to people or machines who are told of it: names, paths and who moved them, never a value.

Pure; `reconciler.api.notifications` sends it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.plan import Plan
from reconciler.model.value import Json
from reconciler.rendering.plan import phrases
from reconciler.rendering.plan.outline import ChangeRow, Outline, build_outline
from reconciler.rendering.plan.phrases import Flavour

FORMAT = "reconciler drift"
VERSION = 1
_LISTED = 20  # resources: who wants them all reads the report
_FIELDS = 5  # paths of one resource that one side moved
_LONGEST = 300  # characters of a line: the platform's names have no bounds of ours


@dataclass(frozen=True)
class Notice:
    """What there is to say, once."""

    subject: str
    lines: tuple[str, ...]
    written: Json

    @property
    def text(self) -> str:
        """For mail: plain text."""
        return "\n".join([self.subject, "", *self.lines]) + "\n"

    @property
    def slack(self) -> str:
        """As Slack and what is compatible with it take it: JSON, in which nobody is mentioned."""
        title, *lines = (_escaped(line) for line in (self.subject, *self.lines))
        return json.dumps({"text": "\n".join([f"*{title}*", *lines])})

    @property
    def json(self) -> str:
        return json.dumps(self.written)


def notice(plan: Plan) -> Notice:
    rows = build_outline(plan)
    told = phrases.drifted(rows, None).removeprefix("Drift: ").removesuffix(".")
    return Notice(f"Drift in {rows.stack}: {told}", tuple(_lines(rows)), _written(rows))


def _lines(rows: Outline) -> Iterator[str]:
    drift = _drift(rows)
    for row in drift[:_LISTED]:
        where = f" ({row.position})" if row.position else ""
        yield _short(f"- {row.address}: {_said(row)}{where}")
    if len(drift) > _LISTED:
        yield f"- and {phrases.count(len(drift) - _LISTED, 'more resource')}"
    yield _short(f"Account: {rows.account}" if rows.account else "")


def _drift(rows: Outline) -> list[ChangeRow]:
    """Additions first: each of them opens or shuts something that no manifest mentions."""
    return [*rows.additions, *(row for row in rows.changes if not row.is_pending)]


def _said(row: ChangeRow) -> str:
    """Who moved which of its fields; or, where nobody moved a single one, what became of it."""
    if row.action in (Action.CREATE, Action.DELETE):
        return phrases.reason(row, Flavour.DRIFT)
    moved = {mover: [field.path for field in row.fields if field.changed_by is mover] for mover in phrases.SIDES}
    told = [f"{_MOVERS.get(mover, str(mover))}: {_some(paths)}" for mover, paths in moved.items() if paths]
    return "; ".join(told) or phrases.reason(row, Flavour.DRIFT)


_MOVERS = {ChangedBy.UNKNOWN: "who changed it is not known"}


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _FIELDS} more" if len(paths) > _FIELDS else ""
    return ", ".join(paths[:_FIELDS]) + more


def _action(row: ChangeRow) -> str:
    """What the next apply does; an addition is not counted among the deletes, since it stays."""
    return "added" if row.reason is Reason.ADDED else str(row.action)


def _written(rows: Outline) -> Json:
    drift = _drift(rows)
    return {
        "format": FORMAT,
        "version": VERSION,
        "stack": rows.stack,
        "account": rows.account,
        "commit": rows.commit,
        "summary": dict(sorted(Counter(_action(row) for row in drift).items())),
        "ignored": rows.ignored,
        "pending": sum(row.is_pending for row in rows.changes),
        "changes": [
            {
                "address": row.address,
                "action": _action(row),
                "mover": phrases.side(row).name.lower(),
                "fields": [field.path for field in row.fields],
                "parent": row.parent or None,
                "position": row.position,
            }
            for row in drift
        ],
    }


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _escaped(text: str) -> str:
    """The three signs that Slack gives a meaning to; and those that would make text bold, or code of it."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("@", "@\u200b").replace("`", "\u02cb").replace("*", "\u2217").replace("~", "\u223c")
