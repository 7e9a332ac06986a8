"""Which bindings the store has to write or delete, beyond those that calls write themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.canonical import collect_applied, digests
from reconciler.model.change import Action
from reconciler.model.manifest import Ensure
from reconciler.model.snapshot import Binding, Live
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.matching.assignments import Assignments


def find_binding_updates(
    assignments: Assignments, decided: Mapping[Address, Decision], options: PlanOptions
) -> dict[Address, Binding | None]:
    """The bindings to write, by address; None for those to delete.

    A binding holds the id, the digests of the applied fields and the protection of an object without metadata.
    """
    index = assignments.index
    updates: dict[Address, Binding | None] = dict.fromkeys(_find_outdated(assignments, options))
    for address, decision in decided.items():
        live = decision.live
        if live is None or (decision.action is not Action.FORGET and decision.kind.keeps_owner):
            continue
        if not options.selects(address):
            continue
        if decision.action is Action.FORGET:
            bound, manifest = index.find_bound_addresses(live), index.manifest
            others = [
                other for other in bound if other not in manifest.declarations and not manifest.may_declare(other)
            ]
            updates |= dict.fromkeys((address, *others))  # its former addresses too
        elif decision.is_kept:
            stored = index.snapshot.bindings.get(address)
            replaces = _find_replaced_id(assignments, address, live)
            if not decision.differences:
                digested = digests(collect_applied(decision.kind, decision.want), str(address))
                binding = Binding(live.locator, digested, decision.protect, replaces, decision.adopted)
                # Also an unchanged one, if it names an object to delete: the engine updates it after the delete.
                if replaces is not None or binding != stored:
                    updates[address] = binding
                if decision.former is not None:
                    updates[decision.former] = None
            elif stored is not None and replaces is not None:
                updates[address] = replace(stored, id=live.locator, replaces=replaces)  # the update writes the rest
    return updates


def _find_replaced_id(assignments: Assignments, address: Address, live: Live) -> str | None:
    """The locator of the object that the matched one replaces, if it still exists and has to be deleted.

    It is the bound one if the declaration was matched with another, as when it returns to its former parent.
    """
    index = assignments.index
    binding = index.snapshot.bindings.get(address)
    former = [binding.id, binding.replaces] if binding is not None else []
    existing = (index.by_locator.get((live.kind, str(locator))) for locator in former)
    return next((old.locator for old in existing if old is not None and not assignments.is_assigned(old)), None)


def _find_outdated(assignments: Assignments, options: PlanOptions) -> Iterator[Address]:
    """Bindings to delete: the object no longer exists, or its owner record names another address.

    Another object may get the name of a deleted one, and an object may be forgotten under its new address.
    """
    index = assignments.index
    bindings, declarations = index.snapshot.bindings, index.manifest.declarations
    absent = {address for address, declared in declarations.items() if declared.ensure is not Ensure.PRESENT}
    for address in sorted((bindings.keys() - declarations.keys()) | (bindings.keys() & absent)):
        kind, binding = index.kinds.get(address.kind), bindings[address]
        if kind is None or (address not in declarations and index.manifest.unread is not None):
            continue
        key = (kind.name, binding.id)
        live = index.by_locator.get(key)
        if kind.keeps_owner:
            owner = live.owner if live is not None else None
            is_outdated = owner is not None and (owner.stack, owner.address) != (index.stack, address)
        else:
            is_listed = index.snapshot.of(kind.name).complete
            is_outdated = is_listed and live is None
        if is_outdated and options.selects(address):
            yield address
