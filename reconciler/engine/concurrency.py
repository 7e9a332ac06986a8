"""Limits how many requests are sent at once, and how many calls may be under way: more than that, since a call also
waits for the journal. The platform's budget of requests per minute is the client's business; see `api.limiter`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from reconciler.engine.ports import Check, Platform
from reconciler.model.value import Json


def extra_calls(at_once: int) -> int:
    """How many calls may be under way beyond the requests: enough for a disk that takes as long as a request.

    Where there are only a few requests at once, nothing is waited for that another call could use.
    """
    return at_once if at_once >= 4 else 0


class BoundedPlatform:
    """A platform with a limit of requests at once, first come, first served."""

    def __init__(self, platform: Platform, at_once: int) -> None:
        self._platform = platform
        self._places = asyncio.Semaphore(at_once)

    async def get(self, path: str) -> Json:
        async with self._places:
            return await self._platform.get(path)

    def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        return self._platform.pages(path, key)  # rare, after a lost answer or for owner records: it takes no place

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        async with self._places:
            return await self._platform.send(method, path, body, check=check)
