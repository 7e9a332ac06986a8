"""Keeps all requests of a run within the platform's budget: so many in any window of so many seconds.

First come, first served. A request counts from the moment it leaves until a whole window after its answer, because the
platform counts it at some moment in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.engine import retry
from reconciler.engine.ports import Clock, Transient

if TYPE_CHECKING:
    from reconciler.api.budget import BackgroundLedger

WINDOW = 60.0  # seconds; the platform counts requests per rolling minute
_INSTANT = 1e-6  # seconds; sums of floats that differ by less are the same time, or a sleep could end short for ever


@dataclass
class Slot:
    """Room for requests, of which so many were `used`."""

    used: int


class Limiter:
    """`budget` requests per window; 0: no limit. `on_wait` hears how long everybody has to wait.

    With a ledger the requests of other processes count as well.
    """

    def __init__(
        self,
        budget: int,
        clock: Clock,
        *,
        window: float = WINDOW,
        on_wait: Callable[[float], None] | None = None,
        ledger: BackgroundLedger | None = None,
    ) -> None:
        self._ledger = ledger if budget else None
        self._budget = budget
        self._clock = clock
        self._window = window
        self._on_wait = on_wait or (lambda seconds: None)
        self._turn = asyncio.Lock()  # wakes waiters in the order they came
        self._in_flight = 0
        self._answered: deque[float] = deque()
        self._new_answer = asyncio.Event()
        self._held_until = float("-inf")

    @asynccontextmanager
    async def slot(self, requests: int = 1) -> AsyncIterator[Slot]:
        """Room for so many requests, one after the other, from sending the first to the answer to the last."""
        requests = min(requests, self._budget or requests)
        tickets: list[int | None] = []
        slot = Slot(0)
        try:
            async with self._turn:
                while len(tickets) < requests:
                    tickets.append(await self._wait_for_room(requests - len(tickets)))
                    self._in_flight += 1
            slot.used = requests
            yield slot
        finally:
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
        """Lets nothing leave for so many seconds, as the platform asked; if that is too long, requests fail at once."""
        self._held_until = max(self._held_until, self._clock.now() + seconds)

    async def _wait_for_room(self, requests: int) -> int | None:
        """Waits for room for so many requests. The ledger's ticket for one of them, None where there is no ledger."""
        while True:
            now = self._clock.now()
            while self._answered and self._answered[0] + self._window <= now + _INSTANT:
                self._answered.popleft()
            if (held := self._held_until - now) > retry.READS.patience:
                raise Transient(f"the platform asks for a wait of {held:.0f} s", status=429, retry_after=held)
            if held > _INSTANT:
                await self._sleep(held)
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
