"""The entries of `approvals.yaml` that would grant the approvals which a plan lacks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from reconciler.model.plan import ApprovalItem, Plan

DAYS = 14  # until the entries expire


def render_entries(*plans: Plan) -> str:
    """YAML to add below `approvals:`; empty if nothing is missing or what is missing can be granted by a flag only.

    An entry that several plans need alike is for the environments of all of them. Entries expire two weeks after the
    plan was created.
    """
    found: dict[tuple[str, ApprovalItem], list[Plan]] = {}
    for plan in plans:
        for approval in plan.missing_approvals:
            for item in approval.items:
                found.setdefault((approval.what, item), []).append(plan)
    entries = [_render_entry(what, item, needing) for (what, item), needing in found.items()]
    return "approvals:\n" + "".join(entries) if entries else ""


def _render_entry(what: str, item: ApprovalItem, plans: Sequence[Plan]) -> str:
    """One entry. What does not apply, such as the id of an object that does not exist yet, has no line."""
    environments = list(dict.fromkeys(plan.environment for plan in plans if plan.environment))
    until = datetime.fromtimestamp(plans[0].created, UTC) + timedelta(days=DAYS)
    lines = [
        f"{what}: {_quote(item.subject)}",
        *([f"env: {_list_environments(environments)}"] if environments else []),
        *([f'id: "{item.id}"'] if item.id else []),
        f'until: "{until.date().isoformat()}"',
        f'digest: "{item.digest}"',
    ]
    return "".join(f"  {'- ' if number == 0 else '  '}{line}\n" for number, line in enumerate(lines))


def _list_environments(names: Sequence[str]) -> str:
    """`prod`, or `[staging, prod]`."""
    return _quote(names[0]) if len(names) == 1 else f"[{', '.join(map(_quote, names))}]"


def _quote(subject: str) -> str:
    """The text as a YAML scalar: plain if it is an address, an id, a URL or the name of an environment."""
    is_plain = _PLAIN.fullmatch(subject) and subject.lower() not in _WORDS
    return subject if is_plain else f'"{"".join(map(_escape, subject))}"'


def _escape(character: str) -> str:
    if character in '"\\' or not character.isprintable():
        return f"\\U{ord(character):08x}"
    return character


_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})  # which YAML may read as no text
_PLAIN = re.compile(r"[A-Za-z](?:[\w ./*@…()\[\]-]|:(?=[\w/]))*[\w/…)*\]-]")
