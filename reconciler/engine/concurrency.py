"""Keeps to so many requests at once, while a few more calls may be under way: those wait for the journal, not for the
platform. Knows nothing of calls, and of the platform's budget; see the client's limiter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from reconciler.engine.ports import Check, Platform
from reconciler.model.value import Json


def ahead(at_once: int) -> int:
    """How many calls may be under way beyond the requests: enough for a disk that takes as long as a request.

    Where there are only a few requests at once, nothing is waited for that another call could use.
    """
    return at_once if at_once >= 4 else 0


class Paced:
    """A platform that is sent so many requests at once, first come, first served."""

    def __init__(self, platform: Platform, at_once: int) -> None:
        self._platform = platform
        self._places = asyncio.Semaphore(at_once)

    async def get(self, path: str) -> Json:
        async with self._places:
            return await self._platform.get(path)

    def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        return self._platform.pages(path, key)  # a look in an emergency: it holds no place while others go on

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        async with self._places:
            return await self._platform.send(method, path, body, check=check)
