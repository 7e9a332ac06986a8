"""A notification about drift as text, Slack message and JSON: names, paths and what changed them, never values.

`reconciler.api.notifications` sends it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from reconciler.model.change import Action, Reason
from reconciler.model.plan import Plan
from reconciler.model.value import Json
from reconciler.rendering.plan import access_drift, health_section, phrases
from reconciler.rendering.plan.outline import ChangeRow, Outline, build_outline
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.text_tools import count

FORMAT = "reconciler drift"
VERSION = 2
_LISTED = 20  # resources; the report has all of them
_FIELDS = 5  # paths of one resource and one cause
_LONGEST = 300  # characters of a line: names on the platform may be longer


class Notice(Struct, frozen=True):
    """One notification, in the forms of its channels."""

    subject: str
    lines: tuple[str, ...]
    document: Json

    @property
    def text(self) -> str:
        """For mail: plain text."""
        return "\n".join([self.subject, "", *self.lines]) + "\n"

    @property
    def slack(self) -> str:
        """For Slack and compatible services: JSON, in which mentions and markup are escaped."""
        title, *lines = (_escape(line) for line in (self.subject, *self.lines))
        return json.dumps({"text": "\n".join([f"*{title}*", *lines])})

    @property
    def json(self) -> str:
        return json.dumps(self.document)


def build_notice(plan: Plan, run: str = "") -> Notice:
    """The notification about the drift of a plan. `run`: the address of the pipeline's run, which has the report."""
    rows = build_outline(plan)
    totals = phrases.drift_totals(rows, None).removeprefix("Drift: ").removesuffix(".")
    opened, ill = access_drift.headline(rows), health_section.headline(rows.health or ())
    topic = "Health" if ill and not plan.has_drift else "Drift and health" if rows.health is not None else "Drift"
    subject = f"{topic} in {rows.stack}: {'; '.join(filter(None, (opened, ill, totals)))}"
    return Notice(subject, tuple(_lines(rows, run)), _document(rows, run))


def _lines(rows: Outline, run: str) -> Iterator[str]:
    drift = _drift(rows)
    for test in rows.failed_tests[:_LISTED]:
        yield _cut(f"- Access test failed: {test}")
    yield from _count_more(rows.failed_tests, "more failed access test")
    for entry in rows.access[:_LISTED]:
        also = f"; also {count(len(entry.more), 'more entry point')}" if entry.more else ""
        yield _cut(f"- {access_drift.describe(rows, entry)}{also}")
    yield from _count_more(rows.access, "more change of access", "more changes of access")
    for row in drift[:_LISTED]:
        where = f" ({row.position})" if row.position else ""
        yield _cut(f"- {row.address}: {_describe(row)}{where}")
    yield from _count_more(drift, "more resource")
    yield from _list_health(rows)
    if rows.account:
        yield _cut(f"Account: {rows.account}")
    if run:
        yield f"Run: {run}"


def _list_health(rows: Outline) -> Iterator[str]:
    """The health of the stack, apart from its drift."""
    if rows.health is None:
        return
    yield health_section.describe_health(rows.health)
    ill = health_section.list_unhealthy(rows.health)
    for row in ill[:_LISTED]:
        yield _cut(f"- {health_section.describe_row(row)}")
    yield from _count_more(ill, "more object")


def _count_more(rows: Sequence[object], noun: str, plural: str = "") -> Iterator[str]:
    """The line that stands for the rows that are not listed, if there are any."""
    if len(rows) > _LISTED:
        yield f"- and {count(len(rows) - _LISTED, noun, plural)}"


def _drift(rows: Outline) -> list[ChangeRow]:
    """Additions first, since each changes behavior that no manifest mentions; then all drift that is not pending."""
    return [*rows.additions, *(row for row in rows.changes if not row.is_pending)]


def _describe(row: ChangeRow) -> str:
    """The changed fields by cause; for an object that was created or deleted, what happened to it."""
    if row.action in (Action.CREATE, Action.DELETE):
        return phrases.reason(row, Flavour.DRIFT)
    changed = {cause: [field.path for field in row.fields if field.changed_by is cause] for cause in phrases.SIDES}
    parts = [f"{cause.text}: {_shorten(paths)}" for cause, paths in changed.items() if paths]
    return "; ".join(parts) or phrases.reason(row, Flavour.DRIFT)


def _shorten(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _FIELDS} more" if len(paths) > _FIELDS else ""
    return ", ".join(paths[:_FIELDS]) + more


def _action(row: ChangeRow) -> str:
    """What the next apply does; `added` for an addition, which no apply deletes."""
    return "added" if row.reason is Reason.ADDED else str(row.action)


def _document(rows: Outline, run: str) -> Json:
    drift = _drift(rows)
    return {
        "format": FORMAT,
        "version": VERSION,
        "stack": rows.stack,
        "account": rows.account,
        "commit": rows.commit,
        "run": run,
        "summary": dict(sorted(Counter(_action(row) for row in drift).items())),
        "ignored": rows.ignored,
        "pending": sum(row.is_pending for row in rows.changes),
        "access": [
            {
                "entry_points": [entry.entry_point, *entry.more],
                "verdict": str(entry.verdict),
                "certain": entry.is_certain,
                "before": entry.before,
                "after": entry.after,
                "example": entry.witness.replace("`", ""),
                "causes": list(entry.causes),
            }
            for entry in rows.access
        ],
        "failed_tests": list(rows.failed_tests),
        "health": None
        if rows.health is None
        else [
            {
                "address": row.address,
                "id": row.id,
                "state": str(row.health.state),
                "reason": row.health.reason,
                "advice": row.health.advice,
                "actor": str(row.health.actor),
            }
            for row in health_section.list_unhealthy(rows.health)
        ],
        "changes": [
            {
                "address": row.address,
                "action": _action(row),
                "changed_by": str(phrases.find_cause(row)),
                "fields": [field.path for field in row.fields],
                "parent": row.parent or None,
                "position": row.position,
            }
            for row in drift
        ],
    }


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _escape(text: str) -> str:
    """Text without the characters that Slack interprets as mentions, links or markup."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("@", "@\u200b").replace("`", "\u02cb").replace("*", "\u2217").replace("~", "\u223c")
