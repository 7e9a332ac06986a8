"""Words for kind files: whether certificates are obtained and valid, and which DNS records hosts need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from reconciler.model.health import DAY, AccountFacts, Actor, Body, Health, Record, State, read_instant
from reconciler.model.value import Json, value_at

LATE: Final = DAY
"""How long after its announced time a renewal or a retry of the platform is overdue."""

_UNREADABLE: Final = Health(State.UNKNOWN, "the status of the certificate cannot be read")


def text_at(body: Json, *path: str) -> str:
    """The text at a path; empty if there is another value."""
    value = value_at(body, path)
    return value if isinstance(value, str) else ""


def say_day(moment: float) -> str:
    """A date in UTC, for sentences."""
    try:
        return datetime.fromtimestamp(moment, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return "an unknown date"


def say_minute(moment: float) -> str:
    """A date with time in UTC, for sentences."""
    try:
        return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, OSError, ValueError):
        return "an unknown time"


# --- validity ---------------------------------------------------------------------------------------------------------


def check_validity(begins: Json, ends: Json, facts: AccountFacts, renew: str) -> Health:
    """The health of what is valid between two timestamps. `renew`: what to do when it expires."""
    start, end = read_instant(begins), read_instant(ends)
    if end is None:
        return Health(State.UNKNOWN, "the platform does not say when it expires")
    if facts.now >= end:
        return Health(State.DEGRADED, f"expired on {say_day(end)}", renew, Actor.YOU, due=end)
    if facts.now >= end - facts.expires_within:
        return Health(State.DEGRADED, f"expires on {say_day(end)}", renew, Actor.YOU, due=end)
    if start is not None and facts.now < start:
        return Health(State.PROGRESSING, f"is not valid before {say_minute(start)}", due=start)
    return Health(State.HEALTHY, due=end)


# --- certificates that the platform obtains ---------------------------------------------------------------------------


def check_provisioning(status: Json, facts: AccountFacts, records: Iterable[Record]) -> Health:
    """The health of the job that obtains or renews a certificate, and of the renewal that it announces.

    `records`: the DNS records that the certificate authority needs.
    """
    if not isinstance(status, dict | None):
        return _UNREADABLE
    job, renews_at = value_at(status, ["provisioning_job"]), read_instant(value_at(status, ["renews_at"]))
    if not isinstance(job, dict | None):
        return _UNREADABLE
    if job is not None:
        return _check_job(job, facts, records)
    if renews_at is not None and facts.now > renews_at + LATE:
        reason = f"the certificate should have been renewed on {say_day(renews_at)}"
        return Health(State.DEGRADED, reason, "contact the platform's support", Actor.PLATFORM, due=renews_at)
    return Health(State.HEALTHY, due=renews_at)


def _check_job(job: Json, facts: AccountFacts, records: Iterable[Record]) -> Health:
    code, retries_at = text_at(job, "error_code"), read_instant(value_at(job, ["retries_at"]))
    retries = "" if retries_at is None else f"; the platform tries again at {say_minute(retries_at)}"
    if code == "DNS_ERROR":
        missing = ", ".join(f"{record.owner} {record.type} {record.value}" for record in records)
        advice = f"set {missing}" if missing else "correct the DNS records of the domain"
        reason = f"the certificate waits for DNS{retries}"
        return Health(State.DEGRADED, reason, advice, Actor.ZONE_OWNER, retries_at=retries_at)
    if not code:
        return Health(State.PROGRESSING, "the certificate is being obtained", actor=Actor.PLATFORM)
    if retries_at is not None and facts.now > retries_at + LATE:
        reason = f"the certificate could not be obtained ({code}), and was not tried again on {say_day(retries_at)}"
        return Health(State.DEGRADED, reason, "contact the platform's support", Actor.PLATFORM, retries_at=retries_at)
    reason = f"the certificate could not be obtained yet ({code}){retries}"
    return Health(State.PROGRESSING, reason, actor=Actor.PLATFORM, retries_at=retries_at)


# --- DNS --------------------------------------------------------------------------------------------------------------


def list_host_records(body: Body) -> Iterator[Record]:
    """The records of a reserved hostname: CNAME for traffic, and for a wildcard one for its certificate."""
    host, target = text_at(body, "domain").lower(), text_at(body, "cname_target")
    if host and target:
        yield Record(host, "CNAME", target, purpose="traffic")
    challenge = text_at(body, "acme_challenge_cname_target")
    if host.startswith("*.") and challenge:
        yield Record(f"_acme-challenge.{host.removeprefix('*.')}", "CNAME", challenge, purpose="certificate")


def list_delegations(body: Body) -> Iterator[Record]:
    """The records that delegate a domain of agents to the platform."""
    host, found = text_at(body, "domain").lower(), value_at(body, ["ns_targets"])
    targets = found if isinstance(found, list) else [found]
    for target in targets if host else ():
        if isinstance(target, str) and target:
            yield Record(host, "NS", target, purpose="agents")


def covers(pattern: str, host: str) -> bool:
    """Whether a name of a certificate covers a host or a wildcard."""
    pattern, host = pattern.lower().rstrip("."), host.lower().rstrip(".")
    if pattern == host:
        return True
    label, _, rest = host.partition(".")
    return pattern.startswith("*.") and bool(label) and label != "*" and pattern[2:] == rest
