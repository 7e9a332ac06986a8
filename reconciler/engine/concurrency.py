"""Limits how many requests are sent at once, and how many calls may run: more calls than requests, since a call also
waits for the journal. The budget of requests per minute is enforced in `api.limiter`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from reconciler.engine.ports import Check, Platform
from reconciler.model.value import Json


def extra_calls(limit: int) -> int:
    """Calls that may run beyond the limit of requests: as many again, for a disk as slow as the platform.

    0 with fewer than four requests at once: there it would gain nothing.
    """
    return limit if limit >= 4 else 0


class BoundedPlatform:
    """A platform that sends at most `limit` requests at once, in the order in which they were made."""

    def __init__(self, platform: Platform, limit: int) -> None:
        self._platform = platform
        self._slots = asyncio.Semaphore(limit)

    async def get(self, path: str) -> Json:
        async with self._slots:
            return await self._platform.get(path)

    def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        return self._platform.pages(path, key)  # rare: after a lost response or for owner records; not limited

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        if check is not None:
            await check.prepare()  # other requests are sent while a list is read
        async with self._slots:
            return await self._platform.send(method, path, body, check=check)
