"""The machine's clock and random numbers, as the engine's ports."""

from __future__ import annotations

import base64
import random
import secrets
import time


class MachineClock:
    def now(self) -> float:
        """Goes on while the machine sleeps, unlike `time.monotonic`: so do the platform and its other users."""
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

    async def sleep(self, seconds: float) -> None:
        import asyncio  # 30 ms of the start of a command that never sleeps

        await asyncio.sleep(seconds)


class MachineRandom:
    def intent(self) -> str:
        return base64.b32encode(secrets.token_bytes(10)).decode().lower()  # 10 bytes are 16 characters, without padding

    def fraction(self) -> float:
        return random.random()  # noqa: S311 - jitter guards no secret
