"""The order between parts of a whole and those that refer to the whole, such as an IP restriction and a policy's rules.

A part refers to its whole and knows nothing of others that do; a kind names its parts in `settled_by`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.planning import order
from reconciler.planning.claims import LiveKey
from reconciler.planning.decide import Decision
from reconciler.planning.register import Register
from reconciler.planning.waits import Draft, lets_go, live_edges


def order_settling(
    draft: Draft,
    decisions: Sequence[Decision],
    dependencies: Mapping[Address, Iterable[Address]],
    register: Register,
    kinds: Mapping[str, Kind],
) -> None:
    """Who refers to a whole comes after its parts are made, and leaves before they go; while it stays, the first of the
    new parts comes before any of the old ones goes."""
    settled = {part: through for kind in kinds.values() for part, through in kind.settled_by.items()}
    made: dict[Address, list[str]] = defaultdict(list)
    for decision in decisions:
        if decision.address.kind in settled and decision.address in draft.creators:
            for needed in dependencies.get(decision.address, ()):
                made[needed].append(draft.creators[decision.address])
    for decision in decisions:
        if decision.kind.settled_by and decision.action is not None:
            parts = [part for needed in dependencies.get(decision.address, ()) for part in made.get(needed, ())]
            for call in (draft.creators.get(decision.address), *draft.setters[decision.address]):
                if call is not None:
                    draft.wait(call, *parts)
    going: dict[LiveKey, list[str]] = defaultdict(list)
    for key, delete in draft.deleters.items():
        if key[0] in settled:
            live = register.by_locator[key]
            for through, whole in order.live_references(kinds[key[0]], live):
                if through == settled[key[0]]:
                    going[whole].append(delete)
    if going:
        _order_partings(draft, decisions, register, kinds, going, made)


def _order_partings(
    draft: Draft,
    decisions: Sequence[Decision],
    register: Register,
    kinds: Mapping[str, Kind],
    going: Mapping[LiveKey, Sequence[str]],
    made: Mapping[Address, Sequence[str]],
) -> None:
    """What waits before a part of what somebody refers to is deleted."""
    holders = {(each.live.kind, each.live.locator): each for each in decisions if each.live is not None}
    for referrer, through, whole in live_edges(register, kinds):
        if whole not in going or not kinds[referrer[0]].settled_by:
            continue
        decision, owner = holders.get(referrer), holders.get(whole)
        if referrer in draft.deleters:
            before = [draft.deleters[referrer]]
        elif decision is not None and lets_go(decision, through, whole):
            before = draft.setters[decision.address]
        else:
            # A part that takes the place of an old one waits for that already.
            new = made.get(owner.address, ()) if owner is not None else ()
            before = [each for each in new if not draft.needs[each] & set(going[whole])][:1]
        for delete in going[whole]:
            draft.wait(delete, *before)
