"""Orders creates: after what they refer to, and before or after the deletes of what they replace."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.change import Action, Order
from reconciler.planning.ordering.call_graph import CallGraph, Wait


def order_replacements(graph: CallGraph) -> Iterator[Wait]:
    """The create and the delete of a replacement, in the decided order."""
    for decision in graph.decisions:
        if decision.action is not Action.REPLACE or not decision.ends_live:
            continue
        delete = graph.deleter(decision)
        if decision.order is Order.DELETE_FIRST:
            yield Wait(graph.creators[decision.address], delete)
        else:
            yield from (Wait(delete, call) for call in graph.own_calls(decision))


def order_successors(graph: CallGraph) -> Iterator[Wait]:
    """Deletes a replaced object of a kind without metadata before the next create: a binding names only one."""
    for decision in graph.decisions:
        if decision.address_reused and not decision.kind.keeps_owner and decision.address in graph.creators:
            yield Wait(graph.creators[decision.address], graph.deleter(decision))


def order_references(graph: CallGraph) -> Iterator[Wait]:
    """A referrer waits until the object that it refers to is created."""
    for decision in graph.decisions:
        calls = graph.own_calls(decision)
        for needed in graph.dependencies.get(decision.address, ()):
            if needed in graph.creators:
                yield from (Wait(call, graph.creators[needed]) for call in calls)


def keep_predecessors(graph: CallGraph) -> Iterator[Wait]:
    """The old object of an interrupted replacement stays until the new one is complete: it may still serve traffic."""
    for decision in graph.decisions:
        if decision.action is not Action.DELETE:
            continue
        delete, calls = graph.deleter(decision), graph.own_calls(decision)
        if not any(_waits(graph, call, delete) for call in calls):
            yield from [Wait(delete, call) for call in calls]


def delete_oldest_first(graph: CallGraph) -> Iterator[Wait]:
    """Of objects that replaced each other, an older one is deleted before a newer one.

    Only the owner record of the newer one says that the older one was replaced. Without it, an older credential whose
    delete fails would count as a second one in use.
    """
    replaced = [
        decision.live
        for decision in graph.decisions
        if decision.live is not None and (decision.action is Action.REPLACE or decision.address_reused)
    ]
    by_id = {(live.kind, live.id): live.key for live in replaced}
    for live in replaced:
        older = by_id.get((live.kind, str(live.owner.replaces))) if live.owner is not None else None
        delete, first = graph.deleters.get(live.key), graph.deleters.get(older) if older is not None else None
        if delete is not None and first is not None and not _waits(graph, first, delete):
            yield Wait(delete, first)


def _waits(graph: CallGraph, call: str, need: str) -> bool:
    """Whether a call waits for another, directly or through others."""
    visited: set[str] = set()
    waiting = [call]
    while waiting:
        for other in graph.needs[waiting.pop()] - visited:
            visited.add(other)
            waiting.append(other)
    return need in visited
