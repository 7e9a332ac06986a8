"""The DNS records that changes need or leave behind, from what kinds say of their objects (`Kind.records`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec.structs import replace

from reconciler.model.change import Change
from reconciler.model.dns import PlannedRecord, clean_name, find_zone
from reconciler.model.health import Body, Record
from reconciler.model.kind import Kind
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.matching.index import LiveIndex

_AFTER_APPLY = "(known after apply)"


def leaves_record(decision: Decision) -> bool:
    """Whether DNS still names the deleted object, under a name that its successor does not have."""
    kept = {record.owner for record in _list_declared(decision)}
    return any(record.owner not in kept for record in _list_live(decision))


class RecordRules:
    """Finds the records of the changes of one plan. `zones`: of the project, as written."""

    def __init__(self, index: LiveIndex, zones: Iterable[str]) -> None:
        self._index = index
        self._zones = [name for zone in zones if (name := clean_name(zone)) is not None]

    def describe(self, change: Change, decision: Decision) -> Change:
        """The change with its records."""
        if decision.kind.records is None:
            return change
        needed = (record for record in _list_declared(decision) if not self._is_of_platform(record.owner))
        return replace(
            change,
            needs_records=tuple(map(self._place, needed)),
            leaves_records=tuple(map(self._place, _list_live(decision))),
        )

    def _place(self, record: Record) -> PlannedRecord:
        value = "" if record.value == _AFTER_APPLY else record.value
        return PlannedRecord(record.owner, record.type, value, find_zone(record, self._zones) or "")

    def _is_of_platform(self, owner: str) -> bool:
        return owner.partition(".")[2] in self._platform_domains

    @cached_property
    def _platform_domains(self) -> frozenset[str]:
        """The domains of which the platform itself has the zone: objects below them exist and need no record."""
        return frozenset(
            record.owner.partition(".")[2]
            for kind in self._index.kinds.values()
            if kind.records is not None
            for live in self._index.by_locator.values()
            if live.kind == kind.name and not [*kind.records(live.body)] and None in live.body.values()
            for record in _list_expected(kind, {name: live.body[name] for name in kind.identity if name in live.body})
        )


def _list_declared(decision: Decision) -> Iterator[Record]:
    """The records that the new object will need; their values are known after apply."""
    if decision.is_new:
        yield from _list_expected(decision.kind, decision.want)


def _list_expected(kind: Kind, declared: Body) -> Iterator[Record]:
    if kind.records is not None:
        yield from kind.records({**dict.fromkeys(kind.read.model_fields, _AFTER_APPLY), **declared})


def _list_live(decision: Decision) -> Iterator[Record]:
    """The records that the deleted object needed."""
    if decision.kind.records is not None and decision.ends_live and decision.live is not None:
        yield from decision.kind.records(decision.live.body)
