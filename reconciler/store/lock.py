"""One run at a time per stack. The lock lives by its heartbeat and dies by itself: nobody ever unlocks by hand."""

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

from sqlalchemy import ColumnElement, Engine, Float, cast, delete, extract, func, insert, literal, or_, select, update
from sqlalchemy.exc import IntegrityError

from reconciler.store import database, schema
from reconciler.store.errors import Locked, LockLost, StoreError

LASTS = 60.0  # seconds without a heartbeat until anybody may take the lock over


@dataclass(frozen=True, slots=True)
class Holder:
    """Who wants the lock, or has it."""

    token: str
    host: str
    machine: str
    pid: int

    @classmethod
    def this_process(cls) -> Holder:
        return cls(secrets.token_hex(8), socket.gethostname(), _machine(), os.getpid())


@asynccontextmanager
async def held(
    engine: Engine,
    place: str,
    stack: str,
    *,
    on_loss: Callable[[StoreError], None],
    lasts: float = LASTS,
    now: Callable[[], float] = time.time,
    holder: Holder | None = None,
) -> AsyncIterator[Holder]:
    """The stack's lock, until the end of the block. Raises Locked, naming the holder, while somebody else has it.

    `on_loss` is called when the lock cannot be kept: then no further change may be started.
    """
    mine = holder or Holder.this_process()
    acquiring = asyncio.ensure_future(asyncio.to_thread(_acquire, engine, place, stack, mine, lasts, now))
    try:
        await asyncio.shield(acquiring)
    except asyncio.CancelledError:
        # The thread cannot be stopped: what it gets is given back.
        await asyncio.gather(acquiring, return_exceptions=True)
        await asyncio.to_thread(_release, engine, place, stack, mine)
        raise
    beat = asyncio.ensure_future(_beat(engine, place, stack, mine, lasts, now, on_loss))
    try:
        yield mine
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)
        with suppress(StoreError):  # it expires by itself, and what the block came to is worth more
            await asyncio.to_thread(_release, engine, place, stack, mine)


def _acquire(engine: Engine, place: str, stack: str, mine: Holder, lasts: float, now: Callable[[], float]) -> None:
    lock = schema.locks
    moment = _moment(engine, now)
    content = {
        "holder": mine.token,
        "host": mine.host,
        "machine": mine.machine,
        "pid": mine.pid,
        "since": moment,
        "expires": moment + lasts,
    }
    with database.explained(place):
        dead = _dead_holder(engine, stack, mine)
        with engine.begin() as connection:
            # A lock that ends far in the future was written by a clock that was wrong.
            expired = or_(lock.c.expires <= moment, lock.c.expires > moment + 10 * lasts, lock.c.holder == dead)
            if connection.execute(update(lock).where(lock.c.stack == stack, expired).values(**content)).rowcount:
                return
        try:
            with engine.begin() as connection:
                connection.execute(insert(lock).values(stack=stack, **content))
        except IntegrityError as failure:
            raise _refusal(engine, stack, moment) from failure


def _moment(engine: Engine, now: Callable[[], float]) -> ColumnElement[float]:
    """Seconds since 1970, for a statement. Who shares a server shares its clock: any other may be wrong."""
    if engine.dialect.name == "postgresql":
        return cast(extract("epoch", func.clock_timestamp()), Float)
    return literal(now(), Float)


def _dead_holder(engine: Engine, stack: str, mine: Holder) -> str:
    """The token of a holder that is surely dead: a process of this very machine that exists no more."""
    with engine.connect() as connection:
        row = connection.execute(select(schema.locks).where(schema.locks.c.stack == stack)).first()
    if row is None or row.machine != mine.machine or row.pid == mine.pid:
        return ""
    try:
        os.kill(row.pid, 0)
    except ProcessLookupError:
        return str(row.holder)
    except OSError:
        return ""
    return ""


def _refusal(engine: Engine, stack: str, moment: ColumnElement[float]) -> Locked:
    lock = schema.locks
    with engine.connect() as connection:
        held_by = select(lock, (lock.c.expires - moment).label("left")).where(lock.c.stack == stack)
        row = connection.execute(held_by).first()
    if row is None:
        return Locked(stack, "some host", 0, "just now", 1.0)  # released while we looked
    since = datetime.fromtimestamp(row.since, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Locked(stack, row.host, row.pid, since, row.left)


async def _beat(
    engine: Engine,
    place: str,
    stack: str,
    mine: Holder,
    lasts: float,
    now: Callable[[], float],
    on_loss: Callable[[StoreError], None],
) -> None:
    kept = now()
    while True:
        await asyncio.sleep(lasts / 4)
        try:
            await asyncio.to_thread(_renew, engine, place, stack, mine, _moment(engine, now) + lasts)
            kept = now()
        except StoreError as failure:
            # A database that is busy or away for a moment leaves time for another beat.
            if isinstance(failure, LockLost) or now() - kept > lasts / 2:
                on_loss(failure)
                return


def _renew(engine: Engine, place: str, stack: str, mine: Holder, expires: ColumnElement[float]) -> None:
    lock = schema.locks
    with database.explained(place), engine.begin() as connection:
        ours = update(lock).where(lock.c.stack == stack, lock.c.holder == mine.token)
        if not connection.execute(ours.values(expires=expires)).rowcount:
            raise LockLost(stack)


def _release(engine: Engine, place: str, stack: str, mine: Holder) -> None:
    lock = schema.locks
    with database.explained(place), engine.begin() as connection:
        connection.execute(delete(lock).where(lock.c.stack == stack, lock.c.holder == mine.token))


def _machine() -> str:
    """Host name, boot and process namespace: within the same three, a process id means the same process."""
    parts = [socket.gethostname()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:
        parts.append(secrets.token_hex(8))  # not to be told apart: then only expiry frees the lock
    return " ".join(parts)
