"""Lists the objects of all kinds with the stack and address that manage each one. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler import kinds
from reconciler.engine.observe import observe
from reconciler.engine.ports import Reader
from reconciler.kinds import read_only
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Listing, Live, Snapshot
from reconciler.model.value import Json

if TYPE_CHECKING:
    from reconciler.operations.open_project import OpenProject
    from reconciler.store.reading import StoreReader


class ListedObject(Struct, frozen=True):
    """One object of the account.

    stack    the stack that manages it; empty: none is known
    address  its address in that stack; empty if unknown
    """

    kind: Kind
    live: Live
    stack: str = ""
    address: str = ""


class AccountListing(Struct, frozen=True):
    """The objects of the account, by kind, and why lists are incomplete, by the name of the kind."""

    objects: tuple[ListedObject, ...]
    incomplete: Mapping[str, str]


async def list_account(project: OpenProject, reader: Reader, store: StoreReader | None) -> AccountListing:
    """Lists each collection of the platform once. A collection that the platform does not have is left out."""
    listed = [*kinds.every(), *read_only.KINDS]
    snapshot = await observe(reader, listed, concurrency=project.parallelism)
    owners = {**_find_automatic_owners(snapshot), **await _read_owners(project.manifest.stack, store)}
    objects = [_to_listed(kind, live, owners) for kind, live in _find_objects(listed, snapshot)]
    incomplete = {name: listing.why for name, listing in snapshot.listings.items() if _is_incomplete(listing)}
    return AccountListing(tuple(sorted(objects, key=lambda listed: listed.kind.name)), dict(sorted(incomplete.items())))


def _is_incomplete(listing: Listing) -> bool:
    return not listing.complete and listing.is_offered


def _find_objects(listed: list[Kind], snapshot: Snapshot) -> Iterator[tuple[Kind, Live]]:
    """Each object once: two kinds can share a collection, and the one that can be declared comes first."""
    found = set()
    for kind in listed:
        for live in snapshot.of(kind.name).objects:
            if (kind.path, live.locator) not in found:
                found.add((kind.path, live.locator))
                yield kind, live


async def _read_owners(stack: str, store: StoreReader | None) -> Mapping[tuple[str, str], tuple[str, str]]:
    """Stack and address by kind and locator, of objects that have no owner record."""
    if store is None:
        return {}
    unmarked = [kind.name for kind in kinds.every() if not kind.keeps_owner]
    elsewhere = await store.find_bound_elsewhere(stack, unmarked)
    bound = await store.bindings(stack)
    return {key: (other, "") for key, other in elsewhere.items()} | {
        (address.kind, binding.id): (stack, str(address)) for address, binding in bound.items()
    }


def _find_automatic_owners(snapshot: Snapshot) -> Mapping[tuple[str, str], tuple[str, str]]:
    """As `_read_owners`, for objects that the platform created for another one: stack and address of that one."""
    owners: dict[tuple[str, str], tuple[str, str]] = {}
    for kind, place, target in _list_automatic_places():
        created = {live.locator for live in snapshot.of(target.name).objects if target.is_automatic(live.body)}
        for live in snapshot.of(kind.name).objects:
            if live.owner is not None and (locator := _read_text(live.body, place)) in created:
                owners[target.name, locator] = live.owner.stack, str(live.owner.address)
    return owners


def _list_automatic_places() -> Iterator[tuple[Kind, str, Kind]]:
    """Kinds, the place in their responses that names an object which the platform may have created, and its kind."""
    for kind in kinds.every():
        for field in kind.fields:
            targets = [kinds.get(name) for name in field.refs or ()]
            if field.read_as is not None and field.read_as.unless:
                place = field.read_as.path
                yield from ((kind, place, target) for target in targets if target.wire.automatic is not None)


def _read_text(body: Json, place: str) -> str:
    for step in place.split("."):
        body = body.get(step) if isinstance(body, Mapping) else None
    return body if isinstance(body, str) else ""


def _to_listed(kind: Kind, live: Live, owners: Mapping[tuple[str, str], tuple[str, str]]) -> ListedObject:
    if live.owner is not None:
        return ListedObject(kind, live, live.owner.stack, str(live.owner.address))
    return ListedObject(kind, live, *owners.get((kind.name, live.locator), ()))
