"""What every format says of a plan in the same words: totals, reasons, who moved a field, how long it will take.

Knows no layout: no width, no colour, no markup. All of it is clean text, since rows are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from reconciler.model.change import Action, ChangedBy, Order, Reason, Risk
from reconciler.model.plan import Forecast
from reconciler.rendering.plan.outline import SENSITIVE, ChangeRow, DiffLine, FieldRow, Outline


class Flavour(StrEnum):
    PLAN = "plan"  # what will be done
    DRIFT = "drift"  # what moved, and who moved it


ORDERS: Mapping[Order, str] = {
    Order.CREATE_FIRST: "the new one comes first",
    Order.DELETE_FIRST: "the old one goes first",
}
USUAL = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.DELETE)  # counted even where there are none
GRAVITY = (Risk.COMMAND, Risk.GONE, Risk.TRAFFIC, Risk.ADDED, Risk.TOKEN)  # gravest first


def count(number: int, noun: str) -> str:
    """`1 call`, `2 calls`"""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def forecast(estimate: Forecast, budget: int) -> str:
    """`130 calls, about 60 s at 120 requests a minute`"""
    calls = count(estimate.calls, "call")
    if estimate.estimated_seconds > 0:
        return f"{calls}, about {_duration(estimate.estimated_seconds)}" + (
            f" at {budget} requests a minute" if budget else ""
        )
    return f"{calls}, within the budget of {budget} requests a minute" if budget else calls


class Selected(NamedTuple):
    """How many of the declared resources a plan was limited to, `of` how many."""

    resources: int
    of: int


Resources = int | Selected
"""How many are declared; of a plan that was limited, how many of them were selected."""


def totals(rows: Outline) -> str:
    """`Plan: 3 to create, 1 to update, 0 to replace, 2 to delete.`"""
    shown = [action for action in Action if action in USUAL or rows.counts.get(action)]
    plan = "Plan of what was selected" if _is_limited(rows) else "Plan"
    return f"{plan}: " + ", ".join(f"{rows.counts.get(action, 0)} to {action}" for action in shown) + "."


def matching(resources: Resources | None) -> str:
    """`3 resources match what is declared.`"""
    if resources is None:
        return "The platform matches what is declared."
    if isinstance(resources, Selected):
        number, counted = resources.resources, f"{resources.resources} of {count(resources.of, 'resource')}"
    else:
        number, counted = resources, count(resources, "resource")
    return f"{counted} {'matches' if number == 1 else 'match'} what is declared."


def _nothing(what: str, rows: Outline, resources: Resources | None) -> str:
    """`No changes. 3 resources match what is declared.`"""
    declared = resources.of if isinstance(resources, Selected) else resources
    if declared == 0:  # as for `destroy`, which declares nothing; what the key may not read is not known to be ours
        return f"No {what}{' in what was selected' * _is_limited(rows)}: nothing was found that this stack owns."
    if not _is_limited(rows):
        return f"No {what}. {matching(resources)}"
    return f"No {what} in what was selected" + (f": {matching(resources)}" if resources is not None else ".")


def _is_limited(rows: Outline) -> bool:
    return bool(rows.targets or rows.excludes)


def drifted(rows: Outline, resources: Resources | None) -> str:
    """`Drift: 2 resources changed on the platform. 1 resource has unapplied Git changes.`"""
    pending = sum(row.is_pending for row in rows.changes)
    later = f" {count(pending, 'resource')} {'has' if pending == 1 else 'have'} unapplied Git changes."
    limited = _is_limited(rows)
    sides = [side(row) for row in rows.changes if not row.is_pending]
    named = [(sides.count(side), SIDES[side]) for side in SIDES]
    named.insert(1, (len(rows.additions), "added on the platform"))
    told = [(number, words) for number, words in named if number]
    if not told:
        return f"No drift{' in what was selected' * limited}.{later}" if pending else _nothing("drift", rows, resources)
    counted = count(sum(number for number, _ in told), "resource") + " of those selected" * limited
    listed = f" {told[0][1]}" if len(told) == 1 else ": " + ", ".join(f"{number} {words}" for number, words in told)
    return f"Drift: {counted}{listed}.{later if pending else ''}"


SIDES: Mapping[ChangedBy, str] = {
    ChangedBy.PLATFORM: "changed on the platform",
    ChangedBy.GIT: "changed in Git",
    ChangedBy.BOTH: "changed on both sides",
    ChangedBy.FOLLOWS: "following what they refer to",
    ChangedBy.UNKNOWN: "without a record of who changed it",
}


def side(row: ChangeRow) -> ChangedBy:
    """Who changed the resource as a whole."""
    if row.is_pending:
        return ChangedBy.GIT
    if row.reason in (Reason.VANISHED, Reason.ADDED):
        return ChangedBy.PLATFORM
    if row.reason is Reason.REMOVED:
        return ChangedBy.BOTH
    movers = {field.changed_by for field in row.fields} - {ChangedBy.UNKNOWN}
    movers = movers - {ChangedBy.FOLLOWS} or movers
    if movers <= {ChangedBy.GIT, ChangedBy.FOLLOWS}:  # and yet nothing proves it
        return ChangedBy.UNKNOWN
    return movers.pop() if len(movers) == 1 else ChangedBy.BOTH


def verdict(rows: Outline, flavour: Flavour, resources: Resources | None = None) -> str:
    """All of it in one sentence; empty where problems say it."""
    if rows.errors and not rows.changes:
        return ""
    if flavour is Flavour.DRIFT:
        return drifted(rows, resources)
    return totals(rows) if rows.changes else _nothing("changes", rows, resources)


def unmanaged(rows: Outline) -> str:
    """`Not managed: 2 BotUser (list them with `drift --unmanaged`).`; empty if there are none."""
    listed = ", ".join(f"{number} {kind}" for kind, number in rows.unmanaged.items())
    return f"Not managed: {listed} ({LISTS})." if listed else ""


def ignored(rows: Outline) -> str:
    """`2 known differences ignored, until 2026-12-31.`; empty if there are none."""
    if not rows.ignored:
        return ""
    first, *more = rows.ignored_until or ("",)
    until = f", {'the first ' if more else ''}until {first}" if first else ""
    return f"{count(rows.ignored, 'known difference')} ignored{until}."


LISTS = "list them with `drift --unmanaged`"
ADDITIONS = "Added on the platform, not declared:"
PENDING = "Unapplied Git changes:"
CHOICES = (
    "Additions stay as they are. To manage one, run `reconciler import`; otherwise delete it on the platform, or set "
    "`lifecycle.unmanaged_children` of its parent."
)


def pending_last(rows: Iterable[ChangeRow], flavour: Flavour) -> list[ChangeRow]:
    """Drift before what only Git changed; plans tell no difference between the two."""
    return sorted(rows, key=lambda row: flavour is Flavour.DRIFT and row.is_pending)


def gravest(rows: Iterable[ChangeRow]) -> list[tuple[int, ChangeRow]]:
    """What cannot be had back first, harmless changes last, otherwise as it was; each with its old number, from 0."""

    def grave(numbered: tuple[int, ChangeRow]) -> int:
        row = numbered[1]
        return min((GRAVITY.index(risk) for risk in row.risks), default=len(GRAVITY) + (not row.protected))

    return sorted(enumerate(rows), key=grave)


def reason(row: ChangeRow, flavour: Flavour) -> str:
    """Why the resource changes."""
    if row.reason is Reason.ADDED:
        return f"added to {row.parent} on the platform, not declared"
    if flavour is Flavour.DRIFT:
        pending = {
            Reason.DECLARED: "added in Git, not applied yet",
            Reason.REMOVED: "removed from Git, not applied yet",
            Reason.FIELDS: "changed in Git, not applied yet",
        }
        drift = {
            Reason.DECLARED: "declared, and not on the platform; whether it was ever created is not known",
            Reason.VANISHED: "deleted on the platform",
            Reason.REMOVED: "removed from Git, and changed on the platform",
        }
        return (pending if row.is_pending else drift).get(row.reason, str(row.reason))
    return str(row.reason)


def deliveries(row: ChangeRow, flavour: Flavour) -> tuple[str, ...]:
    """Where one-time secrets will go, and which commands will run: nothing of that happens for drift."""
    return row.deliveries if flavour is Flavour.PLAN else ()


def notes(change: ChangeRow, row: FieldRow, flavour: Flavour) -> list[str]:
    """What is to be said of a field beside its values."""
    whole = change.action in (Action.CREATE, Action.DELETE)  # nobody moved a single field
    told = not whole and (row.changed_by in (ChangedBy.PLATFORM, ChangedBy.BOTH) or flavour is Flavour.DRIFT)
    unknown = "who changed it is not known"
    said = [unknown if row.changed_by is ChangedBy.UNKNOWN else str(row.changed_by)] if told else []
    return [*said, "forces replacement"] if row.forces_replacement else said


def values(row: FieldRow, flavour: Flavour) -> str:
    """`"1.2" → "1.3"`, on one line."""
    if row.old and row.new:
        if row.old.line == row.new.line == SENSITIVE:
            return f"{SENSITIVE}, another value"
        if flavour is Flavour.DRIFT:
            return f"{row.old.line} on the platform, {row.new.line} in Git"
        return f"{row.old.line} → {row.new.line}"
    shown = row.new or row.old
    return shown.line if shown else ""


def diff(row: FieldRow, flavour: Flavour) -> tuple[DiffLine, ...]:
    """A field's values as lines: the old one whole and the new one whole where both fit on a line."""
    both = [(sign, each) for sign, each in (("-", row.old), ("+", row.new)) if each]
    if row.old and row.new and row.old.line == row.new.line == SENSITIVE:
        return (DiffLine("!", values(row, flavour)),)
    if is_short(row):
        return tuple(DiffLine(sign, each.line) for sign, each in both)
    return row.diff or tuple(DiffLine(sign, each.line) for sign, each in both)


def is_short(row: FieldRow) -> bool:
    """Whether each value fits on a line."""
    return not any(each and len(each.lines) > 1 for each in (row.old, row.new))


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{round(minutes / 60)} h"
