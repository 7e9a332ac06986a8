"""The zone that each DNS record of an account belongs to, and the records that no zone can contain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from reconciler.model.dns import DNSRecords, Misplaced, Zone, clean_name, find_zone, list_parents
from reconciler.model.health import Record

_INVALID = "is not a domain name that a zone can contain"


def place_records(records: Iterable[Record], zones: Iterable[str]) -> DNSRecords:
    """The records by zone: the longest zone that a name ends with.

    A delegation belongs to the zone above its name, since the zone of that name begins with it.
    """
    names = sorted({name for zone in zones if (name := clean_name(zone)) is not None})
    placed: dict[str, list[Record]] = {name: [] for name in names}
    unzoned: list[Record] = []
    records = sorted({_clean(record) for record in records}, key=_order)
    misplaced = {record: found for record in records if (found := _check_record(record, names)) is not None}
    misplaced |= _find_conflicts([record for record in records if record not in misplaced])
    for record in records:
        if record not in misplaced:
            zone = find_zone(record, names)
            (unzoned if zone is None else placed[zone]).append(record)
    return DNSRecords(
        tuple(Zone(name, tuple(placed[name])) for name in names),
        tuple(unzoned),
        tuple(misplaced[record] for record in records if record in misplaced),
    )


def _clean(record: Record) -> Record:
    """The record with names in lower case and without the final dot, if they are names at all."""
    owner, value = clean_name(record.owner), clean_name(record.value)
    return replace(record, owner=owner or record.owner, value=value or record.value)


def _order(record: Record) -> tuple[Sequence[str], str, str, str, str]:
    """By name as zones are ordered: a name is followed by the names below it."""
    return [*reversed(record.owner.split("."))], record.type, record.value, record.needed_by, record.object


def _check_record(record: Record, zones: Sequence[str]) -> Misplaced | None:
    """Why no zone can contain the record by itself."""
    if clean_name(record.owner) is None:
        return Misplaced(record, f"{record.owner!r} {_INVALID}", "write the name in its xn-- form, without a port")
    if clean_name(record.value) is None or record.value.startswith("*."):
        why = f"the platform names the target {record.value!r}, which {_INVALID}"
        return Misplaced(record, why, "ask the support of the platform for the target")
    if record.type == "CNAME" and record.owner in zones:
        why = f"{record.owner} is the apex of its zone, which has other records and cannot have a CNAME"
        return Misplaced(
            record, why, f"reserve a name below it, such as www.{record.owner}, and redirect {record.owner} to it"
        )
    return None


def _find_conflicts(records: Sequence[Record]) -> dict[Record, Misplaced]:
    """Records that exclude each other: none of them is written, since only their owner can choose."""
    found: dict[Record, Misplaced] = {}
    at: dict[str, list[Record]] = {}
    for record in records:
        at.setdefault(record.owner, []).append(record)
    delegated = {record.owner: record for record in records if record.type == "NS"}
    for owner, own in at.items():
        wanted = {(record.type, record.value if record.type == "CNAME" else "") for record in own}
        if len(wanted) > 1:
            others = ", ".join(sorted({record.needed_by for record in own}))
            why = f"{owner} cannot have a CNAME beside other records, and {others} need different records"
            found |= {record: Misplaced(record, why, "delete all of these resources but one") for record in own}
        above = next((name for name in list_parents(owner) if name in delegated), None)
        if above is not None:
            by = delegated[above].needed_by
            why = f"{owner} is below {above}, which {by} delegates to the platform, so that its zone is not asked"
            found |= {record: Misplaced(record, why, "use a name outside of the delegated domain") for record in own}
    return found
