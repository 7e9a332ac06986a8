"""The state of a stack as one HTML file: sync, health with reasons and who acts, and the next dates."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model import exit_codes
from reconciler.model.health import HealthRow, State
from reconciler.model.status import StackStatus
from reconciler.rendering import status as text
from reconciler.rendering.health_text import name_object
from reconciler.rendering.html import environment
from reconciler.rendering.run_context import Link
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.text_tools import count, format_time

_HUES = {State.DEGRADED: "delete", State.PROGRESSING: "update", State.UNKNOWN: "unchanged"}
_STATES = {
    exit_codes.DONE: ("ready", "Healthy and in sync"),
    exit_codes.CHANGES: ("quiet", "Not settled"),
    exit_codes.DEGRADED: ("waiting", "Degraded"),
}


def render_page(status: StackStatus) -> str:
    """The whole file."""
    return environment.render_template(
        "status.html",
        title=f"Status of stack {sanitize(status.stack)}",
        stack=sanitize(status.stack),
        environment=sanitize(status.environment),
        about=[("Account", Link(sanitize(status.account))), ("Read", Link(format_time(status.at)))],
        state=_STATES[status.exit_code],
        lines=[("Sync", sanitize(text.describe_sync(status))), ("Health", text.describe_health(status))],
        differing=list(_list_differing(status)),
        sections=[(title, [_build_row(row) for row in rows]) for title, rows in text.list_sections(status)],
        dates_title=f"In the next {count(status.days, 'day')}",
        dates=[(format_time(due.at), sanitize(due.subject), due.event) for due in status.dates],
    )


def _list_differing(status: StackStatus) -> Iterator[tuple[str, list[str]]]:
    groups = {"Changed on the platform": status.sync.drifted, "Unapplied changes in Git": status.sync.pending}
    yield from ((title, [sanitize(name) for name in names]) for title, names in groups.items() if names)


def _build_row(row: HealthRow) -> dict[str, str]:
    return {
        "name": sanitize(name_object(row)),
        "state": str(row.health.state),
        "hue": _HUES[row.health.state],
        "reason": sanitize(row.health.reason),
        "action": sanitize(text.describe_actor(row)),
    }
