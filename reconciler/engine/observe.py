"""Reads the account into a snapshot: lists every collection in parallel, without a GET for each object.

Marks lists that could not be read to their end; `planning` decides what follows from that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds as registry
from reconciler.engine.ports import Clock, Failure, Gone, Reader, Refused
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.snapshot import NOT_OFFERED, Binding, Listing, Live, LiveKey, Snapshot
from reconciler.model.value import Json

ById = Mapping[str, Sequence[tuple[str, str | None]]]
"""Per kind, objects of which only modules are managed: (id, id of the parent)."""

OnList = Callable[[int, int], None]
"""Called with the number of lists of the account that were read, and their total."""

_FIRST_PAUSE = 0.5  # seconds before an object that is not visible yet is read again; each later pause is doubled

_T = TypeVar("_T")


class Settling(Struct, frozen=True):
    """Objects that a create made a moment ago, which the platform may not show yet.

    seconds  by kind and locator: the time for which the absence of the object means nothing
    on_wait  called with the object and the remaining seconds before each pause
    """

    seconds: Mapping[LiveKey, float]
    clock: Clock
    on_wait: Callable[[LiveKey, float], None] = lambda key, seconds: None


async def observe(
    reader: Reader,
    kinds: Iterable[Kind],
    *,
    bindings: Mapping[Address, Binding] | None = None,
    receipts: frozenset[str] = frozenset(),
    by_id: ById | None = None,
    expected: Collection[Address] = (),
    settling: Settling | None = None,
    concurrency: int = 16,
    on_list: OnList = lambda read, total: None,
) -> Snapshot:
    """A snapshot of these kinds. A list that fails is marked as incomplete.

    bindings     of the store, by address
    receipts     intents whose one-time secret was delivered
    by_id        objects that no list shows, to be read by id, module by module
    expected     declared addresses. If one has a binding and the list does not show its object, the object is read by
                 id: a list may lag behind, and the object must not be created twice
    settling     objects that are read by id too, again and again until they are visible or their time is over
    concurrency  lists at once
    on_list      called before the first list is read, and after each

    Raises Refused if the key is not accepted at all, or may not read a kind that is `expected` or bound.
    """
    account = _AccountReader(reader, concurrency, settling, on_list)
    selected = {kind.name: kind for kind in kinds}
    tops = {kind.name: kind for kind in selected.values() if kind.parent is None}
    for kind in selected.values():
        if kind.parent is not None:
            tops.setdefault(kind.parent.kind, registry.get(kind.parent.kind))
    listings = await account.list_collections(tops.values())
    children = [kind for kind in selected.values() if kind.parent is not None]
    child_listings = await _gather([account.list_children(kind, _parents(kind, listings)) for kind in children])
    listings |= {kind.name: listing for kind, listing in zip(children, child_listings, strict=True)}
    for name, ids in (by_id or {}).items():
        if name in selected and selected[name].modules_by_id:
            listings[name] = await account.add_by_id(selected[name], listings[name], ids)
    wanted = _find_expected(bindings or {}, expected, settling)
    for name in filter(wanted.__contains__, selected):
        listings[name] = await account.add_unlisted(selected[name], listings[name], list(dict.fromkeys(wanted[name])))
    _refuse_denied(listings, {address.kind for address in (*expected, *(bindings or {}))}, account.denied)
    return Snapshot({name: listings[name] for name in selected}, dict(bindings or {}), receipts)


def _find_expected(
    bindings: Mapping[Address, Binding], expected: Collection[Address], settling: Settling | None
) -> Mapping[str, list[str]]:
    """The locators of the objects that have to be visible, by kind."""
    found: dict[str, list[str]] = {}
    for address, binding in bindings.items():
        if address in expected:
            found.setdefault(address.kind, []).append(binding.id)
    for kind, locator in settling.seconds if settling else ():
        found.setdefault(kind, []).append(locator)
    return found


def collection_path(kind: Kind, parent_id: str | None) -> str:
    """The path of a kind's collection, with the id of the parent filled in."""
    if kind.parent is None or parent_id is None:
        return kind.path
    return kind.path.replace(f"{{{kind.parent.field}}}", quote(parent_id, safe=""))


def find_embedded(kind: Kind, parent: Mapping[str, Json]) -> list[Json] | None:
    """The children that the body of a parent contains; None if it has no such field."""
    inside = parent.get(kind.parent.embedded) if kind.parent else None
    return inside if isinstance(inside, list) else None


def _refuse_denied(listings: Mapping[str, Listing], needed: Collection[str], denied: Mapping[str, Refused]) -> None:
    """Raises only for needed kinds: a key may be restricted to a part of the account on purpose."""
    blind = all(listing.denied for listing in listings.values())
    for name, failure in denied.items():
        if blind or name in needed:
            raise failure


class _AccountReader:
    """Lists collections with limited concurrency, and remembers which ones the key may not read."""

    def __init__(self, reader: Reader, concurrency: int, settling: Settling | None, on_list: OnList) -> None:
        self._reader = reader
        self._on_list = on_list
        self._settling = settling
        self._began = settling.clock.now() if settling is not None else 0.0
        self._slots: AbstractAsyncContextManager[Any] = asyncio.Semaphore(concurrency)
        self._refused: dict[str, Refused] = {}  # paths that the key may not read
        self.denied: dict[str, Refused] = {}  # and kinds

    async def list_collections(self, kinds: Iterable[Kind]) -> dict[str, Listing]:
        """The listing of each kind. A collection that several kinds share is listed once."""
        sharing: dict[tuple[str, str], list[Kind]] = {}
        for kind in kinds:
            sharing.setdefault((kind.path, kind.list_key), []).append(kind)
        read = count(1)
        self._on_list(0, len(sharing))

        async def list_bodies(path: str, key: str) -> tuple[list[Json], str]:
            found = await self._list_bodies(path, key)
            self._on_list(next(read), len(sharing))
            return found

        pages = await _gather([list_bodies(path, key) for path, key in sharing])
        return {
            kind.name: self._make_listing(kind, kind.path, bodies, why, None)
            for group, (bodies, why) in zip(sharing.values(), pages, strict=True)
            for kind in group
        }

    def _make_listing(self, kind: Kind, path: str, bodies: Iterable[Json], why: str, parent_id: str | None) -> Listing:
        listing = _make_listing(kind, bodies, why, parent_id)
        if path not in self._refused:
            return listing
        self.denied[kind.name] = self._refused[path]
        return replace(listing, denied=True)

    async def list_children(self, kind: Kind, parents: Listing) -> Listing:
        if not parents.complete:
            return Listing(complete=False, why=parents.why, denied=parents.denied)
        # Most parents contain their children, which then need no request.
        inside = [(parent, find_embedded(kind, parent.body)) for parent in parents.objects]
        listed = iter(await _gather([self._list_below(kind, parent) for parent, bodies in inside if bodies is None]))
        found = [
            next(listed) if bodies is None else _make_listing(kind, bodies, "", parent.id) for parent, bodies in inside
        ]
        cut = next((listing for listing in found if not listing.complete), None)
        why = cut.why if cut else ""
        if cut is not None and not cut.is_offered and any(listing.complete for listing in found):
            # The platform has the collection: this parent was deleted meanwhile.
            why = f"{why.removeprefix(NOT_OFFERED)}: not found; was the {parents.objects[0].kind} deleted meanwhile?"
        return Listing(
            tuple(live for listing in found for live in listing.objects),
            complete=cut is None,
            why=why,
            denied=cut.denied if cut else False,
        )

    async def _list_below(self, kind: Kind, parent: Live) -> Listing:
        path = collection_path(kind, parent.id)
        listed, why = await self._list_bodies(path, kind.list_key)
        return self._make_listing(kind, path, listed, why, parent.id)

    async def add_by_id(self, kind: Kind, listing: Listing, ids: Sequence[tuple[str, str | None]]) -> Listing:
        """The listing with those objects added that it does not show, each read by id from its modules."""
        listed_ids = {live.id for live in listing.objects}
        absent = [(id, parent_id) for id, parent_id in dict.fromkeys(ids) if id not in listed_ids and parent_id]
        found = await _gather([self._read_modules(kind, id, parent_id or "") for id, parent_id in absent])
        why = next((answer for answer in found if isinstance(answer, str)), "")
        return replace(
            listing,
            objects=(*listing.objects, *(live for live in found if isinstance(live, Live))),
            complete=listing.complete and not why,
            why=listing.why or why,
        )

    async def add_unlisted(self, kind: Kind, listing: Listing, locators: Sequence[str]) -> Listing:
        """The listing with those of these objects added that exist although the list does not show them."""
        listed = {live.locator for live in listing.objects}
        absent = [locator for locator in locators if locator not in listed] if listing.complete else []
        found = await _gather([self._read_settled(kind, locator) for locator in absent])
        why = next((answer for answer in found if isinstance(answer, str)), "")
        unlisted = tuple(live for live in found if isinstance(live, Live))
        complete, why = listing.complete and not why, listing.why or why
        return replace(listing, objects=(*listing.objects, *unlisted), complete=complete, why=why)

    async def _read_settled(self, kind: Kind, locator: str) -> Live | str | None:
        """As `_read_object`, but an object that a create made a moment ago is read again until its time is over."""
        found, settling, pause = await self._read_object(kind, locator), self._settling, _FIRST_PAUSE
        key = (kind.name, locator)
        while found is None and settling is not None:
            remaining = self._began + settling.seconds.get(key, 0.0) - settling.clock.now()
            if remaining <= 0:
                break
            settling.on_wait(key, remaining)
            await settling.clock.sleep(min(pause, remaining))
            found, pause = await self._read_object(kind, locator), 2 * pause
        return found

    async def _read_object(self, kind: Kind, locator: str) -> Live | str | None:
        """One object; None if it does not exist; the error text if it could not be read."""
        parent_id, _, id = locator.rpartition("/")
        path = f"{collection_path(kind, parent_id or None)}/{quote(id, safe='')}"
        async with self._slots:
            try:
                body = await self._reader.get(path)
            except Gone:
                return None
            except Refused as failure:
                if failure.is_permission:
                    raise
                return str(failure)
            except Failure as failure:
                return str(failure)
        if not isinstance(body, dict) or body.get(kind.key) != id:
            return f"the response to GET {path} is not that object"
        live = Live(kind.name, id, body, parent_id or None)
        return live if kind.keeps_owner else live.without_owner()

    async def _read_modules(self, kind: Kind, id: str, parent_id: str) -> Live | str:
        """An object with its modules as fields, or the error text if one could not be read."""
        base = f"{collection_path(kind, parent_id)}/{quote(id, safe='')}"
        try:
            modules = await _gather([self._read_module(f"{base}/{name}") for name in kind.modules_by_id])
        except Refused as failure:
            if failure.is_permission:
                raise
            return str(failure)
        except Failure as failure:
            return str(failure)
        return Live(kind.name, id, {kind.key: id, **dict(zip(kind.modules_by_id, modules, strict=True))}, parent_id)

    async def _read_module(self, path: str) -> Json:
        """The body of a module; None if it is unset. How is undocumented: 404, null, and only null fields all count."""
        async with self._slots:
            try:
                body = await self._reader.get(path)
            except Gone:
                return None
        if body is not None and not isinstance(body, dict):
            raise Refused(f"the response to GET {path} is not a module; check platform.base_url")
        return None if body is None or all(value is None for value in body.values()) else body

    async def _list_bodies(self, path: str, key: str) -> tuple[list[Json], str]:
        """The objects of a collection, and why the list is incomplete; empty if it is complete."""
        bodies: list[Json] = []
        async with self._slots:
            try:
                async for page in self._reader.pages(path, key):
                    bodies.extend(page)
            except Gone as failure:
                # Only the first page shows that there is no such collection.
                return bodies, f"a later page of {path}: {failure}" if bodies else NOT_OFFERED + path
            except Refused as failure:
                if failure.is_unauthenticated:
                    raise
                if failure.is_permission:
                    self._refused[path] = failure
                return bodies, str(failure)
            except Failure as failure:
                return bodies, str(failure)
        return bodies, ""


def _parents(kind: Kind, listings: Mapping[str, Listing]) -> Listing:
    assert kind.parent is not None
    return listings[kind.parent.kind]


def _make_listing(kind: Kind, bodies: Iterable[Json], why: str, parent_id: str | None) -> Listing:
    found: dict[str, Live] = {}
    name, key, fixed = kind.name, kind.key, list(kind.wire.fixed.items())
    for body in bodies:
        id = body.get(key) if isinstance(body, dict) else None
        if not isinstance(id, str) or not id:
            why = why or f"an object in the platform's list of {kind.list_key} has no {key}"
        elif not fixed or all(body.get(field) == value for field, value in fixed):
            # An object that moves to the next page during the reading is listed twice: the later body is newer.
            live = Live(name, id, body, parent_id)
            found[id] = live if kind.keeps_owner else live.without_owner()
    return Listing(tuple(found.values()), complete=not why, why=why)


async def _gather(work: Sequence[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Runs coroutines concurrently; the first exception cancels the rest and is raised."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
