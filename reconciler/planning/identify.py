"""Pairs what is declared with what is live. Knows nothing of differences between the two; see `compare`.

A declaration finds its object by explicit id, owner record, the store's binding (kinds without metadata only), its
former addresses, and last its natural key: what nobody owns is taken over only with consent, what another stack owns
never. Two matches are a problem, never a guess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Manifest
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Live, Snapshot
from reconciler.planning.normalize import Form, identity, seen


class Basis(StrEnum):
    """By what a declaration found its object."""

    NOTHING = "nothing"
    ID = "its id"
    OWNER = "its owner record"
    BINDING = "the store's binding"
    FORMER = "its former address"
    KEY = "its natural key"
    CHILD = "its natural key below an object of ours"


@dataclass(frozen=True)
class Match:
    live: Live | None
    basis: Basis
    former: Address | None = None
    problem: Problem | None = None

    @property
    def is_ours(self) -> bool:
        return self.basis in (Basis.OWNER, Basis.BINDING, Basis.FORMER, Basis.CHILD)


NO_MATCH = Match(None, Basis.NOTHING)


@dataclass
class Register:
    """Every live object, findable by each rung of the ladder; `taken` are those that a declaration has found."""

    stack: str
    manifest: Manifest
    snapshot: Snapshot
    by_locator: dict[tuple[str, str], Live] = field(default_factory=dict)
    by_owner: dict[Address, list[Live]] = field(default_factory=lambda: defaultdict(list))
    by_key: dict[tuple[str, tuple[object, ...]], list[Live]] = field(default_factory=lambda: defaultdict(list))
    forms: dict[tuple[str, str], Form] = field(default_factory=dict)
    superseded: list[tuple[Address, Live]] = field(default_factory=list)
    taken: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, manifest: Manifest, snapshot: Snapshot, kinds: Iterable[Kind]) -> Register:
        register = cls(manifest.stack, manifest, snapshot)
        for kind in kinds:
            for live in snapshot.of(kind.name).objects:
                register._enter(kind, live)
        register._tell_replaced_from_replacing()
        return register

    def _enter(self, kind: Kind, live: Live) -> None:
        self.by_locator[live.kind, live.locator] = live
        owner = live.owner
        # A record of another kind was copied by hand, and says nothing.
        if owner is not None and owner.stack == self.stack and owner.address.kind == kind.name:
            self.by_owner[owner.address].append(live)
        if kind.identity:
            key = identity(kind, self.form(kind, live))
            if key is not None:
                self.by_key[kind.name, key].append(live)

    def _tell_replaced_from_replacing(self) -> None:
        """An interrupted replacement leaves two objects with one address; the newer names the older."""
        for address, lives in self.by_owner.items():
            replaced = {live.owner.replaces for live in lives if live.owner is not None}
            heads = [live for live in lives if live.id not in replaced]
            if len(lives) > 1 and len(heads) == 1:
                self.superseded += [(address, live) for live in lives if live is not heads[0]]
                self.by_owner[address] = heads

    def form(self, kind: Kind, live: Live) -> Form:
        """The live object in canonical form, made once."""
        key = (live.kind, live.locator)
        if key not in self.forms:
            self.forms[key] = seen(kind, live)
        return self.forms[key]

    def take(self, live: Live) -> None:
        self.taken.add((live.kind, live.locator))

    def is_taken(self, live: Live) -> bool:
        return (live.kind, live.locator) in self.taken


def match(register: Register, kind: Kind, declaration: Declaration, want: Form) -> Match:
    """The live object of one declaration. Its references must have been resolved as far as they can be."""
    if declaration.id is not None:
        return _by_id(register, kind, declaration, want)
    owned = register.by_owner.get(declaration.address, [])
    if len(owned) > 1:
        ids = ", ".join(sorted(live.id for live in owned))
        return _stuck(declaration, f"{len(owned)} objects carry its owner record: {ids}", "delete all but one by hand")
    if owned:
        return Match(owned[0], Basis.OWNER)
    if not kind.keeps_owner and (binding := register.snapshot.bindings.get(declaration.address)):
        bound = register.by_locator.get((kind.name, binding.id))
        if bound is not None:
            return Match(bound, Basis.BINDING)
    for former in declaration.moved:
        if moved := _formerly(register, kind, former):
            return Match(moved, Basis.FORMER, former)
    return _by_key(register, kind, declaration, want)


def _formerly(register: Register, kind: Kind, former: Address) -> Live | None:
    if former in register.manifest.declarations or former.kind != kind.name:
        return None
    owned = register.by_owner.get(former, [])
    if len(owned) == 1:
        return owned[0]
    binding = register.snapshot.bindings.get(former)
    return register.by_locator.get((kind.name, binding.id)) if binding and not kind.keeps_owner else None


def _by_id(register: Register, kind: Kind, declaration: Declaration, want: Form) -> Match:
    parent = want.get(kind.parent.field) if kind.parent else None
    locator = f"{parent}/{declaration.id}" if isinstance(parent, str) else str(declaration.id)
    live = register.by_locator.get((kind.name, locator))
    if live is None:
        return _stuck(
            declaration, f"there is no {kind.name} {declaration.id} on the platform", "correct the id, or remove it"
        )
    return _claim(register, declaration, live, Basis.ID)


def _by_key(register: Register, kind: Kind, declaration: Declaration, want: Form) -> Match:
    key = identity(kind, want)
    if key is None:
        return NO_MATCH
    lives = [live for live in register.by_key.get((kind.name, key), []) if not register.is_taken(live)]
    if not kind.unique:
        # Another of the same may well belong to somebody: only consent makes it this one.
        lives = [live for live in lives if live.owner is None] if declaration.lifecycle.adopt else []
    if not lives:
        return NO_MATCH
    if len(lives) > 1:
        ids = ", ".join(sorted(live.id for live in lives))
        return _stuck(declaration, f"{len(lives)} objects answer to it: {ids}", "say which, with `id:`")
    live = lives[0]
    if not kind.keeps_owner and kind.parent and _parent_is_ours(register, kind, live):
        return Match(live, Basis.CHILD)
    return _claim(register, declaration, live, Basis.KEY)


def _parent_is_ours(register: Register, kind: Kind, live: Live) -> bool:
    parent = register.by_locator.get((kind.parent.kind, str(live.parent_id))) if kind.parent else None
    return parent is not None and parent.owner is not None and parent.owner.stack == register.stack


def _claim(register: Register, declaration: Declaration, live: Live, basis: Basis) -> Match:
    """An object found without our record on it, or with another one."""
    owner = live.owner
    if owner is None:
        bound = _bound_address(register, live)
        return Match(live, basis) if bound in (None, declaration.address) else _elsewhere(declaration, live, bound)
    if owner.stack != register.stack:
        return _stuck(
            declaration,
            f"{live.id} belongs to stack {owner.stack!r} as {owner.address}",
            "remove it there with `ensure: forgotten`, then adopt it here",
        )
    if owner.address == declaration.address:
        return Match(live, Basis.OWNER)
    if owner.address in register.manifest.declarations:
        return _elsewhere(declaration, live, owner.address)
    return Match(live, Basis.FORMER, owner.address)


def _elsewhere(declaration: Declaration, live: Live, address: Address | None) -> Match:
    return _stuck(declaration, f"{live.id} is already {address}", "declare it once")


def _bound_address(register: Register, live: Live) -> Address | None:
    for address, binding in register.snapshot.bindings.items():
        if address.kind == live.kind and binding.id == live.locator and address in register.manifest.declarations:
            return address
    return None


def _stuck(declaration: Declaration, text: str, remedy: str) -> Match:
    problem = Problem(text, remedy, str(declaration.address), declaration.position)
    return Match(None, Basis.NOTHING, problem=problem)


def orphans(register: Register, kinds: Mapping[str, Kind], spared: set[Address]) -> list[tuple[Address, Live]]:
    """Objects of this stack that no declaration has found, with the address they were created under.

    `spared` are declared addresses that could not be matched: nothing of theirs is an orphan.
    """
    found = [(address, live) for address, live in register.superseded if address not in spared]
    for address, lives in register.by_owner.items():
        if address not in spared:
            found += [(address, live) for live in lives if not register.is_taken(live)]
    for address, binding in register.snapshot.bindings.items():
        kind = kinds.get(address.kind)
        if address in spared or kind is None or kind.keeps_owner:
            continue
        live = register.by_locator.get((address.kind, binding.id))
        if live is not None and not register.is_taken(live):
            found.append((address, live))
    return sorted(found, key=lambda pair: (pair[0], pair[1].locator))


def unowned(register: Register, ours: Sequence[Live]) -> tuple[tuple[str, str], ...]:
    """What nobody declares and nobody's record is on."""
    known = {(live.kind, live.locator) for live in ours} | register.taken
    return tuple(sorted(key for key, live in register.by_locator.items() if key not in known and live.owner is None))
