"""An open store: reads what earlier runs stored, opens the journal of a run, and holds the lock of a stack."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import lru_cache
from typing import Any

from msgspec import Struct
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    CursorResult,
    Engine,
    Executable,
    Row,
    Select,
    bindparam,
    false,
    insert,
    join,
    or_,
    select,
    update,
)

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
from reconciler.store.statements import execute

_SUCCEEDED = (Outcome.DONE.value, Outcome.ALREADY.value)

_INTENTS, _RECEIPTS, _BINDINGS, _PLAN_CALLS = schema.intents, schema.receipts, schema.bindings, schema.plan_calls
_RUNS, _OUTCOMES = schema.runs, schema.outcomes
_STACK: BindParameter[str] = bindparam("stack")
_READ_BINDINGS = select(_BINDINGS).where(_BINDINGS.c.stack == _STACK)
_READ_RECEIPTS = select(_RECEIPTS).where(_RECEIPTS.c.stack == _STACK)
_READ_ACCOUNT = select(schema.accounts).where(schema.accounts.c.stack == _STACK)
_OF_STACK = _INTENTS.c.stack == _STACK
_WITH_RECEIPTS = join(_INTENTS, _RECEIPTS, _RECEIPTS.c.intent == _INTENTS.c.id, isouter=True)
_READ_DELIVERIES = (  # those that have or may have delivered, in the order of their receipts
    select(_INTENTS.c.id, _INTENTS.c.address, _INTENTS.c.opened, _RECEIPTS.c.at)
    .select_from(_WITH_RECEIPTS)
    .where(
        _OF_STACK, _RECEIPTS.c.intent.is_not(None) | (_INTENTS.c.object.is_not(None) & _INTENTS.c.place.is_not(None))
    )
    .order_by(_RECEIPTS.c.intent.is_(None), _RECEIPTS.c.place)
)
_READ_OPEN_INTENTS = select(_INTENTS).where(_OF_STACK, _INTENTS.c.concluded.is_(None)).order_by(_INTENTS.c.opened)
_READ_MADE = (
    select(_INTENTS, _RECEIPTS.c.at)
    .select_from(_WITH_RECEIPTS)
    .where(
        _OF_STACK,
        _INTENTS.c.object.is_not(None),
        _INTENTS.c.concluded.is_(None) | (_INTENTS.c.concluded > bindparam("since")),
    )
)
_READ_PROGRESS = (
    select(_PLAN_CALLS, _INTENTS.c.object, _INTENTS.c.place, _RECEIPTS.c.intent.label("receipt"))
    .outerjoin(_INTENTS, _INTENTS.c.id == _PLAN_CALLS.c.intent)
    .outerjoin(_RECEIPTS, _RECEIPTS.c.intent == _PLAN_CALLS.c.intent)
    .where(_PLAN_CALLS.c.plan == bindparam("plan"))
)
_BEGIN_RUN = insert(_RUNS)
_ADD_ORIGIN = insert(schema.run_origins)
_END_RUN = update(_RUNS).where(_RUNS.c.id == bindparam("run")).values(ended=bindparam("at"), outcome=bindparam("how"))


def _is_of_kinds(column: ColumnElement[str], kinds: Iterable[str]) -> ColumnElement[bool]:
    return or_(false(), *(column.startswith(f"{kind}/") for kind in kinds))


@lru_cache
def _read_bound_elsewhere(kinds: tuple[str, ...], scope: Scope, dialect: str) -> Select[Any]:
    others = (_BINDINGS.c.stack != _STACK) & scope.contains(_BINDINGS.c.stack, dialect)
    return select(_BINDINGS).where(others, _is_of_kinds(_BINDINGS.c.address, kinds))


@lru_cache
def _read_undelivered(kinds: tuple[str, ...]) -> Select[Any]:
    arrived = select(_RECEIPTS.c.intent).where(_RECEIPTS.c.stack == _STACK)
    of_kinds = _is_of_kinds(_INTENTS.c.address, kinds)
    return select(_INTENTS.c.id).where(_OF_STACK, of_kinds, _INTENTS.c.id.not_in(arrived))


@lru_cache
def _read_issued(kinds: tuple[str, ...]) -> Select[Any]:
    settled = _INTENTS.c.concluded.is_not(None) & _INTENTS.c.object.is_(None)  # it created no object
    relevant = _INTENTS.c.place.is_not(None) & (_RECEIPTS.c.intent.is_not(None) | ~settled)
    joined = select(_INTENTS, _RECEIPTS.c.intent).select_from(_WITH_RECEIPTS)
    return joined.where(_OF_STACK, _is_of_kinds(_INTENTS.c.address, kinds), relevant)


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
        found: dict[Address, Binding] = {}
        for row in await self._rows(_READ_BINDINGS, stack=self._key(stack)):
            adopted = [1] if row.adopted else []
            self._check(row, row.stack, row.address, row.object, row.applied, row.protect, row.replaces, *adopted)
            binding = Binding(row.object, json.loads(row.applied), bool(row.protect), row.replaces, bool(row.adopted))
            found[Address.parse(row.address)] = binding
        return found

    async def find_bound_elsewhere(self, stack: str, kinds: Iterable[str]) -> Mapping[tuple[str, str], str]:
        """Objects of these kinds that have a binding of another stack: kind and locator → stack.

        Also those that the other stack is about to delete, since it has created another object in their place.
        """
        query = _read_bound_elsewhere(tuple(kinds), self._scope, self._engine.dialect.name)
        rows = await self._rows(query, stack=self._key(stack))
        elsewhere: dict[tuple[str, str], str] = {}
        for row in rows:
            for locator in filter(None, (row.object, row.replaces)):
                elsewhere[Address.parse(row.address).kind, locator] = self._scope.stack(row.stack)
        return elsewhere

    async def receipts(self, stack: str) -> frozenset[str]:
        """Ids of the intents whose one-time secret was delivered."""
        rows = await self._rows(_READ_RECEIPTS, stack=self._key(stack))
        for row in rows:
            self._check(row, row.intent, row.stack)
        return frozenset(row.intent for row in rows)

    async def find_undelivered(self, stack: str, kinds: Iterable[str]) -> frozenset[str]:
        """Ids of the intents of these kinds, which have a one-time secret, without a receipt. During a run of the stack
        the delivery may still follow."""
        rows = await self._rows(_read_undelivered(tuple(kinds)), stack=self._key(stack))
        return frozenset(row.id for row in rows)

    async def find_issued(self, stack: str, kinds: Iterable[str]) -> tuple[IssuedSecret, ...]:
        """Creates of these kinds, which have a one-time secret, whose secret was or may have been delivered.

        Not those that deliver nothing.
        """
        rows = await self._rows(_read_issued(tuple(kinds)), stack=self._key(stack))
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
        latest: dict[str, Row[Any]] = {}  # the latest receipt of each address
        found: dict[str, Address] = {}
        for row in await self._rows(_READ_DELIVERIES, stack=self._key(stack)):
            earlier = latest.get(row.address)
            if earlier is not None and (row.at is not None or row.opened >= earlier.at):
                found[earlier.id] = Address.parse(row.address)
            if row.at is not None:
                latest[row.address] = row
        return found

    async def find_open_intents(self, stack: str) -> tuple[Intent, ...]:
        """The open intents of a stack, oldest first: creates whose result was never stored."""
        rows = await self._rows(_READ_OPEN_INTENTS, stack=self._key(stack))
        return tuple(self._intent(row) for row in rows)

    async def find_own_objects(self, stack: str, ids: Collection[str]) -> frozenset[tuple[str, str]]:
        """Those of these objects, by kind and id, that a call of the stack created or changed."""
        if not ids:
            return frozenset()
        own = self._key(stack)
        changed = (
            select(_OUTCOMES.c.address, _OUTCOMES.c.object)
            .join(_RUNS, _RUNS.c.id == _OUTCOMES.c.run)
            .where(_RUNS.c.stack == own, _OUTCOMES.c.object.in_(ids), _OUTCOMES.c.outcome.in_(_SUCCEEDED))
        )
        created = select(_INTENTS.c.address, _INTENTS.c.object).where(
            _INTENTS.c.stack == own, _INTENTS.c.object.in_(ids)
        )
        rows = [*await self._rows_once(changed), *await self._rows_once(created)]
        return frozenset((Address.parse(row.address).kind, row.object) for row in rows)

    async def find_made_objects(self, stack: str, within: float) -> tuple[MadeObject, ...]:
        """The objects that creates of the stack made in the last `within` seconds, and those of open intents."""
        now = self._now()
        rows = await self._rows(_READ_MADE, stack=self._key(stack), since=now - within)
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
        for row in await self._rows(_READ_ACCOUNT, stack=self._key(stack)):
            self._check(row, row.stack, row.account, row.witnesses)
            return AccountMembership(row.account, tuple(json.loads(row.witnesses)))
        return None

    async def progress(self, plan: str) -> Progress:
        """How far earlier runs applied the plan file with this digest. Creates with an open intent, or whose one-time
        secret was not delivered, do not count; see `recovery.settle`."""
        calls: set[str] = set()
        complete = None
        rows = await self._rows(_READ_PROGRESS, plan=self._key(plan))
        for row in rows:
            self._check(row, row.plan, row.call, row.intent)
            if not row.call:
                complete = row.at
            elif not row.intent or row.receipt is not None or (row.object is not None and row.place is None):
                calls.add(row.call)
        return Progress(frozenset(calls), complete, has_begun=bool(rows))

    async def history(self, stack: str, *, limit: int = 1000) -> tuple[RecordedCall, ...]:
        """How calls of earlier runs ended, newest first."""
        rows = await self._rows_once(
            select(_OUTCOMES, _RUNS.c.command, _RUNS.c.started)
            .join(_RUNS, _RUNS.c.id == _OUTCOMES.c.run)
            .where(_RUNS.c.stack == self._key(stack))
            .order_by(_RUNS.c.started.desc(), _OUTCOMES.c.place.desc())
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

    async def _rows(self, query: Select[Any], **parameters: object) -> list[Row[Any]]:
        """The rows of a query that is built once in the process."""
        return await self._read(lambda connection: execute(connection, query, parameters))

    async def _rows_once(self, query: Select[Any]) -> list[Row[Any]]:
        return await self._read(lambda connection: connection.execute(query))

    async def _read(self, read: Callable[[Connection], CursorResult[Any]]) -> list[Row[Any]]:
        def run() -> list[Row[Any]]:
            with database.explain_errors(self._place), self._engine.connect() as connection:
                return list(read(connection))

        return await asyncio.to_thread(run)

    async def _run(self, *statements: tuple[Executable, Mapping[str, Any]]) -> None:
        """Executes the statements in one transaction."""

        def write() -> None:
            with database.explain_errors(self._place), self._engine.begin() as connection:
                for statement, row in statements:
                    execute(connection, statement, row)

        await asyncio.to_thread(write)

    def _check(self, row: Row[Any], *content: object) -> None:
        if row.seal != schema.seal(*content):
            raise Damaged(self._place, "a row does not match its seal")


def _read_place(stored: str) -> Place:
    return Place(**json.loads(stored))
