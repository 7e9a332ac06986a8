"""Reads what earlier runs stored for the stacks of one scope. Imports no database library but sqlite3."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconciler.engine.ports import Intent, MadeObject
from reconciler.model.address import Address
from reconciler.model.event import Outcome
from reconciler.model.snapshot import Binding, IssuedSecret, Place
from reconciler.store import encoding, files
from reconciler.store.account import AccountMembership
from reconciler.store.errors import Damaged
from reconciler.store.scope import WITHOUT_SCOPE, Scope
from reconciler.store.sql import Session, is_of_kinds, is_one_of

if TYPE_CHECKING:
    from reconciler.store.history import History

_NOTHING: Mapping[str, str] = {}  # shared: few bindings have digests
_SUCCEEDED = (Outcome.DONE.value, Outcome.ALREADY.value)

_READ_BINDINGS = (
    "SELECT stack, address, object, applied, protect, replaces, adopted, seal FROM {bindings} WHERE stack = :stack"
)
_READ_RECEIPTS = "SELECT * FROM {receipts} WHERE stack = :stack"
_READ_ACCOUNT = "SELECT * FROM {accounts} WHERE stack = :stack"
_READ_UNDELIVERED = (
    "SELECT id FROM {intents} WHERE stack = :stack AND id NOT IN (SELECT intent FROM {receipts} WHERE stack = :stack)"
)
_WITH_RECEIPTS = "FROM {intents} AS i LEFT JOIN {receipts} AS r ON r.intent = i.id WHERE i.stack = :stack"
_READ_DELIVERIES = (  # those that have or may have delivered, in the order of their receipts
    f"SELECT i.id, i.address, i.opened, r.at {_WITH_RECEIPTS}"
    " AND (r.intent IS NOT NULL OR i.object IS NOT NULL AND i.place IS NOT NULL) ORDER BY r.intent IS NULL, r.place"
)
_READ_ISSUED = (  # without creates that ended and created no object
    f"SELECT i.*, r.intent {_WITH_RECEIPTS}"
    " AND i.place IS NOT NULL AND (r.intent IS NOT NULL OR i.concluded IS NULL OR i.object IS NOT NULL)"
)
_READ_OPEN_INTENTS = "SELECT * FROM {intents} WHERE stack = :stack AND concluded IS NULL ORDER BY opened"
_READ_MADE = (
    f"SELECT i.*, r.at {_WITH_RECEIPTS} AND i.object IS NOT NULL AND (i.concluded IS NULL OR i.concluded > :since)"
)
_READ_CREATED = "SELECT address, object FROM {intents} WHERE stack = :stack"
_OF_RUNS = "FROM {outcomes} AS o JOIN {runs} AS r ON r.id = o.run WHERE r.stack = :stack"
_READ_CHANGED = f"SELECT o.address, o.object {_OF_RUNS}"
_READ_CALLS = f"SELECT o.*, r.command, r.started {_OF_RUNS} ORDER BY r.started DESC, o.place DESC LIMIT :limit"
_READ_PROGRESS = (
    "SELECT c.*, i.object, i.place, r.intent AS receipt FROM {plan_calls} AS c LEFT JOIN {intents} AS i"
    " ON i.id = c.intent LEFT JOIN {receipts} AS r ON r.intent = c.intent WHERE c.plan = :plan"
)


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
async def open_reader(
    path: str, scope: str = "", *, now: Callable[[], float] = time.time, busy: float = files.BUSY_SECONDS
) -> AsyncIterator[StoreReader]:
    """Opens an existing file; see `store.open_store`. `busy`: seconds to wait for another process that uses it."""
    connection = await asyncio.to_thread(files.open_file, Path(path), busy)
    session = files.FileSession(connection, path)
    try:
        yield StoreReader(session, now, Scope(scope))
    finally:
        await asyncio.to_thread(session.close)


class StoreReader:
    """Reads the data of the stacks of one scope. Every method raises a StoreError if the database cannot be used."""

    def __init__(self, session: Session, now: Callable[[], float], scope: Scope = WITHOUT_SCOPE) -> None:
        self._session = session
        self._place = session.place
        self._now = now
        self._scope = scope
        self._key = scope.key

    async def bindings(self, stack: str) -> Mapping[Address, Binding]:
        """The bindings of a stack, by address."""
        found: dict[Address, Binding] = {}
        for row in await self._rows(_READ_BINDINGS, stack):  # hot path: a row for each resource
            *content, adopted, _ = row
            self._check(row, *content, *([1] if adopted else ()))
            _, address, locator, applied, protect, replaces = content
            digests = _NOTHING if applied == "{}" else json.loads(applied)
            found[Address.parse(address)] = Binding(locator, digests, bool(protect), replaces, bool(adopted))
        return found

    async def find_bound_elsewhere(self, stack: str, kinds: Iterable[str]) -> Mapping[tuple[str, str], str]:
        """Objects of these kinds that have a binding of another stack: kind and locator → stack.

        Also those that the other stack is about to delete, since it has created another object in their place.
        """
        of_scope, of_kinds = self._scope.contains("stack"), is_of_kinds("address", kinds)
        query = f"SELECT * FROM {{bindings}} WHERE stack != :stack AND {of_scope.text} AND {of_kinds.text}"
        rows = await self._rows(query, stack, **of_scope.values, **of_kinds.values)
        elsewhere: dict[tuple[str, str], str] = {}
        for row in rows:
            for locator in filter(None, (row.object, row.replaces)):
                elsewhere[Address.parse(row.address).kind, locator] = self._scope.stack(row.stack)
        return elsewhere

    async def receipts(self, stack: str) -> frozenset[str]:
        """Ids of the intents whose one-time secret was delivered."""
        rows = await self._rows(_READ_RECEIPTS, stack)
        for row in rows:
            self._check(row, row.intent, row.stack)
        return frozenset(row.intent for row in rows)

    async def find_undelivered(self, stack: str, kinds: Iterable[str]) -> frozenset[str]:
        """Ids of the intents of these kinds, which have a one-time secret, without a receipt. During a run of the stack
        the delivery may still follow."""
        of_kinds = is_of_kinds("address", kinds)
        rows = await self._rows(f"{_READ_UNDELIVERED} AND {of_kinds.text}", stack, **of_kinds.values)
        return frozenset(row.id for row in rows)

    async def find_issued(self, stack: str, kinds: Iterable[str]) -> tuple[IssuedSecret, ...]:
        """Creates of these kinds, which have a one-time secret, whose secret was or may have been delivered.

        Not those that deliver nothing.
        """
        of_kinds = is_of_kinds("i.address", kinds)
        rows = await self._rows(f"{_READ_ISSUED} AND {of_kinds.text}", stack, **of_kinds.values)
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
        latest: dict[str, Any] = {}  # the latest receipt of each address
        found: dict[str, Address] = {}
        for row in await self._rows(_READ_DELIVERIES, stack):
            earlier = latest.get(row.address)
            if earlier is not None and (row.at is not None or row.opened >= earlier.at):
                found[earlier.id] = Address.parse(row.address)
            if row.at is not None:
                latest[row.address] = row
        return found

    async def find_open_intents(self, stack: str) -> tuple[Intent, ...]:
        """The open intents of a stack, oldest first: creates whose result was never stored."""
        rows = await self._rows(_READ_OPEN_INTENTS, stack)
        return tuple(self._intent(row) for row in rows)

    async def find_own_objects(self, stack: str, ids: Collection[str]) -> frozenset[tuple[str, str]]:
        """Those of these objects, by kind and id, that a call of the stack created or changed."""
        if not ids:
            return frozenset()
        of_ids, succeeded = is_one_of("object", ids, "id"), is_one_of("o.outcome", _SUCCEEDED, "outcome")
        changed = f"{_READ_CHANGED} AND {of_ids.text} AND {succeeded.text}"
        rows = [
            *await self._rows(changed, stack, **of_ids.values, **succeeded.values),
            *await self._rows(f"{_READ_CREATED} AND {of_ids.text}", stack, **of_ids.values),
        ]
        return frozenset((Address.parse(row.address).kind, row.object) for row in rows)

    async def find_made_objects(self, stack: str, within: float) -> tuple[MadeObject, ...]:
        """The objects that creates of the stack made in the last `within` seconds, and those of open intents."""
        now = self._now()
        rows = await self._rows(_READ_MADE, stack, since=now - within)
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

    def _intent(self, row: Any) -> Intent:
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

    def _check_intent(self, row: Any) -> None:
        place = [] if row.place is None else [row.place]
        self._check(row, row.id, row.stack, row.address, row.path, row.before, row.identity, *place)

    async def membership(self, stack: str) -> AccountMembership | None:
        """Which account the stack belongs to; None if it was never applied."""
        for row in await self._rows(_READ_ACCOUNT, stack):
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
        rows = await self._rows(_READ_CALLS, stack, limit=limit)
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
        from reconciler.store.history import History  # deferred: a plan needs no part of it

        return History(self._session, self._scope)

    async def _rows(self, query: str, stack: str = "", **parameters: object) -> list[Any]:
        return await asyncio.to_thread(self._session.rows, query, {"stack": self._key(stack), **parameters})

    def _check(self, row: Any, *content: object) -> None:
        if row.seal != encoding.seal(*content):
            raise Damaged(self._place, "a row does not match its seal")


def _read_place(stored: str) -> Place:
    return Place(**json.loads(stored))
