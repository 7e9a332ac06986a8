"""Reads an account into a snapshot, with the data of the store."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.engine.observe import ById, Settling, observe
from reconciler.engine.ports import Reader
from reconciler.model.address import Address
from reconciler.model.kind import Home, Kind
from reconciler.model.manifest import REMOTE_WAYS, Delivery, Manifest
from reconciler.model.snapshot import Binding, IssuedSecret, LiveKey, Place, Snapshot, Target
from reconciler.operations.errors import UnreadableAccount
from reconciler.operations.opening import account_identity
from reconciler.operations.reporting import ListRead, Note, OnEvent, ignore_event
from reconciler.operations.runtime import Runtime
from reconciler.planning.deciding import delivery_targets
from reconciler.project.settings.config import Config

if TYPE_CHECKING:
    from reconciler.store.reading import StoreReader


class AccountReading(Struct, frozen=True):
    """What of a project decides how its account is read.

    parallelism  requests at a time
    """

    config: Config
    manifest: Manifest
    account: Account
    runtime: Runtime
    parallelism: int

    @property
    def account_name(self) -> str:
        """The account: base URL, and the name that the project gives it."""
        return account_identity.account_of(self.account.base_url, self.config.account)

    async def read(
        self,
        reader: Reader,
        store: StoreReader | None,
        *,
        only: frozenset[str] | None = None,
        within: frozenset[str] | None = None,
        also: Collection[str] = (),
        by_id: ById | None = None,
        on_event: OnEvent = ignore_event,
    ) -> Snapshot:
        """A snapshot of every kind, since the stack may own objects of any, or of the kinds in `only`.

        within  of these kinds those that are read without `only`. All are read if no object of the last apply shows
                that this is the stack's account
        also    kinds of an agent to read although the project does not use them
        by_id   objects of which only modules are managed; None: those of the manifests

        Waits for objects that a create of the stack made a moment ago until they are visible (`limits.settle_seconds`).

        Raises UnreadableAccount if no list can be read, or an engine `Failure` if the key is not accepted.
        """
        manifest, stack = self.manifest, self.manifest.stack
        bindings = await store.bindings(stack) if store else {}
        limit = within if only is None else only
        snapshot = await observe(
            reader,
            [kind for kind in _kinds_to_read(manifest, bindings, only or also) if limit is None or kind.name in limit],
            bindings=bindings,
            receipts=await store.receipts(stack) if store else frozenset(),
            by_id=_objects_named_by_id(manifest) if by_id is None else by_id,
            expected=manifest.declarations,
            settling=await _find_settling(self, store, bindings, on_event) if store else None,
            concurrency=self.parallelism,
            on_list=lambda read, total: on_event(ListRead(read, total)),
        )
        _refuse_unreadable(snapshot, self.account.base_url)
        membership = await store.membership(stack) if store else None
        if (
            within is not None
            and membership is not None
            and not await account_identity.is_witnessed(membership, snapshot, reader)
        ):
            return await self.read(reader, store, by_id=by_id, on_event=on_event)
        unmarked = [kind.name for kind in kinds.every() if not kind.keeps_owner]
        secretive = [kind.name for kind in kinds.every() if kind.one_time]
        doubt = account_identity.account_mismatch(membership, self.account_name, stack, snapshot)
        return replace(
            snapshot,
            targets=await _find_targets(self, snapshot, await store.find_issued(stack, secretive) if store else ()),
            undelivered=await store.find_undelivered(stack, secretive) if store else frozenset(),
            overwritten=await store.find_overwritten(stack) if store else {},
            doubt=doubt,
            elsewhere=await store.find_bound_elsewhere(stack, unmarked) if store else {},
            is_remembered=membership is not None and not doubt,
            once_ours=await _find_once_ours(manifest, snapshot, store) if store and not doubt else frozenset(),
        )


async def _find_once_ours(manifest: Manifest, snapshot: Snapshot, store: StoreReader) -> frozenset[LiveKey]:
    """The objects that manifests name by id and that do not exist, but were once this stack's, as the store knows."""
    absent: dict[tuple[str, str], list[LiveKey]] = {}
    for address, declaration in manifest.declarations.items():
        kind, listing = kinds.get(address.kind), snapshot.of(address.kind)
        if declaration.id is None or not listing.complete:
            continue
        parent = declaration.spec.get(kind.parent.field) if kind.parent is not None else None
        locator = f"{parent}/{declaration.id}" if isinstance(parent, str) else declaration.id
        absent.setdefault((kind.name, declaration.id), []).append((kind.name, locator))
    for live in [live for kind_name in {key[0] for key in absent} for live in snapshot.of(kind_name).objects]:
        absent.pop((live.kind, live.id), None)
    own = await store.find_own_objects(manifest.stack, [id for _, id in absent])
    return frozenset(key for found in own for key in absent.get(found, ()))


async def _find_settling(
    reading: AccountReading, store: StoreReader, bindings: Mapping[Address, Binding], on_event: OnEvent
) -> Settling | None:
    """The objects that the platform may not show yet, and what a wait for one of them reports. None: no such object."""
    settle, reported = reading.config.limits.settle_seconds, set[LiveKey]()
    made = await store.find_made_objects(reading.manifest.stack, settle)
    if not made:
        return None
    from reconciler.engine import recovery  # deferred: most plans need no part of it

    def report(key: LiveKey, seconds: float) -> None:
        if key not in reported:
            reported.add(key)
            what = f"{key[0]} {key[1]}, which was created a moment ago"
            on_event(Note(f"waiting up to {seconds:.0f} s: the platform does not show {what}"))

    seconds = recovery.find_settling(made, bindings, kinds.list_planned(), settle)
    return Settling(seconds, reading.runtime.clock, report)


async def _find_targets(
    reading: AccountReading, snapshot: Snapshot, issued: Sequence[IssuedSecret]
) -> Mapping[Address, Target]:
    """The state of the delivery targets of declared secrets."""
    declared = delivery_targets.find_deliveries(reading.manifest, kinds.list_planned())
    if not declared:
        return {}
    from reconciler.operations.sinks import find_existing, remote_place
    from reconciler.project.secrets import sinks

    root, runtime = reading.config.root, reading.runtime
    own = runtime.own_sinks(reading.config, asyncio.Event()) if runtime.own_sinks is not None else None

    def find_place(delivery: Delivery) -> Place:
        if own is not None:
            return own.place(delivery)
        is_remote = delivery.way in REMOTE_WAYS
        return remote_place(delivery, runtime.environ) if is_remote else sinks.place(root, delivery)

    def target_exists(delivery: Delivery) -> bool | None:
        is_unknown = own is not None or delivery.way in REMOTE_WAYS
        return None if is_unknown else sinks.target_exists(root, delivery)

    targets = await asyncio.to_thread(
        delivery_targets.find_targets, reading.manifest, snapshot, declared, issued, find_place, target_exists
    )
    remote = {
        address: delivery
        for address, delivery in declared.items()
        if delivery.way in REMOTE_WAYS and not targets[address].is_ours and own is None
    }
    existing = await find_existing(remote, runtime.environ) if remote else frozenset()
    return {
        address: replace(target, is_there=True) if address in existing else target
        for address, target in targets.items()
    }


def _kinds_to_read(manifest: Manifest, bindings: Iterable[Address], named: Iterable[str]) -> Iterator[Kind]:
    """Yields the kinds of the platform, and those kinds of an agent that are used."""
    used = {*named, *(address.kind for address in (*manifest.declarations, *bindings))}
    return (kind for kind in kinds.list_planned() if kind.home is Home.PLATFORM or kind.name in used)


def _objects_named_by_id(manifest: Manifest) -> ById:
    """The declared objects of which only modules are managed, by kind: id and id of the parent."""
    named: Mapping[str, list[tuple[str, str | None]]] = defaultdict(list)
    for address, declaration in manifest.declarations.items():
        if declaration.id is None:
            continue
        kind = kinds.get(address.kind)
        if kind.modules_by_id and kind.parent is not None:
            parent = declaration.spec.get(kind.parent.field)
            named[kind.name].append((declaration.id, parent if isinstance(parent, str) else None))
    return named


def _refuse_unreadable(snapshot: Snapshot, base_url: str) -> None:
    """Raises UnreadableAccount if no list could be read: one error instead of one for each kind."""
    listings = [listing for name, listing in snapshot.listings.items() if kinds.get(name).home is Home.PLATFORM]
    if not listings or any(listing.complete for listing in listings):
        return
    reasons = {without_operation_id(listing.why): listing.why for listing in listings}
    if len(reasons) > 1 and not any(listing.is_offered for listing in listings):
        raise UnreadableAccount(
            f"{base_url} is not the address of the platform's API: none of its paths exists; "
            "correct platform.base_url, or RECONCILER_BASE_URL"
        )
    others = len(reasons) - 1
    more = f" (and {others} more {'reason' if others == 1 else 'reasons'})" if others else ""
    raise UnreadableAccount(f"nothing could be read from the platform: {min(reasons.values())}{more}")


_OPERATION = re.compile(r"\bop_[A-Za-z0-9]+")


def without_operation_id(why: str) -> str:
    """The text of a failure without the operation id of the request, for comparison."""
    return _OPERATION.sub("op_", why)
