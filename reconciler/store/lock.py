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
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Engine,
    Float,
    Insert,
    Row,
    Select,
    Update,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from reconciler.store import database, schema
from reconciler.store.clock import SERVER_CLOCK, is_server
from reconciler.store.errors import Locked, LockLost, StoreError
from reconciler.store.statements import execute

LOCK_SECONDS = 60.0  # seconds without a heartbeat after which another run may acquire the lock

_LOCKS = schema.locks
_IS_STACK = _LOCKS.c.stack == bindparam("of")
_IS_OURS = and_(_IS_STACK, _LOCKS.c.holder == bindparam("token"))
_FIND = select(_LOCKS).where(_IS_STACK)
_RELEASE = delete(_LOCKS).where(_IS_OURS)


class _Statements(Struct, frozen=True):
    """Those that compare times, of a file or of a server. Parameters: `now` of a file, and `lasts` in seconds."""

    acquire: Insert
    take_over: Update  # `dead`: a holder that no longer exists; empty: none
    renew: Update
    explain: Select[Any]


@cache
def _statements(*, is_server: bool) -> _Statements:
    moment = SERVER_CLOCK if is_server else bindparam("now", type_=Float)
    lasts = bindparam("lasts", type_=Float)
    content: dict[str, ColumnElement[Any]] = {name: bindparam(name) for name in ("holder", "host", "machine", "pid")}
    content |= {"since": moment, "expires": moment + lasts}
    expires = _LOCKS.c.expires
    # A lock that expires far in the future was written with a wrong clock.
    expired = or_(expires <= moment, expires > moment + 10 * lasts, _LOCKS.c.holder == bindparam("dead"))
    return _Statements(
        insert(_LOCKS).values(stack=bindparam("of"), **content),
        update(_LOCKS).where(_IS_STACK, expired).values(**content),
        update(_LOCKS).where(_IS_OURS).values(expires=moment + lasts),
        select(_LOCKS, (expires - moment).label("left")).where(_IS_STACK),
    )


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
        holder, times = self.holder, self._times
        process = {"host": holder.host, "machine": holder.machine, "pid": holder.pid}
        content = {"of": self.stack, "holder": holder.token, **process, **times}
        with database.explain_errors(self.place):
            row = self._find_row()
            if row is not None and self._take_over(row, content):
                return
            try:
                with self.engine.begin() as connection:
                    execute(connection, self._statements.acquire, content)
            except IntegrityError as failure:
                raise self._explain_refusal(times) from failure

    def _take_over(self, row: Row[Any], content: Mapping[str, Any]) -> bool:
        """Acquires the lock if it has expired, or its holder is dead. Returns whether it did."""
        dead = row.holder if self._is_dead(row) else ""
        with self.engine.begin() as connection:
            return execute(connection, self._statements.take_over, {**content, "dead": dead}).rowcount == 1

    def renew(self) -> None:
        """Extends the lock; raises LockLost if another run acquired it."""
        with database.explain_errors(self.place), self.engine.begin() as connection:
            if not execute(connection, self._statements.renew, {**self._ours, **self._times}).rowcount:
                raise LockLost(self.title)

    def release(self) -> None:
        """Deletes the lock, if this process still holds it."""
        with database.explain_errors(self.place), self.engine.begin() as connection:
            execute(connection, _RELEASE, self._ours)

    @property
    def _statements(self) -> _Statements:
        return _statements(is_server=is_server(self.engine))

    @property
    def _ours(self) -> Mapping[str, Any]:
        return {"of": self.stack, "token": self.holder.token}

    @property
    def _times(self) -> Mapping[str, float]:
        """The parameters for times. A server uses its own clock."""
        return {"lasts": self.lasts} if is_server(self.engine) else {"lasts": self.lasts, "now": self.now()}

    def _find_row(self) -> Row[Any] | None:
        with self.engine.connect() as connection:
            return execute(connection, _FIND, {"of": self.stack}).first()

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

    def _explain_refusal(self, times: Mapping[str, float]) -> Locked:
        with self.engine.connect() as connection:
            row = execute(connection, self._statements.explain, {"of": self.stack, **times}).first()
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
