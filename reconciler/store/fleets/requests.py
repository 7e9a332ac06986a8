"""How many requests a task of a fleet may have sent, and when, by its row.

A platform counts the requests of a minute for each account. A worker stores how many it sent with each sign of life.
How many it sent after the last one is unknown if it was killed.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row

from reconciler.model.fleet import TaskState

BEAT_SECONDS = 15.0
"""Seconds between two signs of life of a task, at most."""

WHOLE_BUDGET = 1_000_000_000
"""A number of requests that is greater than any budget."""

WINDOW = 60.0
"""Seconds for which a request counts, at least."""


def last_moment(row: Row[Any]) -> float:
    """When the last try of a task may have sent its last request."""
    if row.state == TaskState.RUNNING.value:
        return float(min(row.moment, row.alive + BEAT_SECONDS))
    return float(row.alive)


def count_requests(row: Row[Any]) -> int:
    """How many requests the last try of a task may have sent."""
    return WHOLE_BUDGET if row.state == TaskState.RUNNING.value else row.sent


def sum_of_tries(row: Row[Any]) -> tuple[float | None, int]:
    """Requests of all tries of a task that is claimed again: when the last may have been sent, and their number."""
    if row.alive is None:
        return None, 0
    moment, number = last_moment(row), count_requests(row)
    if row.earlier_alive is not None and row.earlier_alive > moment - WINDOW:
        number += row.earlier_sent
    return moment, min(number, WHOLE_BUDGET)
