"""The DNS records that an account needs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from reconciler import kinds
from reconciler.health.facts import Facts
from reconciler.model.health import Record


def list_records(facts: Facts) -> tuple[Record, ...]:
    """The records, sorted by owner name."""
    return tuple(sorted(_find_records(facts), key=lambda record: (record.owner, record.type, record.value)))


def _find_records(facts: Facts) -> Iterator[Record]:
    for kind in kinds.every():
        for live in facts.list_objects(kind.name) if kind.records is not None else ():
            assert kind.records is not None
            needed_by = str(live.owner.address) if live.owner is not None else f"{live.kind}/{live.id}"
            for record in kind.records(live.body):
                yield replace(record, needed_by=needed_by)
