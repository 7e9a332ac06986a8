"""Orders all calls of a plan; `PASSES` lists the rules about what calls of different resources wait for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Order
from reconciler.model.plan import Call
from reconciler.model.problem import Problem
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.ordering.call_graph import CallGraph, Pass
from reconciler.planning.ordering.creates import (
    delete_oldest_first,
    keep_predecessors,
    order_references,
    order_replacements,
    order_successors,
)
from reconciler.planning.ordering.cycle_breaking import delete_first, release_items, replace_instead
from reconciler.planning.ordering.deletes import order_deletes
from reconciler.planning.ordering.dependencies import sort
from reconciler.planning.ordering.handover import order_handovers
from reconciler.planning.ordering.parts import order_parts
from reconciler.planning.ordering.sequenced import Redecide, Sequenced

PASSES: tuple[Pass, ...] = (
    order_replacements,  # the create and the delete of a replacement
    order_successors,  # the delete of a bound object, before its successor takes the binding
    order_references,  # the create of an object, before the calls of its referrers
    order_deletes,  # the calls of the referrers of an object, before its delete
    order_handovers,  # the release of an exclusive key, before another object takes it
    order_parts,  # parts and referrers of their parent; reads the waits of the passes above
    # Last, as they add only waits that close no cycle with all others:
    keep_predecessors,  # what a replacement has to complete, before the delete of the old object
    delete_oldest_first,  # the delete of an older object, before that of the one that replaced it
)


def sequence(
    decisions: Sequence[Decision], dependencies: Mapping[Address, Iterable[Address]], index: LiveIndex
) -> Sequenced | Redecide:
    """All calls of all decisions, each after those that it needs.

    decisions      in dependency order, orphans last
    dependencies   by address, the addresses that it needs

    A cycle that cannot be broken is a problem without calls.
    """
    if all(decision.action is None for decision in decisions):
        return Sequenced()
    graph = CallGraph.of(decisions, dependencies, index)
    problems: list[Problem] = []
    for find in PASSES:
        for result in find(graph):
            if isinstance(result, Problem):
                problems.append(result)
            else:
                graph.add(result)
    try:
        return Sequenced(tuple(_order_calls(graph)), tuple(problems), graph.deleted_with)
    except CycleError as error:
        cycle = error.args[1]
        decision = replace_instead(graph, cycle) or delete_first(graph, cycle)
        return Redecide(decision) if decision else Sequenced((), (*problems, _report_cycle(graph, cycle)))


def _order_calls(graph: CallGraph) -> Iterator[Call]:
    """The calls in order, each with all of its needs. Raises CycleError if no release breaks a cycle."""
    ordered: list[str] | None = None
    while ordered is None:
        try:
            ordered = sort({call: graph.needs[call] for call in graph.calls}, graph.rank)
        except CycleError as error:
            release = release_items(graph, error.args[1])
            if release is None:
                raise
            graph.add_release(release)
    place = {call: position for position, call in enumerate(ordered)}
    for call in ordered:
        yield replace(graph.calls[call], needs=tuple(sorted(graph.needs[call], key=place.__getitem__)))


def _report_cycle(graph: CallGraph, cycle: list[str]) -> Problem:
    around = " → ".join(cycle)
    first = next(
        (
            decision
            for decision in graph.decisions
            if decision.order is Order.DELETE_FIRST
            and any(graph.calls[call].address == decision.address for call in cycle)
        ),
        None,
    )
    if first is None:
        return Problem(
            f"circular dependency of API calls: {around}",
            "apply the change in two steps: first release the values, then set them on the other objects",
            code="circular-calls",
            values={"addresses": sorted({str(graph.calls[call].address) for call in cycle})},
        )
    users = sorted({str(graph.calls[call].address) for call in cycle} - {str(first.address)})
    return Problem(
        f"it must be deleted before it is created again, but {', '.join(users)} cannot be without it: {around}",
        f"remove {', '.join(users)} from the manifests, apply, restore the manifests, and apply again",
        str(first.address),
        first.declaration.position if first.declaration else None,
        code="circular-calls",
    )
