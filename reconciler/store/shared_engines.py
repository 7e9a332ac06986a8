"""Engines of servers that the members of a fleet share within a process.

Otherwise each task would connect and check the schema several times.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct, field
from sqlalchemy import Engine

from reconciler.store import database
from reconciler.store.database import Timeouts

_Key = tuple[str, Timeouts]


class _Shared(Struct):
    """An engine, which its first user opens."""

    users: int = 0
    opening: threading.Lock = field(default_factory=threading.Lock)
    opened: tuple[Engine, str] | None = None

    def close(self) -> None:
        if self.opened is not None:
            self.opened[0].dispose()


class SharedEngines:
    """Engines by URL. An unused one stays open until another one is released, or the process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engines: dict[_Key, _Shared] = {}

    def acquire(self, where: str, timeouts: Timeouts) -> tuple[Engine, str]:
        """As `database.open_database`, for threads; must be followed by `release`, unless it raises an error."""
        with self._lock:
            shared = self._engines.setdefault((where, timeouts), _Shared())
            shared.users += 1
        try:
            with shared.opening:
                if shared.opened is None:
                    shared.opened = database.open_database(where, timeouts)
                return shared.opened
        except BaseException:
            self.release(where, timeouts)
            raise

    def release(self, where: str, timeouts: Timeouts) -> None:
        """Ends one use of an engine."""
        released = (where, timeouts)
        with self._lock:
            self._engines[released].users -= 1
            unused = [key for key, shared in self._engines.items() if not shared.users]
            keeps = self._engines[released].opened is not None
            closing = [self._engines.pop(key) for key in unused if not (keeps and key == released)]
        for shared in closing:
            shared.close()

    def close(self) -> None:
        """Closes all engines, at the end of the process."""
        with self._lock:
            closing = list(self._engines.values())
            self._engines.clear()
        for shared in closing:
            shared.close()

    def forget(self) -> None:
        """Leaves all engines to the parent of this process, of which it was forked."""
        for shared in self._engines.values():
            if shared.opened is not None:
                shared.opened[0].dispose(close=False)
        self._lock, self._engines = threading.Lock(), {}


_engines = SharedEngines()
atexit.register(_engines.close)
os.register_at_fork(after_in_child=_engines.forget)


@asynccontextmanager
async def open_engine(where: str, timeouts: Timeouts, *, shared: bool) -> AsyncIterator[tuple[Engine, str]]:
    """The engine of the database at a path or URL, and its name for messages; see `database.open_database`.

    shared  use one engine for all of this process that ask so, if it is on a server
    """
    is_shared = shared and database.is_server(where)
    open_it = _engines.acquire if is_shared else database.open_database
    engine, place = await asyncio.to_thread(open_it, where, timeouts)
    try:
        yield engine, place
    finally:
        if is_shared:
            await asyncio.to_thread(_engines.release, where, timeouts)
        else:
            await asyncio.to_thread(engine.dispose)
