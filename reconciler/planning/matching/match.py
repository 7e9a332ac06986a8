"""Finds the live object of a declaration; `compare` finds their differences.

In this order: `id`, owner record, binding of the store (kinds without metadata only), former addresses (`moved`),
natural key. An unmanaged object is adopted only with approval, an object of another stack never. More than one match
is a problem: nothing is guessed (docs/architecture.md, "How planning goes").
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.canonical import CanonicalFields
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Live, LiveKey
from reconciler.planning.comparing.canonical_fields import natural_key
from reconciler.planning.matching.assignments import Assignments
from reconciler.planning.matching.index import LiveIndex


class Basis(StrEnum):
    """By what an object was matched."""

    NOTHING = "nothing"
    ID = "its id"
    OWNER = "its owner record"
    BINDING = "the store's binding"
    FORMER = "its former address"
    KEY = "its natural key"
    CHILD = "its natural key below an object of ours"


class Match(Struct, frozen=True):
    """The live object of a declaration and by what it was matched, or the problem that prevents a match.

    former   the address in its owner record or binding, if that is not the declared one
    """

    live: Live | None
    basis: Basis
    former: Address | None = None
    problem: Problem | None = None

    @property
    def is_ours(self) -> bool:
        """Whether this stack owns the object: not if it was only named by id or found by its natural key."""
        return self.basis in (Basis.OWNER, Basis.BINDING, Basis.FORMER, Basis.CHILD)


_CORRECT_ID = "remove `id`, set `ensure: absent` or `ensure: forgotten`, apply, then set `id: {id}`"
_ADOPT_AFTER = "remove it there with `ensure: forgotten`, then adopt it here"
NO_MATCH = Match(None, Basis.NOTHING)


def match(assignments: Assignments, kind: Kind, declaration: Declaration, want: CanonicalFields) -> Match:
    """Finds the live object of one declaration and assigns it.

    want   the canonical spec, with the references to existing objects resolved

    An object that is assigned to another declaration is the problem `duplicate-object`.
    """
    result = _find(assignments, kind, declaration, want)
    if result.live is not None:
        holder = assignments.assign(result.live, declaration.address)
        if holder != declaration.address:
            return _refuse_duplicate(declaration, result.live, holder)
    return result


def _find(assignments: Assignments, kind: Kind, declaration: Declaration, want: CanonicalFields) -> Match:
    index = assignments.index
    owned = _find_reclaimed(index, kind, declaration, want) or [*index.find_recorded(kind, declaration.address)]
    formers = index.find_former(kind, declaration)
    if len(owned) > 1:
        return _refuse_shared_record(index, declaration, declaration.address, owned)
    is_present = declaration.ensure is Ensure.PRESENT
    if declaration.id is not None and not _is_absent(index, kind, declaration, want):
        return _find_by_id(index, kind, declaration, want, owned + [live for _, live in formers])
    if len({(live.kind, live.locator) for live in owned + [live for _, live in formers]}) > 1:
        return _refuse_ambiguous(declaration, owned, formers)
    if owned:
        if (standing := _find_existing_child(assignments, kind, want, owned[0], declaration)) is not None:
            return standing
        record = owned[0].owner
        if record is not None and record.address != declaration.address:
            return Match(owned[0], Basis.FORMER, record.address)  # reclaimed, and renamed since
        return Match(owned[0], Basis.BINDING if record is None else Basis.OWNER)
    if formers:
        former, live = formers[0]
        if index.manifest.may_declare(former):
            return _refuse_unread(declaration, f"{live.id} was {former}")
        return Match(live, Basis.FORMER, former)
    if declaration.id is not None and not is_present:
        return NO_MATCH  # the named object does not exist; an unmanaged object with its natural key is another one
    if declaration.id is not None and (other := index.find_kind_of_id(kind, declaration.id)) is not None:
        return _refuse(
            declaration,
            f"{declaration.id} is the id of an object of the kind {other}",
            "correct the id, or remove it to create the object",
            "id",
            code="unknown-id",
        )
    return _find_by_key(assignments, kind, declaration, want)


def _find_reclaimed(index: LiveIndex, kind: Kind, declaration: Declaration, want: CanonicalFields) -> list[Live]:
    """The object that an interrupted replacement would delete, if the declaration has its unique key again.

    It is kept with its referrers, and the object that was created to replace it is deleted.
    """
    replaced = [live for address, live in index.superseded if address == declaration.address]
    key = natural_key(kind, want) if replaced and kind.is_unique(want) and kind.keeps_owner else None
    if key is None:
        return []
    return [live for live in replaced if natural_key(kind, index.form(kind, live)) == key]


def _find_existing_child(
    assignments: Assignments, kind: Kind, want: CanonicalFields, bound: Live, declaration: Declaration
) -> Match | None:
    """The child without owner record below its declared parent, if the store binds one below another parent.

    Two runs may each have created the parent and the child; the first parent is kept.
    """
    if kind.keeps_owner:
        return None
    if natural_key(kind, want) == natural_key(kind, assignments.index.form(kind, bound)):
        return None
    child = _find_by_key(assignments, kind, declaration, want)
    return child if child.basis is Basis.CHILD else None


def _refuse_shared_record(index: LiveIndex, declaration: Declaration, address: Address, owned: Sequence[Live]) -> Match:
    """The problem of several objects with the owner record of one address."""
    intents = {live.owner.intent for live in owned if live.owner is not None}
    if index.kinds[address.kind].one_time and len(intents) == len(owned):
        return Match(None, Basis.NOTHING, problem=_report_created_twice(index, declaration, address, owned))
    return Match(None, Basis.NOTHING, problem=report_shared_record(address, owned, declaration))


def _report_created_twice(
    index: LiveIndex, declaration: Declaration, address: Address, owned: Sequence[Live]
) -> Problem:
    """Runs with different stores each created the credential, and each may have delivered its token."""
    ids = sorted(live.id for live in owned)
    credentials = [_describe_credential(index, live) for live in sorted(owned, key=lambda live: live.id)]
    lines = " or ".join(f"`id: {id}`" for id in ids)
    return Problem(
        f"{len(owned)} credentials exist for it, and the token of each may be in use: {'; '.join(credentials)}",
        f"set {lines} in its manifest to choose the one to keep, and run `reconciler apply --target {address}`; "
        "the others will be deleted",
        str(declaration.address),
        declaration.position,
        code="credential-created-twice",
        confined=True,
    )


def _describe_credential(index: LiveIndex, live: Live) -> str:
    created = live.body.get("created_at")
    is_ours = live.owner is not None and live.owner.intent in index.snapshot.receipts
    traits = [f"created {created}"] if isinstance(created, str) else []
    traits += ["token delivered by a run with this store"] if is_ours else []
    return f"{live.id} ({', '.join(traits)})" if traits else live.id


def report_shared_record(address: Address, owned: Sequence[Live], declaration: Declaration | None = None) -> Problem:
    """The problem of several objects with one owner record, of which nothing says which was created with it."""
    ids = ", ".join(sorted(live.id for live in owned))
    intents = {live.owner.intent if live.owner else "" for live in owned}
    if len(intents) == len(owned):
        text, remedy = f"{len(owned)} objects were created for it: {ids}", "delete all of them but the one in use"
    else:
        text = f"{len(owned)} objects carry its owner record: {ids}"
        remedy = "remove the owner record from the metadata of all but one, or delete the others"
    return Problem(
        text,
        remedy,
        str(declaration.address if declaration else address),
        declaration.position if declaration else None,
        code="shared-owner-record",
    )


def _refuse_ambiguous(declaration: Declaration, owned: list[Live], formers: list[tuple[Address, Live]]) -> Match:
    objects = [f"{live.id} is {declaration.address} already" for live in owned]
    objects += [f"{live.id} was {former}" for former, live in formers]
    remedy = (
        "keep one address in `moved`"
        if not owned
        else "remove `moved`; the object with the former address will then be deleted"
    )
    return _refuse(
        declaration, f"`moved` matches more than one object: {', '.join(objects)}", remedy, code="ambiguous-match"
    )


def locate(kind: Kind, declaration: Declaration, want: CanonicalFields) -> LiveKey:
    """Kind and locator of the object that `id` names."""
    parent = want.get(kind.parent.field) if kind.parent else None
    return kind.name, f"{parent}/{declaration.id}" if isinstance(parent, str) else str(declaration.id)


def _is_absent(index: LiveIndex, kind: Kind, declaration: Declaration, want: CanonicalFields) -> bool:
    """Whether no object has the id, so that it leads nowhere: the declaration is matched as one without an id."""
    if not index.snapshot.of(kind.name).complete or locate(kind, declaration, want) in index.by_locator:
        return False
    if declaration.ensure is Ensure.PRESENT:
        return True
    # The parent of an object to delete or to forget may not be declared.
    return all(live.id != declaration.id for live in index.snapshot.of(kind.name).objects)


def _find_by_id(
    index: LiveIndex, kind: Kind, declaration: Declaration, want: CanonicalFields, recorded: list[Live]
) -> Match:
    live = index.by_locator.get(locate(kind, declaration, want))
    other = next((candidate for candidate in recorded if candidate is not live), None)
    if other is not None and _is_successor(other, declaration):
        return Match(other, Basis.OWNER)
    if other is not None:
        return _refuse(
            declaration,
            f"its manifest names the id {declaration.id}, but its owner record is on {other.id}",
            _CORRECT_ID.format(id=declaration.id),
            code="conflicting-id",
        )
    if live is None:
        return NO_MATCH
    return _claim(index, kind, declaration, live, Basis.ID)


def _is_successor(other: Live, declaration: Declaration) -> bool:
    """Whether our object replaced the one that `id` names, which will be deleted."""
    owner = other.owner
    if owner is None or owner.address != declaration.address or declaration.ensure is not Ensure.PRESENT:
        return False
    return owner.replaces == declaration.id


def _find_by_key(assignments: Assignments, kind: Kind, declaration: Declaration, want: CanonicalFields) -> Match:
    index, key = assignments.index, natural_key(kind, want)
    if key is None:
        return NO_MATCH
    lives = [live for live in index.by_key.get((kind.name, key), []) if assignments.is_free(live, declaration.address)]
    if not kind.is_unique(want):
        # An object with the same values may have another purpose: only approval makes it this one, and only if the
        # manifest does not name another object.
        may_adopt = declaration.lifecycle.adopt and declaration.id is None
        lives = [live for live in lives if live.owner is None] if may_adopt else []
    if not lives:
        return NO_MATCH
    if len(lives) > 1:
        ids = ", ".join(sorted(live.id for live in lives))
        return _refuse(
            declaration, f"{len(lives)} objects match it: {ids}", "choose one with `id`", code="ambiguous-match"
        )
    is_present = declaration.ensure is Ensure.PRESENT
    result = _claim(index, kind, declaration, lives[0], Basis.KEY)
    if result.basis is Basis.KEY and not kind.keeps_owner and _parent_is_ours(index, kind, lives[0]):
        return Match(lives[0], Basis.CHILD)
    unread = index.manifest.unread
    if result.basis is Basis.KEY and unread is not None and unread.may_declare(kind.name) and is_present:
        return _refuse_unread(declaration, f"{lives[0].id} has its {' and '.join(kind.identity)}")
    return result


def _parent_is_ours(index: LiveIndex, kind: Kind, live: Live) -> bool:
    parent = index.by_locator.get((kind.parent.kind, str(live.parent_id))) if kind.parent else None
    return parent is not None and parent.owner is not None and parent.owner.stack == index.stack


def _claim(index: LiveIndex, kind: Kind, declaration: Declaration, live: Live, basis: Basis) -> Match:
    """The match of an object that was found by id or natural key, according to its owner record."""
    owner = live.owner
    if owner is None:
        return _claim_unmarked(index, kind, declaration, live, basis)
    if owner.stack != index.stack:
        if declaration.ensure is Ensure.FORGOTTEN:
            return Match(live, basis)  # another stack owns it: there is nothing to forget
        return _refuse(
            declaration,
            f"{live.id} is managed by stack {owner.stack!r} as {owner.address}",
            _ADOPT_AFTER,
            code="owned-by-another-stack",
        )
    if owner.address == declaration.address:
        return Match(live, Basis.OWNER)
    if owner.address in index.manifest.declarations:
        return _refuse_duplicate(declaration, live, owner.address)
    recorded = index.by_owner.get(owner.address, [])
    if len(recorded) > 1:
        return _refuse_shared_record(index, declaration, owner.address, recorded)
    unread = index.manifest.unread
    if unread is not None and unread.may_declare(kind.name):  # which may move it to another address
        return _refuse_unread(declaration, f"{live.id} is {owner.address}")
    return Match(live, Basis.FORMER, owner.address)


def _claim_unmarked(index: LiveIndex, kind: Kind, declaration: Declaration, live: Live, basis: Basis) -> Match:
    bound = [] if kind.keeps_owner else index.find_bound_addresses(live)
    if not bound and (stack := index.snapshot.elsewhere.get(live.key)) is not None:
        if declaration.ensure is Ensure.FORGOTTEN:
            return Match(live, basis)
        text, remedy = f"{live.id} is managed by stack {stack!r}, as the store says", _ADOPT_AFTER
        return _refuse(declaration, text, remedy, code="owned-by-another-stack")
    if not bound:
        return Match(live, basis)
    if declaration.address in bound:
        return Match(live, Basis.BINDING)
    declared = [address for address in bound if address in index.manifest.declarations]
    unread = index.manifest.unread
    if not declared and unread is not None and unread.may_declare(kind.name):
        return _refuse_unread(declaration, f"{live.id} is {bound[0]}")
    return _refuse_duplicate(declaration, live, declared[0]) if declared else Match(live, Basis.FORMER, bound[0])


def _refuse_duplicate(declaration: Declaration, live: Live, address: Address) -> Match:
    return _refuse(
        declaration,
        f"{live.id} is already declared as {address}",
        "remove one of the two declarations",
        code="duplicate-object",
    )


def _refuse_unread(declaration: Declaration, text: str) -> Match:
    return _refuse(
        declaration,
        f"{text}, which an invalid manifest may declare",
        "correct the invalid manifests first",
        code="manifests-incomplete",
    )


def _refuse(declaration: Declaration, text: str, remedy: str, *word: str, code: str) -> Match:
    position = declaration.positions.get(word, declaration.position)
    problem = Problem(text, remedy, str(declaration.address), position, code=code)
    return Match(None, Basis.NOTHING, problem=problem)
