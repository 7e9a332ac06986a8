"""The times during which a way in was open or an object was not healthy, from drift checks that were recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.health import HealthRow, State
from reconciler.model.history import DriftCheck, Opening

T = TypeVar("T")


class Span(Struct, Generic[T], frozen=True):
    """Consecutive drift checks that found something. Times in seconds since 1970.

    found   as the last of these checks found it
    ended   the first check that did not find it any more; None: there is none yet
    """

    found: T
    since: float
    ended: float | None = None

    def duration(self, now: float) -> float:
        """In seconds, until it ended or until now."""
        return (now if self.ended is None else self.ended) - self.since


class _Sight(Struct, Generic[T], frozen=True):
    """What one check found, by key. `hidden`: keys of which it tells nothing; None: it tells of no absence."""

    at: float
    found: Mapping[str, T]
    hidden: Collection[str] | None = ()


def list_openings(checks: Iterable[DriftCheck]) -> list[Span[Opening]]:
    """When each entry point was open, from checks, oldest first. A check of a part of the account ends none."""
    return _sort(_follow(map(_see_openings, checks)))


def list_unhealthy(checks: Iterable[DriftCheck]) -> list[Span[HealthRow]]:
    """When each object was degraded or progressing. An object whose health is unknown may be so still."""
    return _sort(_follow(_list_health(checks)))


def _see_openings(check: DriftCheck) -> _Sight[Opening]:
    return _Sight(
        check.at, {opening.entry_point: opening for opening in check.openings}, () if check.complete else None
    )


def _list_health(checks: Iterable[DriftCheck]) -> Iterator[_Sight[HealthRow]]:
    for check in checks:
        if check.health is None:
            continue
        rows = {row.address or row.id: row for row in check.health.rows}
        ill = {name: row for name, row in rows.items() if row.health.state in (State.DEGRADED, State.PROGRESSING)}
        unknown = [name for name, row in rows.items() if row.health.state is State.UNKNOWN]
        yield _Sight(check.at, ill, unknown if check.complete else None)


def _follow(sights: Iterable[_Sight[T]]) -> list[Span[T]]:
    current: dict[str, Span[T]] = {}
    ended: list[Span[T]] = []
    for sight in sights:
        if (hidden := sight.hidden) is not None:
            gone = [key for key in current if key not in sight.found and key not in hidden]
            ended += [replace(current.pop(key), ended=sight.at) for key in gone]
        for key, found in sight.found.items():
            current[key] = replace(current.get(key, Span(found, sight.at)), found=found)
    return [*current.values(), *ended]


def _sort(spans: Sequence[Span[T]]) -> list[Span[T]]:
    """Those that last first, the oldest at the top; then the latest."""
    return sorted(spans, key=lambda span: (span.ended is not None, span.since if span.ended is None else -span.ended))
