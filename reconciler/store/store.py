"""An open store: reads what earlier runs stored, opens the journal of a run, and holds the lock of a stack."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from msgspec import Struct
from sqlalchemy import Engine, Row, Select, false, insert, or_, select, update

from reconciler.engine.ports import Intent, MadeObject
from reconciler.model.address import Address
from reconciler.model.event import Outcome
from reconciler.model.snapshot import Binding, IssuedSecret, Place
from reconciler.store import database, lock, schema
from reconciler.store.account import AccountMembership
from reconciler.store.database import Timeouts
from reconciler.store.errors import Damaged, StoreError
from reconciler.store.history import History
from reconciler.store.journal import StoreJournal, seconds_since_start
from reconciler.store.lock import Holder
from reconciler.store.scope import WITHOUT_SCOPE, Scope, row_id
from reconciler.store.shared_engines import open_engine

_SUCCEEDED = (Outcome.DONE.value, Outcome.ALREADY.value)


class RecordedCall(Struct, frozen=True):
    """How one call of an earlier run ended. `started` and `at`: seconds since 1970."""

    run: str
    command: str
    started: float
    call: str
    address: str
    verb: str
    outcome: str
    object: str | None
    why: str
    at: float


class Progress(Struct, frozen=True):
    """How far earlier runs applied one plan file.

    calls        ids of the calls that succeeded, and of each create that made an object, and delivered its token if it
                 has one
    complete     when the whole plan was applied, in seconds since 1970; None: it was not
    has_begun    a call of the plan was recorded, also one whose result is unknown
    """

    calls: frozenset[str] = frozenset()
    complete: float | None = None
    has_begun: bool = False


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


class Store:
    """The data of the stacks of one scope. Every method raises a StoreError if the database cannot be used."""

    def __init__(
        self,
        engine: Engine,
        place: str,
        now: Callable[[], float],
        elapsed: Callable[[], float],
        scope: Scope = WITHOUT_SCOPE,
    ) -> None:
        self._engine = engine
        self._place = place
        self._now = now
        self._elapsed = elapsed
        self._scope = scope
        self._key = scope.key

    async def bindings(self, stack: str) -> Mapping[Address, Binding]:
        """The bindings of a stack, by address."""
        table = schema.bindings
        found: dict[Address, Binding] = {}
        for row in await self._rows(select(table).where(table.c.stack == self._key(stack))):
            adopted = [1] if row.adopted else []
            self._check(row, row.stack, row.address, row.object, row.applied, row.protect, row.replaces, *adopted)
            binding = Binding(row.object, json.loads(row.applied), bool(row.protect), row.replaces, bool(row.adopted))
            found[Address.parse(row.address)] = binding
        return found

    async def find_bound_elsewhere(self, stack: str, kinds: Iterable[str]) -> Mapping[tuple[str, str], str]:
        """Objects of these kinds that have a binding of another stack: kind and locator → stack.

        Also those that the other stack is about to delete, since it has created another object in their place.
        """
        table = schema.bindings
        of_kinds = or_(false(), *(table.c.address.startswith(f"{kind}/") for kind in kinds))
        in_scope = self._scope.contains(table.c.stack, self._engine.dialect.name)
        others = (table.c.stack != self._key(stack)) & in_scope
        rows = await self._rows(select(table).where(others, of_kinds))
        elsewhere: dict[tuple[str, str], str] = {}
        for row in rows:
            for locator in filter(None, (row.object, row.replaces)):
                elsewhere[Address.parse(row.address).kind, locator] = self._scope.stack(row.stack)
        return elsewhere

    async def receipts(self, stack: str) -> frozenset[str]:
        """Ids of the intents whose one-time secret was delivered."""
        table = schema.receipts
        rows = await self._rows(select(table).where(table.c.stack == self._key(stack)))
        for row in rows:
            self._check(row, row.intent, row.stack)
        return frozenset(row.intent for row in rows)

    async def find_undelivered(self, stack: str, kinds: Iterable[str]) -> frozenset[str]:
        """Ids of the intents of these kinds, which have a one-time secret, without a receipt. During a run of the stack
        the delivery may still follow."""
        intents, receipts = schema.intents, schema.receipts
        of_kinds = or_(false(), *(intents.c.address.startswith(f"{kind}/") for kind in kinds))
        arrived = select(receipts.c.intent).where(receipts.c.stack == self._key(stack))
        found = select(intents.c.id).where(intents.c.stack == self._key(stack), of_kinds, intents.c.id.not_in(arrived))
        return frozenset(row.id for row in await self._rows(found))

    async def find_issued(self, stack: str, kinds: Iterable[str]) -> tuple[IssuedSecret, ...]:
        """Creates of these kinds, which have a one-time secret, whose secret was or may have been delivered.

        Not those that deliver nothing.
        """
        intents, receipts = schema.intents, schema.receipts
        of_kinds = or_(false(), *(intents.c.address.startswith(f"{kind}/") for kind in kinds))
        joined = select(intents, receipts.c.intent).join_from(
            intents, receipts, receipts.c.intent == intents.c.id, isouter=True
        )
        settled = intents.c.concluded.is_not(None) & intents.c.object.is_(None)  # it created no object
        relevant = intents.c.place.is_not(None) & (receipts.c.intent.is_not(None) | ~settled)
        rows = await self._rows(joined.where(intents.c.stack == self._key(stack), of_kinds, relevant))
        for row in rows:
            self._check_intent(row)
        return tuple(
            IssuedSecret(row.id, Address.parse(row.address), _read_place(row.place), row.intent is not None)
            for row in rows
        )

    async def find_overwritten(self, stack: str) -> Mapping[str, Address]:
        """Ids of the intents whose delivered secret was or may have been overwritten by a later one for its address.

        A later secret without a receipt may have been delivered, unless its run deleted the object again.
        """
        intents, receipts = schema.intents, schema.receipts
        may_have_delivered = intents.c.object.is_not(None) & intents.c.place.is_not(None)
        joined = (
            select(intents.c.id, intents.c.address, intents.c.opened, receipts.c.at)
            .join_from(intents, receipts, receipts.c.intent == intents.c.id, isouter=True)
            .where(intents.c.stack == self._key(stack), receipts.c.intent.is_not(None) | may_have_delivered)
        )
        latest: dict[str, Row[Any]] = {}  # the latest receipt of each address
        found: dict[str, Address] = {}
        for row in await self._rows(joined.order_by(receipts.c.intent.is_(None), receipts.c.place)):
            earlier = latest.get(row.address)
            if earlier is not None and (row.at is not None or row.opened >= earlier.at):
                found[earlier.id] = Address.parse(row.address)
            if row.at is not None:
                latest[row.address] = row
        return found

    async def find_open_intents(self, stack: str) -> tuple[Intent, ...]:
        """The open intents of a stack, oldest first: creates whose result was never stored."""
        table = schema.intents
        is_open = (table.c.stack == self._key(stack)) & table.c.concluded.is_(None)
        query = select(table).where(is_open).order_by(table.c.opened)
        return tuple(self._intent(row) for row in await self._rows(query))

    async def find_own_objects(self, stack: str, ids: Collection[str]) -> frozenset[tuple[str, str]]:
        """Those of these objects, by kind and id, that a call of the stack created or changed."""
        if not ids:
            return frozenset()
        intents, outcomes, runs, own = schema.intents, schema.outcomes, schema.runs, self._key(stack)
        changed = (
            select(outcomes.c.address, outcomes.c.object)
            .join(runs, runs.c.id == outcomes.c.run)
            .where(runs.c.stack == own, outcomes.c.object.in_(ids), outcomes.c.outcome.in_(_SUCCEEDED))
        )
        created = select(intents.c.address, intents.c.object).where(intents.c.stack == own, intents.c.object.in_(ids))
        rows = [*await self._rows(changed), *await self._rows(created)]
        return frozenset((Address.parse(row.address).kind, row.object) for row in rows)

    async def find_made_objects(self, stack: str, within: float) -> tuple[MadeObject, ...]:
        """The objects that creates of the stack made in the last `within` seconds, and those of open intents."""
        intents, receipts, now = schema.intents, schema.receipts, self._now()
        is_recent = intents.c.concluded.is_(None) | (intents.c.concluded > now - within)
        query = (
            select(intents, receipts.c.at)
            .join_from(intents, receipts, receipts.c.intent == intents.c.id, isouter=True)
            .where(intents.c.stack == self._key(stack), intents.c.object.is_not(None), is_recent)
        )
        rows = await self._rows(query)
        for row in rows:
            self._check_intent(row)
        return tuple(
            MadeObject(
                Address.parse(row.address),
                row.path,
                row.object,
                now - max(row.opened, row.concluded or 0.0, row.at or 0.0),
                is_open=row.concluded is None,
            )
            for row in rows
        )

    def _intent(self, row: Row[Any]) -> Intent:
        self._check_intent(row)
        return Intent(
            id=row.id,
            address=Address.parse(row.address),
            stack=self._scope.stack(row.stack),
            path=row.path,
            before=frozenset(json.loads(row.before)),
            identity=json.loads(row.identity),
            place=None if row.place is None else _read_place(row.place),
            opened=row.opened,
            object=row.object,
        )

    def _check_intent(self, row: Row[Any]) -> None:
        place = [] if row.place is None else [row.place]
        self._check(row, row.id, row.stack, row.address, row.path, row.before, row.identity, *place)

    async def membership(self, stack: str) -> AccountMembership | None:
        """Which account the stack belongs to; None if it was never applied."""
        table = schema.accounts
        for row in await self._rows(select(table).where(table.c.stack == self._key(stack))):
            self._check(row, row.stack, row.account, row.witnesses)
            return AccountMembership(row.account, tuple(json.loads(row.witnesses)))
        return None

    async def progress(self, plan: str) -> Progress:
        """How far earlier runs applied the plan file with this digest. Creates with an open intent, or whose one-time
        secret was not delivered, do not count; see `recovery.settle`."""
        table, intents, receipts = schema.plan_calls, schema.intents, schema.receipts
        query = (
            select(table, intents.c.object, intents.c.place, receipts.c.intent.label("receipt"))
            .outerjoin(intents, intents.c.id == table.c.intent)
            .outerjoin(receipts, receipts.c.intent == table.c.intent)
            .where(table.c.plan == self._key(plan))
        )
        calls: set[str] = set()
        complete = None
        rows = await self._rows(query)
        for row in rows:
            self._check(row, row.plan, row.call, row.intent)
            if not row.call:
                complete = row.at
            elif not row.intent or row.receipt is not None or (row.object is not None and row.place is None):
                calls.add(row.call)
        return Progress(frozenset(calls), complete, has_begun=bool(rows))

    async def history(self, stack: str, *, limit: int = 1000) -> tuple[RecordedCall, ...]:
        """How calls of earlier runs ended, newest first."""
        run, outcome = schema.runs, schema.outcomes
        rows = await self._rows(
            select(outcome, run.c.command, run.c.started)
            .join(run, run.c.id == outcome.c.run)
            .where(run.c.stack == self._key(stack))
            .order_by(run.c.started.desc(), outcome.c.place.desc())
            .limit(limit)
        )
        return tuple(
            RecordedCall(
                row.run,
                row.command,
                row.started,
                row.call,
                row.address,
                row.verb,
                row.outcome,
                row.object,
                row.why,
                row.at,
            )
            for row in rows
        )

    @property
    def drift_history(self) -> History:
        """Drift checks and runs, for reports."""
        return History(self._engine, self._place, self._scope)

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
        row = insert(schema.runs).values(
            id=run,
            stack=self._key(stack),
            command=command,
            host=socket.gethostname(),
            pid=os.getpid(),
            started=self._now(),
        )
        origin = insert(schema.run_origins).values(run=run, commit=commit, actor=actor)
        await self._run(row, *([origin] if commit or actor else []))
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
            end = update(schema.runs).where(schema.runs.c.id == run).values(ended=self._now(), outcome=outcome)
            # On an error the history lacks the end of the run, but the result of the block matters more.
            with suppress(StoreError):
                await self._run(end)

    async def _rows(self, query: Select[Any]) -> list[Row[Any]]:
        def read() -> list[Row[Any]]:
            with database.explain_errors(self._place), self._engine.connect() as connection:
                return list(connection.execute(query))

        return await asyncio.to_thread(read)

    async def _run(self, *statements: Any) -> None:
        """Executes the statements in one transaction."""

        def write() -> None:
            with database.explain_errors(self._place), self._engine.begin() as connection:
                for statement in statements:
                    connection.execute(statement)

        await asyncio.to_thread(write)

    def _check(self, row: Row[Any], *content: object) -> None:
        if row.seal != schema.seal(*content):
            raise Damaged(self._place, "a row does not match its seal")


def _read_place(stored: str) -> Place:
    return Place(**json.loads(stored))
