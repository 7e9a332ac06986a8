"""A plan as text for a terminal: problems first, then each change, the calls in order, and the totals.

Returns a string and knows no stream. Lines fit the width, except where a word of more than a line would not.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from reconciler.model.change import Action, Mover, Order, Reason
from reconciler.model.plan import Forecast, Plan
from reconciler.rendering import cells
from reconciler.rendering.outline import SENSITIVE, ChangeRow, DiffLine, FieldRow, Outline, Shown, outline

NARROWEST = 40
_FIELD_INDENT = 6
_FEW = 8  # lines of a value that is new or gone altogether; its file has the rest


class Flavour(StrEnum):
    PLAN = "plan"  # what will be done
    DRIFT = "drift"  # what moved, and who moved it


class Paint(StrEnum):
    """ANSI colours by what they mean."""

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
_ORDERS = {Order.CREATE_FIRST: "the new one comes first", Order.DELETE_FIRST: "the old one goes first"}


def text(
    plan: Plan,
    *,
    width: int = 80,
    colour: bool = False,
    budget: int = 0,
    resources: int | None = None,
    flavour: Flavour = Flavour.PLAN,
) -> str:
    """`budget`: requests a minute, as the forecast was made with, 0 for none. `resources`: how many are declared."""
    page = _Page(outline(plan), max(width, NARROWEST), colour, budget, resources, flavour)
    sections = [list(section) for section in page.sections()]
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections if section)


def totals(plan: Plan) -> str:
    """`Plan: 3 to create, 1 to update, 0 to replace, 2 to delete.`"""
    return _totals(outline(plan))


def forecast(estimate: Forecast, budget: int) -> str:
    """`130 calls, about 60 s at 120 requests a minute`"""
    calls = count(estimate.calls, "call")
    if estimate.seconds > 0:
        return f"{calls}, about {_duration(estimate.seconds)}" + (f" at {budget} requests a minute" if budget else "")
    return f"{calls}, within the budget of {budget} requests a minute" if budget else calls


def count(number: int, noun: str) -> str:
    """`1 call`, `2 calls`"""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{round(minutes / 60)} h"


def _totals(rows: Outline) -> str:
    usual = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.DELETE)
    shown = [action for action in Action if action in usual or rows.counts.get(action)]
    return "Plan: " + ", ".join(f"{rows.counts.get(action, 0)} to {action}" for action in shown) + "."


class _Page:
    """One rendering: the rows with the width and the colours they are printed in."""

    def __init__(
        self, rows: Outline, width: int, colour: bool, budget: int, resources: int | None, flavour: Flavour
    ) -> None:
        self.rows = rows
        self.width = width
        self.colour = colour
        self.budget = budget
        self.resources = resources
        self.flavour = flavour

    def sections(self) -> Iterator[Iterator[str]]:
        yield self.problems()
        yield self.legend()
        for row in self.rows.changes:
            yield self.change(row)
        if self.flavour is Flavour.PLAN:
            yield self.calls()
            yield self.consents()
        yield self.summary()

    def paint(self, paint: Paint, line: str) -> str:
        return f"\x1b[{paint}m{line}\x1b[0m" if self.colour and line else line

    def block(self, line: str, indent: int, paint: Paint | None = None, first: str = "") -> Iterator[str]:
        """Wrapped to the width, `first` standing before the first line."""
        lead = f"{first:<{indent}}" if first else " " * indent
        for number, part in enumerate(cells.wrap(line, max(self.width - indent, 16))):
            yield (lead if number == 0 else " " * indent) + (self.paint(paint, part) if paint else part)

    # --- sections

    def problems(self) -> Iterator[str]:
        for row in self.rows.problems:
            paint, sign = (Paint.ALARM, "! ") if row.is_error else (Paint.CHANGED, "")
            yield from self.block(row.text, 2, paint, sign)

    def legend(self) -> Iterator[str]:
        if self.flavour is Flavour.DRIFT and self.rows.changes:
            yield from self.block("What the platform has (-) beside what Git says (+):", 0)

    def change(self, row: ChangeRow) -> Iterator[str]:
        paint = _PAINTS.get(row.action, Paint.MOVED)
        word = f"{row.action} " if row.symbol == "↷" else ""
        was = f" (was {row.former})" if row.former else ""
        yield from self.headed(row.symbol, f"{word}{row.address}{was}", row.position, paint)
        reason = self.reason(row) + (f", {_ORDERS[row.order]}" if row.order else "")
        yield from self.block(reason + (f" ({row.id})" if row.id else ""), _FIELD_INDENT, Paint.FAINT)
        for stake in row.stakes:
            yield from self.block(str(stake), _FIELD_INDENT + 2, Paint.ALARM, f"{'':>{_FIELD_INDENT}}! ")
        if row.protected:
            yield from self.block("protected", _FIELD_INDENT + 2, Paint.ALARM, f"{'':>{_FIELD_INDENT}}! ")
        for field in row.fields:
            yield from self.field(row, field)

    def headed(self, sign: str, title: str, position: str, paint: Paint) -> Iterator[str]:
        lines = cells.wrap(title, self.width - 4)
        gap = self.width - 4 - cells.width(lines[-1]) - cells.width(position)
        beside = bool(position) and len(lines) == 1 and gap >= 2
        for number, line in enumerate(lines):
            tail = " " * gap + self.paint(Paint.FAINT, position) if beside else ""
            lead = f"{self.paint(paint, f'{sign:>3}')} " if number == 0 else " " * 4
            yield lead + self.paint(Paint.STRONG, line) + tail
        if position and not beside:
            yield from self.block(position, _FIELD_INDENT, Paint.FAINT)

    def reason(self, row: ChangeRow) -> str:
        if self.flavour is Flavour.DRIFT:
            return {
                Reason.DECLARED: "added in Git, not applied yet",
                Reason.VANISHED: "deleted on the platform",
                Reason.REMOVED: "removed from Git, not applied yet",
            }.get(row.reason, str(row.reason))
        return str(row.reason)

    # --- fields

    def field(self, change: ChangeRow, row: FieldRow) -> Iterator[str]:
        notes = self.notes(change, row)
        sign = "~" if row.old and row.new else "+" if row.new else "-"
        paint = _SIGNS.get(sign, Paint.CHANGED)
        lead = f"{'':>{_FIELD_INDENT}}{self.paint(paint, sign)} "
        room = self.width - _FIELD_INDENT - 2
        whole = f"{row.path}: {_values(row, self.flavour)}"
        tail = f"  ({', '.join(notes)})" if notes else ""
        if _is_short(row) and cells.width(whole) + cells.width(tail) <= room:
            yield lead + whole + self.paint(Paint.FAINT, tail)
            return
        first, *more = cells.wrap(f"{row.path}:{tail}", room)
        yield lead + first
        yield from (f"{'':>{_FIELD_INDENT + 2}}{line}" for line in more)
        yield from self.diff(row)

    def notes(self, change: ChangeRow, row: FieldRow) -> list[str]:
        whole = change.action in (Action.CREATE, Action.DELETE)  # nobody moved a single field
        told = not whole and (row.mover in (Mover.PLATFORM, Mover.BOTH) or self.flavour is Flavour.DRIFT)
        unknown = "who changed it is not known"
        notes = [unknown if row.mover is Mover.UNKNOWN else str(row.mover)] if told else []
        return [*notes, "forces replacement"] if row.forces_replacement else notes

    def diff(self, row: FieldRow) -> Iterator[str]:
        room = self.width - _FIELD_INDENT - 6
        lines = row.diff
        if not lines:  # the same when laid out, as two sensitive values are
            lines = tuple(DiffLine(s, each.line) for s, each in (("-", row.old), ("+", row.new)) if each)
        hidden = 0
        if not (row.old and row.new) and len(lines) > _FEW:
            lines, hidden = lines[: _FEW - 1], len(lines) - _FEW + 1
        skip = _common(row) if len(lines) == 2 else 0
        for line in lines:
            shown = _from(line.text, skip, room)
            signed = f"{line.sign} {shown}".rstrip()
            painted = self.paint(_SIGNS[line.sign], signed) if line.sign in _SIGNS else signed
            yield f"{'':>{_FIELD_INDENT + 4}}{painted}".rstrip()
        if hidden:
            rest = f"{cells.ELLIPSIS} {count(hidden, 'more line')}"
            yield " " * (_FIELD_INDENT + 4) + self.paint(Paint.FAINT, rest)

    # --- what follows the changes

    def calls(self) -> Iterator[str]:
        rows = self.rows.calls
        if not rows:
            return
        yield self.paint(Paint.STRONG, "Calls, in order:")
        digits = max(3, len(str(len(rows))) + 2)
        start = digits + 2 + 6 + 2
        details = [row.address + (f", after {', '.join(map(str, row.needs))}" if row.needs else "") for row in rows]
        column = max(cells.width(row.path) for row in rows)
        beside = start + column + 2 + max(map(cells.width, details)) <= self.width
        for row, detail in zip(rows, details, strict=True):
            lead = f"{row.number:>{digits}}  {row.method:<6}  "
            if beside:
                gap = " " * (column - cells.width(row.path) + 2)
                yield lead + row.path + gap + self.paint(Paint.FAINT, detail)
                continue
            yield from self.block(row.path, start, first=lead)
            yield from self.block(detail, start, Paint.FAINT)

    def consents(self) -> Iterator[str]:
        if not self.rows.consents:
            return
        yield self.paint(Paint.STRONG, "Needs your consent:")
        for row in self.rows.consents:
            given = "  given" if row.granted else ""
            yield f"  {self.paint(Paint.FAINT if row.granted else Paint.ALARM, row.flag)}{given}"
            yield from self.block(row.why, _FIELD_INDENT, Paint.FAINT)

    def summary(self) -> Iterator[str]:
        rows = self.rows
        if self.flavour is Flavour.DRIFT:
            yield from self.block(self.drifted(), 0, Paint.STRONG)
        elif rows.changes:
            yield from self.block(_totals(rows), 0, Paint.STRONG)
            yield from self.block(f"Forecast: {forecast(rows.forecast, self.budget)}.", 0)
        elif not rows.errors:
            yield from self.block(f"No changes. {self.matching()}", 0, Paint.STRONG)
        if rows.unowned:
            listed = ", ".join(f"{number} {kind}" for kind, number in rows.unowned.items())
            yield from self.block(f"Left alone, declared by nobody: {listed}.", 0, Paint.FAINT)

    def matching(self) -> str:
        if self.resources is None:
            return "The platform matches what is declared."
        verb = "matches" if self.resources == 1 else "match"
        return f"{count(self.resources, 'resource')} {verb} what is declared."

    def drifted(self) -> str:
        changes = self.rows.changes
        if not changes:
            return f"No drift. {self.matching()}"
        sides = [_side(row) for row in changes]
        named = [(sides.count(side), side) for side in _SIDES]
        listed = ", ".join(f"{number} {_SIDES[side]}" for number, side in named if number)
        verb = "differs" if len(changes) == 1 else "differ"
        return f"Drift: {count(len(changes), 'resource')} {verb}: {listed}."


_SIDES = {
    Mover.PLATFORM: "changed on the platform",
    Mover.GIT: "changed in Git",
    Mover.BOTH: "changed on both sides",
    Mover.FOLLOWS: "following what they refer to",
    Mover.FOLLOWS: "following what they refer to",
    Mover.UNKNOWN: "without a record of who changed it",
}


def _side(row: ChangeRow) -> Mover:
    """Who moved the resource as a whole."""
    if row.reason is Reason.VANISHED:
        return Mover.PLATFORM
    movers = {field.mover for field in row.fields} - {Mover.UNKNOWN}
    movers = movers - {Mover.FOLLOWS} or movers
    if len(movers) == 1:
        return movers.pop()
    if movers:
        return Mover.BOTH
    return Mover.UNKNOWN if row.fields else Mover.GIT


def _values(row: FieldRow, flavour: Flavour) -> str:
    if row.old and row.new:
        if row.old.line == row.new.line == SENSITIVE:
            return f"{SENSITIVE}, another value"
        if flavour is Flavour.DRIFT:
            return f"{row.old.line} on the platform, {row.new.line} in Git"
        return f"{row.old.line} → {row.new.line}"
    shown = row.new or row.old
    return shown.line if shown else ""


def _is_short(row: FieldRow) -> bool:
    """Whether line breaks in neither value ask for a diff of lines."""
    return not any(shown and _is_text(shown) for shown in (row.old, row.new))


def _is_text(shown: Shown) -> bool:
    return len(shown.lines) > 1 and shown.line.startswith('"')


def _common(row: FieldRow) -> int:
    """How many characters the two values begin with alike."""
    if not (row.old and row.new):
        return 0
    for index, (old, new) in enumerate(zip(row.old.line, row.new.line, strict=False)):
        if old != new:
            return index
    return min(len(row.old.line), len(row.new.line))


def _from(line: str, skip: int, room: int) -> str:
    """The line cut to the room, from near the first difference if that would otherwise be cut off."""
    if skip > room - 12 and cells.width(line) > room:
        line = cells.ELLIPSIS + line[max(0, skip - room // 3) :]
    return cells.cut(line, room)
