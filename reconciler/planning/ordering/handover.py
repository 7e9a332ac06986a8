"""What only one object may hold at a time is let go before another takes it, or it is told who holds on to it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from reconciler.model.change import Action
from reconciler.model.kind import Kind
from reconciler.model.problem import Problem
from reconciler.planning.deciding.decide import Decision
from reconciler.planning.deciding.exclusive_keys import AGAINST, Claim, LiveKey, Sort, holders_of
from reconciler.planning.matching.index import Register
from reconciler.planning.ordering.call_graph import Draft


def order_claims(
    draft: Draft, decisions: Sequence[Decision], register: Register, kinds: Mapping[str, Kind]
) -> Iterator[Problem]:
    """Whoever takes waits for whoever lets go; what nobody lets go of is a problem."""
    given = {sort: _released(draft, decisions, sort) for sort in AGAINST}
    takers: dict[Sort, dict[Claim, Decision]] = {sort: {} for sort in AGAINST}
    holders: dict[Sort, Mapping[Claim, list[LiveKey]]] = {}
    for decision in decisions:
        if decision.action in (None, Action.DELETE, Action.FORGET):
            continue
        own = [call for call in (draft.creators.get(decision.address), *draft.setters[decision.address]) if call]
        stays = decision.live is not None and not decision.is_new
        form = {**decision.have, **decision.want} if stays else decision.want
        for sort, against in AGAINST.items():
            held = set(sort(decision.kind, decision.have)) if stays else set()
            for claim in sorted(set(sort(decision.kind, form)) - held):
                holders = holders or {each: holders_of(register, kinds, each) for each in AGAINST}
                takers[sort].setdefault(claim, decision)
                for other in against:
                    for call in own:
                        for giver in given[other].get((claim, None), set()) - set(own):
                            draft.wait(call, giver)
                            draft.handed[call, giver].add(claim)
                    staying = (each for each in holders[other].get(claim, ()) if not given[other].get((claim, each)))
                    taker = takers[other].get(claim)
                    if (holder := next(staying, None)) is not None:
                        yield _held(decision, claim, holder, decisions, register)
                    elif taker is not None and taker is not decision:
                        yield _single(decision, claim, f"{taker.address} takes", str(taker.address))


def _released(
    draft: Draft, decisions: Sequence[Decision], sort: Sort
) -> Mapping[tuple[Claim, LiveKey | None], set[str]]:
    """The calls that let go of what is held: of each claim, and of each claim by each holder."""
    found: dict[tuple[Claim, LiveKey | None], set[str]] = defaultdict(set)
    for decision in decisions:
        if decision.live is None or decision.action is None:
            continue
        held = set(sort(decision.kind, decision.have))
        kept = set() if decision.ends_live else set(sort(decision.kind, {**decision.have, **decision.want}))
        key = (decision.live.kind, decision.live.locator)
        letting_go = [draft.deleters[key]] if key in draft.deleters else draft.setters[decision.address]
        for claim in held - kept:
            found[claim, None].update(letting_go)
            found[claim, key].update(letting_go)
    return found


def _held(
    decision: Decision, claim: Claim, holder: LiveKey, decisions: Sequence[Decision], register: Register
) -> Problem:
    live = register.by_locator[holder]
    ours = next((str(each.address) for each in decisions if each.live is live), None)
    adopting = live.owner is None and live.kind == decision.kind.name and decision.live is None and ours is None
    first = f"adopt it (`reconciler adopt {decision.address} --id {live.id}`), or " if adopting else ""
    whose = ours or f"{live.kind} {live.id}" + (f" of stack {live.owner.stack}" if live.owner else "")
    return _single(decision, claim, f"{whose} has", whose, first)


def _single(decision: Decision, claim: Claim, told: str, whose: str, first: str = "") -> Problem:
    named = json.loads(claim[1])
    what = ", ".join(map(str, named)) if isinstance(named, list) else named
    kind, one = decision.kind, "one object at a time"
    may_share = kind.shared_while is not None and claim[0] == (kind.same_as or kind.name)
    return Problem(
        f"{told} {what} already, and the platform gives it to "
        + (f"{one}, or to several that all set {kind.shared_while}" if may_share else one),
        f"{first}take it away from {whose}" + (f", or set {kind.shared_while} in both" if may_share else ""),
        str(decision.address),
        decision.declaration.position if decision.declaration else None,
    )
