"""What every call is carried out with: the ports, the points at which the process may die, and patience.

`step` is the one way to touch a port that changes anything, so that no such point can be forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar, get_args

from reconciler.engine import retry
from reconciler.engine.ownership import Ownership
from reconciler.engine.ports import Chance, Clock, Failure, Journal, Lost, Platform, Sinks, Transient, Withheld
from reconciler.engine.requests import Known
from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.event import Event, Retried
from reconciler.model.kind import Kind
from reconciler.model.plan import Call, Plan
from reconciler.model.redaction import Veil
from reconciler.model.snapshot import Binding

Step = Literal["prove", "intend", "send", "look", "deliver", "receipt", "bind", "revoke", "conclude"]
"""What a call is made of: sends, looks and durable writes."""

POINTS: tuple[str, ...] = tuple(f"{edge} {step}" for step in get_args(Step) for edge in ("before", "after"))
"""Every point at which a process may die and the next run must still come out right."""

Reach = Callable[[str, Call], None]
"""Called at each point with its name; a fault test kills the process there."""

_T = TypeVar("_T")


class Stop(Protocol):
    """Set when no new call may start. An `asyncio.Event` is one."""

    def is_set(self) -> bool: ...

    async def wait(self) -> object: ...


@dataclass
class Means:
    """One run's ports and memory."""

    plan: Plan
    kinds: Mapping[str, Kind]
    platform: Platform
    journal: Journal
    clock: Clock
    chance: Chance
    sinks: Sinks
    stop: Stop
    tell: Callable[[Event], None]
    reach: Reach
    retries: retry.Policy
    known: Known
    veil: Veil  # over every text that is told
    intents: dict[Address, str] = field(default_factory=dict)  # of the objects created in this run
    bound: dict[Address, Binding] = field(default_factory=dict)  # in this run
    sent: set[str] = field(default_factory=set)  # the calls that took effect, or may have

    def __post_init__(self) -> None:
        self.formers = {each.address: each.former for each in self.plan.changes if each.former}
        self.adopted = {each.address for each in self.plan.changes if each.action is Action.ADOPT}
        self.ownership = Ownership(self.plan, self.platform, self.clock, self.kinds)

    def kind_of(self, call: Call) -> Kind:
        return self.kinds[call.address.kind]

    async def step(self, name: Step, call: Call, act: Callable[[], Awaitable[_T]]) -> _T:
        """Do one thing, and let the fault tests in before and after it."""
        self.reach(f"before {name}", call)
        try:
            result = await act()
        except Exception as failure:
            if name == "send" and (isinstance(failure, Lost) or not isinstance(failure, (Failure, Withheld))):
                self.sent.add(call.id)
            raise
        if name == "send":
            self.sent.add(call.id)
        self.reach(f"after {name}", call)
        return result

    async def patiently(self, call: Call, act: Callable[[], Awaitable[_T]]) -> _T:
        """Repeat an attempt, which is one or more steps, until it succeeds or there is no point; raises the last
        Failure."""
        attempt = 1
        while True:
            try:
                return await act()
            except (Transient, Lost) as failure:
                await self.pause(call, attempt, failure)
                attempt += 1

    async def pause(self, call: Call, attempt: int, failure: Failure, *, least: float = 0.0) -> None:
        """Wait for the next attempt, `least` seconds or more; raises the failure if there is to be none."""
        seconds = retry.wait(attempt, failure, self.chance.fraction(), self.retries)
        if seconds is None or self.stop.is_set():
            raise failure
        seconds = max(seconds, least)
        self.tell(Retried(call, attempt + 1, seconds, str(failure)))
        if await self._interrupted_while_sleeping(seconds):
            raise failure

    async def _interrupted_while_sleeping(self, seconds: float) -> bool:
        sleeping = asyncio.ensure_future(self.clock.sleep(seconds))
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait((sleeping, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            stopping.cancel()
        return self.stop.is_set()
