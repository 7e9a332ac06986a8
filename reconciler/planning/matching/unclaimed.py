"""Live objects without a declaration: orphans of this stack, objects of other stacks, and unmanaged objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from reconciler.model.address import Address
from reconciler.model.snapshot import Live, LiveKey
from reconciler.planning.matching.assignments import Assignments
from reconciler.planning.matching.index import LiveIndex


def find_orphans(assignments: Assignments, spared: set[Address]) -> list[tuple[Address, Live]]:
    """The objects of this stack that are not assigned to a declaration, sorted by the address in their owner record.

    `spared` are addresses without orphans: declared ones that could not be matched, and ones that are not selected.
    """
    index, assigned = assignments.index, assignments.by_key
    owned = [*index.superseded]
    owned += [
        (address, live) for address, lives in index.by_owner.items() for live in lives if live.key not in assigned
    ]
    for address in index.snapshot.bindings:
        kind = index.kinds.get(address.kind)
        if kind is not None and not kind.keeps_owner:
            owned += [(address, live) for live in index.find_recorded(kind, address)]
    unassigned = [
        (address, live) for address, live in owned if address not in spared and not assignments.is_assigned(live)
    ]
    by_key = {
        (live.kind, live.locator): (address, live)
        for address, live in sorted(unassigned, key=lambda pair: (pair[0], pair[1].locator), reverse=True)
    }
    return sorted(by_key.values(), key=lambda pair: (pair[0], pair[1].locator))


def find_shared_records(orphaned: Sequence[tuple[Address, Live]]) -> dict[Address, list[Live]]:
    """The orphans with the same owner record, intent included, by address. At most one of them was created with it."""
    groups: dict[Address, list[Live]] = {}
    for address, live in orphaned:
        groups.setdefault(address, []).append(live)
    return {
        address: lives
        for address, lives in groups.items()
        if len({live.owner.intent if live.owner else live.locator for live in lives}) < len(lives)
    }


def find_unmanaged(assignments: Assignments, owned: Sequence[Live]) -> tuple[LiveKey, ...]:
    """The objects that no declaration, owner record or binding of any stack claims, sorted. `owned`: of this stack.

    Objects that the platform creates for another one, such as the certificate of a domain, belong to that one.
    """
    index = assignments.index
    unrecorded = [live for live in index.by_locator.values() if live.owner is None and not _is_automatic(index, live)]
    if not unrecorded:
        return ()
    claimed = {live.key for live in (*owned, *(live for _, live in index.superseded))} | assignments.by_key.keys()
    unclaimed = (live for live in unrecorded if live.key not in claimed and not _is_within(assignments, live))
    return tuple(sorted(live.key for live in unclaimed if _find_other_stack(index, live) is None))


def find_other_stacks(assignments: Assignments) -> dict[str, tuple[LiveKey, ...]]:
    """The objects without an owner record that other stacks own, by stack."""
    index = assignments.index
    by_stack: dict[str, list[LiveKey]] = defaultdict(list)
    for live in index.by_locator.values():
        stack = _find_other_stack(index, live) if live.owner is None and not assignments.is_assigned(live) else None
        if stack is not None:
            by_stack[stack].append(live.key)
    return {stack: tuple(sorted(by_stack[stack])) for stack in sorted(by_stack)}


def _find_other_stack(index: LiveIndex, live: Live) -> str | None:
    """The other stack that owns an object without an owner record, by a binding in the same store or by its parent.

    The owner record of the parent counts for kinds that cannot have a record of their own.
    """
    if (stack := index.snapshot.elsewhere.get(live.key)) is not None:
        return stack
    kind = index.kinds[live.kind]
    if kind.keeps_owner or kind.parent is None:
        return None
    parent = index.by_locator.get((kind.parent.kind, str(live.parent_id)))
    owner = parent.owner if parent is not None else None
    return owner.stack if owner is not None and owner.stack != index.stack else None


def _is_automatic(index: LiveIndex, live: Live) -> bool:
    return index.kinds[live.kind].is_automatic(live.body)


def _is_within(assignments: Assignments, live: Live) -> bool:
    """Whether the declaration of its parent lists its children of this kind in a field of its own."""
    index = assignments.index
    parent = index.kinds[live.kind].parent
    address = assignments.by_key.get((parent.kind, str(live.parent_id))) if parent is not None else None
    above = index.manifest.declarations.get(address) if address is not None else None
    return above is not None and parent is not None and parent.embedded in above.spec
