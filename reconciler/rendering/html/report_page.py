"""A stack's history as an HTML page: drift over time, by kind, longest-standing first; and what the applies came to.

Reads what was recorded; what differs right now is the business of `drift`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from reconciler.model.address import Address
from reconciler.model.change import ChangedBy
from reconciler.model.event import Outcome
from reconciler.model.history import DriftCheck, DriftedResource, Run
from reconciler.rendering.html import environment
from reconciler.rendering.html.chart import Bar, draw_chart
from reconciler.rendering.plan import phrases
from reconciler.rendering.terminal_text import sanitize

_MOST_BARS = 120  # more are thinner than a finger
_MOST_ROWS = 100
_NAMED = 6  # resources of a look
_MOVERS = {
    ChangedBy.PLATFORM: "update",
    ChangedBy.BOTH: "delete",
    ChangedBy.GIT: "other",
    ChangedBy.FOLLOWS: "create",
    ChangedBy.UNKNOWN: "kept",
}  # with their hues, from the bottom up
_OUTCOMES = {
    Outcome.DONE: "create",
    Outcome.ALREADY: "other",
    Outcome.SKIPPED: "update",
    Outcome.UNKNOWN: "delete",
    Outcome.FAILED: "delete",
}


@dataclass
class DriftPeriod:
    """A time through which every look found the resource to differ."""

    moved: DriftedResource  # as the last of these looks found it
    since: float
    last: float
    looks: int = 1
    is_over: bool = False
    fields: set[str] = field(default_factory=set)

    def lasted(self, now: float) -> float:
        """In seconds: what is not over lasts until now."""
        return (self.last if self.is_over else now) - self.since


def drift_periods(looks: Sequence[DriftCheck]) -> list[DriftPeriod]:
    """Of looks in their order: those that last first, the longest first among them."""
    lasting: dict[Address, DriftPeriod] = {}
    over: list[DriftPeriod] = []
    for look in looks:
        found = {drifted_resource.address: drifted_resource for drifted_resource in look.moved}
        for address in [each for each in lasting if each not in found]:
            ended = lasting.pop(address)
            ended.is_over = True
            over.append(ended)
        for address, moved in found.items():
            spell = lasting.setdefault(address, DriftPeriod(moved, look.at, look.at, 0))
            spell.moved, spell.last, spell.looks = moved, look.at, spell.looks + 1
            spell.fields |= set(moved.fields)
    order = [*lasting.values(), *over]
    return sorted(order, key=lambda each: (each.is_over, each.since - each.last, str(each.moved.address)))


def render_page(stack: str, looks: Sequence[DriftCheck], runs: Sequence[Run], *, now: float, days: int) -> str:
    """The whole file. Looks and runs oldest first, of so many days before `now`."""
    found = drift_periods(looks)
    standing = [drift_period for drift_period in found if not drift_period.is_over]
    return environment.render_template(
        "report.html",
        title=f"Report on stack {sanitize(stack)}",
        written=moment(now),
        days=days,
        verdict=_verdict(looks, standing, runs),
        drift=draw_chart([_drift_bar(number, look) for number, look in _thinned(looks)]),
        movers=[(str(mover), hue) for mover, hue in _MOVERS.items()],
        looks=[_look_row(number, look) for number, look in reversed(list(enumerate(looks)))][:_MOST_ROWS],
        looked=phrases.count(len(looks), "look") + (f", the latest {_MOST_ROWS}" if len(looks) > _MOST_ROWS else ""),
        kinds=_kinds(found, now),
        standing=[_spell_row(drift_period, now) for drift_period in standing],
        over=[_spell_row(drift_period, now) for drift_period in found if drift_period.is_over][:_MOST_ROWS],
        applies=draw_chart([_run_bar(number, run) for number, run in list(enumerate(runs))[-_MOST_BARS:]]),
        outcomes=[(str(outcome), hue) for outcome, hue in _OUTCOMES.items()],
        runs=[_run_row(number, run) for number, run in reversed(list(enumerate(runs)))][:_MOST_ROWS],
    )


def moment(at: float) -> str:
    """`2026-03-01 04:05Z`"""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%MZ")


def span(seconds: float) -> str:
    """`3 days`, `5 hours`, `12 minutes`"""
    for unit, noun in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= unit:
            return phrases.count(int(seconds // unit), noun)
    return "less than a second"


def _verdict(looks: Sequence[DriftCheck], standing: Sequence[DriftPeriod], runs: Sequence[Run]) -> str:
    if not looks:
        return "No look was recorded; `reconciler drift --record` records one."
    last = looks[-1]
    declared = phrases.count(last.declared, "resource")
    after = sum(run.started > last.at for run in runs)
    since = f" Since then there {'was' if after == 1 else 'were'} {phrases.count(after, 'run')}." if after else ""
    if not standing:
        return f"At the last look, {moment(last.at)}, nothing differed: {declared} as declared.{since}"
    oldest = min(drift_period.since for drift_period in standing)
    return (
        f"At the last look, {moment(last.at)}, {len(standing)} differed, with {declared} declared; "
        f"the longest since {moment(oldest)}.{since}"
    )


def _thinned(looks: Sequence[DriftCheck]) -> list[tuple[int, DriftCheck]]:
    """Numbered; of too many, the last of each day, and of those the latest."""
    numbered = list(enumerate(looks))
    if len(numbered) > _MOST_BARS:
        numbered = list({moment(look.at)[:10]: (number, look) for number, look in numbered}.values())
    return numbered[-_MOST_BARS:]


def _drift_bar(number: int, look: DriftCheck) -> Bar:
    movers = Counter(drifted_resource.changed_by for drifted_resource in look.moved)
    listed = ", ".join(f"{movers[mover]} {mover}" for mover in _MOVERS if movers[mover]) or "nothing differs"
    parts = {hue: movers[mover] for mover, hue in _MOVERS.items()}
    return Bar(moment(look.at)[:10], f"{moment(look.at)}: {listed}", parts, number)


def _run_bar(number: int, run: Run) -> Bar:
    listed = (
        ", ".join(f"{run.calls[outcome]} {outcome}" for outcome in _OUTCOMES if run.calls.get(outcome)) or "no calls"
    )
    parts = {hue: run.calls.get(outcome, 0) for outcome, hue in _OUTCOMES.items()}
    return Bar(moment(run.started)[:10], f"{moment(run.started)} {sanitize(run.command)}: {listed}", parts, number)


@dataclass(frozen=True, slots=True)
class KindRow:
    kind: str
    standing: int
    spells: int
    longest: str
    share: int  # percent of the kind with the most spells


def _kinds(found: Sequence[DriftPeriod], now: float) -> list[KindRow]:
    """Kind by kind, those that differ most first."""
    by_kind: dict[str, list[DriftPeriod]] = {}
    for drift_period in found:
        by_kind.setdefault(drift_period.moved.address.kind, []).append(drift_period)
    most = max(map(len, by_kind.values()), default=1)
    rows = [
        KindRow(
            kind=kind,
            standing=sum(not drift_period.is_over for drift_period in mine),
            spells=len(mine),
            longest=span(max(drift_period.lasted(now) for drift_period in mine)),
            share=round(100 * len(mine) / most),
        )
        for kind, mine in by_kind.items()
    ]
    return sorted(rows, key=lambda row: (-row.standing, -row.spells, row.kind))


def _spell_row(spell: DriftPeriod, now: float) -> dict[str, object]:
    return {
        "address": str(spell.moved.address),
        "since": moment(spell.since),
        "last": moment(spell.last),
        "long": span(spell.lasted(now)),
        "looks": spell.looks,
        "mover": str(spell.moved.changed_by),
        "hue": _MOVERS[spell.moved.changed_by],
        "reason": str(spell.moved.reason),
        "fields": [sanitize(each) for each in sorted(spell.fields)],
    }


def _look_row(number: int, look: DriftCheck) -> dict[str, object]:
    return {
        "number": number,
        "at": moment(look.at),
        "differ": len(look.moved),
        "declared": look.declared,
        "commit": sanitize(look.commit[:12]),
        "addresses": [str(drifted_resource.address) for drifted_resource in look.moved[:_NAMED]],
        "more": max(0, len(look.moved) - _NAMED),
    }


def _run_row(number: int, run: Run) -> dict[str, object]:
    return {
        "number": number,
        "at": moment(run.started),
        "command": sanitize(run.command),
        "outcome": sanitize(run.outcome) or "broke off",
        "long": span(run.ended - run.started) if run.ended is not None else "",
        "counts": [(hue, run.calls.get(outcome, 0)) for outcome, hue in _OUTCOMES.items()],
    }
