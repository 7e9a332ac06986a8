"""The health of a stack beside its drift: the totals as a sentence, and a line for each object that is not healthy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from reconciler.model.health import WORST_FIRST, HealthRow, State
from reconciler.rendering.health_text import format_row, name_object
from reconciler.rendering.text_tools import count

_LONGEST = 180  # characters of a headline: GitHub and GitLab accept 255 in a title


def describe_health(rows: Sequence[HealthRow]) -> str:
    """`Health: 1 degraded, 2 unknown, 30 healthy.`"""
    counts = Counter(row.health.state for row in rows)
    listed = ", ".join(f"{counts[state]:,} {state}" for state in WORST_FIRST if counts[state])
    return f"Health: {listed or 'nothing to judge'}."


def list_unhealthy(rows: Sequence[HealthRow]) -> list[HealthRow]:
    """The objects that are not healthy: degraded before unknown before progressing."""
    ill = [row for row in rows if row.health.state is not State.HEALTHY]
    return sorted(ill, key=lambda row: (WORST_FIRST.index(row.health.state), row.address, row.id))


def describe_row(row: HealthRow) -> str:
    """`degraded: ReservedDomain/shop: the certificate waits for DNS (you act: …)`"""
    return f"{row.health.state}: {format_row(row)}"


def headline(rows: Sequence[HealthRow]) -> str:
    """What is degraded, for titles: `ReservedDomain/shop is degraded, and 1 more object`; empty if nothing is."""
    ill = [row for row in list_unhealthy(rows) if row.health.state is State.DEGRADED]
    if not ill:
        return ""
    text = f"{name_object(ill[0])} is degraded"
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return text + (f", and {count(len(ill) - 1, 'more object')}" if len(ill) > 1 else "")
