"""An open store: reads what earlier runs stored, opens the journal of a run, and holds the lock of a stack."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from sqlalchemy import Engine, Executable, bindparam, insert, update

from reconciler.store import database, lock, schema
from reconciler.store.database import EngineSession, Timeouts
from reconciler.store.errors import StoreError
from reconciler.store.journal import StoreJournal, seconds_since_start
from reconciler.store.lock import Holder
from reconciler.store.reading import StoreReader
from reconciler.store.scope import WITHOUT_SCOPE, Scope, row_id
from reconciler.store.shared_engines import open_engine
from reconciler.store.statements import execute

_BEGIN_RUN = insert(schema.runs)
_ADD_ORIGIN = insert(schema.run_origins)
_END_RUN = (
    update(schema.runs)
    .where(schema.runs.c.id == bindparam("run"))
    .values(ended=bindparam("at"), outcome=bindparam("how"))
)


@asynccontextmanager
async def open_store(
    where: str,
    scope: str = "",
    *,
    now: Callable[[], float] = time.time,
    elapsed: Callable[[], float] = seconds_since_start,
    timeouts: Timeouts | None = None,
) -> AsyncIterator[Store]:
    """Opens the store at a path or URL, and creates it if it does not exist. Raises a StoreError.

    scope    keeps stacks of the same name apart; the store shows only those of this scope
    now      seconds since 1970
    elapsed  monotonic seconds, which go on while the machine sleeps
    """
    async with open_engine(where, timeouts or Timeouts(), shared=bool(scope)) as (engine, place):
        yield Store(engine, place, now, elapsed, Scope(scope))


class Store(StoreReader):
    """The data of the stacks of one scope. Every method raises a StoreError if the database cannot be used."""

    def __init__(
        self,
        engine: Engine,
        place: str,
        now: Callable[[], float],
        elapsed: Callable[[], float],
        scope: Scope = WITHOUT_SCOPE,
    ) -> None:
        super().__init__(EngineSession(engine, place), now, scope)
        self._engine = engine
        self._elapsed = elapsed

    def lock(
        self, stack: str, *, on_loss: Callable[[StoreError], None], lasts: float = lock.LOCK_SECONDS
    ) -> AbstractAsyncContextManager[Holder]:
        """The lock of a stack; see `lock.hold_lock`."""
        title = f"stack {stack}"
        return lock.hold_lock(
            self._engine, self._place, self._key(stack), title=title, on_loss=on_loss, lasts=lasts, now=self._now
        )

    @asynccontextmanager
    async def journal(
        self,
        stack: str,
        *,
        command: str,
        plan: str = "",
        holder: Holder | None = None,
        commit: str = "",
        actor: str = "",
    ) -> AsyncIterator[StoreJournal]:
        """The journal of a run that begins now and ends with the block.

        plan           digest of the plan file that the run applies
        commit, actor  of the manifests, and who started the run, for reports; empty: unknown
        """
        run = row_id(self._now())
        row = {
            "id": run,
            "stack": self._key(stack),
            "command": command,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started": self._now(),
        }
        origin = {"run": run, "commit": commit, "actor": actor}
        await self._run((_BEGIN_RUN, row), *([(_ADD_ORIGIN, origin)] if commit or actor else []))
        journal = StoreJournal(
            self._engine,
            self._place,
            stack,
            run=run,
            plan=plan,
            holder=holder.token if holder else None,
            scope=self._scope,
            now=self._now,
            elapsed=self._elapsed,
        )
        outcome = "aborted"
        try:
            yield journal
            outcome = journal.outcome
        finally:
            await journal.flush()
            # On an error the history lacks the end of the run, but the result of the block matters more.
            with suppress(StoreError):
                await self._run((_END_RUN, {"run": run, "at": self._now(), "how": outcome}))

    async def _run(self, *statements: tuple[Executable, Mapping[str, Any]]) -> None:
        """Executes the statements in one transaction."""

        def write() -> None:
            with database.explain_errors(self._place), self._engine.begin() as connection:
                for statement, row in statements:
                    execute(connection, statement, row)

        await asyncio.to_thread(write)
