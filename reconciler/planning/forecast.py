"""Estimates the requests and the time that carrying a plan out will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from reconciler.model.kind import Kind
from reconciler.model.plan import Call, Forecast
from reconciler.model.snapshot import Snapshot

WINDOW = 60.0  # seconds over which the platform counts requests
PAGE = 100  # objects: the platform's largest page


def forecast(calls: Sequence[Call], snapshot: Snapshot, kinds: Mapping[str, Kind], per_minute: int) -> Forecast:
    """A budget of N allows N requests at once, and N more every minute after. Reading the account counts too."""
    count = len(calls)
    if not per_minute or not count:
        return Forecast(count, 0.0)
    requests = _pages(snapshot, kinds) + _checks(calls, snapshot, kinds, per_minute) + count
    return Forecast(count, WINDOW * ((requests - 1) // per_minute))


def _pages(snapshot: Snapshot, kinds: Mapping[str, Kind]) -> int:
    """The requests that read the account."""
    objects: dict[str, int] = {}
    for name, listing in snapshot.listings.items():
        if name in kinds and kinds[name].parent is None:
            objects[kinds[name].path] = objects.get(kinds[name].path, 0) + len(listing.objects)
    return sum(max(1, -(-number // PAGE)) for number in objects.values())


def _checks(calls: Sequence[Call], snapshot: Snapshot, kinds: Mapping[str, Kind], per_minute: int) -> int:
    """The requests that re-read owner records, one by one or by a list in each minute, whichever are fewer."""
    old = Counter(
        call.address.kind for call in calls if call.target is not None and kinds[call.address.kind].keeps_owner
    )
    found = 0
    for kind, number in old.items():
        pages = 1 + len(snapshot.of(kind).objects) // PAGE
        found += min(number, pages * -(-number // max(1, per_minute - pages)))
    return found
