"""The way out of a ring of takers: one of them lets go of what the others wait for, before it takes anything itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Order, Reason
from reconciler.model.kind import Exclusive
from reconciler.model.plan import Call, Verb
from reconciler.model.value import canonical
from reconciler.planning.comparing.canonical_fields import body_value
from reconciler.planning.deciding.decide import Decision
from reconciler.planning.deciding.exclusive_keys import Claim
from reconciler.planning.ordering.call_graph import Draft
from reconciler.planning.ordering.calls import object_path


class Exchange(Exception):
    """A ring opens when this decision takes the place of the one with its address."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(str(decision.address))
        self.decision = decision


def loosened(draft: Draft, ring: Sequence[str], decisions: Sequence[Decision]) -> bool:
    """Whether the ring is open now. A list can be shortened in between; an object's only name cannot."""
    for index, decision in enumerate(decisions):
        for call in set(ring) & set(draft.setters.get(decision.address, ())):
            takers = {taker: what for (taker, giver), what in draft.handed.items() if giver == call}
            release = _release(decision, {claim for what in takers.values() for claim in what})
            if release is None or release.id in draft.calls:
                continue
            draft.calls[release.id], draft.rank[release.id] = release, (0, index, -1)
            draft.wait(call, release.id)
            for taker, what in takers.items():
                if all(name in decision.kind.by_name for name, _ in what):
                    draft.needs[taker] = draft.needs[taker] - {call} | {release.id}
            return True
    return False


def made_anew(
    draft: Draft, ring: Sequence[str], decisions: Sequence[Decision], dependencies: Mapping[Address, Iterable[Address]]
) -> Decision | None:
    """One of the ring that may be deleted before the others take its name, and made anew after: nothing is lost with it
    and nothing refers to it."""
    needed = {each for needs in dependencies.values() for each in needs}
    for decision in decisions:
        kind, declaration = decision.kind, decision.declaration
        plain = kind.keeps_owner and not kind.irreplaceable and kind.one_time is None and not kind.modules_by_id
        if (
            decision.action is Action.UPDATE
            and set(ring) & set(draft.setters.get(decision.address, ()))
            and any(giver in draft.setters[decision.address] for _, giver in draft.handed)
            and kind.is_unique(decision.want)
            and plain
            and declaration is not None
            and declaration.lifecycle.replace
            and not declaration.lifecycle.ignore
            and not decision.guarded
            and decision.address not in needed
        ):
            return replace(
                decision, action=Action.REPLACE, order=Order.DELETE_FIRST, reason=Reason.EXCHANGED, moves_record=True
            )
    return None


def made_room(draft: Draft, ring: Collection[str], decisions: Sequence[Decision]) -> Decision | None:
    """A replacement of the ring that goes before it comes anew: since what it refers to has to, or since another is to
    have what it holds. For the latter nothing goes that cannot be had back, or that has a secret told only once."""
    forced = any(each.order is Order.DELETE_FIRST and draft.creators.get(each.address) in ring for each in decisions)
    for decision in decisions:
        dear = decision.kind.irreplaceable or decision.kind.one_time is not None
        may = decision.order is Order.CREATE_FIRST and (forced or not dear)
        if may and decision.live is not None and decision.ends_live:
            own = {draft.creators[decision.address], *draft.setters.get(decision.address, ())}
            deleter = draft.deleters[decision.live.kind, decision.live.locator]
            if deleter in ring and not own.isdisjoint(ring):
                return replace(decision, order=Order.DELETE_FIRST)
    return None


def _release(decision: Decision, contested: Collection[Claim]) -> Call | None:
    """The call that takes contested items out of a list, and changes nothing else."""
    for each in decision.kind.fields:
        held = decision.have.get(each.name)
        if Exclusive not in each or not isinstance(held, list) or decision.live is None:
            continue
        kept = [item for item in held if (each.name, canonical(item)) not in contested]
        if len(kept) < len(held):
            return Call(
                id=f"release {each.name} of {decision.address}",
                address=decision.address,
                verb=Verb.UPDATE,
                path=object_path(decision.kind, decision.live),
                target=decision.live.id,
                body={each.name: body_value(each, kept)},
            )
    return None
