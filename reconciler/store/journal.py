"""The engine's journal in the database. Concurrent writes share one transaction, so that one commit serves them all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict
from sqlalchemy import Connection, Engine, Executable, bindparam, delete, func, insert, select, update

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import create_id
from reconciler.model.snapshot import Binding
from reconciler.store import database, encoding, schema
from reconciler.store.account import AccountMembership
from reconciler.store.errors import LockLost, StoreError
from reconciler.store.lock import LOCK_SECONDS
from reconciler.store.scope import WITHOUT_SCOPE, Scope
from reconciler.store.statements import execute

_INTEND = insert(schema.intents)
_CONCLUDE = (
    update(schema.intents)
    .where(schema.intents.c.id == bindparam("intent"))
    .values(concluded=bindparam("at"), object=bindparam("made"))
)
_RECORD_OBJECT = (
    update(schema.intents).where(schema.intents.c.id == bindparam("intent")).values(object=bindparam("made"))
)
_REMOVE_RECEIPT = delete(schema.receipts).where(schema.receipts.c.intent == bindparam("intent"))
_LAST = select(func.coalesce(func.max(schema.receipts.c.place), 0)).where(schema.receipts.c.stack == bindparam("of"))
_ADD_RECEIPT = insert(schema.receipts).values(
    {
        **{name: bindparam(name) for name in ("intent", "stack", "at", "seal")},
        "place": _LAST.scalar_subquery() + 1,
    }
)
_UNBIND = delete(schema.bindings).where(
    schema.bindings.c.stack == bindparam("stack"), schema.bindings.c.address == bindparam("address")
)
_BIND = insert(schema.bindings)
_REMOVE_ACCOUNT = delete(schema.accounts).where(schema.accounts.c.stack == bindparam("stack"))
_ADD_ACCOUNT = insert(schema.accounts)
_RECORD = insert(schema.outcomes)
_ADD_PLAN_CALL = insert(schema.plan_calls)
_REMOVE_PLAN_CALL = delete(schema.plan_calls).where(
    *(schema.plan_calls.c[name] == bindparam(f"of_{name}") for name in ("plan", "call", "intent"))
)
_CONFIRM_LOCK = (
    update(schema.locks)
    .where(schema.locks.c.stack == bindparam("of"), schema.locks.c.holder == bindparam("token"))
    .values(holder=bindparam("token"))
)

_BATCH_DELAY = 0.004  # seconds for which a commit waits for more writes if there are several; a disk takes as long

Row = dict[str, Any]
# The keys that a write is about; its rows, each with the statement.
Write = tuple[Collection[Hashable], Sequence[tuple[Executable, Row]]]


class StoreJournal:
    """The journal of one run of one stack.

    run      id of the run
    plan     digest of the plan file that the run applies: the journal records which of its calls succeeded
    scope    of the stack
    holder   token of the lock's holder; once the lock is lost, every write fails. None: without a lock
    now      seconds since 1970
    elapsed  monotonic seconds, which go on while the machine sleeps
    """

    def __init__(
        self,
        engine: Engine,
        place: str,
        stack: str,
        *,
        run: str,
        plan: str = "",
        holder: str | None = None,
        scope: Scope = WITHOUT_SCOPE,
        now: Callable[[], float],
        elapsed: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._place = place
        self._title = f"stack {stack}"
        self._key = scope.key
        self._stack = scope.key(stack)
        self._run = run
        self._plan = plan and scope.key(plan)
        self._holder = holder
        self._now = now
        self._elapsed = elapsed
        self._ended_calls = 0
        self._lock_confirmed = float("-inf")  # when the lock was last confirmed
        self.outcome = ""
        """How the run ended, for reports: the status of its result."""
        self._waiting: list[tuple[Write, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def intend(self, intent: Intent) -> None:
        content = {
            "stack": self._key(intent.stack),
            "address": str(intent.address),
            "path": intent.path,
            "before": encoding.encode_json(sorted(intent.before)),
            "identity": encoding.encode_json(dict(intent.identity)),
        }
        place = encoding.encode_json(asdict(intent.place)) if intent.place is not None else None
        seal = encoding.seal(intent.id, *content.values(), *([place] if place is not None else []))
        row = {"id": intent.id, "opened": self._now(), "concluded": None, "object": None, "seal": seal, **content}
        row["place"] = place
        plan_rows = self._plan_rows(create_id(intent.address), intent.id)
        await self._write([("intent", intent.id)], (_INTEND, row), *plan_rows)

    async def conclude(self, intent_id: str, object_id: str | None) -> None:
        row = {"intent": intent_id, "at": self._now(), "made": object_id}
        await self._write([("intent", intent_id)], (_CONCLUDE, row))

    async def record_object(self, intent_id: str, object_id: str) -> None:
        await self._write([("intent", intent_id)], (_RECORD_OBJECT, {"intent": intent_id, "made": object_id}))

    async def record_receipt(self, intent_id: str) -> None:
        seal = encoding.seal(intent_id, self._stack)
        row = {"intent": intent_id, "stack": self._stack, "of": self._stack, "at": self._now(), "seal": seal}
        await self._write([("receipt", intent_id)], (_REMOVE_RECEIPT, {"intent": intent_id}), (_ADD_RECEIPT, row))

    async def bind(self, bindings: Mapping[Address, Binding | None]) -> None:
        rows: list[tuple[Executable, Row]] = []
        for address, binding in bindings.items():
            rows.append((_UNBIND, {"stack": self._stack, "address": str(address)}))
            if binding is None:
                continue
            content = {
                "stack": self._stack,
                "address": str(address),
                "object": binding.id,
                "applied": encoding.encode_json(dict(binding.applied)),
                "protect": int(binding.protect),
                "replaces": binding.replaces,
            }
            seal = encoding.seal(*content.values(), *([1] if binding.adopted else []))
            rows.append((_BIND, {"seal": seal, "adopted": int(binding.adopted), **content}))
        await self._write([("binding", address) for address in bindings], *rows)

    async def record_account(self, membership: AccountMembership) -> None:
        """Stores which account the stack belongs to."""
        content = {
            "stack": self._stack,
            "account": membership.account,
            "witnesses": encoding.encode_json(membership.witnesses),
        }
        row = {"seal": encoding.seal(*content.values()), **content}
        await self._write(["account"], (_REMOVE_ACCOUNT, {"stack": self._stack}), (_ADD_ACCOUNT, row))

    async def record(self, ended: Ended) -> None:
        """Stores how a call ended, for `history`."""
        self._ended_calls += 1
        row = {
            "run": self._run,
            "place": self._ended_calls,
            "call": ended.call.id,
            "address": str(ended.call.address),
            "verb": ended.call.verb.value,
            "outcome": ended.outcome.value,
            "object": ended.id,
            "why": ended.why,
            "at": self._now(),
        }
        succeeded = ended.outcome in (Outcome.DONE, Outcome.ALREADY)
        rows = self._plan_rows(ended.call.id) if succeeded else []
        keys = [("outcome", self._ended_calls), ("call", ended.call.id)]
        await self._write(keys, (_RECORD, row), *rows)

    async def complete_plan(self) -> None:
        """Records that the whole plan file was applied."""
        if self._plan:
            await self._write(["plan"], *self._plan_rows(""))

    def _plan_rows(self, call: str, intent: str = "") -> list[tuple[Executable, Row]]:
        """The rows that record a call of the plan file. Those of a create are committed together with its intent."""
        if not self._plan:
            return []
        keys = {"plan": self._plan, "call": call, "intent": intent}
        row = {**keys, "at": self._now(), "seal": encoding.seal(*keys.values())}
        return [(_REMOVE_PLAN_CALL, {f"of_{name}": value for name, value in keys.items()}), (_ADD_PLAN_CALL, row)]

    async def check_lock(self) -> None:
        """Raises LockLost if this run no longer holds the stack's lock, for example after the process was suspended.

        Reads the database only if nothing was written for a quarter of the lock's duration.
        """
        if self._holder is not None and self._elapsed() - self._lock_confirmed > LOCK_SECONDS / 4:
            await self._write([])

    async def _write(self, keys: Collection[Hashable], *rows: tuple[Executable, Row]) -> None:
        """Returns when the rows are committed. They are written even if the caller is cancelled."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(((keys, rows), done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.ensure_future(self._drain())
        await done

    async def _drain(self) -> None:
        several = False
        while self._waiting:
            if several:
                await asyncio.sleep(_BATCH_DELAY)
            batch, self._waiting = self._waiting, []
            several = len(batch) > 1
            failure = await asyncio.to_thread(self._commit, [write for write, _ in batch])
            for _, done in batch:
                if done.cancelled():
                    continue
                if failure is None:
                    done.set_result(None)
                else:
                    done.set_exception(failure)
                    done.exception()  # marks it as retrieved: a cancelled caller will not do that

    def _commit(self, batch: Sequence[Write]) -> StoreError | None:
        began = self._elapsed()
        try:
            with database.explain_errors(self._place), self._engine.begin() as connection:
                self._check_lock(connection)
                for statement, rows in _group_by_statement(batch):
                    execute(connection, statement, *rows)
        except StoreError as failure:
            return failure
        self._lock_confirmed = began
        return None

    def _check_lock(self, connection: Connection) -> None:
        """Raises LockLost if another run acquired the lock, for example while this process was suspended."""
        if self._holder is None:
            return
        # A write, not a read: until the commit no other process can acquire the lock.
        if not execute(connection, _CONFIRM_LOCK, {"of": self._stack, "token": self._holder}).rowcount:
            raise LockLost(self._title)

    async def flush(self) -> None:
        """Waits until all pending writes are committed."""
        if self._writer is not None:
            await self._writer


def seconds_since_start() -> float:
    """Seconds since the machine started, including sleep, which `time.monotonic` does not count."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _group_by_statement(batch: Sequence[Write]) -> Iterator[tuple[Executable, list[Row]]]:
    """Groups the rows of a batch by statement. Where two writes have a key in common, their order is kept."""
    rows_of: dict[Executable, list[Row]] = {}
    written_keys: set[Hashable] = set()
    for keys, rows in batch:
        if not written_keys.isdisjoint(keys):
            yield from rows_of.items()
            rows_of, written_keys = {}, set()
        written_keys.update(keys)
        for statement, row in rows:
            rows_of.setdefault(statement, []).append(row)
    yield from rows_of.items()
