"""Events that the engine reports while it works. Printers, logs and tests only listen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.plan import Call


class Outcome(StrEnum):
    """How a call ended."""

    DONE = "done"
    ALREADY = "already so"  # a delete that found nothing, a create found by its intent after a lost answer
    FAILED = "failed"
    SKIPPED = "not tried"  # something it needs failed, or the run was stopped
    UNKNOWN = "not known"  # it took effect, or may have, and that could not be written down; the next run finds out


@dataclass(frozen=True, slots=True)
class Started:
    call: Call
    at: float  # seconds on the engine's clock


@dataclass(frozen=True, slots=True)
class Retried:
    call: Call
    attempt: int
    wait: float  # seconds until the next attempt
    why: str


@dataclass(frozen=True, slots=True)
class Ended:
    call: Call
    outcome: Outcome
    at: float
    id: str | None = None  # of the object, where there is one
    why: str = ""
    denied: bool = False  # the key, not the request, is what is wrong


@dataclass(frozen=True, slots=True)
class Waited:
    """The request budget made everybody wait."""

    seconds: float


Event = Started | Retried | Ended | Waited
