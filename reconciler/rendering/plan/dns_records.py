"""Text about the DNS records that a change needs or leaves behind."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.change import Change
from reconciler.model.dns import PlannedRecord
from reconciler.rendering.terminal_text import sanitize


def describe(change: Change) -> Iterator[str]:
    """Sanitized lines, a sentence for each record."""
    needed = {(record.owner, record.type) for record in change.needs_records}
    for record in change.leaves_records:
        if (record.owner, record.type) in needed:
            yield sanitize(f"DNS record to remove after the replacement: {_text(record)}{_place(record)}")
        else:
            yield sanitize(f"DNS record to remove before the deletion: {_text(record)}{_place(record)}")
    for record in change.needs_records:
        unless = "" if record.zone else ", unless the platform owns the domain"
        yield sanitize(f"DNS record to set: {_text(record)}{_place(record)}{unless}")


def _text(record: PlannedRecord) -> str:
    return f"{record.owner} {record.type} {record.value or '(known after apply)'}"


def _place(record: PlannedRecord) -> str:
    """The zone of the project in whose file the record is."""
    return f", in the file of the zone {record.zone}" if record.zone else ""
