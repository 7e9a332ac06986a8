"""Groups objects by service: an edge or an endpoint, with the objects that only it uses."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from reconciler.model.kind import Kind
from reconciler.model.snapshot import LiveKey
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.ordering.call_graph import find_live_edges

_Key = TypeVar("_Key", bound=Hashable)


def is_service(kind: Kind) -> bool:
    """Whether the kind is an edge or an endpoint: it carries the traffic of the hosts that a field of it mentions."""
    return kind.carries_traffic and any(field.mentions is not None for field in kind.fields)


def find_services(index: LiveIndex) -> dict[LiveKey, LiveKey]:
    """The service of each live object that belongs to one, the service itself among them."""
    uses: dict[LiveKey, set[LiveKey]] = {key: set() for key in index.by_locator}
    for referrer, through, target in find_live_edges(index):
        uses[referrer].add(target)
        part_of = index.kinds[referrer[0]].part_of
        if part_of is not None and part_of.field == through:
            uses[target].add(referrer)
    return group_by_service({key for key in uses if is_service(index.kinds[key[0]])}, uses)


def group_by_service(services: Collection[_Key], uses: Mapping[_Key, Iterable[_Key]]) -> dict[_Key, _Key]:
    """The service of each object that one service uses, directly or through others, and nothing outside the service.

    uses   for each object, the objects that it refers to, and its parts
    """
    found: dict[_Key, _Key | None] = {}  # None: shared, or used by an object outside every service
    inside: list[tuple[_Key, _Key | None]] = [(key, service) for service in services for key in uses.get(service, ())]
    _spread(inside, services, uses, found)
    outside: list[tuple[_Key, _Key | None]] = [(key, None) for key in uses if key not in found]
    _spread(outside, services, uses, found)
    return {key: service for key, service in found.items() if service is not None} | {key: key for key in services}


def _spread(
    pending: list[tuple[_Key, _Key | None]],
    services: Collection[_Key],
    uses: Mapping[_Key, Iterable[_Key]],
    found: dict[_Key, _Key | None],
) -> None:
    """Passes services on along `uses`; an object that two of them reach becomes shared, with all that it uses."""
    while pending:
        key, service = pending.pop()
        joined = service if found.get(key, service) == service else None
        if key in services or (key in found and found[key] == joined):
            continue
        found[key] = joined
        pending += [(target, joined) for target in uses.get(key, ())]
