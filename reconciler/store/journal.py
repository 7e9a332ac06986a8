"""The engine's journal on a database: whoever has something to remember waits for one commit that serves them all."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, Engine, Executable, delete, insert, update

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.event import Ended
from reconciler.model.snapshot import Binding
from reconciler.store import database, schema
from reconciler.store.failures import LockLost, StoreError
from reconciler.store.membership import Membership

Statements = Sequence[Executable]


class StoreJournal:
    """The journal of one run of one stack. With a `holder`, nothing is written once the stack's lock is lost."""

    def __init__(
        self,
        engine: Engine,
        place: str,
        stack: str,
        *,
        run: str,
        holder: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._place = place
        self._stack = stack
        self._run = run
        self._holder = holder
        self._now = now
        self._told = 0
        self._waiting: list[tuple[Statements, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def intend(self, intent: Intent) -> None:
        content = {
            "stack": intent.stack,
            "address": str(intent.address),
            "path": intent.path,
            "before": json.dumps(sorted(intent.before)),
            "identity": json.dumps(dict(intent.identity), sort_keys=True),
        }
        seal = schema.seal(intent.id, *content.values())
        await self._write(insert(schema.intents).values(id=intent.id, opened=self._now(), seal=seal, **content))

    async def conclude(self, intent_id: str, object_id: str | None) -> None:
        row = update(schema.intents).where(schema.intents.c.id == intent_id)
        await self._write(row.values(concluded=self._now(), object=object_id))

    async def receipt(self, intent_id: str) -> None:
        known = schema.receipts
        await self._write(
            delete(known).where(known.c.intent == intent_id),
            insert(known).values(
                intent=intent_id, stack=self._stack, at=self._now(), seal=schema.seal(intent_id, self._stack)
            ),
        )

    async def bind(self, address: Address, binding: Binding | None) -> None:
        known = schema.bindings
        here = (known.c.stack == self._stack) & (known.c.address == str(address))
        if binding is None:
            await self._write(delete(known).where(here))
            return
        content = {
            "stack": self._stack,
            "address": str(address),
            "object": binding.id,
            "applied": json.dumps(dict(binding.applied), sort_keys=True),
            "protect": int(binding.protect),
            "replaces": binding.replaces,
        }
        seal = schema.seal(*content.values())
        await self._write(delete(known).where(here), insert(known).values(seal=seal, **content))

    async def belong(self, membership: Membership) -> None:
        """Remember which account the stack belongs to."""
        known = schema.accounts
        content = {
            "stack": self._stack,
            "account": membership.account,
            "witnesses": json.dumps(membership.witnesses),
        }
        await self._write(
            delete(known).where(known.c.stack == self._stack),
            insert(known).values(seal=schema.seal(*content.values()), **content),
        )

    async def record(self, ended: Ended) -> None:
        """Keep how a call ended, for `history`."""
        self._told += 1
        await self._write(
            insert(schema.outcomes).values(
                run=self._run,
                place=self._told,
                call=ended.call.id,
                address=str(ended.call.address),
                verb=ended.call.verb.value,
                outcome=ended.outcome.value,
                object=ended.id,
                why=ended.why,
                at=self._now(),
            )
        )

    async def _write(self, *statements: Executable) -> None:
        """Returns when a commit holds them. A caller that is cancelled takes nothing back."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((statements, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.ensure_future(self._drain())
        await asyncio.shield(done)

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            failure = await asyncio.to_thread(self._commit, [each for each, _ in batch])
            for _, done in batch:
                if done.cancelled():
                    continue
                if failure is None:
                    done.set_result(None)
                else:
                    done.set_exception(failure)
                    done.exception()  # a caller that was cancelled will not fetch it

    def _commit(self, batch: Sequence[Statements]) -> StoreError | None:
        try:
            with database.explained(self._place), self._engine.begin() as connection:
                self._check_lock(connection)
                for statements in batch:
                    for statement in statements:
                        connection.execute(statement)
        except StoreError as failure:
            return failure
        return None

    def _check_lock(self, connection: Connection) -> None:
        """Fences off a process that slept through the end of its lock."""
        if self._holder is None:
            return
        lock = schema.locks
        ours = update(lock).where(lock.c.stack == self._stack, lock.c.holder == self._holder)
        # A write, not a read: from here to the commit nobody else can take the lock over.
        if not connection.execute(ours.values(holder=self._holder)).rowcount:
            raise LockLost(self._stack)

    async def settled(self) -> None:
        """Everything that was handed over is durable."""
        if self._writer is not None:
            await self._writer
