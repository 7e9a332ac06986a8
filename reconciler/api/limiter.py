"""Limits the requests of a run to the platform's budget within any window of seconds, in the order of arrival.

A request counts from the moment it is sent until one window after its response, because the platform counts it at some
moment in between. How many requests the platform accepts at once is not known until it refuses one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler.engine import retry
from reconciler.engine.ports import Clock, Transient

if TYPE_CHECKING:
    from reconciler.api.budget import SharedLedger

WINDOW = 60.0  # seconds; the platform counts requests per rolling minute
_INSTANT = 1e-6  # seconds; smaller differences are rounding errors, which would cause an endless loop of sleeps


class Slot(Struct):
    """Requests that were admitted together, and how many of them were sent."""

    used: int


class Limiter:
    """Admits requests.

    budget   requests per window; 0: no limit
    window   seconds
    on_wait  called with the seconds that all requests have to wait
    ledger   counts the requests of other processes too
    spent    requests that others sent for the account before: seconds ago, and their number
    """

    def __init__(
        self,
        budget: int,
        clock: Clock,
        *,
        window: float = WINDOW,
        on_wait: Callable[[float], None] | None = None,
        ledger: SharedLedger | None = None,
        spent: Sequence[tuple[float, int]] = (),
    ) -> None:
        self._ledger = ledger if budget else None
        self._budget = budget
        self._clock = clock
        self._window = window
        self._on_wait = on_wait or (lambda seconds: None)
        self._turn = asyncio.Lock()  # wakes waiting requests in their order
        self._in_flight = 0
        self._answered: deque[float] = deque()
        for ago, number in sorted(spent, reverse=True):  # oldest first
            self._answered.extend([clock.now() - ago] * min(number, budget))
        self._new_answer = asyncio.Event()
        self._held_until = float("-inf")
        self._running = 0
        self._at_once = 0  # requests; 0: no limit
        self._narrow_until = float("-inf")

    @asynccontextmanager
    async def slot(self, requests: int = 1) -> AsyncIterator[Slot]:
        """Admits this number of requests, sent one after the other; the block covers all of them."""
        requests = min(requests, self._budget or requests)
        tickets: list[int | None] = []
        slot = Slot(0)
        is_running = False
        try:
            async with self._turn:
                await self._wait_for_others()
                is_running = True
                self._running += 1
                while len(tickets) < requests:
                    tickets.append(await self._wait_for_room(requests - len(tickets)))
                    self._in_flight += 1
            slot.used = requests
            yield slot
        finally:
            self._running -= is_running
            self._in_flight -= len(tickets)
            self._end(tickets, slot.used)

    def _end(self, tickets: Sequence[int | None], used: int) -> None:
        now = self._clock.now()
        for number, ticket in enumerate(tickets):
            if self._ledger and ticket is not None:
                self._ledger.record_answers(ticket, now if number < used else now - self._window)
        if self._budget:
            self._answered.extend([now] * used)
        self._new_answer.set()

    def hold(self, seconds: float) -> None:
        """Delays all requests, as a Retry-After asks. If that is longer than the patience for reads, requests fail."""
        self._held_until = max(self._held_until, self._clock.now() + seconds)

    def narrow(self) -> None:
        """Sends fewer requests at once for one window, since the platform refused one for their number."""
        fewer = max(1, self._running - 1)
        self._at_once = min(self._at_once or fewer, fewer)
        self._narrow_until = self._clock.now() + self._window

    async def _wait_for_others(self) -> None:
        while self._at_once and self._running >= self._at_once:
            if self._clock.now() >= self._narrow_until:
                self._at_once = 0
                return
            self._new_answer.clear()
            await self._new_answer.wait()

    async def _wait_for_room(self, requests: int) -> int | None:
        """Waits until this number of requests fits into the budget; returns the ledger's ticket for one, or None."""
        while True:
            now = self._clock.now()
            while self._answered and self._answered[0] + self._window <= now + _INSTANT:
                self._answered.popleft()
            if (delay := self._held_until - now) > retry.READS.patience:
                raise Transient(f"the platform asks for a wait of {delay:.0f} s", status=429, retry_after=delay)
            if delay > _INSTANT:
                await self._sleep(delay)
            elif not self._budget or self._in_flight + len(self._answered) + requests <= self._budget:
                ticket, wait = None, 0.0
                if self._ledger:
                    ticket, wait = await self._ledger.enter(self._clock.now, self._budget - requests + 1, self._window)
                if not wait:
                    return ticket
                await self._sleep(wait)
            elif self._answered:
                await self._sleep(self._answered[0] + self._window - now)
            else:
                self._new_answer.clear()
                await self._new_answer.wait()

    async def _sleep(self, seconds: float) -> None:
        self._on_wait(seconds)
        await self._clock.sleep(seconds)
