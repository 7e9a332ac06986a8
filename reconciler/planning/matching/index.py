"""The index of live objects by id, owner record, binding, former address and natural key.

`match` decides which of them a declaration is assigned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.canonical import CanonicalFields
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure, Manifest
from reconciler.model.snapshot import Live, LiveKey, Snapshot
from reconciler.planning.comparing.canonical_fields import canonical_live, natural_key
from reconciler.planning.matching.ownership import Account, read_ownership


class LiveIndex(Struct, frozen=True, dict=True):
    """All live objects of one snapshot. Immutable.

    by_locator          by (kind, locator)
    by_owner, superseded, duplicates, pending_elsewhere   see `Ownership`
    """

    stack: str
    manifest: Manifest
    snapshot: Snapshot
    kinds: Mapping[str, Kind]
    by_locator: Mapping[LiveKey, Live]
    by_owner: Mapping[Address, Sequence[Live]]
    superseded: Sequence[tuple[Address, Live]]
    duplicates: frozenset[LiveKey]
    pending_elsewhere: frozenset[Address]
    _forms: dict[LiveKey, CanonicalFields] = field(default_factory=dict)  # cache of `form`

    @classmethod
    def of(cls, manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind]) -> LiveIndex:
        """The index of a snapshot, with the owner records of the manifest's stack."""
        catalogue = {kind.name: kind for kind in kinds}
        by_locator = {live.key: live for kind in kinds for live in snapshot.of(kind.name).objects}
        ownership = read_ownership(Account(manifest, snapshot, catalogue, by_locator))
        return cls(
            manifest.stack,
            manifest,
            snapshot,
            catalogue,
            by_locator,
            ownership.by_owner,
            ownership.superseded,
            ownership.duplicates,
            ownership.pending_elsewhere,
        )

    @cached_property
    def by_key(self) -> Mapping[tuple[str, tuple[object, ...]], list[Live]]:
        """The live objects by kind and natural key. Computed only if a declaration is not matched in another way."""
        by_key: dict[tuple[str, tuple[object, ...]], list[Live]] = defaultdict(list)
        for live in self.by_locator.values():
            kind = self.kinds[live.kind]
            key = natural_key(kind, self.form(kind, live)) if kind.identity else None
            if key is not None:
                by_key[kind.name, key].append(live)
        return by_key

    @cached_property
    def reserved_addresses(self) -> Mapping[LiveKey, Address]:
        """Objects that an owner record, a binding, `moved` or an id leads to, with the declaration that they lead from.

        The natural key of another declaration does not match them.
        """
        # A replaced object will be deleted. No other declaration may take it over, even by its natural key.
        reserved = {(live.kind, live.locator): address for address, live in self.superseded}
        declarations = self.manifest.declarations
        for address, lives in self.by_owner.items():
            for live in lives if address in declarations else ():
                reserved.setdefault(live.key, address)
        for address in sorted(self.snapshot.bindings.keys() & declarations.keys()):
            for live in self.find_recorded(self.kinds[address.kind], address):
                reserved.setdefault(live.key, address)
        special = sorted(
            (declaration for declaration in declarations.values() if _is_special(declaration)),
            key=attrgetter("address"),
        )
        for declaration in special:
            for _, live in self.find_former(self.kinds[declaration.address.kind], declaration):
                reserved.setdefault(live.key, declaration.address)
        for declaration in special:
            named = self.by_locator.get((declaration.address.kind, str(declaration.id)))
            if named is not None:
                reserved.setdefault(named.key, declaration.address)
        return reserved

    def find_sole(self, declaration: Declaration) -> Live | None:
        """The only object with the declaration's owner record; None if `match` could choose another one."""
        owned = self.by_owner.get(declaration.address)
        if owned is None or len(owned) != 1 or declaration.moved or declaration.id is not None:
            return None
        return None if declaration.address in self.replaced_addresses else owned[0]

    @cached_property
    def complete_kinds(self) -> frozenset[str]:
        """The kinds whose lists are complete."""
        return frozenset(name for name, listing in self.snapshot.listings.items() if listing.complete)

    @cached_property
    def knows_all_creates(self) -> bool:
        """Whether the store is certain to know every create of the stack.

        It took part in an apply and knows all live objects of the stack. Not so for a store that is new, was lost, or
        is one of several.
        """
        owned = (live for lives in self.by_owner.values() for live in lives)
        return self.snapshot.is_remembered and all(self.find_bound_addresses(live) for live in owned)

    @cached_property
    def replaced_addresses(self) -> frozenset[Address]:
        """The addresses of which another object replaces the former one."""
        return frozenset(address for address, _ in self.superseded)

    def find_recorded(self, kind: Kind, address: Address) -> Sequence[Live]:
        """The objects with the owner record of an address, or else the unrecorded object that the store binds to it.

        A bound object has no owner record because its kind has no metadata, or because its metadata was overwritten.
        """
        if owned := self.by_owner.get(address):
            return owned
        binding = self.snapshot.bindings.get(address)
        live = self.by_locator.get((kind.name, binding.id)) if binding else None
        if live is None or live.owner is not None:
            return []
        return [live] if kind.key == "id" or self._find_bound_declaration(live, address) == address else []

    def _find_bound_declaration(self, live: Live, address: Address) -> Address:
        """The one declaration that a binding to this object counts for; `address` if it is not declared itself.

        Two declarations can be bound to one object whose id is a natural key: the object was deleted outside Git, the
        second declaration created it again under the same id, and the run ended before the first got a new object.
        """
        declarations = self.manifest.declarations
        if address not in declarations:
            return address
        declared = [other for other in self.find_bound_addresses(live) if other in declarations]
        return min(declared, key=lambda other: (declarations[other].ensure is not Ensure.PRESENT, other))

    def find_kind_of_id(self, kind: Kind, id: str | None) -> str | None:
        """The other kind that has an object with this id; None if there is none."""
        others = {name for name, locator in self.by_locator if locator.rpartition("/")[2] == id} - {kind.name}
        return min(others, default=None) if id is not None and kind.id_prefix else None

    def find_former(self, kind: Kind, declaration: Declaration) -> list[tuple[Address, Live]]:
        """The objects recorded under the former addresses (`moved`) of a declaration, each with that address.

        Former addresses that are declared again do not count.
        """
        return [
            (former, live)
            for former in dict.fromkeys(declaration.moved)
            if former.kind == kind.name and former not in self.manifest.declarations
            for live in self.find_recorded(kind, former)
        ]

    def find_bound_addresses(self, live: Live) -> list[Address]:
        """The addresses that the store binds to an object, sorted."""
        return self._bound_addresses.get(live.key, [])

    @cached_property
    def _bound_addresses(self) -> Mapping[tuple[str, str], list[Address]]:
        addresses: dict[tuple[str, str], list[Address]] = defaultdict(list)
        for address, binding in sorted(self.snapshot.bindings.items()):
            addresses[address.kind, binding.id].append(address)
        return addresses

    def is_ours(self, live: Live) -> bool:
        """Whether the object has an owner record of this stack or, without a record, a binding."""
        return live.owner.stack == self.stack if live.owner is not None else bool(self.find_bound_addresses(live))

    def is_protected(self, live: Live) -> bool:
        """Whether the owner record or a binding protects the object, even after its manifest was removed."""
        if live.owner is not None:
            return live.owner.protect
        return any(self.snapshot.bindings[address].protect for address in self.find_bound_addresses(live))

    def is_adopted(self, live: Live) -> bool:
        """Whether a binding says that the object was adopted without approval."""
        return any(self.snapshot.bindings[address].adopted for address in self.find_bound_addresses(live))

    def form(self, kind: Kind, live: Live) -> CanonicalFields:
        """The live object in canonical form; cached."""
        key = live.key
        if key not in self._forms:
            self._forms[key] = canonical_live(kind, live)
        return self._forms[key]

    def find_form(self, live: Live) -> CanonicalFields:
        """The canonical form of a live object if it is cached; no fields if it is not."""
        return self._forms.get(live.key, {})

    def drop_form(self, live: Live | None) -> None:
        """Frees the cached form of an unchanged object."""
        if live is not None:
            self._forms.pop(live.key, None)


def _is_special(declaration: Declaration) -> bool:
    """Whether the declaration names its object by `moved` or `id`."""
    return bool(declaration.moved) or declaration.id is not None


def describe_owner(live: Live) -> str:
    """The stack, address and protection in an owner record, as `Observed` holds them; empty without a record."""
    owner = live.owner
    if owner is None:
        return ""
    return f"{owner.stack} {owner.address}" + (", protected" if owner.protect else "")


def parent_stack(index: LiveIndex, live: Live) -> str:
    """The stack that owns the parent of an object of a kind without an owner record; empty if there is none."""
    kind = index.kinds[live.kind]
    if kind.keeps_owner or kind.parent is None or live.parent_id is None:
        return ""
    parent = index.by_locator.get((kind.parent.kind, live.parent_id))
    return parent.owner.stack if parent is not None and parent.owner is not None else ""
