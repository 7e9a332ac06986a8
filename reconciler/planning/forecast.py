"""Estimates the requests and the time of an apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from reconciler.model.kind import Kind
from reconciler.model.plan import Call, Forecast
from reconciler.model.snapshot import Snapshot

WINDOW = 60.0  # seconds, the interval of the platform's rate limit
PAGE = 100  # objects, the largest page of a list operation


def forecast(calls: Sequence[Call], snapshot: Snapshot, kinds: Mapping[str, Kind], per_minute: int) -> Forecast:
    """The calls of a plan, and the least number of seconds that the rate limit makes them take.

    A limit of N allows N requests at once and N more in each following minute. The requests of the refresh and the
    checks of owner records count too. `per_minute` 0: no limit is known, and the time is 0.
    """
    count = len(calls)
    if not per_minute or not count:
        return Forecast(count, 0.0)
    requests = _pages(snapshot, kinds) + _checks(calls, snapshot, kinds, per_minute) + count
    return Forecast(count, WINDOW * ((requests - 1) // per_minute))


def _pages(snapshot: Snapshot, kinds: Mapping[str, Kind]) -> int:
    """The list requests of a refresh."""
    objects: dict[str, int] = {}
    for name, listing in snapshot.listings.items():
        if name in kinds and kinds[name].parent is None:
            objects[kinds[name].path] = objects.get(kinds[name].path, 0) + len(listing.objects)
    return sum(max(1, -(-number // PAGE)) for number in objects.values())


def _checks(calls: Sequence[Call], snapshot: Snapshot, kinds: Mapping[str, Kind], per_minute: int) -> int:
    """The requests that re-read owner records before updates and deletes.

    For each kind the fewer of one request per object, or one list in each minute.
    """
    old = Counter(
        call.address.kind for call in calls if call.target is not None and kinds[call.address.kind].keeps_owner
    )
    requests = 0
    for kind, number in old.items():
        pages = 1 + len(snapshot.of(kind).objects) // PAGE
        requests += min(number, pages * -(-number // max(1, per_minute - pages)))
    return requests
