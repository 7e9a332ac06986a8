"""Counts the requests of the last minute in a file that processes share, since the platform counts them together.

Best effort: if the file cannot be used, each process counts its own requests, and rejected requests are retried. The
cost of one request does not depend on the number of requests.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

FLIGHT = 60.0  # seconds for which a request without a response may be in flight: more than any request timeout
_POLL = 0.2  # seconds until the next attempt if only requests in flight use up the budget
_UNCOUNTED: Final = -1  # the ticket of a request that is not in the file

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS requests (ticket INTEGER PRIMARY KEY AUTOINCREMENT, moment REAL NOT NULL);
CREATE INDEX IF NOT EXISTS moments ON requests (moment);
"""
# An upper bound by two index lookups; the requests are counted only if it reaches the budget.
_AT_MOST = "SELECT 1 + (SELECT max(ticket) FROM requests) - (SELECT min(ticket) FROM requests)"


class Ledger:
    """The file: for each request when its response arrived, or for one in flight, when that will be at the latest.

    Times are those of the machine's monotonic clock, which all its processes share.

    timeout  seconds to wait for the transaction of another process
    """

    def __init__(self, file: Path, timeout: float = 1.0) -> None:
        self._file = file
        self._timeout = timeout
        self._opened: sqlite3.Connection | None = None

    def enter(self, clock: Callable[[], float], budget: int, window: float) -> tuple[int | None, float]:
        """A ticket for one request; or None, and the seconds after which to try again.

        budget  requests within any `window` of seconds
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
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            # It is used by one thread at a time, but not always by the same.
            self._opened = sqlite3.connect(
                self._file, timeout=self._timeout, isolation_level=None, check_same_thread=False
            )
            self._opened.executescript(_SCHEMA)
        return self._opened

    def _give_up(self, error: Exception) -> None:
        """Closes the file; deletes it if it is not a database, so that the next request creates it again."""
        self.close()
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


class BackgroundLedger:
    """Runs a ledger in its own thread, so that the event loop does not wait for the file.

    Responses that arrive while the thread waits are written in one transaction.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._unwritten = deque[tuple[int, float]]()

    async def enter(self, clock: Callable[[], float], budget: int, window: float) -> tuple[int | None, float]:
        """As `Ledger.enter`. If the caller is cancelled, its ticket is returned."""
        entering = self._thread.submit(self._ledger.enter, clock, budget, window)
        try:
            return await asyncio.wrap_future(entering)
        except asyncio.CancelledError:
            self._thread.submit(self._give_back, entering, clock)
            raise

    def record_answers(self, ticket: int, now: float) -> None:
        """As `Ledger.record_answers`, for one request; returns before it is written."""
        self._unwritten.append((ticket, now))
        self._thread.submit(self._write)

    async def close(self) -> None:
        """Writes what is pending, and closes the file."""
        self._thread.submit(self._ledger.close)
        await asyncio.to_thread(self._thread.shutdown)

    def _write(self) -> None:
        moments = dict[int, float]()
        while self._unwritten:
            moments.update([self._unwritten.popleft()])
        self._ledger.record_answers(moments)

    def _give_back(self, entered: Future[tuple[int | None, float]], clock: Callable[[], float]) -> None:
        if not entered.cancelled() and (ticket := entered.result()[0]) is not None:
            self._ledger.record_answers({ticket: clock()})
