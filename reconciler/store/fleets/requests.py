"""Counts the requests that a task of a fleet may have sent, and when, from its row.

A platform counts the requests of a minute for each account. A worker stores the number of its requests with each
heartbeat. The number after the last heartbeat is unknown if the worker was killed.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row

from reconciler.model.fleet import TaskState

HEARTBEAT_SECONDS = 15.0
"""Maximum seconds between two heartbeats of a task."""

WHOLE_BUDGET = 1_000_000_000
"""A number of requests above any budget."""

WINDOW = 60.0
"""Minimum seconds for which a request counts."""


def last_moment(row: Row[Any]) -> float:
    """The latest time at which the last attempt of a task may have sent a request."""
    if row.state == TaskState.RUNNING.value:
        return float(min(row.moment, row.alive + HEARTBEAT_SECONDS))
    return float(row.alive)


def count_requests(row: Row[Any]) -> int:
    """The number of requests that the last attempt of a task may have sent."""
    return WHOLE_BUDGET if row.state == TaskState.RUNNING.value else row.sent


def sum_attempts(row: Row[Any]) -> tuple[float | None, int]:
    """Requests of all attempts of a task that is claimed again: when the last may have been sent, and their number."""
    if row.alive is None:
        return None, 0
    moment, number = last_moment(row), count_requests(row)
    if row.earlier_alive is not None and row.earlier_alive > moment - WINDOW:
        number += row.earlier_sent
    return moment, min(number, WHOLE_BUDGET)
