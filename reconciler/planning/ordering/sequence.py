"""Which call waits for which, across resources, and one safe order of them all.

What is referenced is made before what refers to it; what goes, goes after everything that refers to it was re-pointed
or is gone; what only one object may hold is let go before another takes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError
from types import MappingProxyType
from typing import NamedTuple

from reconciler.model.address import Address
from reconciler.model.change import Action, Order
from reconciler.model.kind import Kind
from reconciler.model.plan import Call, Verb
from reconciler.model.problem import Problem, Severity
from reconciler.planning.deciding.decide import Decision
from reconciler.planning.deciding.exclusive_keys import LiveKey
from reconciler.planning.matching.index import Register
from reconciler.planning.ordering import dependencies
from reconciler.planning.ordering.call_graph import Draft, lets_go, live_edges
from reconciler.planning.ordering.calls import calls_of
from reconciler.planning.ordering.cycle_breaking import Exchange, loosened, made_anew, made_room
from reconciler.planning.ordering.handover import order_claims
from reconciler.planning.ordering.parts import order_settling


class Sequenced(NamedTuple):
    calls: tuple[Call, ...] = ()
    problems: tuple[Problem, ...] = ()
    taken: Mapping[LiveKey, Address] = MappingProxyType({})  # what no call deletes, and the whole it goes with


def sequence(
    decisions: Sequence[Decision],
    dependencies: Mapping[Address, Iterable[Address]],
    register: Register,
    kinds: Mapping[str, Kind],
) -> Sequenced:
    """All calls of all decisions, each after what it needs, and what makes that impossible.

    `decisions` come in dependency order, orphans last. Exchange: one of them has to be decided differently first.
    """
    if all(decision.action is None for decision in decisions):
        return Sequenced()
    draft = Draft()
    for index, decision in enumerate(decisions):
        _enter(draft, index, decision)
    _order_successors(draft, decisions)
    problems = list(_order_creates(draft, decisions, dependencies))
    problems += sorted(_order_deletes(draft, decisions, register, kinds), key=str)
    problems += order_claims(draft, decisions, register, kinds)
    problems += sorted(order_settling(draft, decisions, dependencies, register, kinds), key=str)
    _keep_until_replaced(draft, decisions)
    try:
        return Sequenced(tuple(_ordered(draft, decisions)), tuple(problems), draft.taken)
    except CycleError as ring:
        anew = made_anew(draft, ring.args[1], decisions, dependencies) or made_room(draft, ring.args[1], decisions)
        if anew is not None:
            raise Exchange(anew) from ring
        return Sequenced((), (*problems, _ring_problem(draft, ring.args[1], decisions)))


def _ordered(draft: Draft, decisions: Sequence[Decision]) -> Iterator[Call]:
    """CycleError on a ring that no call can open."""
    ordered: list[str] | None = None
    while ordered is None:
        try:
            ordered = dependencies.sort({call: draft.needs[call] for call in draft.calls}, draft.rank)
        except CycleError as ring:
            if not loosened(draft, ring.args[1], decisions):
                raise
    place = {call: index for index, call in enumerate(ordered)}
    for call in ordered:
        yield replace(draft.calls[call], needs=tuple(sorted(draft.needs[call], key=place.__getitem__)))


def _enter(draft: Draft, index: int, decision: Decision) -> None:
    for step, call in enumerate(calls_of(decision)):
        draft.calls[call.id] = call
        draft.wait(call.id, *call.needs)
        if call.verb is Verb.DELETE:
            assert decision.live is not None
            draft.deleters[decision.live.kind, decision.live.locator] = call.id
            draft.rank[call.id] = (1, -index, step)
        else:
            draft.rank[call.id] = (0, index, step)
            if call.verb is Verb.CREATE:
                draft.creators[decision.address] = call.id
            else:
                draft.setters[decision.address].append(call.id)
    if decision.action is Action.REPLACE and decision.live is not None and decision.ends_live:
        create = draft.creators[decision.address]
        delete = draft.deleters[decision.live.kind, decision.live.locator]
        if decision.order is Order.DELETE_FIRST:
            draft.wait(create, delete)
        else:
            completing = draft.setters.get(decision.address, [])
            draft.wait(delete, create, *completing)


def _order_successors(draft: Draft, decisions: Sequence[Decision]) -> None:
    """A binding remembers one object that was replaced: that goes before the next one is made."""
    for decision in decisions:
        if decision.outlived and not decision.kind.keeps_owner and decision.address in draft.creators:
            assert decision.live is not None
            draft.wait(draft.creators[decision.address], draft.deleters[decision.live.kind, decision.live.locator])


def _order_creates(
    draft: Draft, decisions: Sequence[Decision], dependencies: Mapping[Address, Iterable[Address]]
) -> Iterator[Problem]:
    problematic = {decision.address for decision in decisions if decision.problem is not None}
    for decision in decisions:
        own = [call for call in (draft.creators.get(decision.address), *draft.setters[decision.address]) if call]
        for needed in dependencies.get(decision.address, ()):
            if needed in draft.creators:
                for call in own:
                    draft.wait(call, draft.creators[needed])
            elif needed in problematic and own:
                yield Problem(
                    f"it needs {needed}, which cannot be planned",
                    "mend that first",
                    str(decision.address),
                    decision.declaration.position if decision.declaration else None,
                    Severity.WARNING,
                    code="dependency-cannot-be-planned",
                )


def _order_deletes(
    draft: Draft, decisions: Sequence[Decision], register: Register, kinds: Mapping[str, Kind]
) -> Iterator[Problem]:
    if not draft.deleters:
        return
    holders = {
        (decision.live.kind, decision.live.locator): decision for decision in decisions if decision.live is not None
    }
    parts = {name: kind.part_of.field for name, kind in kinds.items() if kind.part_of and kind.part_of.deleted_with}
    staying: dict[tuple[LiveKey, LiveKey], Problem | None] = {}  # one for each two, through however many fields
    within: dict[LiveKey, list[str]] = defaultdict(list)  # what goes with a whole, and is ours
    held: set[LiveKey] = set()  # what others stay on
    for referrer, through, target in live_edges(register, kinds):
        delete = draft.deleters.get(target)
        if delete is None or referrer == target:
            continue
        if referrer in draft.deleters:
            if parts.get(referrer[0]) == through:
                within[target].append(draft.deleters[referrer])
            else:
                draft.wait(delete, draft.deleters[referrer])
            continue
        decision = holders.get(referrer)
        if decision is not None and lets_go(decision, through, target):
            draft.wait(delete, *draft.setters[decision.address])
        elif parts.get(referrer[0]) == through:
            staying[referrer, target] = told = _taken_along(draft.calls[delete], referrer, decision, register)
            draft.taken |= {referrer: draft.calls[delete].address} if told is not None else {}
        else:
            problem = _still_used(draft.calls[delete], referrer, decision, register)
            if decision is not None and holders[target].order is Order.DELETE_FIRST:
                # Nobody but us could let go of it by then.
                both = f"{problem.remedy}, or make that anew as well: --replace {decision.address}"
                problem = replace(problem, remedy=both, severity=Severity.ERROR)
            staying.setdefault((referrer, target), problem)
            held.add(target)
    for whole, gone in within.items():
        for part in gone:
            # Where the platform refuses, as it will unless they let go, the whole is not to be left without its parts.
            first, then = (draft.deleters[whole], part) if whole in held else (part, draft.deleters[whole])
            draft.wait(then, first)
    yield from (problem for problem in staying.values() if problem is not None)


def _taken_along(delete: Call, part: LiveKey, decision: Decision | None, register: Register) -> Problem | None:
    """The platform deletes parts with their whole. None for a part without a record that no stack is known to own."""
    address = _address(part, decision, register)
    if address is None and not register.kinds[part[0]].keeps_owner and part not in register.snapshot.elsewhere:
        return None
    whose = str(address) if address else _foreign(part, register)
    return Problem(
        f"takes {whose} with it", "", str(delete.address), severity=Severity.WARNING, code="delete-includes-children"
    )


def _still_used(delete: Call, referrer: LiveKey, decision: Decision | None, register: Register) -> Problem:
    user = register.by_locator[referrer]
    address = _address(referrer, decision, register)
    whose = str(address) if address else _foreign(referrer, register)
    return Problem(
        f"{delete.target} is still used by {whose}; the platform will refuse to delete it",
        f"stop using it in {address or f'{user.kind} {user.id}'} first",
        str(delete.address),
        severity=Severity.WARNING,
        code="still-in-use",
    )


def _address(key: LiveKey, decision: Decision | None, register: Register) -> Address | None:
    """What an object is called if it is ours."""
    if decision is not None:
        return decision.address
    live = register.by_locator[key]
    if live.owner is not None:
        return live.owner.address if live.owner.stack == register.stack else None
    return next(iter(register.bound(live)), None)


def _foreign(key: LiveKey, register: Register) -> str:
    live = register.by_locator[key]
    stack = live.owner.stack if live.owner else register.snapshot.elsewhere.get(key)
    return f"{live.kind} {live.id}" + (f", of stack {stack!r}" if stack else ", which is not ours")


def _keep_until_replaced(draft: Draft, decisions: Sequence[Decision]) -> None:
    """What an interrupted replacement left behind stays until the resource is whole: it may be what still serves."""
    for decision in decisions:
        if decision.action is not Action.DELETE or decision.live is None:
            continue
        delete = draft.deleters[decision.live.kind, decision.live.locator]
        own = [call for call in (draft.creators.get(decision.address), *draft.setters[decision.address]) if call]
        if not any(_waits(draft, call, delete) for call in own):
            draft.wait(delete, *own)


def _waits(draft: Draft, call: str, need: str) -> bool:
    seen: set[str] = set()
    waiting = [call]
    while waiting:
        for each in draft.needs[waiting.pop()] - seen:
            seen.add(each)
            waiting.append(each)
    return need in seen


def _ring_problem(draft: Draft, ring: list[str], decisions: Sequence[Decision]) -> Problem:
    around = " → ".join(ring)
    first = next(
        (
            decision
            for decision in decisions
            if decision.order is Order.DELETE_FIRST
            and any(draft.calls[call].address == decision.address for call in ring)
        ),
        None,
    )
    if first is None:
        return Problem(
            f"these calls wait for each other: {around}", "apply the change in two steps, letting go before taking"
        )
    users = sorted({str(draft.calls[call].address) for call in ring} - {str(first.address)})
    return Problem(
        f"it must be deleted before it is created anew, while {', '.join(users)} cannot do without it: {around}",
        f"remove {', '.join(users)} from the manifests, apply, put it back, apply again",
        str(first.address),
        first.declaration.position if first.declaration else None,
    )
