"""Orders creates: after what they refer to, and around the deletes of what they replace."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.change import Action, Order
from reconciler.model.problem import Problem, Severity
from reconciler.planning.ordering.call_graph import CallGraph, PassResult, Wait


def order_replacements(graph: CallGraph) -> Iterator[Wait]:
    """Both halves of a replacement, in the order that was decided."""
    for decision in graph.decisions:
        if decision.action is not Action.REPLACE or not decision.ends_live:
            continue
        delete = graph.deleter(decision)
        if decision.order is Order.DELETE_FIRST:
            yield Wait(graph.creators[decision.address], delete)
        else:
            yield from (Wait(delete, call) for call in graph.own_calls(decision))


def order_successors(graph: CallGraph) -> Iterator[Wait]:
    """A binding remembers one replaced object: that is deleted before the next one is created."""
    for decision in graph.decisions:
        if decision.address_reused and not decision.kind.keeps_owner and decision.address in graph.creators:
            yield Wait(graph.creators[decision.address], graph.deleter(decision))


def order_references(graph: CallGraph) -> Iterator[PassResult]:
    """What refers to an object waits until the object is created."""
    problematic = {decision.address for decision in graph.decisions if decision.problem is not None}
    for decision in graph.decisions:
        calls = graph.own_calls(decision)
        for needed in graph.dependencies.get(decision.address, ()):
            if needed in graph.creators:
                yield from (Wait(call, graph.creators[needed]) for call in calls)
            elif needed in problematic and calls:
                yield Problem(
                    f"it needs {needed}, which cannot be planned",
                    f"resolve the problem of {needed} first",
                    str(decision.address),
                    decision.declaration.position if decision.declaration else None,
                    Severity.WARNING,
                    code="dependency-cannot-be-planned",
                )


def keep_predecessors(graph: CallGraph) -> Iterator[Wait]:
    """What an interrupted replacement left behind stays until the resource is whole: it may be what still serves."""
    for decision in graph.decisions:
        if decision.action is not Action.DELETE or decision.live is None:
            continue
        delete, calls = graph.deleter(decision), graph.own_calls(decision)
        if not any(_waits(graph, call, delete) for call in calls):
            yield from [Wait(delete, call) for call in calls]


def _waits(graph: CallGraph, call: str, need: str) -> bool:
    """Whether a call waits for another, directly or through others."""
    seen: set[str] = set()
    waiting = [call]
    while waiting:
        for each in graph.needs[waiting.pop()] - seen:
            seen.add(each)
            waiting.append(each)
    return need in seen
