"""Orders deletes: after the updates and deletes of all referrers, and before or after the deletes of parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Order
from reconciler.model.kind import Kind
from reconciler.model.manifest import Ensure
from reconciler.model.plan import Call
from reconciler.model.problem import Problem, Severity
from reconciler.model.snapshot import Live, LiveKey
from reconciler.model.value import Json
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.ordering.call_graph import (
    CallGraph,
    Cascade,
    PassResult,
    Wait,
    drops_reference,
    find_live_edges,
)


def order_deletes(graph: CallGraph) -> Iterator[PassResult]:
    """What each delete waits for, and a warning or error for each reference to its object that stays.

    The platform refuses to delete an object that is in use, except parts, which it deletes with their parent.
    """
    if not graph.deleters:
        return
    index = graph.index
    part_fields = {
        name: kind.part_of.field for name, kind in index.kinds.items() if kind.part_of and kind.part_of.deleted_with
    }
    staying: dict[tuple[LiveKey, LiveKey], Problem | None] = {}  # one for each pair, even if several fields refer
    parts: dict[LiveKey, list[str]] = defaultdict(list)  # deletes of parts, by their parent, which is deleted too
    used: set[LiveKey] = set()  # objects with referrers that stay
    for referrer, through, target in find_live_edges(index):
        delete = graph.deleters.get(target)
        if delete is None or referrer == target:
            continue
        decision = graph.holders.get(referrer)
        is_part = part_fields.get(referrer[0]) == through
        if referrer in graph.deleters and is_part:
            parts[target].append(graph.deleters[referrer])
        elif referrer in graph.deleters:
            yield Wait(delete, graph.deleters[referrer])
        elif decision is not None and drops_reference(graph, decision, through, target):
            yield from (Wait(delete, setter) for setter in graph.setters.get(decision.address, ()))
        elif is_part:
            staying[referrer, target] = problem = _report_included_part(
                graph.calls[delete], referrer, target, decision, index
            )
            if problem is not None:
                yield Cascade(referrer, graph.calls[delete].address)
        else:
            problem = _report_still_used(graph.calls[delete], referrer, decision, index)
            if decision is not None and graph.holders[target].order is Order.DELETE_FIRST:
                # The object must be deleted before the create, and only this stack can remove the reference.
                remedy = f"{problem.remedy}, or replace it too: --replace {decision.address}"
                problem = replace(problem, remedy=remedy, severity=Severity.ERROR)
            staying.setdefault((referrer, target), problem)
            used.add(target)
    yield from _order_parts_of_deleted(graph, parts, used)
    yield from sorted((problem for problem in staying.values() if problem is not None), key=str)


def _order_parts_of_deleted(graph: CallGraph, parts: dict[LiveKey, list[str]], used: set[LiveKey]) -> Iterator[Wait]:
    """Deletes parts before their parent, or after it if the platform may refuse to delete the parent.

    A parent that is still used would otherwise stay without its parts.
    """
    for whole, deletes in parts.items():
        for part in deletes:
            yield Wait(part, graph.deleters[whole]) if whole in used else Wait(graph.deleters[whole], part)


def _report_included_part(
    delete: Call, part: LiveKey, parent: LiveKey, decision: Decision | None, index: LiveIndex
) -> Problem | None:
    """The warning that the platform deletes a part with its parent.

    None for a part that the parent's own declaration listed, unless another stack is known to own it.
    """
    address = _find_address(part, decision, index)
    is_foreign = part in index.snapshot.elsewhere
    if address is None and not is_foreign and _is_listed_by(index.by_locator[parent], index.kinds[part[0]]):
        return None
    name = str(address) if address else _describe_foreign(part, index)
    return Problem(
        f"also deletes {name}, which is part of it",
        "",
        str(delete.address),
        severity=Severity.WARNING,
        code="delete-includes-children",
    )


def _is_listed_by(parent: Live, kind: Kind) -> bool:
    """Whether our declaration of the parent listed its children of this kind in a field that was applied."""
    if kind.keeps_owner or kind.parent is None or parent.owner is None:
        return False
    return any(path.partition(".")[0] == kind.parent.embedded for path in parent.owner.applied)


def _report_still_used(delete: Call, referrer: LiveKey, decision: Decision | None, index: LiveIndex) -> Problem:
    user = index.by_locator[referrer]
    address = _find_address(referrer, decision, index)
    name = str(address) if address else _describe_foreign(referrer, index)
    return Problem(
        f"{delete.target} is still used by {name}; the platform will refuse to delete it",
        f"remove the reference from {address or f'{user.kind} {user.id}'} first",
        str(delete.address),
        severity=Severity.WARNING,
        code="still-in-use",
    )


def _find_address(key: LiveKey, decision: Decision | None, index: LiveIndex) -> Address | None:
    """The address of an object of this stack; None for other objects."""
    if decision is not None:
        return decision.address
    live = index.by_locator[key]
    if live.owner is not None:
        return live.owner.address if live.owner.stack == index.stack else None
    return next(iter(index.find_bound_addresses(live)), None)


def _describe_foreign(key: LiveKey, index: LiveIndex) -> str:
    live = index.by_locator[key]
    stack = live.owner.stack if live.owner else index.snapshot.elsewhere.get(key)
    owner = f"managed by stack {stack!r}" if stack else "not managed by this stack"
    return f"{live.kind} {live.id} ({owner})"


def report_separated_parts(
    deleted_with: Mapping[LiveKey, Address], index: LiveIndex, options: PlanOptions
) -> Iterator[Problem]:
    """An error for each declared or excluded part that would be deleted with its parent.

    deleted_with   the parts that no call deletes, with the address of their parent
    """
    for key, whole in sorted(deleted_with.items()):
        live = index.by_locator[key]
        if not index.is_ours(live):
            continue
        address = live.owner.address if live.owner is not None else index.find_bound_addresses(live)[0]
        declaration = index.manifest.declarations.get(address)
        is_declared = declaration is not None and declaration.ensure is not Ensure.ABSENT
        if is_declared or options.is_excluded(address):
            state = "declared" if is_declared else "excluded"
            text = f"is {state}, but would be deleted with {whole}, which it is part of"
            position = declaration.position if declaration is not None else None
            remedy = "keep both or delete both, and select both"
            values: dict[str, Json] = {"addresses": [str(whole)]}
            yield Problem(text, remedy, str(address), position, code="separated-parts", values=values)
