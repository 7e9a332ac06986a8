"""Orders creates and deletes of parts, such as the rules of an IP policy, around the calls of objects that refer to
their parent, such as an IP restriction.

A part refers to its parent, here called the whole. A kind that refers to a whole names the kinds of its parts in
`part_kinds`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.problem import Problem
from reconciler.model.snapshot import LiveKey
from reconciler.planning.matching.references import find_live_references
from reconciler.planning.ordering.call_graph import (
    CallGraph,
    PassResult,
    Wait,
    drops_reference,
    find_live_edges,
    find_texts,
)


class _Whole(Struct):
    """A parent of which parts are deleted."""

    deletes: list[str] = field(default_factory=list)
    keeps_some: bool = False  # whether it has parts that no call deletes
    creates: Sequence[str] = ()


def order_parts(graph: CallGraph) -> Iterator[PassResult]:
    """A referrer waits until the parts exist, and is detached before they are deleted.

    While it stays attached, at least one part stays; otherwise a problem says that none does.
    """
    kinds = graph.index.kinds
    names = {name for kind in kinds.values() for name in kind.part_kinds}
    part_fields = {kind.name: kind.part_of.field for kind in kinds.values() if kind.name in names and kind.part_of}
    created: dict[Address, list[str]] = defaultdict(list)  # creates of parts, by what they refer to
    joining: dict[str, list[str]] = defaultdict(list)  # creates of parts, by the id of an existing whole
    for decision in graph.decisions:
        if decision.address.kind in part_fields and decision.address in graph.creators:
            create = graph.creators[decision.address]
            for needed in graph.dependencies.get(decision.address, ()):
                created[needed].append(create)
            whole = decision.want.get(part_fields[decision.address.kind])
            if isinstance(whole, str):
                joining[whole].append(create)
    for decision in graph.decisions:
        if decision.kind.part_kinds and decision.action is not None:
            for needed in graph.dependencies.get(decision.address, ()):
                yield from (Wait(call, part) for call in graph.own_calls(decision) for part in created.get(needed, ()))
    wholes = _find_shrinking_wholes(graph, part_fields, joining)
    if wholes:
        stranded = yield from _order_part_deletes(graph, wholes)
        stranded |= _find_stranded_referrers(graph, wholes)
        problems = [
            _report_last_part(graph, key, wholes[key], user)
            for key, user in stranded
            if not wholes[key].keeps_some and key not in graph.deleters
        ]
        yield from sorted(problems, key=str)


def _find_shrinking_wholes(
    graph: CallGraph, part_fields: Mapping[str, str], joining: Mapping[str, Sequence[str]]
) -> dict[LiveKey, _Whole]:
    if not any(kind in part_fields for kind, _ in graph.deleters):
        return {}
    wholes: dict[LiveKey, _Whole] = defaultdict(_Whole)
    for key, live in graph.index.by_locator.items():
        if key[0] not in part_fields:
            continue
        for through, whole in find_live_references(graph.index.kinds[key[0]], live):
            if through == part_fields[key[0]]:
                if key in graph.deleters:
                    wholes[whole].deletes.append(graph.deleters[key])
                else:
                    wholes[whole].keeps_some = True
                wholes[whole].creates = joining.get(whole[1], ())
    return {key: whole for key, whole in wholes.items() if whole.deletes}


Stranded = set[tuple[LiveKey, str]]
"""Wholes that are left without parts, each with an object that requires one."""


def _order_part_deletes(graph: CallGraph, wholes: Mapping[LiveKey, _Whole]) -> Generator[Wait, None, Stranded]:
    """What the deletes of parts wait for. Returns the live objects that stay attached to a whole without parts."""
    index = graph.index
    stranded: Stranded = set()
    for referrer, through, key in find_live_edges(index):
        kind = index.kinds[referrer[0]]
        if key not in wholes or not kind.part_kinds:
            continue
        decision, whole = graph.holders.get(referrer), wholes[key]
        if referrer in graph.deleters:
            before: Sequence[str] = [graph.deleters[referrer]]
        elif decision is not None and drops_reference(graph, decision, through, key):
            before = graph.setters.get(decision.address, ())
        else:
            before = _find_first_create(graph, whole)
            live = index.by_locator[referrer]
            if not before and kind.requires_parts is not None and kind.requires_parts(index.form(kind, live)):
                stranded.add((key, _describe_object(graph, referrer)))
        for delete in whole.deletes:
            yield from [Wait(delete, call) for call in before if delete not in graph.needs[call]]
    return stranded


def _find_first_create(graph: CallGraph, whole: _Whole) -> list[str]:
    """The create of a part, as a list, that the deletes of other parts wait for.

    One that waits for none of these deletes; if there is none and no part stays, one that waits for some of them.
    """
    deletes = set(whole.deletes)
    free = [create for create in whole.creates if deletes.isdisjoint(graph.needs[create])]
    dependent = [create for create in whole.creates if not deletes <= graph.needs[create]]
    return (free if free or whole.keeps_some else dependent)[:1]


def _find_stranded_referrers(graph: CallGraph, wholes: Mapping[LiveKey, _Whole]) -> Stranded:
    """Resources that will refer to a whole without remaining or created parts."""
    stranded: Stranded = set()
    for decision in graph.decisions:
        kind = decision.kind
        if kind.requires_parts is None or not decision.want:
            continue
        if kind.requires_parts({**decision.have, **decision.want}):
            named = set(find_texts(decision.want))
            stranded |= {
                (key, str(decision.address)) for key, whole in wholes.items() if key[1] in named and not whole.creates
            }
    return stranded


def _describe_object(graph: CallGraph, key: LiveKey) -> str:
    return str(graph.holders[key].address) if key in graph.holders else f"{key[0]} {key[1]}"


def _report_last_part(graph: CallGraph, key: LiveKey, whole: _Whole, user: str) -> Problem:
    delete, name = graph.calls[min(whole.deletes)], _describe_object(graph, key)
    declared = (decision.declaration for decision in graph.decisions if decision.address == delete.address)
    declaration = next((declaration for declaration in declared if declaration is not None), None)
    part = delete.address.kind
    # All of them: to delete some would change who gets in to what neither side of the change says.
    addresses = sorted({str(graph.calls[call].address) for call in whole.deletes})
    return Problem(
        f"{name} would be left without any {part} for a moment, but {user} requires one",
        f"declare another {part} of {name} until this is applied, or remove {name} from {user} first",
        str(delete.address),
        declaration.position if declaration is not None else None,
        code="last-part-in-use",
        values={"addresses": [*addresses]},
    )
