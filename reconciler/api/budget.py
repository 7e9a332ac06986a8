"""The requests of the last minute in a file that several processes share: the platform counts them all together.

A convenience, never a duty: where the file cannot be had or read, each process counts its own, and what the platform
turns away is tried again. What one request costs here does not grow with how many there were.
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

FLIGHT = 60.0  # seconds for which a request that was never answered may be on its way: more than any deadline of ours
_GLANCE = 0.2  # seconds until another look, where only requests on their way stand before us
_UNCOUNTED: Final = -1  # the ticket of a request that no ledger knows of

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS requests (ticket INTEGER PRIMARY KEY AUTOINCREMENT, moment REAL NOT NULL);
CREATE INDEX IF NOT EXISTS moments ON requests (moment);
"""
# No fewer than there are, told by two looks; only where that may be too many are they counted.
_AT_MOST = "SELECT 1 + (SELECT max(ticket) FROM requests) - (SELECT min(ticket) FROM requests)"


class Ledger:
    """When each request was answered; for one on its way, when that must have been at the latest.

    Moments are of the machine's monotonic clock, which all its processes share. `timeout` is in seconds: for another
    process to end its transaction, which takes far less.
    """

    def __init__(self, file: Path, timeout: float = 1.0) -> None:
        self._file = file
        self._timeout = timeout
        self._opened: sqlite3.Connection | None = None

    def enter(self, clock: Callable[[], float], budget: int, window: float) -> tuple[int | None, float]:
        """A ticket for one request; or no ticket, and the seconds after which to ask again."""
        try:
            with self._connection() as connection:
                connection.execute("BEGIN IMMEDIATE")
                now = clock()  # not before: another process may have entered while we waited for the file
                # Far later ones than can be are from before the machine started.
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
        """When the requests with these tickets were answered; one transaction for all of them."""
        told = [(moment, ticket) for ticket, moment in moments.items() if ticket != _UNCOUNTED]
        if not told:
            return
        try:
            with self._connection() as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("UPDATE requests SET moment = ? WHERE ticket = ?", told)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _connection(self) -> sqlite3.Connection:
        """Commits at the end of a `with`, or takes back."""
        if self._opened is None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            # One thread at a time uses it, and not always the same one.
            self._opened = sqlite3.connect(
                self._file, timeout=self._timeout, isolation_level=None, check_same_thread=False
            )
            self._opened.executescript(_SCHEMA)
        return self._opened

    def _give_up(self, error: Exception) -> None:
        """What is no database any more, or never was, is made anew by the next request."""
        self.close()
        if type(error) is sqlite3.DatabaseError:
            with suppress(OSError):
                for suffix in ("", "-wal", "-shm"):
                    self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)


def _is_full(connection: sqlite3.Connection, now: float, budget: int, window: float) -> float | None:
    """The seconds after which to ask again; None if there is room."""
    (most,) = connection.execute(_AT_MOST).fetchone()
    if (most or 0) < budget:
        return None
    oldest = connection.execute(
        "SELECT moment FROM requests ORDER BY moment DESC LIMIT 1 OFFSET ?", (budget - 1,)
    ).fetchone()
    if oldest is None:
        return None
    return float(oldest[0]) + window - now if oldest[0] <= now else _GLANCE


class BackgroundLedger:
    """Runs a ledger in a thread of its own: while another process holds the file, the event loop goes on.

    Answers that arrive while the thread waits for the file are written together, so that the wait is not multiplied.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._unwritten = deque[tuple[int, float]]()

    async def enter(self, clock: Callable[[], float], budget: int, window: float) -> tuple[int | None, float]:
        """As `Ledger.enter`. A ticket that nobody waits for any more is given back."""
        entering = self._thread.submit(self._ledger.enter, clock, budget, window)
        try:
            return await asyncio.wrap_future(entering)
        except asyncio.CancelledError:
            self._thread.submit(self._give_back, entering, clock)
            raise

    def record_answers(self, ticket: int, now: float) -> None:
        """As `Ledger.answered`, for one request; returns before it is written."""
        self._unwritten.append((ticket, now))
        self._thread.submit(self._write)

    async def close(self) -> None:
        """Writes what is still to be written, and closes the file."""
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
