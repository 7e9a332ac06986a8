"""The real-time clock of a sandbox."""

from __future__ import annotations

import asyncio
import time


class LoopClock:
    """Sleeps on the running event loop."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds - 0.0005))  # the event loop wakes up to 1 ms late
