"""The lock of a stack: one run at a time. It expires without its heartbeat, so nobody ever has to unlock by hand."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import (
    ColumnElement,
    Engine,
    Float,
    and_,
    cast,
    delete,
    extract,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from reconciler.store import database, schema
from reconciler.store.errors import Locked, LockLost, StoreError

_LOCKS = schema.locks
LOCK_SECONDS = 60.0  # seconds without a heartbeat until anybody may take the lock over


@dataclass(frozen=True, slots=True)
class Holder:
    """Who wants the lock, or has it."""

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
) -> AsyncIterator[Holder]:
    """The stack's lock, until the end of the block. Raises Locked, naming the holder, while somebody else has it.

    `on_loss` is called when the lock cannot be kept: then no further change may be started.
    """
    row = _LockRow(engine, place, stack, holder or Holder.this_process(), lasts, now)
    acquiring = asyncio.ensure_future(asyncio.to_thread(row.acquire))
    try:
        await asyncio.shield(acquiring)
    except asyncio.CancelledError:
        # The thread cannot be stopped: what it gets is given back.
        await asyncio.gather(acquiring, return_exceptions=True)
        await asyncio.to_thread(row.release)
        raise
    beat = asyncio.ensure_future(_renew_until_lost(row, on_loss))
    try:
        yield row.holder
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)
        with suppress(StoreError):  # it expires by itself, and what the block came to is worth more
            await asyncio.to_thread(row.release)


async def _renew_until_lost(row: _LockRow, on_loss: Callable[[StoreError], None]) -> None:
    kept = row.now()
    while True:
        await asyncio.sleep(row.lasts / 4)
        try:
            await asyncio.to_thread(row.renew)
            kept = row.now()
        except StoreError as failure:
            # A database that is busy or away for a moment leaves time for another beat.
            if isinstance(failure, LockLost) or row.now() - kept > row.lasts / 2:
                on_loss(failure)
                return


@dataclass(frozen=True, slots=True)
class _LockRow:
    """The row of one stack's lock, as one holder acquires, renews and releases it. Each method is a transaction."""

    engine: Engine
    place: str
    stack: str
    holder: Holder
    lasts: float
    now: Callable[[], float]

    def acquire(self) -> None:
        """Raises Locked while somebody else has it."""
        moment, mine = self._now_expression(), self.holder
        content = {
            "holder": mine.token,
            "host": mine.host,
            "machine": mine.machine,
            "pid": mine.pid,
            "since": moment,
            "expires": moment + self.lasts,
        }
        with database.explain_errors(self.place):
            dead = self._find_dead_holder()
            with self.engine.begin() as connection:
                # A lock that ends far in the future was written by a clock that was wrong.
                expires = _LOCKS.c.expires
                expired = or_(expires <= moment, expires > moment + 10 * self.lasts, _LOCKS.c.holder == dead)
                taking = update(_LOCKS).where(_LOCKS.c.stack == self.stack, expired).values(**content)
                if connection.execute(taking).rowcount:
                    return
            try:
                with self.engine.begin() as connection:
                    connection.execute(insert(_LOCKS).values(stack=self.stack, **content))
            except IntegrityError as failure:
                raise self._explain_refusal(moment) from failure

    def renew(self) -> None:
        """Raises LockLost if it is not ours any more."""
        with database.explain_errors(self.place), self.engine.begin() as connection:
            renewal = update(_LOCKS).where(self._is_ours).values(expires=self._now_expression() + self.lasts)
            if not connection.execute(renewal).rowcount:
                raise LockLost(self.stack)

    def release(self) -> None:
        with database.explain_errors(self.place), self.engine.begin() as connection:
            connection.execute(delete(_LOCKS).where(self._is_ours))

    @property
    def _is_ours(self) -> ColumnElement[bool]:
        return and_(_LOCKS.c.stack == self.stack, _LOCKS.c.holder == self.holder.token)

    def _now_expression(self) -> ColumnElement[float]:
        """Seconds since 1970, for a statement. Who shares a server shares its clock: any other may be wrong."""
        if self.engine.dialect.name == "postgresql":
            return cast(extract("epoch", func.clock_timestamp()), Float)
        return literal(self.now(), Float)

    def _find_dead_holder(self) -> str:
        """The token of a holder that is surely dead: a process of this very machine that exists no more."""
        with self.engine.connect() as connection:
            row = connection.execute(select(_LOCKS).where(_LOCKS.c.stack == self.stack)).first()
        if row is None or row.machine != self.holder.machine or row.pid == self.holder.pid:
            return ""
        try:
            os.kill(row.pid, 0)
        except ProcessLookupError:
            return str(row.holder)
        except OSError:
            return ""
        return ""

    def _explain_refusal(self, moment: ColumnElement[float]) -> Locked:
        with self.engine.connect() as connection:
            held_by = select(_LOCKS, (_LOCKS.c.expires - moment).label("left")).where(_LOCKS.c.stack == self.stack)
            row = connection.execute(held_by).first()
        if row is None:
            return Locked(self.stack, "some host", 0, "just now", 1.0)  # released while we looked
        since = datetime.fromtimestamp(row.since, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return Locked(self.stack, row.host, row.pid, since, row.left)


def _machine_id() -> str:
    """Host name, boot and process namespace: within the same three, a process id means the same process."""
    parts = [socket.gethostname()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:
        parts.append(secrets.token_hex(8))  # not to be told apart: then only expiry frees the lock
    return " ".join(parts)
