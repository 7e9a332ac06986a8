"""What an apply waits for: which objects it changed are not healthy yet, and when waiting ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from reconciler.model.health import Actor, Health, HealthRow, State, Wait
from reconciler.model.snapshot import LiveKey

HOLDS = 30.0
"""Seconds for which an error must hold: the platform may still show what it saw before the change."""
SHORTEST_PAUSE, LONGEST_PAUSE = 2.0, 30.0
_GROWTH = 1.5
_SHARE = 0.5  # of the request budget


class Watched(Struct, frozen=True):
    """The health of an object that an apply changed or broke.

    since   when it was first in this state, seconds since 1970
    served  it was healthy before the apply
    """

    row: HealthRow
    since: float
    served: bool = False


def decide_wait(watched: Iterable[Watched], started: float, now: float, timeout: float) -> tuple[Wait, ...]:
    """Decides for each object whether to wait. Times are in seconds since 1970, `timeout` in seconds."""
    return tuple(_decide(item, now, started + timeout) for item in watched)


def _decide(watched: Watched, now: float, end: float) -> Wait:
    health = watched.row.health
    if health.state is State.HEALTHY:
        return Wait.READY
    if not _is_awaited(health, served=watched.served):
        return Wait.REPORTED
    if now >= end or (_is_error(health) and now - watched.since >= HOLDS and not _is_retried_by(health, end)):
        return Wait.FAILED
    return Wait.WAITING


def _is_awaited(health: Health, *, served: bool) -> bool:
    """Whether to wait: for the platform, for the correction of an error, and for what the change broke."""
    if health.state is State.UNKNOWN:
        return False
    if served:
        return True
    if health.actor is Actor.AGENT:
        return False
    return health.state is State.DEGRADED or health.actor is Actor.PLATFORM


def _is_error(health: Health) -> bool:
    """Whether nothing improves before someone corrects it or the platform tries again. Agents come back."""
    return health.actor is not Actor.AGENT and (health.state is State.DEGRADED or health.retries_at is not None)


def _is_retried_by(health: Health, end: float) -> bool:
    return health.retries_at is not None and health.retries_at <= end


def follow(before: Mapping[LiveKey, Watched], rows: Mapping[LiveKey, HealthRow], now: float) -> dict[LiveKey, Watched]:
    """The objects with their present health; `before` has all of them."""
    found = {}
    for key, row in rows.items():
        old = before[key]
        is_same = (old.row.health.state, _is_error(old.row.health)) == (row.health.state, _is_error(row.health))
        found[key] = Watched(row, old.since if is_same else now, old.served)
    return found


def next_pause(pause: float, requests: int, per_minute: int, remaining: float) -> float:
    """Seconds until the next reading: longer each time, and long enough for the request budget (0: no limit).

    pause      the previous one; 0 before the first
    requests   of the next reading
    remaining  seconds until the end of the wait
    """
    grown = pause * _GROWTH if pause else SHORTEST_PAUSE
    affordable = requests * 60 / (per_minute * _SHARE) if per_minute else 0.0
    return max(0.0, min(max(grown, affordable, SHORTEST_PAUSE), LONGEST_PAUSE, remaining))
