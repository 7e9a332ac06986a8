"""Which live objects a stack owns by their owner records, after renames, replacements and duplicates are resolved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.manifest import Manifest
from reconciler.model.owner_record import Owner
from reconciler.model.snapshot import Live, LiveKey, Snapshot


class Account(Struct, frozen=True):
    """The input of the passes."""

    manifest: Manifest
    snapshot: Snapshot
    kinds: Mapping[str, Kind]
    by_locator: Mapping[LiveKey, Live]


class Ownership(Struct, frozen=True):
    """The ownership of live objects after some passes.

    by_owner            the objects with the owner record of an address; several if no rule says which is the resource
    superseded          replaced objects that still exist, with their address
    duplicates          of objects that several runs created at once, the keys of those that will be deleted
    pending_elsewhere   addresses of credentials whose token a run with another store may still deliver
    """

    by_owner: Mapping[Address, Sequence[Live]]
    superseded: tuple[tuple[Address, Live], ...] = ()
    duplicates: frozenset[LiveKey] = frozenset()
    pending_elsewhere: frozenset[Address] = frozenset()

    def find_shared(self) -> list[tuple[Address, Sequence[Live]]]:
        """The addresses whose owner record is on several objects, with these objects."""
        return [(address, lives) for address, lives in self.by_owner.items() if len(lives) > 1]


def read_ownership(account: Account) -> Ownership:
    """The ownership of all live objects. Each pass takes the result of the one before it."""
    ownership = Ownership(_group_by_record(account))
    for settle in (follow_renames, set_aside_replaced, set_aside_replaced_bindings, settle_duplicates):
        ownership = settle(ownership, account)
    return ownership


def _group_by_record(account: Account) -> Mapping[Address, Sequence[Live]]:
    by_owner: dict[Address, list[Live]] = defaultdict(list)
    stack = account.manifest.stack
    for live in account.by_locator.values():
        owner = live.owner
        if owner is not None and owner.stack == stack:
            by_owner[owner.address].append(live)
    return dict(by_owner)


# --- renames ----------------------------------------------------------------------------------------------------------


def follow_renames(ownership: Ownership, account: Account) -> Ownership:
    """Lists a replaced object under the address of its successor, if the successor was renamed.

    An object that is replaced and renamed in one plan keeps its former address in its owner record.
    """
    successors = _find_successors(ownership)
    if not successors:
        return ownership
    heirs, declared = _find_heirs(account.manifest), account.manifest.declarations
    moves = [
        (former, live, address)
        for former, lives in ownership.by_owner.items()
        for live in (lives if former not in declared else ())
        if (address := _address_after(live, successors, heirs)) != former
    ]
    by_owner = dict(ownership.by_owner)
    for former, live, address in moves:
        by_owner[former] = [other for other in by_owner[former] if other is not live]
        by_owner[address] = [*by_owner.get(address, ()), live]
    return replace(ownership, by_owner=by_owner)


def _find_successors(ownership: Ownership) -> Mapping[LiveKey, Live]:
    """The objects that replaced another one, by the kind and id of the replaced object."""
    replacing = [
        (replaced, live)
        for lives in ownership.by_owner.values()
        for live in lives
        if (replaced := _record(live).replaces) is not None
    ]
    successors: dict[LiveKey, Live] = {}
    for replaced, live in sorted(replacing, key=lambda pair: (_address(pair[1]), pair[1].locator)):
        successors.setdefault((live.kind, replaced), live)
    return successors


def _address_after(live: Live, successors: Mapping[LiveKey, Live], heirs: Callable[[Address], set[Address]]) -> Address:
    """The address of an object, following the renames of its successors."""
    chain = [live]
    while (after := successors.get((live.kind, chain[-1].id))) is not None and after not in chain:
        chain.append(after)
    address = _address(chain.pop())
    for predecessor in reversed(chain):
        former = _address(predecessor)
        # Only if no other declaration has the former address or names it in `moved`.
        address = address if heirs(address) and heirs(former) <= heirs(address) else former
    return address


def _find_heirs(manifest: Manifest) -> Callable[[Address], set[Address]]:
    """Finds the declarations of an address: its own, or else those that name it in `moved`."""
    moved: dict[Address, set[Address]] = defaultdict(set)
    for address, declaration in manifest.declarations.items():
        for former in declaration.moved:
            if former.kind == address.kind:
                moved[former].add(address)
    return lambda address: {address} if address in manifest.declarations else moved.get(address, set())


def _address(live: Live) -> Address:
    return _record(live).address


def _record(live: Live) -> Owner:
    """The owner record, which every object in `Ownership.by_owner` has."""
    assert live.owner is not None
    return live.owner


# --- replacements -----------------------------------------------------------------------------------------------------


def set_aside_replaced(ownership: Ownership, account: Account) -> Ownership:
    """Sets aside the older of two objects with one address after an interrupted replacement; the newer names it."""
    superseded: list[tuple[Address, Live]] = []
    remaining: dict[Address, Sequence[Live]] = {}
    for address, lives in ownership.find_shared():
        heads = _drop_replaced(lives)
        if len(heads) == 1:
            superseded += [(address, live) for live in lives if live is not heads[0]]
            remaining[address] = heads
    return _set_aside(ownership, remaining, superseded)


def set_aside_replaced_bindings(ownership: Ownership, account: Account) -> Ownership:
    """The same for kinds without metadata, by the bindings of the store."""
    superseded: list[tuple[Address, Live]] = []
    for address, binding in account.snapshot.bindings.items():
        if binding.replaces is None:  # asked first: so it is for nearly all
            continue
        kind = account.kinds.get(address.kind)
        if kind is None or kind.keeps_owner:
            continue
        live = account.by_locator.get((kind.name, binding.replaces))
        if live is not None:
            superseded.append((address, live))
    return _set_aside(ownership, {}, superseded)


def _drop_replaced(lives: Sequence[Live]) -> list[Live]:
    replaced = {_record(live).replaces for live in lives}
    return [live for live in lives if live.id not in replaced]


def _set_aside(
    ownership: Ownership, remaining: Mapping[Address, Sequence[Live]], superseded: Iterable[tuple[Address, Live]]
) -> Ownership:
    by_owner = {**ownership.by_owner, **remaining} if remaining else ownership.by_owner
    return replace(ownership, by_owner=by_owner, superseded=(*ownership.superseded, *superseded))


# --- creates of several runs ------------------------------------------------------------------------------------------


def settle_duplicates(ownership: Ownership, account: Account) -> Ownership:
    """Keeps the oldest of several objects that runs without a common store created for one address.

    The rule uses only values that never change, so that concurrent runs come to the same result. Credentials have a
    separate rule, after which several may remain: a user must then say which of them is in use.
    """
    superseded: list[tuple[Address, Live]] = []
    remaining: dict[Address, Sequence[Live]] = {}
    duplicates: set[LiveKey] = set()
    pending: set[Address] = set()
    for address, lives in ownership.find_shared():
        if len({_record(live).intent for live in lives}) < len(lives):
            continue  # the owner record was copied
        heads = sorted(_drop_replaced(lives), key=lambda live: (str(live.body.get("created_at") or ""), live.id))
        if not heads:
            continue  # they replace each other
        stay = _select_kept_credentials(account, address, heads) if account.kinds[address.kind].one_time else heads[:1]
        removed = [live for live in (lives if len(stay) == 1 else heads) if live not in stay]
        superseded += [(address, live) for live in removed]
        duplicates |= {live.key for live in heads if live not in stay}
        remaining[address] = [live for live in lives if live not in removed]
        if len(stay) == 1 and not _is_delivered(account, stay[0]) and not _is_undelivered(account, stay[0]):
            pending.add(address)
    return replace(
        _set_aside(ownership, remaining, superseded),
        duplicates=frozenset(duplicates),
        pending_elsewhere=frozenset(pending),
    )


def _select_kept_credentials(account: Account, address: Address, heads: Sequence[Live]) -> list[Live]:
    """The credentials of one address, oldest first, that no run may delete without approval.

    If the manifest names one by id, that one alone. Otherwise a run deletes only those whose tokens its own store
    knows to be undelivered, or overwritten by that of one that it keeps, since another store may have delivered the
    others. It deletes the oldest only if one of the others is delivered, and therefore kept by every run, or if it
    knows all of them to be undelivered, and therefore created all of them. So two concurrent runs never delete every
    credential.
    """
    declared = account.manifest.declarations.get(address)
    named = [live for live in heads if declared is not None and live.id == declared.id]
    if named:
        return named
    heads = _drop_overwritten(account, address, heads)
    undelivered = [live for live in heads if _is_undelivered(account, live)]
    if len(undelivered) == len(heads) or not any(_is_delivered(account, live) for live in heads):
        undelivered = [live for live in undelivered if live is not heads[0]]
    return [live for live in heads if live not in undelivered]


def _drop_overwritten(account: Account, address: Address, heads: Sequence[Live]) -> Sequence[Live]:
    """The credentials without those whose delivered tokens were overwritten by that of another one of them.

    A credential that was replaced twice is one if the first successor is gone: no owner record leads to it any more.
    """
    seen = account.snapshot
    current = [live for live in heads if seen.overwritten.get(_record(live).intent) != address]
    return current if any(_record(live).intent in seen.receipts for live in current) else heads


def _is_delivered(account: Account, live: Live) -> bool:
    owner = _record(live)
    return not owner.pending or owner.intent in account.snapshot.receipts


def _is_undelivered(account: Account, live: Live) -> bool:
    owner = _record(live)
    return owner.pending and owner.intent in account.snapshot.undelivered
