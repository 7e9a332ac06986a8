"""The events of an operation, for one callback: those of the engine, and those before and after its calls."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from reconciler.model.event import Event, HealthChanged
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem


class Planned(Struct, frozen=True):
    """The plan that will be applied if nothing blocks it and it is approved."""

    plan: Plan


class CallsBegan(Struct, frozen=True):
    """The calls start. `is_cleanup`: they delete duplicates that a concurrent run created."""

    total: int
    is_cleanup: bool = False


class CallsEnded(Struct, frozen=True):
    """All calls have ended."""


class ListRead(Struct, frozen=True):
    """`read` of the `total` lists of the account have been read; 0 at the start."""

    read: int
    total: int


class ReadRetried(Struct, frozen=True):
    """A read request failed and will be retried after `seconds`."""

    seconds: float
    why: str


class Note(Struct, frozen=True):
    """A sentence for the user. `is_detail`: to be omitted in quiet output."""

    text: str
    problems: tuple[Problem, ...] = ()
    is_detail: bool = False


class WaitBegan(Struct, frozen=True):
    """All calls have ended, and what they changed is waited for, for at most `timeout` seconds."""

    timeout: float


OperationEvent = Event | Planned | CallsBegan | CallsEnded | ListRead | ReadRetried | Note | WaitBegan | HealthChanged
OnEvent = Callable[[OperationEvent], None]


def ignore_event(event: OperationEvent) -> None:
    """Ignores an event: the default callback."""
