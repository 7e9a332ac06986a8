"""The dependencies between declarations, and the topological order of any nodes.

A declaration depends on what it refers to, and on the reserved domain or address of a host name that a value mentions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

from reconciler.model.address import Address
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Manifest
from reconciler.model.value import PLAIN, Json, Ref, Value, is_known, references


class Comparable(Hashable, Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


Node = TypeVar("Node", bound=Comparable)


class HostIndex(Generic[Node]):
    """Finds the objects or declarations that hold a host name, as a reserved domain or address."""

    def __init__(self) -> None:
        self._holders: dict[str, list[Node]] = defaultdict(list)

    def add(self, host: Json, holder: Node) -> None:
        """Adds a holder; a host that is no string is ignored."""
        if isinstance(host, str):
            self._holders[host.strip().rstrip(".").lower()].append(holder)

    def holders(self, host: str) -> Sequence[Node]:
        """The holders of a host name, with or without port, or else of the nearest wildcard domain above it."""
        name = host.strip().lower()
        bare = name.rpartition(":")[0] or name
        for candidate in (name, bare, *_find_wildcards(bare)):
            if candidate in self._holders:
                return self._holders[candidate]
        return ()


def _find_wildcards(host: str) -> Iterator[str]:
    """The wildcard domains that cover a name, the nearest first."""
    _, _, above = host.partition(".")
    while above:
        yield f"*.{above}"
        _, _, above = above.partition(".")


def find_mentions(field: Field, value: Value) -> Iterator[str]:
    """The host names in the known parts of a field, and in the fields inside it."""
    if field.mentions is not None and value is not None:
        resolved = [item for item in value if is_known(item)] if isinstance(value, list) else value
        if is_known(resolved):
            yield from field.mentions.hosts(resolved)
    if field.shape is Shape.OBJECT and isinstance(value, dict):
        for sub in field.fields:
            yield from find_mentions(sub, value.get(sub.name))


def find_dependencies(
    manifest: Manifest, kinds: Mapping[str, Kind], hosts: HostIndex[Address]
) -> dict[Address, tuple[Address, ...]]:
    """For each declaration, the declarations that it depends on, in the order in which it mentions them."""
    declared = manifest.declarations
    needs: dict[Address, tuple[Address, ...]] = {}
    for address, declaration in declared.items():
        needed = _find_needs(declaration, kinds[address.kind], hosts)
        needs[address] = (
            tuple(other for other in dict.fromkeys(needed) if other in declared and other != address) if needed else ()
        )
    return needs


def _find_needs(declaration: Declaration, kind: Kind, hosts: HostIndex[Address]) -> list[Address]:
    spec = declaration.spec
    needed: list[Address] = []
    for value in spec.values():
        if value.__class__ is Ref:
            needed.append(value.target)
        elif value.__class__ not in PLAIN:
            needed += [ref.target for ref in references(value)]
    for field in _select_mentioning(kind):
        if field.name in spec:
            for host in find_mentions(field, spec[field.name]):
                needed += hosts.holders(host)
    return needed


@cache
def _select_mentioning(kind: Kind) -> tuple[Field, ...]:
    return tuple(field for field in kind.fields if field.may_mention)


def sort(needs: Mapping[Node, Iterable[Node]], rank: Mapping[Node, Any] | None = None) -> list[Node]:
    """All nodes, each after those that it needs; among ready nodes the lowest rank first, then the lowest node.

    Raises CycleError with one cycle in `args[1]`, its first node repeated at the end.
    """
    by_rank = sorted(needs, key=lambda node: (rank[node], node)) if rank else sorted(needs)
    place = {node: index for index, node in enumerate(by_rank)}
    waiting = [0] * len(by_rank)
    dependents: dict[int, list[int]] = defaultdict(list)
    for node, needed in needs.items():
        for dependency in needed:
            dependents[place[dependency]].append(place[node])
            waiting[place[node]] += 1
    ready = [index for index, count in enumerate(waiting) if not count]  # a sorted list is a heap
    ordered: list[Node] = []
    while ready:
        index = heappop(ready)
        ordered.append(by_rank[index])
        for dependent in dependents.get(index, ()):
            waiting[dependent] -= 1
            if not waiting[dependent]:
                heappush(ready, dependent)
    if len(ordered) < len(by_rank):
        raise CycleError("nodes wait for each other", find_cycle(needs))
    return ordered


def find_cycle(needs: Mapping[Node, Iterable[Node]]) -> list[Node] | None:
    """One cycle of needs, its first node repeated at the end, or None. Independent of the order of the input."""
    try:
        TopologicalSorter({node: sorted(needs[node]) for node in sorted(needs)}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None
