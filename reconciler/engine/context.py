"""The context of one run: its ports, the facts of the plan, and its memory; checkpoints and retries.

Every write through a port happens inside `checkpoint`, so that fault tests can end the process before and after it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Literal, TypeVar, get_args

from msgspec import Struct, field

from reconciler.engine import retry
from reconciler.engine.ownership import OwnershipCheck
from reconciler.engine.ports import (
    Clock,
    Failure,
    Gone,
    Journal,
    Lost,
    NotSent,
    Platform,
    Random,
    Sinks,
    Stop,
    Transient,
)
from reconciler.engine.requests import ResolvedValues
from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.event import Event, Retried
from reconciler.model.kind import Kind
from reconciler.model.plan import Call, Plan
from reconciler.model.redaction import Redactor
from reconciler.model.snapshot import Binding

Checkpoint = Literal["check", "intend", "send", "search", "receive", "deliver", "receipt", "bind", "revoke", "conclude"]
"""The steps of a call: requests, lists and durable writes."""

POINTS: tuple[str, ...] = tuple(f"{edge} {step}" for step in get_args(Checkpoint) for edge in ("before", "after"))
"""Every point at which the process may die; the next run must recover from each."""

OnCheckpoint = Callable[[str, Call], None]
"""Called at each point with its name; a fault test kills the process there."""

_T = TypeVar("_T")


def not_visible_yet(path: str, failure: Gone) -> Transient:
    """The failure of a request to, or below, an object that was created a moment ago."""
    return Transient(f"{path} is not visible yet", code=failure.code, status=failure.status)


class Ports(Struct, frozen=True):
    """The interfaces through which a run reaches everything outside the engine, and its retry policy."""

    platform: Platform
    journal: Journal
    clock: Clock
    random: Random
    sinks: Sinks
    stop: Stop
    report: Callable[[Event], None]
    on_checkpoint: OnCheckpoint
    retries: retry.RetryPolicy


class PlanFacts(Struct, frozen=True, dict=True):
    """The plan and what is derived from it. Constant during a run."""

    plan: Plan
    kinds: Mapping[str, Kind]

    @cached_property
    def former_addresses(self) -> Mapping[Address, Address]:
        """New address → former address, of each resource that is moved."""
        return {change.address: change.former for change in self.plan.changes if change.former}

    @cached_property
    def adopted_addresses(self) -> frozenset[Address]:
        return frozenset(change.address for change in self.plan.changes if change.action is Action.ADOPT)

    def kind_of(self, call: Call) -> Kind:
        return self.kinds[call.address.kind]


class RunMemory(Struct, frozen=True):
    """What a run learns from its calls.

    redactor  hides secrets in every reported text: those of the plan and those received since
    intents   of the objects that this run created
    bindings  those that this run wrote
    sent      ids of the calls whose request took effect, or may have
    made      paths of the objects that this run, or an earlier one a moment ago, created → when their responses came
    """

    values: ResolvedValues
    ownership: OwnershipCheck
    redactor: Redactor
    intents: dict[Address, str] = field(default_factory=dict)
    bindings: dict[Address, Binding] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    made: dict[str, float] = field(default_factory=dict)


class RunContext(Struct, frozen=True):
    """What every step of a call needs: ports, facts of the plan, memory."""

    ports: Ports
    facts: PlanFacts
    memory: RunMemory

    async def checkpoint(self, name: Checkpoint, call: Call, act: Callable[[], Awaitable[_T]]) -> _T:
        """Performs one durable step; `on_checkpoint` is called before and after it."""
        self.ports.on_checkpoint(f"before {name}", call)
        try:
            result = await act()
        except Exception as failure:
            if name == "send" and (isinstance(failure, Lost) or not isinstance(failure, (Failure, NotSent))):
                self.memory.sent.add(call.id)
            raise
        if name == "send":
            self.memory.sent.add(call.id)
        self.ports.on_checkpoint(f"after {name}", call)
        return result

    async def with_retries(self, call: Call, act: Callable[[], Awaitable[_T]]) -> _T:
        """Repeats `act` after Transient and Lost failures, as the retry policy allows; raises the last Failure."""
        attempt = 1
        while True:
            try:
                return await act()
            except (Transient, Lost) as failure:
                await self.back_off(call, attempt, failure)
                attempt += 1

    def is_settling(self, path: str) -> bool:
        """Whether the path leads to, or below, an object created so recently that it may not be visible yet."""
        if not self.memory.made:
            return False
        parts, since = path.split("/"), self.ports.clock.now() - self.ports.retries.settle
        return any(self.memory.made.get("/".join(parts[:n]), since) > since for n in range(2, len(parts) + 1))

    async def back_off(self, call: Call, attempt: int, failure: Failure, *, least: float = 0.0) -> None:
        """Waits before the next attempt, at least `least` seconds. Raises the failure if no attempt is left, or if the
        run is stopped."""
        ports = self.ports
        seconds = retry.wait_seconds(attempt, failure, ports.random.fraction(), ports.retries)
        if seconds is None or ports.stop.is_set():
            raise failure
        seconds = max(seconds, least)
        ports.report(Retried(call, attempt + 1, seconds, str(failure)))
        if await retry.sleep_until_stopped(ports.clock.sleep(seconds), ports.stop):
            raise failure
