"""Keeps one issue per stack at a code host: opens it for drift, updates it, and closes it without drift."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.api.code_hosts import IssueResult, IssueTracker
from reconciler.engine.ports import Failure
from reconciler.model.plan import Plan
from reconciler.operations.drift import describe_unread
from reconciler.operations.reporting import Note, OnEvent
from reconciler.rendering import terminal_text
from reconciler.rendering.plan import access_drift, markdown, phrases
from reconciler.rendering.plan.outline import build_outline

_NOTES: Mapping[IssueResult, str] = {
    IssueResult.OPENED: "Issue opened.",
    IssueResult.UPDATED: "Issue updated.",
    IssueResult.CURRENT: "Issue unchanged.",
    IssueResult.CLOSED: "Issue closed.",
}

_LONGEST_TITLE = 255  # characters, of GitLab; GitHub accepts one more


def update_issue(issues: IssueTracker, plan: Plan, on_event: OnEvent) -> None:
    """Opens or updates the issue of the plan's stack if there is drift, otherwise closes it.

    Changes nothing if there is no drift and the account was not read completely: what could not be read would count as
    repaired. A failed request is a warning.
    """
    if not plan.has_drift and (why := describe_unread(plan)):
        on_event(Note(f"note: issue not changed, because {why}"))
        return
    marker = markdown.marker(plan.stack, plan.account)
    body = markdown.render_markdown(plan, flavour=phrases.Flavour.DRIFT)
    is_open, title = plan.has_drift, _title(plan)
    try:
        result = issues.upsert_issue(title, body, marker) if is_open else issues.close_issue(body, marker)
    except Failure as failure:
        on_event(Note(f"warning: issue not changed: {failure}"))
        return
    if result in _NOTES:
        on_event(Note(_NOTES[result], is_detail=True))


def _title(plan: Plan) -> str:
    """`Drift in prod: https://x is open to everyone (manifests: 203.0.113.0/24)`, or `Drift in prod`."""
    opened = access_drift.headline(build_outline(plan))
    title = f"Drift in {terminal_text.sanitize(plan.stack)}" + (f": {opened}" if opened else "")
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"
