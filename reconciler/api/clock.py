"""The machine's clock and random numbers, as the engine's ports."""

from __future__ import annotations

import base64
import random
import secrets
import time


class MachineClock:
    def now(self) -> float:
        """Monotonic seconds, including the time for which the machine sleeps, which `time.monotonic` excludes."""
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

    async def sleep(self, seconds: float) -> None:
        import asyncio  # 30 ms, which most commands do not need

        await asyncio.sleep(seconds)


class MachineRandom:
    def intent(self) -> str:
        return base64.b32encode(secrets.token_bytes(10)).decode().lower()  # 10 bytes are 16 characters, without padding

    def fraction(self) -> float:
        return random.random()  # noqa: S311 - jitter needs no secure randomness
