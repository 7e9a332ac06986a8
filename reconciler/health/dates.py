"""What comes due for a stack: expiries, renewals, rotations, and approvals and known drift that end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.approved import ApprovedItem
from reconciler.model.health import DAY, HealthRow, State
from reconciler.model.known_drift import KnownDrift
from reconciler.model.problem import Rejected
from reconciler.model.status import Due


def list_dates(
    rows: Iterable[HealthRow],
    approvals: Iterable[ApprovedItem],
    known: Iterable[KnownDrift],
    now: float,
    days: int,
) -> tuple[Due, ...]:
    """What comes due within `days` after `now`, the next first."""
    found = (*_list_due(rows), *_list_ending(approvals, known))
    inside = {due for due in found if now <= due.at <= now + days * DAY}
    return tuple(sorted(inside, key=lambda due: (due.at, due.subject, due.event)))


def _list_due(rows: Iterable[HealthRow]) -> Iterator[Due]:
    for row in rows:
        if row.health.due is not None:
            yield Due(row.health.due, row.address or row.id, name_event(row))


def name_event(row: HealthRow) -> str:
    """What happens to an object when it comes due."""
    try:
        kind = kinds.find(Address.parse(row.address).kind)
    except (Rejected, ValueError):
        kind = None
    if kind is not None and kind.one_time:
        return "is rotated"
    if kind is not None and kind.records is not None:
        return "gets a renewed certificate"
    return "becomes valid" if row.health.state is State.PROGRESSING else "expires"


def _list_ending(approvals: Iterable[ApprovedItem], known: Iterable[KnownDrift]) -> Iterator[Due]:
    for item in approvals:
        if (end := _end_of(item.until)) is not None:
            yield Due(end, str(item), "approval ends")
    for entry in known:
        if (end := _end_of(entry.until)) is not None:
            yield Due(end, entry.match, "is no longer known drift")


def _end_of(day: str) -> float | None:
    """The end of a day in UTC, which is the last of an entry; None for no day."""
    try:
        return (datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1)).timestamp()
    except (ValueError, OverflowError):
        return None
