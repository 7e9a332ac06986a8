"""The lock of a stack or of a fleet's task, which one process holds at a time.

It expires without a heartbeat: no manual unlock is needed.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Engine,
    Row,
    and_,
    delete,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from reconciler.store import database, schema
from reconciler.store.clock import now_expression
from reconciler.store.errors import Locked, LockLost, StoreError

_LOCKS = schema.locks
LOCK_SECONDS = 60.0  # seconds without a heartbeat after which another run may acquire the lock


class Holder(Struct, frozen=True):
    """A process that acquires the lock.

    token    random, new for each acquisition
    machine  host name, boot id and process namespace: within one machine a process id is unique
    """

    token: str
    host: str
    machine: str
    pid: int

    @classmethod
    def this_process(cls) -> Holder:
        return cls(secrets.token_hex(8), socket.gethostname(), _machine_id(), os.getpid())


@asynccontextmanager
async def hold_lock(
    engine: Engine,
    place: str,
    stack: str,
    *,
    on_loss: Callable[[StoreError], None],
    lasts: float = LOCK_SECONDS,
    now: Callable[[], float] = time.time,
    holder: Holder | None = None,
    title: str = "",
    doing: str = "applied",
) -> AsyncIterator[Holder]:
    """Holds the stack's lock until the end of the block. Raises Locked, with the holder, if another process holds it.

    on_loss  called if the lock cannot be renewed: then no further change may be started
    lasts    seconds after which the lock expires without a heartbeat
    title    what is locked, for messages; empty: the stack
    doing    what its holder does with it, for messages
    """
    row = _LockRow(engine, place, stack, title or f"stack {stack}", doing, holder or Holder.this_process(), lasts, now)
    acquiring = asyncio.ensure_future(asyncio.to_thread(row.acquire))
    try:
        await asyncio.shield(acquiring)
    except asyncio.CancelledError:
        # The thread cannot be stopped: a lock that it acquires is released.
        await asyncio.gather(acquiring, return_exceptions=True)
        await asyncio.to_thread(row.release)
        raise
    beat = asyncio.ensure_future(_renew_until_lost(row, on_loss))
    try:
        yield row.holder
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)
        with suppress(StoreError):  # the lock expires anyway, and the result of the block matters more
            await asyncio.to_thread(row.release)


async def _renew_until_lost(row: _LockRow, on_loss: Callable[[StoreError], None]) -> None:
    """Renews the lock four times in its duration; calls `on_loss` once if that fails."""
    renewed = row.now()
    while True:
        await asyncio.sleep(row.lasts / 4)
        try:
            await asyncio.to_thread(row.renew)
            renewed = row.now()
        except StoreError as failure:
            # If the database is busy or unreachable for a moment, there is time for another attempt.
            if isinstance(failure, LockLost) or row.now() - renewed > row.lasts / 2:
                on_loss(failure)
                return


class _LockRow(Struct, frozen=True):
    """The lock of one stack, as one holder acquires, renews and releases it. Each method is one transaction."""

    engine: Engine
    place: str
    stack: str
    title: str  # what is locked
    doing: str  # what is done with it
    holder: Holder
    lasts: float
    now: Callable[[], float]

    def acquire(self) -> None:
        """Acquires the lock; raises Locked if another process holds it."""
        moment, holder = now_expression(self.engine, self.now), self.holder
        content = {
            "holder": holder.token,
            "host": holder.host,
            "machine": holder.machine,
            "pid": holder.pid,
            "since": moment,
            "expires": moment + self.lasts,
        }
        with database.explain_errors(self.place):
            row = self._find_row()
            if row is not None and self._take_over(row, moment, content):
                return
            try:
                with self.engine.begin() as connection:
                    connection.execute(insert(_LOCKS).values(stack=self.stack, **content))
            except IntegrityError as failure:
                raise self._explain_refusal(moment) from failure

    def _take_over(self, row: Row[Any], moment: ColumnElement[float], content: Mapping[str, Any]) -> bool:
        """Acquires the lock if it has expired, or its holder is dead. Returns whether it did."""
        # A lock that expires far in the future was written with a wrong clock.
        expires = _LOCKS.c.expires
        expired = or_(expires <= moment, expires > moment + 10 * self.lasts)
        if self._is_dead(row):
            expired = or_(expired, _LOCKS.c.holder == row.holder)
        takeover = update(_LOCKS).where(_LOCKS.c.stack == self.stack, expired).values(**content)
        with self.engine.begin() as connection:
            return connection.execute(takeover).rowcount == 1

    def renew(self) -> None:
        """Extends the lock; raises LockLost if another run acquired it."""
        with database.explain_errors(self.place), self.engine.begin() as connection:
            renewal = (
                update(_LOCKS).where(self._is_ours).values(expires=now_expression(self.engine, self.now) + self.lasts)
            )
            if not connection.execute(renewal).rowcount:
                raise LockLost(self.title)

    def release(self) -> None:
        """Deletes the lock, if this process still holds it."""
        with database.explain_errors(self.place), self.engine.begin() as connection:
            connection.execute(delete(_LOCKS).where(self._is_ours))

    @property
    def _is_ours(self) -> ColumnElement[bool]:
        return and_(_LOCKS.c.stack == self.stack, _LOCKS.c.holder == self.holder.token)

    def _find_row(self) -> Row[Any] | None:
        with self.engine.connect() as connection:
            return connection.execute(select(_LOCKS).where(_LOCKS.c.stack == self.stack)).first()

    def _is_dead(self, row: Row[Any]) -> bool:
        """Whether the holder is a process of this machine that no longer exists."""
        if row.machine != self.holder.machine or row.pid == self.holder.pid:
            return False
        try:
            os.kill(row.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass
        return False

    def _explain_refusal(self, moment: ColumnElement[float]) -> Locked:
        with self.engine.connect() as connection:
            query = select(_LOCKS, (_LOCKS.c.expires - moment).label("left")).where(_LOCKS.c.stack == self.stack)
            row = connection.execute(query).first()
        if row is None:
            return Locked(self.title, self.doing, "some host", 0, "just now", 1.0)  # released in the meantime
        since = datetime.fromtimestamp(row.since, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return Locked(self.title, self.doing, row.host, row.pid, since, row.left)


def _machine_id() -> str:
    """Host name, boot id and process namespace: where these are equal, a process id means the same process."""
    parts = [socket.gethostname()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:
        parts.append(secrets.token_hex(8))  # unknown: then a lock of a dead process only expires
    return " ".join(parts)
