"""Re-reads the owner record before each update or delete and refuses objects that another stack owns by now.

The platform has no conditional requests, so every attempt of a call is checked right before its request is sent: an
object counts as confirmed if its reading began at most `FRESH` seconds before. The objects of a collection are read
with a list if that takes fewer requests, and one by one otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from msgspec import Struct, field

from reconciler.engine import requests
from reconciler.engine.ports import Clock, Failure, Platform, Refused
from reconciler.model.change import Action, Reason
from reconciler.model.fields.annotations import AlwaysSent
from reconciler.model.kind import Kind
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.snapshot import Live
from reconciler.model.value import Json

FRESH = 5.0  # seconds for which a reading confirms who owns an object
PAGE = 100  # objects: the platform's largest page


class _Reading(Struct, frozen=True):
    """An object as a response showed it. `began`: when its request was sent; `listed`: the response was a list."""

    began: float
    live: Live
    listed: bool = False


class _Collection(Struct):
    """A collection with objects that the plan's calls change, and whether listing it saves requests."""

    kind: Kind
    pages: int  # requests that a list takes: an estimate, then the count
    unconfirmed: dict[str, str] = field(default_factory=dict)  # call id → object path
    requests_saved: int | None = None  # by the latest list; None: not listed yet
    next_page: asyncio.Event | None = None  # set when a list has its next page or ends; None: no list is being read

    @property
    def is_worth_listing(self) -> bool:
        return len(self.unconfirmed) > self.pages and (self.requests_saved is None or self.requests_saved >= self.pages)


class OwnershipCheck:
    """The ownership of the objects that the calls of a run change, as far as the run has read it."""

    def __init__(self, plan: Plan, platform: Platform, clock: Clock, kinds: Mapping[str, Kind]) -> None:
        self._plan = plan
        self._platform = platform
        self.clock = clock
        self._kinds = kinds
        self._readings: dict[str, _Reading] = {}  # object path → the latest
        self._changed_at: dict[str, float] = {}  # object path → when the latest change by this run ended
        self._additions = {change.address for change in plan.changes if change.reason is Reason.ADDED}
        self._forgotten = {change.address for change in plan.changes if change.action is Action.FORGET}
        self._unowned = self._additions | {
            change.address for change in plan.changes if change.action is Action.ADOPT or change.reason is Reason.ABSENT
        }  # objects that may have had no owner record
        self._collections = self._group_calls()

    def check(self, call: Call, path: str) -> Check | None:
        """The check of one attempt of a call to `path`; None if neither the object nor its parent has an owner record.

        An object of a kind without owner records is checked by the owner record of its parent.
        """
        found = self._find_record(call, path)
        if found is None:
            return None
        kind, path = found
        if kind.name != call.address.kind:
            return Check(self, kind, path, lambda parent: self._verify_parent(call, parent), call=call)
        was_unowned = call.verb is Verb.DELETE and call.address in self._additions
        was_owned = self._was_owned(call)
        return Check(
            self, kind, path, lambda live: self._verify(live, was_owned=was_owned, was_unowned=was_unowned), call=call
        )

    def _find_record(self, call: Call, path: str) -> tuple[Kind, str] | None:
        """Kind and path of the object whose owner record decides who owns what a call changes."""
        kind = self._kinds[call.address.kind]
        if call.verb in (Verb.PUT, Verb.REMOVE):
            path = path.rpartition("/")[0]
        if kind.keeps_owner:
            return kind, path
        parent = self._kinds.get(kind.parent.kind) if kind.parent is not None else None
        if parent is None or not parent.keeps_owner:
            return None
        return parent, _collection_path(_collection_path(path))

    def check_created(self, call: Call, path: str) -> Check | None:
        """The check of a delete of an object that this run created; None for a kind without owner records."""
        kind = self._kinds[call.address.kind]
        return Check(self, kind, path, lambda live: self._verify(live, was_owned=True)) if kind.keeps_owner else None

    async def list_collection(self, path: str) -> None:
        """Lists the collection of an object if that saves requests, or waits until a list being read shows the object.

        If the list fails, objects are read one by one.
        """
        collection = self._collections.get(_collection_path(path))
        if collection is None:
            return
        if collection.next_page is None and collection.is_worth_listing:
            await self._list(_collection_path(path), collection)
            return
        while collection.next_page is not None and self.find_fresh(path) is None:
            await collection.next_page.wait()

    async def _list(self, path: str, collection: _Collection) -> None:
        collection.requests_saved, pages = 0, 0
        wanted = set(collection.unconfirmed.values())
        next_page = collection.next_page = asyncio.Event()
        began = self.clock.now()
        try:
            async for page in self._platform.pages(path, collection.kind.list_key):
                pages += 1
                for body in page:
                    live = Live(collection.kind.name, str(body.get(collection.kind.key)), body)
                    if (object_path := f"{path}/{quote(live.id, safe='')}") in wanted:
                        self.keep_reading(object_path, _Reading(began, live, listed=True))
                began = self.clock.now()  # a page is requested when it is asked for
                next_page.set()
                next_page = collection.next_page = asyncio.Event()
            collection.pages = pages
        except Failure:
            del self._collections[path]  # what its pages showed counts; it is not listed again
        finally:
            collection.next_page = None
            next_page.set()

    def find_fresh(self, path: str) -> Live | None:
        """The object if it was read at most `FRESH` seconds ago; None otherwise."""
        reading = self._readings.get(path)
        return reading.live if reading is not None and self.clock.now() - reading.began <= FRESH else None

    def keep_reading(self, path: str, reading: _Reading) -> None:
        """Keeps the newest reading. Ignores one that began before the last change by this run ended."""
        before = self._readings.get(path)
        is_newer = before is None or reading.began >= before.began
        if is_newer and reading.began >= self._changed_at.get(path, float("-inf")):
            self._readings[path] = reading

    def count_confirmation(self, check: Check) -> None:
        """Removes the call from those to be confirmed, and counts the request if a list saved it."""
        collection = self._collections.get(_collection_path(check.path))
        if collection is None or check.call is None:
            return
        collection.unconfirmed.pop(check.call.id, None)
        if (reading := self._readings.get(check.path)) is not None and reading.listed:
            collection.requests_saved = (collection.requests_saved or 0) + 1

    def forget(self, path: str) -> None:
        """Drops the reading of an object: a request that may have changed it has ended."""
        self._changed_at[path] = self.clock.now()
        self._readings.pop(path, None)

    def learn(self, kind: Kind, path: str, sent_at: float, answer: Json = None) -> None:
        """Keeps the object that the response to a request of this run shows. `sent_at`: when the request was sent."""
        self.forget(path)
        if isinstance(answer, Mapping) and isinstance(answer.get(kind.key), str):
            body = {name: value for name, value in answer.items() if name != kind.one_time}
            live = Live(kind.name, str(answer[kind.key]), body)
            if live.owner is not None and live.owner.stack == self._plan.stack:
                self._readings[path] = _Reading(sent_at, live)

    def _verify(self, live: Live, *, was_owned: bool, was_unowned: bool = False) -> None:
        """Raises Refused if another stack owns the object now, if this stack lost it, or unexpectedly owns it."""
        owner = live.owner
        if owner is not None and was_unowned and owner.stack == self._plan.stack:
            raise Refused(f"{live.id} was not changed: it is now {owner.address} of this stack; plan again")
        if owner is not None and owner.stack != self._plan.stack:
            raise Refused(f"{live.id} was not changed: it is now {owner.address} of stack {owner.stack}; plan again")
        if owner is None and was_owned:
            raise Refused(
                f"{live.id} was not changed: its owner record was removed after the plan was created; plan again"
            )

    def _verify_parent(self, call: Call, parent: Live) -> None:
        """Raises Refused if the parent belongs to another stack than in the plan, or, of an addition, to none."""
        seen = self._plan.observed.get(call.address)
        expected = {self._plan.stack} if seen is None else {self._plan.stack, seen.owner}
        owner = parent.owner
        if owner is not None and owner.stack not in expected:
            now = f"{owner.address} of stack {owner.stack}"
            raise Refused(f"{call.target} was not changed: its parent {parent.id} is now {now}; plan again")
        if owner is None and call.address in self._additions:
            why = f"the owner record of its parent {parent.id} was removed after the plan was created"
            raise Refused(f"{call.target} was not changed: {why}; plan again")

    def _was_owned(self, call: Call) -> bool:
        """Whether the object had an owner record of this stack when the plan was created, or this run created it."""
        if call.target is None:
            return True
        if call.owner is not None:
            return call.owner.intent is not None
        if call.verb is Verb.DELETE:
            return call.address not in self._unowned
        seen = self._plan.observed.get(call.address)
        return seen is not None and bool(seen.owner) and call.address not in self._forgotten

    def _group_calls(self) -> dict[str, _Collection]:
        """The collections in which calls change objects, by path."""
        found: dict[str, _Collection] = {}
        for call in self._plan.calls:
            checked = self._find_record(call, str(call.path)) if call.target is not None else None
            if checked is None or checked[0].parent is not None:
                continue  # a child with an owner record is read by itself
            kind, path = checked
            if (collection := found.get(_collection_path(path))) is None:
                pages = 1 + len(requests.ids_in_plan(self._plan, kind.name)) // PAGE
                collection = found[_collection_path(path)] = _Collection(kind, pages)
            collection.unconfirmed[call.id] = path
        return found


class Check:
    """Checks one attempt of a request right before it is sent; see `ports.Check`."""

    def __init__(
        self,
        ownership: OwnershipCheck,
        kind: Kind,
        path: str,
        verify: Callable[[Live], None],
        *,
        call: Call | None = None,
    ) -> None:
        """`kind` and `path` are those of the object to read; `verify` raises Refused if it must not be changed."""
        self.path = path
        self.call = call
        self.sent_at = float("-inf")
        self._ownership = ownership
        self._kind = kind
        self._verify = verify

    def is_due(self) -> bool:
        return self._ownership.find_fresh(self.path) is None

    async def prepare(self) -> None:
        if self.is_due():
            await self._ownership.list_collection(self.path)

    async def confirm(self, read: Callable[[], Awaitable[Json]]) -> Mapping[str, Json]:
        live = self._ownership.find_fresh(self.path)
        if live is None:
            live, seconds = await self._read(read)
            if seconds > FRESH:  # the process may have been suspended during the request
                live, _ = await self._read(read)
        self._verify(live)
        self._ownership.count_confirmation(self)
        self.sent_at = self._ownership.clock.now()
        call = self.call
        updates = call is not None and call.verb is Verb.UPDATE and call.address.kind == live.kind
        return _always_sent_fields(self._kind, live) if updates else {}

    async def _read(self, read: Callable[[], Awaitable[Json]]) -> tuple[Live, float]:
        """The object, and the seconds since its reading began."""
        clock = self._ownership.clock
        began = clock.now()
        live = _parse_live(self._kind, await read(), self.path)
        self._ownership.keep_reading(self.path, _Reading(began, live))
        return live, clock.now() - began


class SendTime:
    """The check of a create, before which there is nothing to read: notes when the request is sent."""

    path = ""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.sent_at = float("-inf")

    def is_due(self) -> bool:
        return False

    async def prepare(self) -> None:
        pass

    async def confirm(self, read: Callable[[], Awaitable[Json]]) -> Mapping[str, Json]:
        self.sent_at = self._clock.now()
        return {}


def _always_sent_fields(kind: Kind, live: Live) -> dict[str, Json]:
    """The fields that every PATCH must contain, with their values on the platform."""
    found = {field.name: live.body.get(field.name) for field in kind.fields if AlwaysSent in field}
    return {name: value for name, value in found.items() if value is not None}


def _collection_path(path: str) -> str:
    return path.rpartition("/")[0]


def _parse_live(kind: Kind, body: Json | Mapping[str, Json], path: str) -> Live:
    if not isinstance(body, Mapping):
        raise Refused(f"the response to GET {path} is not an object")
    return Live(kind.name, str(body.get(kind.key)), body)
