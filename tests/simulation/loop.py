"""An event loop with virtual time, which passes only when no task can run: hours in milliseconds, deterministic.

A task must not wait for anything outside the loop. A wait that cannot end raises `Deadlock` at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlock(AssertionError):
    """Each task waits for another one."""


class _TimeSelector(selectors.BaseSelector):
    """Instead of a wait for sockets, time advances by the timeout."""

    def __init__(self) -> None:
        self.time = 0.0
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._keys[fileobj] = key = selectors.SelectorKey(fileobj, int(fileobj), events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock("each task waits for another one")
        self.time += max(0.0, timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._nobody = _TimeSelector()
        super().__init__(self._nobody)

    def time(self) -> float:
        return self._nobody.time

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """The work from time 0 to its end; what it leaves running is cancelled."""
        self._nobody.time = 0.0
        try:
            return self.run_until_complete(work)
        finally:
            left = asyncio.all_tasks(self)
            for task in left:
                task.cancel()
            if left:
                self.run_until_complete(asyncio.gather(*left, return_exceptions=True))


class LoopClock:
    """The engine's clock, on whatever loop runs it."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
