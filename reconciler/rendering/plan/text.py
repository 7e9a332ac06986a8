"""A plan as text for a terminal: problems, changes, calls in order, approvals and totals.

Returns a string and writes to no stream. Lines fit the width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec.structs import replace

from reconciler.model.change import Action
from reconciler.model.health import State
from reconciler.model.plan import Approval, Plan
from reconciler.rendering import terminal_text
from reconciler.rendering.health_text import SIGNS
from reconciler.rendering.plan import phrases
from reconciler.rendering.plan.outline import (
    AccessRow,
    ChangeRow,
    DiffLine,
    DisplayValue,
    FieldRow,
    Outline,
    build_outline,
)
from reconciler.rendering.plan.phrases import Flavour, Resources
from reconciler.rendering.text_tools import count, count_omitted

NARROWEST = 40
_MOST_PROBLEMS = 100  # more would push the changes off the screen
_FIELD_INDENT = 6
_MOST_ACCESS = 50  # rows; more would push the changes off the screen
_MOST_HEALTH = 100  # objects that are not healthy
_FEW = 8  # lines of a value that is added or removed as a whole; its file has the rest


class Paint(StrEnum):
    """ANSI colors by meaning."""

    ADDED = "32"
    REMOVED = "31"
    CHANGED = "33"
    MOVED = "36"
    STRONG = "1"
    FAINT = "2"
    ALARM = "1;31"


_PAINTS = {
    Action.CREATE: Paint.ADDED,
    Action.UPDATE: Paint.CHANGED,
    Action.REPLACE: Paint.CHANGED,
    Action.DELETE: Paint.REMOVED,
}
_SIGNS = {"+": Paint.ADDED, "-": Paint.REMOVED}


def render_text(
    plan: Plan,
    *,
    width: int = 80,
    color: bool = False,
    budget: int = 0,
    resources: Resources | None = None,
    flavour: Flavour = Flavour.PLAN,
) -> str:
    """The whole text. `budget`: requests per minute, 0 for none. `resources`: how many are declared."""
    page = _Page(build_outline(plan), max(width, NARROWEST), color, budget, resources, flavour)
    sections = [list(section) for section in page.sections()]
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections if section)


def render_acceptance(plan: Plan, *, width: int = 80, color: bool = False) -> str:
    """The entry points and resources that accepted values open, and the approvals that they need."""
    page = _Page(build_outline(plan), max(width, NARROWEST), color, 0, None, Flavour.PLAN)
    sections = [list(section) for section in (page.access(), page.risks_of_approvals(plan.approvals), page.approvals())]
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections if section)


class _Page:
    """One rendering: rows, width and colors."""

    def __init__(
        self, rows: Outline, width: int, color: bool, budget: int, resources: Resources | None, flavour: Flavour
    ) -> None:
        self.rows = rows
        self.width = width
        self.color = color
        self.budget = budget
        self.resources = resources
        self.flavour = flavour

    def sections(self) -> Iterator[Iterator[str]]:
        if self.flavour is Flavour.DRIFT:
            yield self.list_access_drift()
        yield self.rule_changes()
        yield self.base()
        yield self.problems()
        if self.flavour is Flavour.PLAN:
            yield self.access()
        yield self.legend()
        if self.flavour is Flavour.PLAN and self.rows.is_attributed:
            yield from self.groups()
        else:
            yield from self.changes()
        if self.flavour is Flavour.PLAN:
            yield self.calls()
            yield self.approvals()
        yield self.summary()
        yield self.health()
        yield (line for row in self.rows.notes for line in self.block(row.text, 2, Paint.FAINT))

    def changes(self) -> Iterator[Iterator[str]]:
        for number, row in enumerate(rows := phrases.sort_pending_last(self.rows.changes, self.flavour)):
            if self.flavour is Flavour.DRIFT and row.is_pending and not (number and rows[number - 1].is_pending):
                yield from self.additions(self.rows.additions)
                yield iter([self.paint(Paint.STRONG, phrases.PENDING)])
            yield self.change(row)
        if not (self.flavour is Flavour.DRIFT and any(row.is_pending for row in rows)):
            yield from self.additions(self.rows.additions)

    def groups(self) -> Iterator[Iterator[str]]:
        """The changes by cause, and the changes that the base plans and this branch makes unnecessary."""
        base = self.rows.base
        assert base is not None
        for group in phrases.list_groups(self.rows):
            if group.changes or group.additions:
                yield self.block(phrases.describe_group(group, base), 0, Paint.STRONG)
                yield from map(self.change, group.changes)
                yield from self.additions(group.additions)
        yield (line for row in base.withdrawn for line in self.block(phrases.describe_withdrawn(row), 0))

    def paint(self, paint: Paint, line: str) -> str:
        return f"\x1b[{paint}m{line}\x1b[0m" if self.color and line else line

    def block(self, line: str, indent: int, paint: Paint | None = None, first: str = "") -> Iterator[str]:
        """A paragraph, wrapped and indented; `first` stands in the indent of its first line."""
        lead = f"{first:<{indent}}" if first else " " * indent
        for number, part in enumerate(terminal_text.wrap(line, max(self.width - indent, 16))):
            yield (lead if number == 0 else " " * indent) + (self.paint(paint, part) if paint else part)

    # --- sections

    def rule_changes(self) -> Iterator[str]:
        """The rules that this branch loosens, and the places that it changes."""
        for row in phrases.group_rule_changes(self.rows.rule_changes):
            paint = Paint.FAINT if row.granted else Paint.ALARM
            yield from self.block(phrases.describe_rule_change(row), 2, paint, "! ")
            if row.position:
                yield from self.block(row.position, 4, Paint.FAINT)

    def base(self) -> Iterator[str]:
        """Why the changes are not attributed to this branch."""
        base = self.rows.base
        if base is not None and (text := phrases.describe_base(base)):
            yield from self.block(text, 0, Paint.CHANGED)
            for problem in base.problems:
                yield from self.block(problem, 4, Paint.ALARM, "  ! ")

    def problems(self) -> Iterator[str]:
        rows = self.rows.urgent_problems  # errors come first
        for row in rows[:_MOST_PROBLEMS]:
            paint, sign = (Paint.ALARM, "! ") if row.is_error else (Paint.CHANGED, "")
            yield from self.block(row.text, 2, paint, sign)
        if len(rows) > _MOST_PROBLEMS:
            yield from self.block(count_omitted(len(rows) - _MOST_PROBLEMS, "problem"), 2, Paint.ALARM)

    def access(self) -> Iterator[str]:
        """The entry points that let other requests through."""
        if not (rows := self.rows.access):
            return
        yield self.paint(Paint.STRONG, f"{phrases.ACCESS}:")
        for row in rows[:_MOST_ACCESS]:
            sign = "  !" if row.verdict.risk is not None else ""
            yield from self.access_row(row, phrases.describe_access(row), phrases.explain_access(row), 4, sign)
        yield from self.count_omitted_access()

    def risks_of_approvals(self, approvals: Iterable[Approval]) -> Iterator[str]:
        """The resources whose risk needs approval, for plans without their changes."""
        for approval in approvals:
            for item in () if approval.is_of_access else approval.items:
                yield from self.block(terminal_text.sanitize(f"{item.subject} {approval.why}"), 4, Paint.ALARM, "  !")

    def list_access_drift(self) -> Iterator[str]:
        """The entry points that the platform's changes open or close."""
        from reconciler.rendering.plan import access_drift  # deferred, as all that few plans show

        for row in self.rows.access[:_MOST_ACCESS]:
            sign = "!" if row.verdict.risk is not None else "~"
            text = access_drift.describe(self.rows, row)
            yield from self.access_row(row, text, access_drift.explain(row), 2, sign)
        yield from self.count_omitted_access()

    def access_row(self, row: AccessRow, text: str, details: Iterable[str], indent: int, sign: str) -> Iterator[str]:
        yield from self.block(text, indent, Paint.ALARM if phrases.is_grave(row) else Paint.CHANGED, sign)
        for line in details:
            yield from self.block(line, _FIELD_INDENT)
        if row.more:
            first = ", ".join(row.more[: phrases.FEW_ENTRY_POINTS])
            more = len(row.more) - phrases.FEW_ENTRY_POINTS
            rest = f" and {more:,} more (--format json lists all of them)" if more > 0 else ""
            yield from self.block(f"also {first}{rest}", _FIELD_INDENT, Paint.FAINT)

    def count_omitted_access(self) -> Iterator[str]:
        if (more := len(self.rows.access) - _MOST_ACCESS) > 0:
            yield from self.block(count_omitted(more, "row"), 2, Paint.ALARM)

    def legend(self) -> Iterator[str]:
        if self.flavour is Flavour.DRIFT and (self.rows.changes or self.rows.additions):
            yield from self.block("Differences: - on the platform, + in the manifests", 0)

    def additions(self, rows: Sequence[ChangeRow]) -> Iterator[Iterator[str]]:
        if rows:
            yield iter([self.paint(Paint.STRONG, phrases.ADDITIONS)])
            sign = "-" if self.flavour is Flavour.DRIFT else "!"  # in a plan, - is what will be deleted
            yield from (self.change(replace(row, symbol=sign)) for row in rows)
            yield self.block(phrases.CHOICES, 0, Paint.FAINT)

    def change(self, row: ChangeRow) -> Iterator[str]:
        paint = _PAINTS.get(row.action, Paint.MOVED)
        word = f"{row.action} " if row.symbol == "↷" else ""
        was = f" (was {row.former})" if row.former else ""
        yield from self.heading(row.symbol, f"{word}{row.address}{was}", row.position, paint)
        reason = phrases.reason(row, self.flavour)
        yield from self.block(reason + (f" ({row.id})" if row.id else ""), _FIELD_INDENT, Paint.FAINT)
        for risk in phrases.weigh_risks(row):
            paint = Paint.ALARM if risk.is_severe else Paint.CHANGED
            yield from self.block(risk.text, _FIELD_INDENT + 2, paint, f"{'':>{_FIELD_INDENT}}! ")
        for line in phrases.details(row, self.flavour):
            yield from self.block(line, _FIELD_INDENT + 2, Paint.CHANGED, f"{'':>{_FIELD_INDENT}}→ ")
        for field in row.fields:
            yield from self.field(row, field)

    def heading(self, sign: str, title: str, position: str, paint: Paint) -> Iterator[str]:
        """The address, with its position on the same line if there is room, otherwise on a line of its own."""
        lines = terminal_text.wrap(title, self.width - 4)
        room = self.width - 4 - terminal_text.width(lines[-1]) - 2
        beside = bool(position) and terminal_text.width(position) <= room
        for number, line in enumerate(lines):
            tail = f"  {self.paint(Paint.FAINT, position)}" if beside and number == len(lines) - 1 else ""
            lead = f"{self.paint(paint, f'{sign:>3}')} " if number == 0 else " " * 4
            yield lead + self.paint(Paint.STRONG, line) + tail
        if position and not beside:
            yield from self.block(position, _FIELD_INDENT, Paint.FAINT)

    # --- fields

    def field(self, change: ChangeRow, row: FieldRow) -> Iterator[str]:
        notes = phrases.notes(change, row, self.flavour)
        sign = "~" if row.old and row.new else "+" if row.new else "-"
        sign = " " if row.is_kept and self.flavour is Flavour.PLAN else sign  # in a plan, - is what will be removed
        paint = _SIGNS.get(sign, Paint.CHANGED)
        lead = f"{'':>{_FIELD_INDENT}}{self.paint(paint, sign)} "
        room = self.width - _FIELD_INDENT - 2
        whole = f"{row.path}: {phrases.values(row, self.flavour)}"
        tail = f"  ({', '.join(notes)})" if notes else ""
        if _is_short(row) and terminal_text.width(whole) + terminal_text.width(tail) <= room:
            yield lead + whole + self.paint(Paint.FAINT, tail)
            return
        first, *more = terminal_text.wrap(f"{row.path}:{tail}", room)
        yield lead + first
        yield from (f"{'':>{_FIELD_INDENT + 2}}{line}" for line in more)
        yield from self.diff(row)

    def diff(self, row: FieldRow) -> Iterator[str]:
        room = self.width - _FIELD_INDENT - 6
        lines = phrases.diff(row, self.flavour) if row.is_kept and self.flavour is Flavour.PLAN else row.diff
        if phrases.is_sensitive(row):
            lines = (DiffLine(" ", phrases.values(row, self.flavour)),)
        elif not lines:  # both sides have the same text
            lines = tuple(DiffLine(s, value.line) for s, value in (("-", row.old), ("+", row.new)) if value)
        hidden = 0
        if not (row.old and row.new) and len(lines) > _FEW:
            lines, hidden = lines[: _FEW - 1], len(lines) - _FEW + 1
        is_decoded = any(value and value.is_decoded for value in (row.old, row.new))
        texts: Iterable[str | list[str]]
        if is_decoded:
            texts = [terminal_text.wrap(line.text, room) for line in lines]
        else:
            from reconciler.rendering.plan.excerpts import excerpts  # deferred, as above

            texts = excerpts(lines, room)
        for line, text in zip(lines, texts, strict=True):
            for number, part in enumerate([text] if isinstance(text, str) else text):
                signed = f"{line.sign if number == 0 else ' '} {part}".rstrip()
                painted = self.paint(_SIGNS[line.sign], signed) if line.sign in _SIGNS else signed
                yield f"{'':>{_FIELD_INDENT + 4}}{painted}".rstrip()
        if hidden:
            rest = f"{terminal_text.ELLIPSIS} {count(hidden, 'more line')}"
            yield " " * (_FIELD_INDENT + 4) + self.paint(Paint.FAINT, rest)

    # --- after the changes

    def calls(self) -> Iterator[str]:
        rows = self.rows.calls
        if not rows:
            return
        yield self.paint(Paint.STRONG, "Calls, in order:")
        digits = max(3, len(str(len(rows))) + 2)
        start = digits + 2 + 6 + 2
        details = [row.address + (f", after {', '.join(map(str, row.needs))}" if row.needs else "") for row in rows]
        column = max(terminal_text.width(row.path) for row in rows)
        beside = start + column + 2 + max(map(terminal_text.width, details)) <= self.width
        for row, detail in zip(rows, details, strict=True):
            lead = f"{row.number:>{digits}}  {row.method:<6}  "
            if beside:
                gap = " " * (column - terminal_text.width(row.path) + 2)
                yield lead + row.path + gap + self.paint(Paint.FAINT, detail)
                continue
            yield from self.block(row.path, start, first=lead)
            yield from self.block(detail, start, Paint.FAINT)

    def approvals(self) -> Iterator[str]:
        if not self.rows.approvals:
            return
        for row in self.rows.approvals:
            yield from self.block(phrases.approval(row), 0, Paint.FAINT if row.granted else Paint.ALARM)
            yield from self.block(row.why, _FIELD_INDENT, Paint.FAINT)

    def health(self) -> Iterator[str]:
        """The health of the stack, apart from its drift."""
        if self.rows.health is None:
            return
        from reconciler.rendering.plan import health_section  # deferred, as above

        yield from self.block(health_section.describe_health(self.rows.health), 0, Paint.STRONG)
        ill = health_section.list_unhealthy(self.rows.health)
        for row in ill[:_MOST_HEALTH]:
            sign = SIGNS[row.health.state]
            paint = Paint.ALARM if row.health.state is State.DEGRADED else None
            yield from self.block(health_section.describe_row(row), 2, paint, sign)
        if (more := len(ill) - _MOST_HEALTH) > 0:
            yield from self.block(count_omitted(more, "object"), 2, Paint.ALARM)

    def summary(self) -> Iterator[str]:
        rows = self.rows
        if self.flavour is Flavour.PLAN and (access := phrases.count_access(rows)):
            yield from self.block(access, 0, Paint.STRONG)
        if self.flavour is Flavour.PLAN and rows.is_attributed:
            for group in phrases.list_groups(rows):
                yield from self.block(phrases.summarize_group(group), 0, Paint.STRONG)
        if verdict := phrases.verdict(rows, self.flavour, self.resources):
            yield from self.block(verdict, 0, Paint.STRONG)
        if self.flavour is Flavour.PLAN and rows.changes:
            yield from self.block(f"{phrases.forecast(rows.forecast, self.budget)}.", 0)
        if ignored := phrases.describe_ignored(rows):
            yield from self.block(ignored, 0)
        if unmanaged := phrases.describe_unmanaged(rows):
            yield from self.block(unmanaged, 0, Paint.FAINT)


def _is_short(row: FieldRow) -> bool:
    """Whether neither value is text of several lines, which is shown as a diff."""
    return not any(value and _is_text(value) for value in (row.old, row.new))


def _is_text(value: DisplayValue) -> bool:
    return len(value.lines) > 1 and value.line.startswith('"')
