"""Counts the requests of the last minute in a file that processes share, since the platform counts them together.

Best effort: if the file cannot be used, each process counts its own requests, and rejected requests are retried. The
cost of one request does not depend on the number of requests.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

FLIGHT = 60.0  # seconds for which a request without a response may be in flight: more than any request timeout
_POLL = 0.2  # seconds until the next attempt if only requests in flight use up the budget
_UNCOUNTED: Final = -1  # the ticket of a request that is not in the file
_PATIENCE = 1.0  # seconds for which another process may hold the file
_RETRY = 0.005  # seconds between attempts to have it
_GATHERING = 0.05  # seconds for which responses are gathered before they are written

_T = TypeVar("_T")

_SCHEMA = """
PRAGMA synchronous = OFF;
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS requests (ticket INTEGER PRIMARY KEY AUTOINCREMENT, moment REAL NOT NULL);
CREATE INDEX IF NOT EXISTS moments ON requests (moment);
"""
# An upper bound by two index lookups; the requests are counted only if it reaches the budget.
_AT_MOST = "SELECT 1 + (SELECT max(ticket) FROM requests) - (SELECT min(ticket) FROM requests)"


class Busy(Exception):
    """Another process holds the file."""


class Ledger:
    """The file: for each request when its response arrived, or for one in flight, when that will be at the latest.

    Times are those of the machine's monotonic clock, which all its processes share.

    timeout  seconds to wait for the transaction of another process
    """

    def __init__(self, file: Path, timeout: float = _PATIENCE) -> None:
        self._file = file
        self._timeout = timeout
        self._opened: sqlite3.Connection | None = None

    def enter(self, clock: Callable[[], float], budget: int, window: float) -> tuple[int | None, float]:
        """A ticket for one request; or None, and the seconds after which to try again.

        budget  requests within any `window` of seconds

        Raises Busy, as the other methods do.
        """
        try:
            with self._connection() as connection:
                connection.execute("BEGIN IMMEDIATE")
                now = clock()  # after the lock: another process may have entered meanwhile
                # Times far in the future are from before the machine was restarted.
                connection.execute(
                    "DELETE FROM requests WHERE moment <= ? OR moment > ?", (now - window, now + 2 * FLIGHT)
                )
                if (full := _is_full(connection, now, budget, window)) is not None:
                    return None, full
                entered = connection.execute("INSERT INTO requests (moment) VALUES (?)", (now + FLIGHT,))
                return entered.lastrowid, 0.0
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)
            return _UNCOUNTED, 0.0

    def record_answers(self, moments: Mapping[int, float]) -> None:
        """Stores when the responses to requests arrived, by ticket, in one transaction."""
        rows = [(moment, ticket) for ticket, moment in moments.items() if ticket != _UNCOUNTED]
        if not rows:
            return
        try:
            with self._connection() as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("UPDATE requests SET moment = ? WHERE ticket = ?", rows)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _connection(self) -> sqlite3.Connection:
        """The connection; as a context manager it commits, or rolls back on an exception."""
        if self._opened is None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._create()
            self._opened = sqlite3.connect(self._file, timeout=self._timeout, isolation_level=None)
            self._opened.executescript(_SCHEMA)
        return self._opened

    def _create(self) -> None:
        """Creates the file unless it exists. Raises OSError for a symlink, a pipe or a device."""
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", str(self._file))
        finally:
            os.close(descriptor)

    def _give_up(self, error: Exception) -> None:
        """Closes the file; deletes it if it is not a database, so that the next request creates it again."""
        self.close()
        if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise Busy from None
        if type(error) is sqlite3.DatabaseError:
            with suppress(OSError):
                for suffix in ("", "-wal", "-shm"):
                    self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)


def _is_full(connection: sqlite3.Connection, now: float, budget: int, window: float) -> float | None:
    """The seconds after which to try again; None if the budget is not used up."""
    (most,) = connection.execute(_AT_MOST).fetchone()
    if (most or 0) < budget:
        return None
    oldest = connection.execute(
        "SELECT moment FROM requests ORDER BY moment DESC LIMIT 1 OFFSET ?", (budget - 1,)
    ).fetchone()
    if oldest is None:
        return None
    return float(oldest[0]) + window - now if oldest[0] <= now else _POLL


class SharedLedger:
    """A ledger for an event loop, which does not wait for the file when another process holds it.

    Responses are written together, a moment later. A transaction takes less than a thread would, as nothing is synced.
    """

    def __init__(self, file: Path) -> None:
        self._ledger = Ledger(file, timeout=0.0)
        self._unwritten = dict[int, float]()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, clock: Callable[[], float], budget: int, window: float) -> tuple[int | None, float]:
        """As `Ledger.enter`, but does not raise Busy: then the request is not counted."""

        def enter() -> tuple[int | None, float]:
            self._write()
            return self._ledger.enter(clock, budget, window)

        return await _try_until_free(enter) or (_UNCOUNTED, 0.0)

    def record_answers(self, ticket: int, now: float) -> None:
        """As `Ledger.record_answers`, for one request; returns before it is written."""
        self._unwritten[ticket] = now
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_GATHERING, self._write_later)

    async def close(self) -> None:
        """Writes what is pending, and closes the file."""
        if self._timer is not None:
            self._timer.cancel()
        await _try_until_free(self._write)
        self._ledger.close()

    def _write_later(self) -> None:
        self._timer = None
        try:
            self._write()
        except Busy:
            self._timer = asyncio.get_running_loop().call_later(_GATHERING, self._write_later)

    def _write(self) -> None:
        if self._unwritten:
            self._ledger.record_answers(self._unwritten)
            self._unwritten.clear()


async def _try_until_free(act: Callable[[], _T]) -> _T | None:
    """The result of an action on the file; None if other processes held it for too long."""
    for _ in range(int(_PATIENCE / _RETRY)):
        with suppress(Busy):
            return act()
        await asyncio.sleep(_RETRY)
    return None
