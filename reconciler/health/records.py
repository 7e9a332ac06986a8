"""The DNS records that an account needs, and the certificates that wait for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from reconciler import kinds
from reconciler.health.facts import Facts
from reconciler.kinds.rules.health import text_at
from reconciler.model.dns import CertificateJob
from reconciler.model.health import Record, read_instant
from reconciler.model.snapshot import Live
from reconciler.model.value import value_at


def list_records(facts: Facts) -> tuple[Record, ...]:
    """The records, sorted by owner name."""
    return tuple(sorted(_find_records(facts), key=lambda record: (record.owner, record.type, record.value)))


def _find_records(facts: Facts) -> Iterator[Record]:
    for kind in kinds.every():
        for live in facts.list_objects(kind.name) if kind.records is not None else ():
            assert kind.records is not None
            for record in kind.records(live.body):
                yield replace(record, needed_by=_name(live), object=_identify(live))


def _name(live: Live) -> str:
    return str(live.owner.address) if live.owner is not None else _identify(live)


def _identify(live: Live) -> str:
    return f"{live.kind}/{live.id}"


def list_jobs(facts: Facts) -> Mapping[str, CertificateJob]:
    """The certificates that the platform obtains, by `Record.object`."""
    found = {}
    for kind in kinds.every():
        for live in facts.list_objects(kind.name) if kind.records is not None else ():
            if authority := text_at(live.body, "certificate_management_policy", "authority"):
                job = value_at(live.body, ["certificate_management_status", "provisioning_job"])
                found[_identify(live)] = CertificateJob(
                    authority,
                    text_at(job, "error_code"),
                    read_instant(value_at(job, ["started_at"])),
                    read_instant(value_at(job, ["retries_at"])),
                )
    return found
