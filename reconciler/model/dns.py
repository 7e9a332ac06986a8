"""DNS records that the account needs, by zone, and what name servers answer about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from reconciler.model.health import Health, Record

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")
_LONGEST_NAME = 253
_LONGEST_LABEL = 63


def clean_name(text: str) -> str | None:
    """A domain name in lower case and without the final dot; None if it is none that a zone file could contain.

    `*` is allowed as the first label, and `_` in each.
    """
    name = text.strip(" ").removesuffix(".").lower()
    labels = name.removeprefix("*.").split(".")
    is_valid = len(name) <= _LONGEST_NAME and all(
        len(label) <= _LONGEST_LABEL and label.isascii() and _LABEL.fullmatch(label) for label in labels
    )
    return name if is_valid else None


def is_below(name: str, zone: str) -> bool:
    """Whether a name is inside a zone, and not its apex."""
    return name.endswith(f".{zone}")


def list_parents(name: str) -> Iterator[str]:
    """The names above a name, the nearest first."""
    while "." in name:
        name = name.partition(".")[2]
        yield name


def find_zone(record: Record, zones: Iterable[str]) -> str | None:
    """The zone that the record belongs to, the longest that matches; None if it is in no zone of these.

    A delegation belongs to the zone above its name, since the zone of that name begins with it.
    """
    is_delegation = record.type == "NS"
    inside = [zone for zone in zones if is_below(record.owner, zone) or (record.owner == zone and not is_delegation)]
    return max(inside, key=len, default=None)


class PlannedRecord(Struct, frozen=True):
    """A DNS record that a change of a plan needs or leaves behind.

    value  empty: known after apply
    zone   the zone of the project (`dns.zones`) whose file has the record; empty: none
    """

    owner: str
    type: str
    value: str = ""
    zone: str = ""


class Zone(Struct, frozen=True):
    """The records of one zone, in order."""

    name: str
    records: tuple[Record, ...] = ()


class Misplaced(Struct, frozen=True):
    """A record that cannot exist as it is needed, and what to do."""

    record: Record
    why: str
    remedy: str


class DNSRecords(Struct, frozen=True):
    """The records that the account needs.

    zones      the zones that the project names, each with its records
    unzoned    records in no zone that the project names
    misplaced  records that no zone can contain
    """

    zones: tuple[Zone, ...] = ()
    unzoned: tuple[Record, ...] = ()
    misplaced: tuple[Misplaced, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        """All records that a zone can contain."""
        return (*(record for zone in self.zones for record in zone.records), *self.unzoned)


class CertificateJob(Struct, frozen=True):
    """How the platform obtains the certificate of a name.

    authority   the certificate authority, such as `letsencrypt`
    error       the code of the error of the last attempt; empty if there was none
    started_at  of the last attempt; in seconds since 1970
    retries_at  when the platform tries again; in seconds since 1970
    """

    authority: str
    error: str = ""
    started_at: float | None = None
    retries_at: float | None = None


class Need(Struct, frozen=True):
    """What a name needs of DNS: all of its records of one type.

    values   the values, each of which must be there
    accepts  other values of a CNAME that serve the name too: those of a wildcard above it
    job      how the platform obtains the certificate of the name, if it does
    objects  the objects that need it, by kind and id; `needed_by` has their names
    """

    owner: str
    type: str
    values: tuple[str, ...]
    needed_by: tuple[str, ...]
    purpose: str = ""
    accepts: tuple[str, ...] = ()
    job: CertificateJob | None = None
    objects: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """`shop.example.com CNAME abc.cname.platform.example`"""
        return f"{self.owner} {self.type} {', '.join(self.values)}"


class DNSFinding(Struct, frozen=True):
    """What DNS says about one need."""

    need: Need
    health: Health


# --- what name servers answer -----------------------------------------------------------------------------------------


class Reply(StrEnum):
    """What a server answered to one question."""

    FOUND = "found"
    ABSENT = "absent"  # the server is responsible for the name, and has no such record
    UNKNOWN = "unknown"  # no answer, or of a server that is not responsible


class Answer(Struct, frozen=True):
    """The answer of one server to one question.

    values  of the records of the type at this name, such as `abc.cname.platform.example`
    why     of an unknown answer
    """

    server: str
    reply: Reply
    values: tuple[str, ...] = ()
    why: str = ""


class Evidence(Struct, frozen=True):
    """What the servers that are responsible answer about names, by (name, type).

    unreachable  names whose servers could not be found, with the reason
    """

    answers: Mapping[tuple[str, str], Sequence[Answer]] = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str, type: str) -> Sequence[Answer]:
        return self.answers.get((name, type), ())
