"""Every live object of the account, findable by what says whose it is.

Which of them a declaration means is said in `match`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

from reconciler.model.address import Address
from reconciler.model.canonical import Form
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Manifest
from reconciler.model.snapshot import Live, Snapshot
from reconciler.planning.comparing.canonical_fields import identity, seen


@dataclass
class Register:
    """Every live object, findable by each rung of the ladder.

    `reserved` are those that a record, a binding, `moved` or an id promises to a declaration: its natural key leads no
    other declaration there. `taken` are those that a declaration has found. `twice` are the later ones of what two runs
    made at the same moment. `pending_elsewhere` are the addresses of which another run, with another store, made the
    object that stays, and may be about to deliver its token.
    """

    stack: str
    manifest: Manifest
    snapshot: Snapshot
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    by_locator: dict[tuple[str, str], Live] = field(default_factory=dict)
    by_owner: dict[Address, list[Live]] = field(default_factory=lambda: defaultdict(list))
    forms: dict[tuple[str, str], Form] = field(default_factory=dict)
    replacing: list[Live] = field(default_factory=list)  # whose records name what they took the place of
    superseded: list[tuple[Address, Live]] = field(default_factory=list)
    twice: set[tuple[str, str]] = field(default_factory=set)
    pending_elsewhere: set[Address] = field(default_factory=set)
    taken: dict[tuple[str, str], Address] = field(default_factory=dict)
    twins: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)  # one object seen as two kinds
    seconds: set[tuple[str, str]] = field(default_factory=set)  # of each such pair, the one that need not be told of

    @classmethod
    def of(cls, manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind]) -> Register:
        catalogue = {kind.name: kind for kind in kinds}
        register = cls(manifest.stack, manifest, snapshot, catalogue)
        for kind in kinds:
            for live in snapshot.of(kind.name).objects:
                register._enter(live)
        register._pair(kinds)
        register._follow_renames()
        register._tell_replaced_from_replacing()
        register._tell_replaced_from_bound(catalogue)
        register._tell_first_from_later(catalogue)
        return register

    def _enter(self, live: Live) -> None:
        self.by_locator[live.key] = live
        owner = live.owner
        if owner is not None and owner.stack == self.stack:
            self.by_owner[owner.address].append(live)
            if owner.replaces is not None:
                self.replacing.append(live)

    @cached_property
    def by_key(self) -> Mapping[tuple[str, tuple[object, ...]], list[Live]]:
        """By natural key, which is asked for only where a declaration has found nothing by any other rung."""
        found: dict[tuple[str, tuple[object, ...]], list[Live]] = defaultdict(list)
        for live in self.by_locator.values():
            kind = self.kinds[live.kind]
            key = identity(kind, self.form(kind, live)) if kind.identity else None
            if key is not None:
                found[kind.name, key].append(live)
        return found

    def _pair(self, kinds: Sequence[Kind]) -> None:
        prefixes = {kind.name: kind.id_prefix for kind in kinds}
        for kind in kinds:
            for live in self.snapshot.of(kind.name).objects if kind.same_as in prefixes else ():
                other = str(kind.same_as), prefixes[str(kind.same_as)] + live.id.removeprefix(kind.id_prefix)
                self.twins[kind.name, live.locator], self.twins[other] = other, (kind.name, live.locator)
                if other in self.by_locator:
                    self.seconds.add((kind.name, live.locator))

    def _follow_renames(self) -> None:
        """What was replaced and renamed at once keeps its former address in its record: it is entered beside its
        successor, as if it had had that name before."""
        successors: dict[tuple[str, str], Live] = {}
        for live in sorted(self.replacing, key=lambda live: (_address(live), live.locator)):
            if live.owner is not None:
                successors.setdefault((live.kind, str(live.owner.replaces)), live)
        for former in [each for each in self.by_owner if successors and each not in self.manifest.declarations]:
            for live in list(self.by_owner[former]):
                address = self._address_after(live, successors)
                if address != former:
                    self.by_owner[former].remove(live)  # an empty list stays: the name is not free yet
                    self.by_owner[address].append(live)

    def _address_after(self, live: Live, successors: Mapping[tuple[str, str], Live]) -> Address:
        row = [live]
        while (after := successors.get((live.kind, row[-1].id))) is not None and after not in row:
            row.append(after)
        address = _address(row.pop())
        for each in reversed(row):
            former = _address(each)
            # Nobody else declares it, or says that it was theirs.
            heirs = self._heirs(address)
            address = address if heirs and self._heirs(former) <= heirs else former
        return address

    def _heirs(self, address: Address) -> set[Address]:
        """The declarations that an address leads to: its own, or else those that say they had it."""
        if address in self.manifest.declarations:
            return {address}
        return self._moved.get(address, set())

    @cached_property
    def _moved(self) -> Mapping[Address, set[Address]]:
        found: dict[Address, set[Address]] = defaultdict(set)
        for address, declaration in self.manifest.declarations.items():
            for former in declaration.moved:
                if former.kind == address.kind:
                    found[former].add(address)
        return found

    def _tell_replaced_from_replacing(self) -> None:
        """An interrupted replacement leaves two objects with one address; the newer names the older."""
        for address, lives in self.by_owner.items():
            if len(lives) < 2:
                continue
            replaced = {live.owner.replaces for live in lives if live.owner is not None}
            heads = [live for live in lives if live.id not in replaced]
            if len(heads) == 1:
                self.superseded += [(address, live) for live in lives if live is not heads[0]]
                self.by_owner[address] = heads

    def _tell_replaced_from_bound(self, kinds: Mapping[str, Kind]) -> None:
        """The same for kinds without metadata, as the store remembers it."""
        for address, binding in self.snapshot.bindings.items():
            kind = kinds.get(address.kind)
            if kind is None or kind.keeps_owner or binding.replaces is None:
                continue
            live = self.by_locator.get((kind.name, binding.replaces))
            if live is not None:
                self.superseded.append((address, live))

    def _tell_first_from_later(self, kinds: Mapping[str, Kind]) -> None:
        """Two runs without a common store may each make what neither has seen: everybody keeps the first.

        The rule rests on what never changes, so that runs which settle it at once agree. Credentials have a rule of
        their own, after which several may be left: which of them is in use is for a person to say.
        """
        for address, lives in self.by_owner.items():
            if len(lives) < 2 or len({live.owner.intent for live in lives if live.owner is not None}) < len(lives):
                continue
            replaced = {live.owner.replaces for live in lives if live.owner is not None}
            heads = [live for live in lives if live.id not in replaced]
            if not heads:
                continue  # they name each other
            heads.sort(key=lambda live: (str(live.body.get("created_at") or ""), live.id))
            kept = self._kept_credentials(address, heads) if kinds[address.kind].one_time else heads[:1]
            gone = [live for live in (lives if len(kept) == 1 else heads) if live not in kept]
            self.superseded += [(address, live) for live in gone]
            self.twice |= {live.key for live in heads if live not in kept}
            self.by_owner[address] = [live for live in lives if live not in gone]
            if len(kept) == 1 and self._is_pending_elsewhere(kept[0]):
                self.pending_elsewhere.add(address)

    def _kept_credentials(self, address: Address, heads: Sequence[Live]) -> list[Live]:
        """The credentials of one address, oldest first, that no run may delete unless a person says so.

        The one that the manifest names by id stays alone. Otherwise a run deletes only those whose tokens its own store
        knows to be undelivered: another store may have delivered the others. And it deletes the first of all only if
        one of the others is delivered, which nobody deletes, or if it knows all of them to be undelivered and so made
        all of them. So two runs that settle this at the same moment never delete every credential.
        """
        declared = self.manifest.declarations.get(address)
        named = [live for live in heads if declared is not None and live.id == declared.id]
        if named:
            return named
        undelivered = [live for live in heads if self._is_undelivered(live)]
        if len(undelivered) == len(heads) or not any(self._is_delivered(live) for live in heads):
            undelivered = [live for live in undelivered if live is not heads[0]]
        return [live for live in heads if live not in undelivered]

    def _is_delivered(self, live: Live) -> bool:
        owner = live.owner
        return owner is not None and (not owner.pending or owner.intent in self.snapshot.receipts)

    def _is_pending_elsewhere(self, live: Live) -> bool:
        """Whether a run with another store may be about to deliver its token."""
        return not self._is_delivered(live) and not self._is_undelivered(live)

    def _is_undelivered(self, live: Live) -> bool:
        owner = live.owner
        return owner is not None and owner.pending and owner.intent in self.snapshot.undelivered

    @cached_property
    def reserved(self) -> Mapping[tuple[str, str], Address]:
        """Asked for only where a natural key leads to an object."""
        # What has been replaced is about to go, and is nobody else's even if its key is wanted.
        reserved = {(live.kind, live.locator): address for address, live in self.superseded}
        declarations = self.manifest.declarations
        for address, lives in self.by_owner.items():
            for live in lives if address in declarations else ():
                reserved.setdefault(live.key, address)
        for address in sorted(self.snapshot.bindings.keys() & declarations.keys()):
            for live in self.recorded(self.kinds[address.kind], address):
                reserved.setdefault(live.key, address)
        special = sorted((each for each in declarations.values() if _is_special(each)), key=attrgetter("address"))
        for declaration in special:
            for _, live in self.formerly(self.kinds[declaration.address.kind], declaration):
                reserved.setdefault(live.key, declaration.address)
        for declaration in special:
            named = self.by_locator.get((declaration.address.kind, str(declaration.id)))
            if named is not None:
                reserved.setdefault(named.key, declaration.address)
        return reserved

    def sole(self, declaration: Declaration) -> Live | None:
        """The one object with the declaration's record, if no other rung could lead elsewhere."""
        owned = self.by_owner.get(declaration.address)
        if owned is None or len(owned) != 1 or declaration.moved or declaration.id is not None:
            return None
        return None if declaration.address in self.replaced else owned[0]

    @cached_property
    def complete(self) -> frozenset[str]:
        """The kinds that were listed to the end."""
        return frozenset(name for name, listing in self.snapshot.listings.items() if listing.complete)

    @cached_property
    def knows_all_creates(self) -> bool:
        """Whether the store surely knows of each create of the stack: it took part in an apply, and knows all of our
        objects that are there. Of a store that is new, lost, or one of several, this cannot be said."""
        ours = (live for lives in self.by_owner.values() for live in lives)
        return self.snapshot.is_remembered and all(self.bound(live) for live in ours)

    @cached_property
    def replaced(self) -> frozenset[Address]:
        """The addresses with an object that another took the place of."""
        return frozenset(address for address, _ in self.superseded)

    def recorded(self, kind: Kind, address: Address) -> list[Live]:
        """What carries the record of this address, or what the store binds to it if there is no record to be had:
        the kind has no metadata, or somebody wrote over it."""
        if owned := self.by_owner.get(address):
            return owned
        binding = self.snapshot.bindings.get(address)
        live = self.by_locator.get((kind.name, binding.id)) if binding else None
        return [live] if live is not None and live.owner is None else []

    def formerly(self, kind: Kind, declaration: Declaration) -> list[tuple[Address, Live]]:
        """What is recorded under the addresses a declaration says it had, as far as nobody declares them now."""
        return [
            (former, live)
            for former in dict.fromkeys(declaration.moved)
            if former.kind == kind.name and former not in self.manifest.declarations
            for live in self.recorded(kind, former)
        ]

    def bound(self, live: Live) -> list[Address]:
        """The addresses that the store binds to an object, in order."""
        return self._bound.get(live.key, [])

    @cached_property
    def _bound(self) -> Mapping[tuple[str, str], list[Address]]:
        found: dict[tuple[str, str], list[Address]] = defaultdict(list)
        for address, binding in sorted(self.snapshot.bindings.items()):
            found[address.kind, binding.id].append(address)
        return found

    def is_ours(self, live: Live) -> bool:
        """Whether this stack's record is on it, or a binding leads to it."""
        return live.owner.stack == self.stack if live.owner is not None else bool(self.bound(live))

    def guards(self, live: Live) -> bool:
        """Whether the object is protected, which outlives its declaration."""
        if live.owner is not None:
            return live.owner.protect
        return any(self.snapshot.bindings[address].protect for address in self.bound(live))

    def form(self, kind: Kind, live: Live) -> Form:
        """The live object in canonical form, made once."""
        key = live.key
        if key not in self.forms:
            self.forms[key] = seen(kind, live)
        return self.forms[key]

    def drop_form(self, live: Live | None) -> None:
        """Of an object that stays as it is, the form is hardly asked for again."""
        if live is not None:
            self.forms.pop(live.key, None)

    def take(self, live: Live, address: Address) -> Address:
        """Whose the object is now: the first to take it."""
        key = live.key
        if (twin := self.twins.get(key)) in self.taken and twin is not None:
            return self.taken[twin]
        return self.taken.setdefault(key, address)

    def is_taken(self, live: Live) -> bool:
        key = live.key
        return key in self.taken or self.twins.get(key) in self.taken

    def is_free(self, live: Live, address: Address) -> bool:
        """Whether nothing promises the object to another declaration."""
        return not self.is_taken(live) and self.reserved.get(live.key, address) == address


def _address(live: Live) -> Address:
    assert live.owner is not None
    return live.owner.address


def _is_special(declaration: Declaration) -> bool:
    """Whether it says more of its object than its own address."""
    return bool(declaration.moved) or declaration.id is not None


def orphans(register: Register, kinds: Mapping[str, Kind], spared: set[Address]) -> list[tuple[Address, Live]]:
    """Objects of this stack that no declaration has found, with the address they were created under.

    `spared` are addresses of which nothing is an orphan: declared ones that could not be matched.
    """
    found = [*register.superseded]
    found += [(address, live) for address, lives in register.by_owner.items() for live in lives]
    for address in register.snapshot.bindings:
        kind = kinds.get(address.kind)
        if kind is not None and not kind.keeps_owner:
            found += [(address, live) for live in register.recorded(kind, address)]
    loose = [(address, live) for address, live in found if address not in spared and not register.is_taken(live)]
    left = {
        (live.kind, live.locator): (address, live)
        for address, live in sorted(loose, key=lambda pair: (pair[0], pair[1].locator), reverse=True)
    }
    return sorted(left.values(), key=lambda pair: (pair[0], pair[1].locator))


def copies(orphaned: Sequence[tuple[Address, Live]]) -> dict[Address, list[Live]]:
    """Orphans that share more than an address: the very record. At most one of them was made with it."""
    groups: dict[Address, list[Live]] = {}
    for address, live in orphaned:
        groups.setdefault(address, []).append(live)
    return {
        address: lives
        for address, lives in groups.items()
        if len({live.owner.intent if live.owner else live.locator for live in lives}) < len(lives)
    }


def unmanaged(register: Register, ours: Sequence[Live]) -> tuple[tuple[str, str], ...]:
    """What no declaration, record or binding of any stack claims."""
    unmarked = [live for live in register.by_locator.values() if live.owner is None]
    if not unmarked:
        return ()
    known = {live.key for live in ours} | register.taken.keys()
    known |= {twin for key in known if (twin := register.twins.get(key)) is not None}
    known |= register.seconds
    found = (live for live in unmarked if live.key not in known and not _is_within(register, live))
    return tuple(sorted(live.key for live in found if _other_stack(register, live) is None))


def elsewhere(register: Register) -> dict[str, tuple[tuple[str, str], ...]]:
    """By stack: what carries no record, and still is another stack's."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for live in register.by_locator.values():
        if live.owner is None and not register.is_taken(live) and (stack := _other_stack(register, live)) is not None:
            found[stack].append(live.key)
    return {stack: tuple(sorted(found[stack])) for stack in sorted(found)}


def _other_stack(register: Register, live: Live) -> str | None:
    """The other stack that an object without a record belongs to: by its binding in the same store, or by its parent's
    record, where the object cannot have a record of its own."""
    if (stack := register.snapshot.elsewhere.get(live.key)) is not None:
        return stack
    kind = register.kinds[live.kind]
    if kind.keeps_owner or kind.parent is None:
        return None
    parent = register.by_locator.get((kind.parent.kind, str(live.parent_id)))
    owner = parent.owner if parent is not None else None
    return owner.stack if owner is not None and owner.stack != register.stack else None


def _is_within(register: Register, live: Live) -> bool:
    """Whether the declaration of its parent says everything of this kind below it."""
    parent = register.kinds[live.kind].parent
    address = register.taken.get((parent.kind, str(live.parent_id))) if parent is not None else None
    above = register.manifest.declarations.get(address) if address is not None else None
    return above is not None and parent is not None and parent.embedded in above.spec


def whose(live: Live) -> str:
    """The owner record in a few words, for a plan's memory of what it saw."""
    owner = live.owner
    if owner is None:
        return ""
    return f"{owner.stack} {owner.address}" + (", protected" if owner.protect else "")
