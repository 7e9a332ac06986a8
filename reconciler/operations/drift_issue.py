"""Keeps one issue per stack at a code host: opens it for drift, updates it, and closes it without drift."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.api.code_hosts import IssueResult, IssueTracker
from reconciler.engine.ports import Failure
from reconciler.model.plan import Plan
from reconciler.operations.reporting import Note, OnEvent
from reconciler.rendering import terminal_text
from reconciler.rendering.plan import markdown, phrases

_NOTES: Mapping[IssueResult, str] = {
    IssueResult.OPENED: "Issue opened.",
    IssueResult.UPDATED: "Issue updated.",
    IssueResult.CURRENT: "Issue unchanged.",
    IssueResult.CLOSED: "Issue closed.",
}


def update_issue(issues: IssueTracker, plan: Plan, on_event: OnEvent) -> None:
    """Opens or updates the issue of the plan's stack if there is drift, otherwise closes it.

    Changes nothing if the plan has errors and no drift: a resource that could not be read would count as repaired.
    A failed request is a warning.
    """
    if plan.errors and not plan.has_drift:
        on_event(Note("note: issue not changed, because the plan has errors"))
        return
    marker = markdown.marker(plan.stack, plan.account)
    body = markdown.render_markdown(plan, flavour=phrases.Flavour.DRIFT)
    change = issues.upsert_issue if plan.has_drift else issues.close_issue
    try:
        result = change(f"Drift in {terminal_text.sanitize(plan.stack)}", body, marker)
    except Failure as failure:
        on_event(Note(f"warning: issue not changed: {failure}"))
        return
    if result in _NOTES:
        on_event(Note(_NOTES[result], is_detail=True))
