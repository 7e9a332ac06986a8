"""Keeps one issue per stack at a code host: opens it for drift or degraded objects, updates it, and closes it again."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.api.code_hosts import Issue, IssueResult, IssueTracker
from reconciler.engine.ports import Failure
from reconciler.model.health import State
from reconciler.model.plan import Plan
from reconciler.operations.drift import describe_unread
from reconciler.operations.drift_state import DriftState, digest_object, read_line, write_line
from reconciler.operations.reporting import Note, OnEvent
from reconciler.rendering import terminal_text
from reconciler.rendering.health_text import name_object
from reconciler.rendering.plan import access_drift, health_section, markdown, phrases
from reconciler.rendering.plan.outline import Outline, build_outline

_NOTES: Mapping[IssueResult, str] = {
    IssueResult.OPENED: "Issue opened.",
    IssueResult.UPDATED: "Issue updated.",
    IssueResult.CURRENT: "Issue unchanged.",
    IssueResult.CLOSED: "Issue closed.",
}

_LONGEST_TITLE = 255  # characters, of GitLab; GitHub accepts one more


def find_issue(issues: IssueTracker, plan: Plan, on_event: OnEvent) -> Issue | Failure | None:
    """The open issue of the plan's stack; the Failure, which is a warning, if the code host cannot be used."""
    try:
        return issues.find_issue(markdown.marker(plan.stack, plan.account))
    except Failure as failure:
        on_event(Note(f"warning: issue not changed: {failure}"))
        return failure


def update_issue(issues: IssueTracker, issue: Issue | None, plan: Plan, state: DriftState, on_event: OnEvent) -> None:
    """Opens or updates the issue of the plan's stack if there is drift or a degraded object, otherwise closes it.

    Closes none if the account was not read completely or the health of an object is unknown: what is not known would
    count as repaired. A failed request is a warning.

    issue  that of `find_issue`
    state  after the check; it is written into the issue
    """
    earlier = read_line(issue.body) if issue is not None else None
    is_bad = plan.has_drift or plan.is_degraded
    if not is_bad and (why := describe_unread(plan) or _find_doubt(plan, earlier)):
        on_event(Note(f"note: issue not changed, because {why}"))
        return
    head, _, rest = markdown.render_markdown(plan, flavour=phrases.Flavour.DRIFT).partition("\n")
    body = f"{head}\n{write_line(state)}\n{rest}"
    try:
        result = issues.upsert_issue(_title(plan), body, issue) if is_bad else issues.close_issue(body, issue)
    except Failure as failure:
        on_event(Note(f"warning: issue not changed: {failure}"))
        return
    if result in _NOTES:
        on_event(Note(_NOTES[result], is_detail=True))


def _find_doubt(plan: Plan, earlier: DriftState | None) -> str:
    """Why the stack may not work although nothing is degraded; empty if nothing is in doubt."""
    was_degraded = earlier.degraded if earlier is not None else ()
    if plan.health is None:
        return "it names degraded objects, and health was not judged: pass --health" if was_degraded else ""
    for row in plan.health:
        name = terminal_text.sanitize(name_object(row))
        if row.health.state is State.UNKNOWN:
            return f"the health of {name} is unknown"
        if row.health.state is State.PROGRESSING and digest_object(row) in was_degraded:
            return f"{name} was degraded and is not healthy yet"
    return ""


def _title(plan: Plan) -> str:
    """`Drift and health in prod: https://x is open to everyone (manifests: 203.0.113.0/24); TLSEdge/x is degraded`.

    `Health in prod: …` without drift, `Drift in prod` if nothing is degraded or opened. If access tests fail and
    nothing else is opened, the first of them is named.
    """
    rows = build_outline(plan)
    access = access_drift.headline(rows) or access_drift.name_failed_test(plan.failed_tests)
    parts = list(filter(None, (access, health_section.headline(rows.health or ()))))
    title = f"{_topic(rows, plan)} in {terminal_text.sanitize(plan.stack)}" + (f": {'; '.join(parts)}" if parts else "")
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"


def _topic(rows: Outline, plan: Plan) -> str:
    if not plan.has_drift:
        return "Health"
    return "Drift and health" if health_section.headline(rows.health or ()) else "Drift"
