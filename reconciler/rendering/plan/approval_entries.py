"""The entries of `approvals.yaml` that would grant the approvals which a plan lacks."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from reconciler.model.plan import Approval, ApprovalItem, Plan
from reconciler.model.rule_change import RuleRisk

DAYS = 14  # until the entries expire


def render_entries(plan: Plan, environment: str | None = None) -> str:
    """YAML to add below `approvals:`; empty if nothing is missing or what is missing can be granted by a flag only.

    The entries expire two weeks after the plan was created.
    """
    until = (datetime.fromtimestamp(plan.created, UTC) + timedelta(days=DAYS)).date().isoformat()
    place = f"    env: {environment}\n" if environment else ""
    entries = [
        f"  - {approval.what}: {_quote(item.subject)}\n{place}{_write_id(approval, item)}"
        f'    until: "{until}"\n    digest: "{item.digest}"\n'
        for approval in plan.missing_approvals
        for item in approval.items
    ]
    return "approvals:\n" + "".join(entries) if entries else ""


def _write_id(approval: Approval, item: ApprovalItem) -> str:
    """The line of the live object, which rules and entry points do not have."""
    has_object = approval.what not in map(str, RuleRisk) and not approval.is_of_access
    return f'    id: "{item.id}"\n' if has_object else ""


def _quote(subject: str) -> str:
    """The subject as a YAML scalar: plain if it is an address, an id or a URL."""
    return subject if _PLAIN.fullmatch(subject) else f'"{"".join(map(_escape, subject))}"'


def _escape(character: str) -> str:
    if character in '"\\' or not character.isprintable():
        return f"\\U{ord(character):08x}"
    return character


_PLAIN = re.compile(r"[A-Za-z](?:[\w ./*@…()\[\]-]|:(?=[\w/]))*[\w/…)*\]-]")
