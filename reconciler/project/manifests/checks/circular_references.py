"""Finds circular references between declarations."""

from __future__ import annotations

import graphlib
from collections.abc import Iterator, Mapping

from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Path
from reconciler.model.problem import Problem

Links = Mapping[Address, list[tuple[Address, Path]]]  # references of each declaration: target, and path in its spec


def find_circular_references(declarations: Mapping[Address, Declaration], written: Links) -> Iterator[Problem]:
    """Reports each cycle of references once, in the order of its references."""
    if not _may_be_circular(written):
        return
    links = {address: list(inside) for address, inside in written.items() if inside and address in declarations}
    while True:
        try:
            graphlib.TopologicalSorter(
                {address: [to for to, _ in inside] for address, inside in links.items()}
            ).prepare()
        except graphlib.CycleError as error:
            cycle = _rotate_to_first(list(reversed(error.args[1][1:])))  # graphlib lists dependencies first
            yield _report_cycle(cycle, links, declarations)
            first, second = cycle[0], cycle[1 % len(cycle)]
            links[first] = [link for link in links[first] if link[0] != second]
        else:
            return


def _may_be_circular(written: Links) -> bool:
    """Whether the kinds form a cycle. If they do not, as in most projects, the resources cannot."""
    between: dict[str, set[str]] = {}
    for address, inside in written.items():
        between.setdefault(address.kind, set()).update([to.kind for to, _ in inside])
    try:
        graphlib.TopologicalSorter(between).prepare()
    except graphlib.CycleError:
        return True
    return False


def _rotate_to_first(cycle: list[Address]) -> list[Address]:
    """Rotates a cycle so that its least address comes first: the message must not depend on where it was found."""
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]


def _report_cycle(cycle: list[Address], links: Links, declarations: Mapping[Address, Declaration]) -> Problem:
    places = []
    for address, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        path = next(path for target, path in links[address] if target == following)
        places.append(declarations[address].at(*path))
    names = " → ".join(map(str, [*cycle, cycle[0]]))
    return Problem(
        f"circular reference: {names} ({', '.join(map(str, places))})",
        "remove one of these references",
        str(cycle[0]),
        places[0],
        code="circular-reference",
        values={"addresses": [str(address) for address in cycle]},
    )
