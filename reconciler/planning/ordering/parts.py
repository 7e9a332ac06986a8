"""The order between parts of a whole and those that refer to the whole, such as an IP restriction and a policy's rules.

A part refers to its whole and knows nothing of others that do; a kind names its parts in `settled_by`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.plan import Call
from reconciler.model.problem import Problem
from reconciler.planning.deciding.decide import Decision
from reconciler.planning.deciding.exclusive_keys import LiveKey
from reconciler.planning.matching.index import Register
from reconciler.planning.ordering import dependencies
from reconciler.planning.ordering.call_graph import Draft, lets_go, live_edges, texts


def order_settling(
    draft: Draft,
    decisions: Sequence[Decision],
    dependencies: Mapping[Address, Iterable[Address]],
    register: Register,
    kinds: Mapping[str, Kind],
) -> Iterator[Problem]:
    """Who refers to a whole comes after its parts are made, and leaves before they go; while it stays, they do not all
    go at once, or it is told that they would."""
    settling = {name for kind in kinds.values() for name in kind.settled_by}
    settled = {kind.name: kind.part_of.field for kind in kinds.values() if kind.name in settling and kind.part_of}
    made: dict[Address, list[str]] = defaultdict(list)
    come: dict[str, list[str]] = defaultdict(list)  # by the id of a whole that is there already
    for decision in decisions:
        if decision.address.kind in settled and decision.address in draft.creators:
            for needed in dependencies.get(decision.address, ()):
                made[needed].append(draft.creators[decision.address])
            whole = decision.want.get(settled[decision.address.kind])
            if isinstance(whole, str):
                come[whole].append(draft.creators[decision.address])
    for decision in decisions:
        if decision.kind.settled_by and decision.action is not None:
            parts = [part for needed in dependencies.get(decision.address, ()) for part in made.get(needed, ())]
            for call in (draft.creators.get(decision.address), *draft.setters[decision.address]):
                if call is not None:
                    draft.wait(call, *parts)
    parted = _parted(draft, register, kinds, settled)
    if parted:
        yield from _order_partings(draft, decisions, register, kinds, parted, come)


@dataclass
class _Parting:
    """A whole of which parts are deleted."""

    going: list[str] = field(default_factory=list)
    stay: bool = False  # some of its parts do


def _parted(
    draft: Draft, register: Register, kinds: Mapping[str, Kind], settled: Mapping[str, str]
) -> dict[LiveKey, _Parting]:
    if not any(kind in settled for kind, _ in draft.deleters):
        return {}
    found: dict[LiveKey, _Parting] = defaultdict(_Parting)
    for key, live in register.by_locator.items():
        for through, whole in dependencies.live_references(kinds[key[0]], live) if key[0] in settled else ():
            if through == settled[key[0]]:
                if key in draft.deleters:
                    found[whole].going.append(draft.deleters[key])
                else:
                    found[whole].stay = True
    return {whole: each for whole, each in found.items() if each.going}


def _order_partings(
    draft: Draft,
    decisions: Sequence[Decision],
    register: Register,
    kinds: Mapping[str, Kind],
    parted: Mapping[LiveKey, _Parting],
    come: Mapping[str, Sequence[str]],
) -> Iterator[Problem]:
    """What waits before a part of what somebody refers to is deleted."""
    holders = {(each.live.kind, each.live.locator): each for each in decisions if each.live is not None}
    bare: dict[tuple[LiveKey, str], None] = {}  # what would be without parts, and who cannot do without
    for referrer, through, whole in live_edges(register, kinds):
        if whole not in parted or not kinds[referrer[0]].settled_by:
            continue
        decision, parting = holders.get(referrer), parted[whole]
        if referrer in draft.deleters:
            before = [draft.deleters[referrer]]
        elif decision is not None and lets_go(decision, through, whole):
            before = draft.setters[decision.address]
        else:
            before = _first(draft, parting, come[whole[1]])
            kind, live = kinds[referrer[0]], register.by_locator[referrer]
            if not before and kind.insists is not None and kind.insists(register.form(kind, live)):
                bare[whole, _named(referrer, holders)] = None
        for delete in parting.going:
            draft.wait(delete, *(each for each in before if delete not in draft.needs[each]))
    for decision in decisions:
        kind, form = decision.kind, {**decision.have, **decision.want}
        if kind.insists is not None and decision.want and kind.insists(form):
            there = set(texts(decision.want))
            bare |= {
                (whole, str(decision.address)): None for whole in parted if whole[1] in there and not come[whole[1]]
            }
    for whole, user in bare:
        if not parted[whole].stay and whole not in draft.deleters:
            yield _bare(draft.calls[min(parted[whole].going)], _named(whole, holders), user, decisions)


def _first(draft: Draft, parting: _Parting, come: Sequence[str]) -> list[str]:
    """What comes before the other parts go: one that waits for none of them. If there is none such, and nothing that
    stays, one that takes the place of some makes do."""
    going = set(parting.going)
    free = [each for each in come if going.isdisjoint(draft.needs[each])]
    partly = [each for each in come if not going <= draft.needs[each]]
    return (free if free or parting.stay else partly)[:1]


def _named(key: LiveKey, holders: Mapping[LiveKey, Decision]) -> str:
    return str(holders[key].address) if key in holders else f"{key[0]} {key[1]}"


def _bare(delete: Call, whole: str, user: str, decisions: Sequence[Decision]) -> Problem:
    positions = {each.address: each.declaration.position for each in decisions if each.declaration is not None}
    part = delete.address.kind
    return Problem(
        f"{whole} would be left without any {part}, if only for a moment, and {user} cannot do without",
        f"declare another {part} of {whole}, at least until this is applied; or take {whole} out of {user} first",
        str(delete.address),
        positions.get(delete.address),
    )
