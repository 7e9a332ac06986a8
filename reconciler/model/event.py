"""Events that the engine reports during a run, and how calls end. Progress, logs and traces are made of them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from reconciler.model.health import HealthRow, Wait
from reconciler.model.plan import Call


class Outcome(StrEnum):
    """How a call ended."""

    DONE = "succeeded"
    ALREADY = "unchanged"  # a delete that found nothing, or a create whose object was found after a lost response
    FAILED = "failed"
    SKIPPED = "skipped"  # a call that it needs failed, or the run was stopped
    UNKNOWN = "unknown"  # it may have taken effect, and the store could not record it; the next run finds out


class Started(Struct, frozen=True):
    call: Call
    at: float  # seconds on the engine's clock


class Retried(Struct, frozen=True):
    call: Call
    attempt: int
    wait: float  # seconds until the next attempt
    why: str


class Ended(Struct, frozen=True):
    call: Call
    outcome: Outcome
    at: float
    id: str | None = None  # of the object, if it has one
    why: str = ""
    denied: bool = False  # the API key was refused, not the request


class Waited(Struct, frozen=True):
    """The request budget delayed all calls."""

    seconds: float


Event = Started | Retried | Ended | Waited


class HealthChanged(Struct, frozen=True):
    """The health of an object that an apply changed or broke, and whether it is waited for: once for each, and again
    whenever it changes."""

    row: HealthRow
    wait: Wait
