"""Orders handovers: an exclusive key is released before another object takes it, or a problem names its holder."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping

from reconciler.model.change import Action
from reconciler.model.problem import Problem
from reconciler.model.snapshot import LiveKey
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.exclusive_keys import CONFLICTS, ExclusiveKey, KeysOf, find_holders
from reconciler.planning.ordering.call_graph import CallGraph, PassResult, Wait


def order_handovers(graph: CallGraph) -> Iterator[PassResult]:
    """Each call that takes an exclusive key waits for the calls that release it. A key that stays held is a problem."""
    released = {keys_of: _find_releasing_calls(graph, keys_of) for keys_of in CONFLICTS}
    takers: dict[KeysOf, dict[ExclusiveKey, Decision]] = {keys_of: {} for keys_of in CONFLICTS}
    holders: dict[KeysOf, Mapping[ExclusiveKey, list[LiveKey]]] = {}
    for decision, keys_of, key in _find_taken_keys(graph):
        holders = holders or {other: find_holders(graph.index, other) for other in CONFLICTS}
        calls = graph.own_calls(decision)
        takers[keys_of].setdefault(key, decision)
        for other in CONFLICTS[keys_of]:
            givers = released[other].get((key, None), set()).difference(calls)
            yield from (Wait(call, giver, key) for call in calls for giver in givers)
            staying = (live for live in holders[other].get(key, ()) if not released[other].get((key, live)))
            taker = takers[other].get(key)
            if (holder := next(staying, None)) is not None:
                yield _report_held_key(decision, key, holder, graph)
            elif taker is not None and taker is not decision:
                yield _report_conflict(decision, key, f"{taker.address} takes", str(taker.address))


def _find_taken_keys(graph: CallGraph) -> Iterator[tuple[Decision, KeysOf, ExclusiveKey]]:
    """The exclusive keys that each decision takes, with the way in which it holds them (`KeysOf`)."""
    for decision in graph.decisions:
        if decision.action in (None, Action.DELETE, Action.FORGET):
            continue
        stays = decision.live is not None and not decision.is_new
        form = {**decision.have, **decision.want} if stays else decision.want
        for keys_of in CONFLICTS:
            held = set(keys_of(decision.kind, decision.have)) if stays else set()
            yield from ((decision, keys_of, key) for key in sorted(set(keys_of(decision.kind, form)) - held))


def _find_releasing_calls(graph: CallGraph, keys_of: KeysOf) -> Mapping[tuple[ExclusiveKey, LiveKey | None], set[str]]:
    """The calls that release each key, by key and holder; holder None: any."""
    calls_by_key: dict[tuple[ExclusiveKey, LiveKey | None], set[str]] = defaultdict(set)
    for decision in graph.decisions:
        if decision.live is None or decision.action is None:
            continue
        live = decision.live.key
        held = set(keys_of(decision.kind, decision.have))
        remaining = set() if decision.ends_live else set(keys_of(decision.kind, {**decision.have, **decision.want}))
        calls = [graph.deleters[live]] if live in graph.deleters else graph.setters.get(decision.address, ())
        for key in held - remaining:
            calls_by_key[key, None].update(calls)
            calls_by_key[key, live].update(calls)
    return calls_by_key


def _report_held_key(decision: Decision, key: ExclusiveKey, holder: LiveKey, graph: CallGraph) -> Problem:
    live = graph.index.by_locator[holder]
    address = next((str(other.address) for other in graph.decisions if other.live is live), None)
    is_adoptable = live.owner is None and live.kind == decision.kind.name and decision.live is None and address is None
    first = f"adopt it (`reconciler adopt {decision.address} --id {shlex.quote(live.id)}`), or " if is_adoptable else ""
    holder_name = address or f"{live.kind} {live.id}" + (f" of stack {live.owner.stack}" if live.owner else "")
    return _report_conflict(decision, key, f"{holder_name} has", holder_name, first)


def _report_conflict(decision: Decision, key: ExclusiveKey, text: str, holder_name: str, first: str = "") -> Problem:
    value = json.loads(key[1])
    what = ", ".join(map(str, value)) if isinstance(value, list) else value
    kind, one = decision.kind, "one object at a time"
    flag = kind.identity_shared_while
    may_share = flag is not None and key[0] == kind.name
    return Problem(
        f"{text} {what} already, and the platform allows it on "
        + (f"{one}, or on several that all set {flag}" if may_share else one),
        f"{first}remove it from {holder_name}" + (f", or set {flag} in both" if may_share else ""),
        str(decision.address),
        decision.declaration.position if decision.declaration else None,
        code="exclusive-key-taken",
    )
