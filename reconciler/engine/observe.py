"""Looks at the account once: every collection listed in parallel, never a GET per object.

Says what was seen and which lists did not reach their end; what that means is for planning to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote

from reconciler import kinds as registry
from reconciler.engine.ports import Failure, Gone, Reader, Refused
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.snapshot import NOT_OFFERED, Binding, Listing, Live, Snapshot
from reconciler.model.value import Json

ById = Mapping[str, Sequence[tuple[str, str | None]]]
"""Per kind the objects that are named by id and nothing else: (id, parent's id)."""

_T = TypeVar("_T")


async def observe(
    reader: Reader,
    kinds: Iterable[Kind],
    *,
    bindings: Mapping[Address, Binding] | None = None,
    receipts: frozenset[str] = frozenset(),
    by_id: ById | None = None,
    expected: Collection[Address] = (),
    concurrency: int = 16,
) -> Snapshot:
    """One look at these kinds. Raises Refused if the key is not accepted, or may not read what is `expected` or bound;
    other failures leave a list incomplete.

    A list may lag behind: an `expected` object that a binding knows and no list shows is asked for by its id, before
    anybody makes it a second time.
    """
    look = _AccountReader(reader, concurrency)
    wanted = {kind.name: kind for kind in kinds}
    tops = {kind.name: kind for kind in wanted.values() if kind.parent is None}
    for kind in wanted.values():
        if kind.parent is not None:
            tops.setdefault(kind.parent.kind, registry.get(kind.parent.kind))
    listings = await look.list_collections(tops.values())
    children = [kind for kind in wanted.values() if kind.parent is not None]
    below = await _gather([look.list_children(kind, _parents(kind, listings)) for kind in children])
    listings |= {kind.name: listing for kind, listing in zip(children, below, strict=True)}
    for name, ids in (by_id or {}).items():
        if name in wanted and wanted[name].modules_by_id:
            listings[name] = await look.add_by_id(wanted[name], listings[name], ids)
    known = {address: each for address, each in (bindings or {}).items() if address in expected}
    for name, kind in wanted.items():
        locators = [binding.id for address, binding in known.items() if address.kind == name]
        listings[name] = await look.add_unlisted(kind, listings[name], locators)
    _refuse_denied(listings, {address.kind for address in (*expected, *(bindings or {}))}, look.denied)
    return Snapshot({name: listings[name] for name in wanted}, dict(bindings or {}), receipts)


def collection_path(kind: Kind, parent_id: str | None) -> str:
    """The path of a collection; below a parent its id is filled in."""
    if kind.parent is None or parent_id is None:
        return kind.path
    return kind.path.replace(f"{{{kind.parent.field}}}", quote(parent_id, safe=""))


def find_embedded(kind: Kind, parent: Mapping[str, Json]) -> list[Json] | None:
    """The children that a parent's own body carries; None if it says nothing of them."""
    inside = parent.get(kind.parent.embedded) if kind.parent else None
    return inside if isinstance(inside, list) else None


def _refuse_denied(listings: Mapping[str, Listing], needed: Collection[str], denied: Mapping[str, Refused]) -> None:
    """A key may be meant for a part of the account: that it may not read the rest is no failure."""
    blind = all(listing.denied for listing in listings.values())
    for name, failure in denied.items():
        if blind or name in needed:
            raise failure


class _AccountReader:
    def __init__(self, reader: Reader, concurrency: int) -> None:
        self._reader = reader
        self._slots: AbstractAsyncContextManager[Any] = asyncio.Semaphore(concurrency)
        self._refused: dict[str, Refused] = {}  # paths that the key may not read
        self.denied: dict[str, Refused] = {}  # and kinds

    async def list_collections(self, kinds: Iterable[Kind]) -> dict[str, Listing]:
        """Each distinct collection is listed once, however many kinds live in it."""
        sharing: dict[tuple[str, str], list[Kind]] = {}
        for kind in kinds:
            sharing.setdefault((kind.path, kind.list_key), []).append(kind)
        pages = await _gather([self._list_bodies(path, key) for path, key in sharing])
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
        # Most parents carry their children, and nothing has to be asked for those.
        inside = [(parent, find_embedded(kind, parent.body)) for parent in parents.objects]
        listed = iter(await _gather([self._list_below(kind, parent) for parent, bodies in inside if bodies is None]))
        found = [
            next(listed) if bodies is None else _make_listing(kind, bodies, "", parent.id) for parent, bodies in inside
        ]
        cut = next((listing for listing in found if not listing.complete), None)
        return Listing(
            tuple(live for listing in found for live in listing.objects),
            complete=cut is None,
            why=cut.why if cut else "",
            denied=cut.denied if cut else False,
        )

    async def _list_below(self, kind: Kind, parent: Live) -> Listing:
        path = collection_path(kind, parent.id)
        listed, why = await self._list_bodies(path, kind.list_key)
        return self._make_listing(kind, path, listed, why, parent.id)

    async def add_by_id(self, kind: Kind, listing: Listing, ids: Sequence[tuple[str, str | None]]) -> Listing:
        """The listing, and the modules of objects that are named by id and that it does not show."""
        shown = {live.id for live in listing.objects}
        absent = [(id, parent_id) for id, parent_id in dict.fromkeys(ids) if id not in shown and parent_id]
        found = await _gather([self._read_modules(kind, id, parent_id or "") for id, parent_id in absent])
        why = next((answer for answer in found if isinstance(answer, str)), "")
        return replace(
            listing,
            objects=(*listing.objects, *(live for live in found if isinstance(live, Live))),
            complete=listing.complete and not why,
            why=listing.why or why,
        )

    async def add_unlisted(self, kind: Kind, listing: Listing, locators: Sequence[str]) -> Listing:
        """The listing with those of these objects that exist although it does not show them."""
        shown = {live.locator for live in listing.objects}
        absent = [locator for locator in locators if locator not in shown] if listing.complete else []
        found = await _gather([self._read_object(kind, locator) for locator in absent])
        why = next((answer for answer in found if isinstance(answer, str)), "")
        there = tuple(live for live in found if isinstance(live, Live))
        complete, why = listing.complete and not why, listing.why or why
        return replace(listing, objects=(*listing.objects, *there), complete=complete, why=why)

    async def _read_object(self, kind: Kind, locator: str) -> Live | str | None:
        """One object, None if there is none, or why that cannot be told."""
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
            return f"{path} did not answer with the object"
        return Live(kind.name, id, body, parent_id or None)

    async def _read_modules(self, kind: Kind, id: str, parent_id: str) -> Live | str:
        """The object as far as its modules show it, or why that could not be had."""
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
        """A module's body, or None: nothing documents how an unset one answers, so every way of saying it counts."""
        async with self._slots:
            try:
                body = await self._reader.get(path)
            except Gone:
                return None
        if body is not None and not isinstance(body, dict):
            raise Refused(f"{path} did not answer with a module; is base_url the address of the platform's API?")
        return None if body is None or all(value is None for value in body.values()) else body

    async def _list_bodies(self, path: str, key: str) -> tuple[list[Json], str]:
        """All objects of a collection, and why the list is cut short if it is."""
        bodies: list[Json] = []
        async with self._slots:
            try:
                async for page in self._reader.pages(path, key):
                    bodies.extend(page)
            except Gone:
                return bodies, NOT_OFFERED + path
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
    name, key, fixed = kind.name, kind.key, list(kind.fixed.items())
    for body in bodies:
        id = body.get(key) if isinstance(body, dict) else None
        if not isinstance(id, str) or not id:
            why = why or f"the platform listed an object without {key} among {kind.list_key}"
        elif not fixed or all(body.get(field) == value for field, value in fixed):
            # An object that slips to the next page while we read comes twice: the later body is the fresher one.
            found[id] = Live(name, id, body, parent_id)
    return Listing(tuple(found.values()), complete=not why, why=why)


async def _gather(work: Sequence[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Everything at once; the first exception cancels the rest and is raised as it is."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
