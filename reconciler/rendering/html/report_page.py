"""A stack's history as one HTML file: its state now, time to repair, drift and health over time, and runs by
outcome.

Shows recorded drift checks and runs; `drift` reads the platform.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.change import ChangedBy
from reconciler.model.event import Outcome
from reconciler.model.health import DAY, HealthRow, State
from reconciler.model.history import DriftCheck, DriftedResource, Opening, Past, Run
from reconciler.rendering.health_text import name_object
from reconciler.rendering.html import environment
from reconciler.rendering.html.chart import Bar, draw_chart
from reconciler.rendering.run_context import Link, RunContext
from reconciler.rendering.spans import Span, list_openings, list_unhealthy
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.text_tools import count, count_more, format_duration, format_time

_MOST_BARS = 120  # of a chart
_MOST_ROWS = 100
_DUE_DAYS = 30
_STATES = {
    State.DEGRADED: "delete",
    State.UNKNOWN: "other",
    State.PROGRESSING: "update",
    State.HEALTHY: "create",
}  # with their CSS classes
_NAMED = 6  # resources of a drift check
_CAUSES = {
    ChangedBy.PLATFORM: "update",
    ChangedBy.BOTH: "delete",
    ChangedBy.UNKNOWN: "unchanged",
}  # of drift, with their CSS classes, from the bottom of a bar to its top
_OUTCOMES = {
    Outcome.DONE: "create",
    Outcome.ALREADY: "other",
    Outcome.SKIPPED: "update",
    Outcome.UNKNOWN: "delete",
    Outcome.FAILED: "delete",
}


class RunOutcome(Struct, frozen=True):
    """How a run ended: its text, CSS class and explanation."""

    text: str
    hue: str
    meaning: str


# By code. Empty: the process was killed or is still running.
_RUN_OUTCOMES = {
    "applied": RunOutcome("applied", "create", "every call succeeded"),
    "unchanged": RunOutcome("no changes", "unchanged", "there was nothing to do"),
    "partial": RunOutcome("partial", "update", "some calls succeeded, others failed or were skipped"),
    "failed": RunOutcome("failed", "delete", "no call succeeded, or the plan has errors"),
    "unauthorized": RunOutcome("unauthorized", "delete", "the API key may not make the changes"),
    "blocked": RunOutcome("blocked", "replace", "an approval was missing or a policy was violated; nothing was sent"),
    "stale": RunOutcome("stale", "other", "the platform changed after the plan was created; nothing was sent"),
    "declined": RunOutcome("declined", "unchanged", "the plan was not confirmed; nothing was sent"),
    "interrupted": RunOutcome("interrupted", "update", "the run was stopped; no further call was started"),
    "aborted": RunOutcome("aborted", "delete", "an error ended the run"),
    "": RunOutcome("terminated", "delete", "the process was killed, or is still running"),
}


def find_run_outcome(run: Run) -> RunOutcome:
    """How the run ended."""
    return _RUN_OUTCOMES.get(run.outcome) or RunOutcome(sanitize(run.outcome), "unchanged", "")


class DriftPeriod(Struct):
    """Consecutive drift checks in which a resource differed. Times in seconds since 1970."""

    resource: DriftedResource  # as the last of these checks found it
    since: float
    last: float
    is_over: bool = False
    repaired: float = 0.0  # of a period that is over: time of the first check, or of the apply, after it
    fields: set[str] = field(default_factory=set)

    def duration(self, now: float) -> float:
        """In seconds, until it was repaired or until now."""
        return (self.repaired if self.is_over else now) - self.since


def list_drift_periods(
    checks: Sequence[DriftCheck], applied: Mapping[Address, float] | None = None
) -> list[DriftPeriod]:
    """From drift checks, oldest first: current periods before ended ones, the longest first.

    applied   resources that were applied after the last check, with the time: their drift is over
    """
    current: dict[Address, DriftPeriod] = {}
    ended: list[DriftPeriod] = []
    for check in checks:
        resources = {resource.address: resource for resource in check.drift}
        for address in [address for address in current if address not in resources]:
            period = current.pop(address)
            period.is_over, period.repaired = True, check.at
            ended.append(period)
        for address, resource in resources.items():
            period = current.setdefault(address, DriftPeriod(resource, check.at, check.at))
            period.resource, period.last = resource, check.at
            period.fields |= set(resource.fields)
    for address, at in (applied or {}).items():
        if (drifted := current.get(address)) is not None:
            drifted.is_over, drifted.repaired = True, at
    periods = [*current.values(), *ended]

    def order(period: DriftPeriod) -> tuple[bool, float, str]:
        end = period.repaired if period.is_over else period.last
        return period.is_over, period.since - end, str(period.resource.address)

    return sorted(periods, key=order)


def render_page(
    stack: str,
    past: Past,
    *,
    now: float,
    days: int,
    context: RunContext | None = None,
) -> str:
    """The whole file. `past`: of the last `days` days before `now`."""
    context = context or RunContext()
    checks, runs = past.checks, past.runs
    periods = list_drift_periods(checks, past.applied)
    current = [period for period in periods if not period.is_over]
    more = f", the latest {_MOST_ROWS}" if len(checks) > _MOST_ROWS else ""
    openings, health, due = list_openings(checks), list_unhealthy(checks), _list_due(checks, now)
    ended = [period for period in periods if period.is_over]
    return environment.render_template(
        "report.html",
        title=f"Report on stack {sanitize(stack)}",
        stack=sanitize(stack),
        environment=context.environment,
        about=list(_about(checks, now, days, context)),
        state=_state(past, current),
        verdict=_verdict(past, current),
        tiles=list(_tiles(checks, periods, runs, now)),
        outcomes_of_runs=_count_outcomes(runs),
        drift=draw_chart([_drift_bar(number, check) for number, check in _thin_out(checks)]),
        causes=[(cause.text, hue) for cause, hue in _CAUSES.items()],
        checks=[_check_row(number, check) for number, check in reversed(list(enumerate(checks)))][:_MOST_ROWS],
        checks_title=count(len(checks), "drift check") + more,
        openings=[_describe_opening(span, now) for span in openings[:_MOST_ROWS]],
        health=[_describe_health(span, now) for span in health[:_MOST_ROWS]],
        due=[_describe_due(at, row, now) for at, row in due[:_MOST_ROWS]],
        due_days=_DUE_DAYS,
        kinds=_kinds(periods, now),
        current=[_period_row(period, now) for period in current],
        ended=[_period_row(period, now) for period in ended[:_MOST_ROWS]],
        applies=draw_chart([_run_bar(number, run) for number, run in list(enumerate(runs))[-_MOST_BARS:]]),
        outcomes=[(str(outcome), hue) for outcome, hue in _OUTCOMES.items()],
        runs=[_run_row(number, run) for number, run in reversed(list(enumerate(runs)))][:_MOST_ROWS],
        more={
            "openings": _count_more(openings),
            "health": _count_more(health),
            "due": _count_more(due),
            "ended": _count_more(ended),
            "runs": _count_more(runs),
        },
    )


def _count_more(rows: Sequence[object]) -> str:
    """What a table leaves out; empty if it has all rows."""
    return count_more(len(rows) - _MOST_ROWS, "row") if len(rows) > _MOST_ROWS else ""


def _about(checks: Sequence[DriftCheck], now: float, days: int, context: RunContext) -> Iterator[tuple[str, Link]]:
    """What the header says, label by label."""
    known = (
        ("Period", Link(f"the last {count(days, 'day')}")),
        ("Created", Link(format_time(now))),
        ("Last checked commit", Link(sanitize(checks[-1].commit[:12]) if checks else "")),
        ("Created by", Link(context.author)),
        ("Run", context.run or Link("")),
    )
    yield from ((label, link) for label, link in known if link.text)


def _state(past: Past, current: Sequence[DriftPeriod]) -> tuple[str, str]:
    """The CSS class and the text of the state: `In sync since …`, `3 resources drifted`, `Repaired since …`."""
    if not past.checks:
        return "quiet", "Not checked"
    last = past.checks[-1]
    pending = sum(resource.address not in past.applied for resource in last.git_changes)
    if current:
        others = f", {pending} with unapplied Git changes" if pending else ""
        return "waiting", f"{count(len(current), 'resource')} drifted{others}"
    if pending:
        return "quiet", f"{count(pending, 'resource')} with unapplied Git changes"
    if last.drift:
        return "ready", "Repaired since the last drift check"
    since = last.at
    for check in reversed(past.checks):
        if check.drift:
            break
        since = check.at
    return "ready", f"In sync since {format_time(since)}"


class Tile(Struct, frozen=True):
    """A number at the top of the page."""

    label: str
    value: str
    detail: str = ""


def _tiles(
    checks: Sequence[DriftCheck], periods: Sequence[DriftPeriod], runs: Sequence[Run], now: float
) -> Iterator[Tile]:
    if checks:
        ago = f"{format_duration(max(now - checks[-1].at, 0))} ago"
        yield Tile("Last drift check", ago, count(len(checks), "check"))
        repairs = [period.repaired - period.since for period in periods if period.is_over]
        if repairs:
            value, longest = format_duration(median(repairs)), format_duration(max(repairs))
            detail = f"median of {len(repairs)}, longest {longest}" if len(repairs) > 1 else "1 repair"
            yield Tile("Time to repair", value, detail)
        else:
            yield Tile("Time to repair", "–", "no drift was repaired")
    judged = [check for check in checks if check.health is not None]
    if judged and (health := judged[-1].health) is not None:
        counts = Counter(row.health.state for row in health.rows)
        ill = ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state] and state is not State.HEALTHY)
        yield Tile("Health", ill or "healthy", f"{count(health.judged, 'object')}, {format_time(judged[-1].at)}")
    if runs:
        last = runs[-1]
        yield Tile("Last run", find_run_outcome(last).text, f"{sanitize(last.command)}, {format_time(last.started)}")
        yield Tile("Runs", str(len(runs)))


def _count_outcomes(runs: Sequence[Run]) -> list[tuple[RunOutcome, int]]:
    """Outcomes with the number of their runs, the most frequent first."""
    counts = Counter(find_run_outcome(run) for run in runs)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0].text))


def _verdict(past: Past, current: Sequence[DriftPeriod]) -> str:
    """`Last check, …: 3 resources differed, 2 of them applied since then; 10 declared resources. 1 run since then.`"""
    if not past.checks:
        return "No drift check was recorded; run `reconciler drift --record`."
    last = past.checks[-1]
    later = sum(run.started > last.at for run in past.runs)
    since = f" {count(later, 'run')} since then." if later else ""
    begin = f"Last check, {format_time(last.at)}:"
    declared = count(last.declared, "declared resource")
    if not last.drift:
        return f"{begin} no drift in {declared}.{since}"
    differing = f"{begin} {count(len(last.drift), 'resource')} differed"
    if not current:
        return f"{differing}, and applies repaired all of them since then; {declared}.{since}"
    repaired = len(last.drift) - len(current)
    some = f", {repaired} of them repaired by applies since then" if repaired else ""
    oldest = min(period.since for period in current)
    return f"{differing}{some}, the longest since {format_time(oldest)}; {declared}.{since}"


def _thin_out(checks: Sequence[DriftCheck]) -> list[tuple[int, DriftCheck]]:
    """The checks with their numbers; if there are too many for the chart, the last of each of the latest days."""
    numbered = list(enumerate(checks))
    if len(numbered) > _MOST_BARS:
        numbered = list({format_time(check.at)[:10]: (number, check) for number, check in numbered}.values())
    return numbered[-_MOST_BARS:]


def _drift_bar(number: int, check: DriftCheck) -> Bar:
    counts = Counter(resource.changed_by for resource in check.drift)
    listed = ", ".join(f"{counts[cause]} {cause.text}" for cause in _CAUSES if counts[cause]) or "no drift"
    parts = {hue: counts[cause] for cause, hue in _CAUSES.items()}
    return Bar(format_time(check.at)[:10], f"{format_time(check.at)}: {listed}", parts, number)


def _run_bar(number: int, run: Run) -> Bar:
    listed = (
        ", ".join(f"{run.calls[outcome]} {outcome}" for outcome in _OUTCOMES if run.calls.get(outcome)) or "no calls"
    )
    parts = dict.fromkeys(_OUTCOMES.values(), 0)
    for outcome, hue in _OUTCOMES.items():
        parts[hue] += run.calls.get(outcome, 0)
    started = format_time(run.started)
    return Bar(started[:10], f"{started} {sanitize(run.command)}: {listed}", parts, number)


class KindRow(Struct, frozen=True):
    kind: str
    current: int
    periods: int
    longest: str
    share: int  # percent of the kind with the most periods


def _kinds(periods: Sequence[DriftPeriod], now: float) -> list[KindRow]:
    """A row per kind, the kind with the most current drift first."""
    by_kind: dict[str, list[DriftPeriod]] = {}
    for period in periods:
        by_kind.setdefault(period.resource.address.kind, []).append(period)
    most = max(map(len, by_kind.values()), default=1)
    rows = [
        KindRow(
            kind=kind,
            current=sum(not period.is_over for period in of_kind),
            periods=len(of_kind),
            longest=format_duration(max(period.duration(now) for period in of_kind)),
            share=round(100 * len(of_kind) / most),
        )
        for kind, of_kind in by_kind.items()
    ]
    return sorted(rows, key=lambda row: (-row.current, -row.periods, row.kind))


def _period_row(period: DriftPeriod, now: float) -> dict[str, object]:
    return {
        "address": str(period.resource.address),
        "since": format_time(period.since),
        "duration": format_duration(period.duration(now)),
        "changed_by": period.resource.changed_by.text,
        "hue": _CAUSES[period.resource.changed_by],
        "reason": period.resource.reason.text,
        "fields": [sanitize(path) for path in sorted(period.fields)],
    }


def _describe_opening(span: Span[Opening], now: float) -> dict[str, object]:
    opening, is_open = span.found, span.ended is None
    return {
        "entry_point": sanitize(opening.entry_point),
        "since": format_time(span.since),
        "until": format_time(span.ended) if span.ended is not None else "still open",
        "hue": "delete" if is_open else "create",
        "duration": format_duration(span.duration(now)),
        "verdict": opening.verdict.text if opening.is_certain else f"unknown whether it {opening.verdict.text}",
        "before": sanitize(opening.before),
        "after": sanitize(opening.after),
    }


def _describe_health(span: Span[HealthRow], now: float) -> dict[str, object]:
    row, is_ill = span.found, span.ended is None
    return {
        "object": sanitize(name_object(row)),
        "state": str(row.health.state),
        "hue": _STATES[row.health.state],
        "since": format_time(span.since),
        "until": format_time(span.ended) if span.ended is not None else "still not healthy",
        "end_hue": "delete" if is_ill else "create",
        "duration": format_duration(span.duration(now)),
        "reason": sanitize(". ".join(filter(None, (row.health.reason, row.health.advice)))),
    }


def _list_due(checks: Sequence[DriftCheck], now: float) -> list[tuple[float, HealthRow]]:
    """What comes due soon, or did, with the time, by the last check that judged health; the earliest first."""
    last = next((check.health for check in reversed(checks) if check.health is not None), None)
    rows = last.rows if last is not None else ()
    due = [(row.health.due, row) for row in rows if row.health.due and row.health.due <= now + _DUE_DAYS * DAY]
    return sorted(due, key=lambda item: (item[0], item[1].address, item[1].id))


def _describe_due(at: float, row: HealthRow, now: float) -> dict[str, object]:
    left = at - now
    return {
        "object": sanitize(name_object(row)),
        "at": format_time(at),
        "in": f"in {format_duration(left)}" if left > 0 else f"{format_duration(-left)} ago",
        "state": str(row.health.state),
        "hue": _STATES[row.health.state],
        "reason": sanitize(row.health.reason),
    }


def _check_row(number: int, check: DriftCheck) -> dict[str, object]:
    return {
        "number": number,
        "at": format_time(check.at),
        "differ": len(check.drift),
        "pending": len(check.git_changes),
        "declared": check.declared,
        "commit": sanitize(check.commit[:12]),
        "addresses": [str(resource.address) for resource in check.drift[:_NAMED]],
        "more": max(0, len(check.drift) - _NAMED),
    }


def _run_row(number: int, run: Run) -> dict[str, object]:
    return {
        "number": number,
        "at": format_time(run.started),
        "command": sanitize(run.command),
        "commit": sanitize(run.commit[:12]),
        "actor": sanitize(run.actor),
        "outcome": find_run_outcome(run),
        "duration": format_duration(run.ended - run.started) if run.ended is not None else "",
        "counts": [(hue, run.calls.get(outcome, 0)) for outcome, hue in _OUTCOMES.items()],
    }
