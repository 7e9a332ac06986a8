"""Words for kind files: whether certificates and credentials can be used, and which DNS records hosts need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from reconciler.kinds.rules import canonical
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


def check_validity(begins: Json, ends: Json, facts: AccountFacts, renew: str, *, part: int = 0) -> Health:
    """The health of an object that is valid between two timestamps. `renew`: what to do when it expires.

    part  the warning begins at the earliest in the last `1 / part` of the validity, for what lives shortly
    """
    start, end = read_instant(begins), read_instant(ends)
    if end is None:
        return Health(State.UNKNOWN, "the platform does not say when it expires")
    if facts.now >= end:
        return Health(State.DEGRADED, f"expired on {say_day(end)}", renew, Actor.YOU, due=end)
    within = facts.expires_within if not part or start is None else min(facts.expires_within, (end - start) / part)
    if facts.now >= end - within:
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


# --- secrets ----------------------------------------------------------------------------------------------------------


def check_credential(body: Body, facts: AccountFacts) -> Health:
    """A credential whose secret was delivered, whose owner is active, and whose rotation is not overdue."""
    owner, issued = check_owner(body, facts), facts.secret_of(text_at(body, "id"))
    if not issued.is_delivered:
        reason = "its secret was not delivered, and cannot be read again"
        return Health(State.DEGRADED, reason, "run `reconciler apply`, which replaces it", Actor.YOU)
    if owner.state is not State.HEALTHY:
        return owner
    if issued.rotates_at is None or facts.now < issued.rotates_at:
        return Health(State.HEALTHY, due=issued.rotates_at)
    state = State.DEGRADED if facts.now > issued.rotates_at + LATE else State.PROGRESSING
    reason = f"its rotation was due on {say_day(issued.rotates_at)}"
    return Health(state, reason, "run `reconciler apply`", Actor.YOU, due=issued.rotates_at)


def check_owner(body: Body, facts: AccountFacts) -> Health:
    """A credential whose owner is active. Owners that are people cannot be read."""
    if "owner_id" not in body:
        return Health(State.UNKNOWN, "its owner could not be read")
    id = canonical.user(text_at(body, "owner_id"))
    owner = facts.find("BotUser", id) or facts.find("BotUser", text_at(body, "owner_id"))
    if owner is not None and owner.get("active") is False:
        name = text_at(owner, "name") or id
        advice = f"set `active: true` for {name}, or give the credential another owner"
        return Health(State.DEGRADED, f"its owner {name} is not active, so it is refused", advice, Actor.YOU)
    if owner is not None or not id.startswith("bot_"):
        return Health(State.HEALTHY)
    if not facts.is_complete("BotUser"):
        return Health(State.UNKNOWN, "its owner could not be read")
    return Health(State.DEGRADED, "its owner does not exist", "give it another owner", Actor.YOU)


# --- SSH --------------------------------------------------------------------------------------------------------------


def check_ssh_certificate(body: Body, facts: AccountFacts) -> Health:
    """The validity of an SSH certificate, and whether the authority that signed it exists."""
    valid = check_validity(body.get("valid_after"), body.get("valid_until"), facts, "issue another certificate", part=3)
    authority = text_at(body, "ssh_certificate_authority_id")
    if valid.state is State.DEGRADED or facts.find("SSHCertificateAuthority", authority) is not None:
        return valid
    if not facts.is_complete("SSHCertificateAuthority"):
        return Health(State.UNKNOWN, "its authority could not be read", due=valid.due)
    reason = "the authority that signed it does not exist"
    return Health(State.DEGRADED, reason, "issue a certificate of another authority", Actor.YOU, due=valid.due)
