"""Events of an operation, for one callback: those of the engine, and what happens before and after its calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.model.event import Event
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan that an apply will carry out, if nothing blocks it and it is approved."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class CallsBegan:
    """The first call may be sent from now on. `is_cleanup`: duplicates of an earlier run are being removed."""

    total: int
    is_cleanup: bool = False


@dataclass(frozen=True, slots=True)
class CallsEnded:
    """No call is under way any more."""


@dataclass(frozen=True, slots=True)
class ReadRetried:
    """A request that reads failed and is repeated after so many seconds."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the user. `is_detail`: of no interest to someone who asked for errors only."""

    text: str
    problems: tuple[Problem, ...] = ()
    is_detail: bool = False


OperationEvent = Event | Planned | CallsBegan | CallsEnded | ReadRetried | Note
OnEvent = Callable[[OperationEvent], None]


def ignore_event(event: OperationEvent) -> None:
    """The callback of a caller who wants no events."""
