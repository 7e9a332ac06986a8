"""The health of an object as one line of text."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.health import Actor, HealthRow, State

SIGNS: Mapping[State, str] = {State.DEGRADED: "!", State.UNKNOWN: "?", State.PROGRESSING: "~", State.HEALTHY: " "}
_WHO = {
    Actor.PLATFORM: "the platform acts",
    Actor.ZONE_OWNER: "the owner of the DNS zone acts",
    Actor.AGENT: "an agent acts",
    Actor.YOU: "you act",
}


def name_object(row: HealthRow) -> str:
    """The address of the object, or its id."""
    return row.address or row.id


def format_row(row: HealthRow) -> str:
    """`ReservedDomain/shop: the certificate waits for DNS (the owner of the DNS zone acts: set … CNAME …)`."""
    health = row.health
    action = ": ".join(filter(None, (_WHO.get(health.actor, ""), health.advice)))
    text = f"{name_object(row)}: {health.reason or health.state}"
    return f"{text} ({action})" if action else text
