"""Compares the DNS records that an account needs with the answers of name servers. Sends no query itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from reconciler.kinds.rules.health import say_minute
from reconciler.model.dns import Answer, CertificateJob, DNSFinding, Evidence, Need, Reply, list_parents
from reconciler.model.health import Actor, Health, Record, State

BESIDE: Final = ("A", "AAAA", "MX", "TXT")
"""The types of records that are asked for at a name that needs a CNAME."""

_DNS_ERROR: Final = "DNS_ERROR"
_ADDRESSES: Final = ("A", "AAAA")
_AUTHORITIES: Final = {"letsencrypt": "letsencrypt.org"}
_KNOWN_TAGS: Final = frozenset({"issue", "issuewild", "iodef", "issuemail", "contactemail", "contactphone"})
_CRITICAL: Final = 128
_FEW: Final = 3


def list_needs(records: Iterable[Record], jobs: Mapping[str, CertificateJob]) -> tuple[Need, ...]:
    """The records by name and type. `jobs`: the certificates that the platform obtains, by `Record.object`."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in (records := tuple(records)):
        groups.setdefault((record.owner, record.type), []).append(record)
    wildcards = {
        record.owner.removeprefix("*."): record.value
        for record in records
        if record.type == "CNAME" and record.owner.startswith("*.")
    }
    return tuple(_describe_need(group, wildcards, jobs) for group in groups.values())


def _describe_need(group: Sequence[Record], wildcards: Mapping[str, str], jobs: Mapping[str, CertificateJob]) -> Need:
    first = group[0]
    objects = tuple(sorted({record.object for record in group}))
    is_exact = first.type == "CNAME" and not first.owner.startswith(("*.", "_"))
    above = (wildcards[parent] for parent in list_parents(first.owner) if parent in wildcards)
    return Need(
        first.owner,
        first.type,
        tuple(sorted({record.value for record in group})),
        tuple(sorted({record.needed_by for record in group})),
        first.purpose,
        accepts=tuple(above) if is_exact else (),
        job=next((jobs[name] for name in objects if name in jobs), None),
        objects=objects,
    )


def list_questions(need: Need) -> Iterator[tuple[str, str]]:
    """The names and types that have to be asked for to judge a need."""
    yield need.owner, need.type
    if need.type == "CNAME":
        yield from ((need.owner, type) for type in BESIDE)
    if _has_certificate(need):
        yield from ((name, "CAA") for name in list_caa_names(need))


def _has_certificate(need: Need) -> bool:
    """Whether the platform obtains a certificate for this very name, and not for the wildcard beside it."""
    return need.job is not None and not need.owner.startswith("_")


def list_caa_names(need: Need) -> Iterator[str]:
    """The names at which CAA records apply, the nearest first: the first that has any decides.

    Not the name of the CNAME itself, where there can be no CAA record, nor a name that is delegated.
    """
    yield from (name for name in list_parents(need.owner) if "." in name)


def judge_records(
    records: Iterable[Record], jobs: Mapping[str, CertificateJob], evidence: Evidence
) -> tuple[DNSFinding, ...]:
    """What DNS says about each need, together with what the platform says about the certificate."""
    findings = [DNSFinding(need, judge_need(need, evidence)) for need in list_needs(records, jobs)]
    waiting = {
        name for finding in findings for name in finding.need.objects if finding.health.state is not State.HEALTHY
    }
    return tuple(_add_job(finding, is_last=waiting.isdisjoint(finding.need.objects)) for finding in findings)


def _add_job(finding: DNSFinding, *, is_last: bool) -> DNSFinding:
    """The finding with the error of the certificate. `is_last`: all records of the object are set."""
    job, health = finding.need.job, finding.health
    if job is None or job.error != _DNS_ERROR or (health.state is State.HEALTHY and not is_last):
        return finding
    since = f" since {say_minute(job.started_at)}" if job.started_at is not None else ""
    retries = f"; the platform retries at {say_minute(job.retries_at)}" if job.retries_at is not None else ""
    if health.state is State.HEALTHY:
        reason = f"{job.error}{since}, and {finding.need.owner} is set now{retries}"
        health = Health(State.PROGRESSING, reason, actor=Actor.PLATFORM, retries_at=job.retries_at)
    else:
        health = replace(health, reason=f"{job.error}{since}: {health.reason}{retries}", retries_at=job.retries_at)
    return DNSFinding(finding.need, health)


def judge_need(need: Need, evidence: Evidence) -> Health:
    """What DNS says about one need."""
    answers = evidence.of(need.owner, need.type)
    if not answers:
        why = evidence.unreachable.get(need.owner, "no server was asked")
        return Health(State.UNKNOWN, f"{need.owner} could not be asked for: {why}")
    known = [answer for answer in answers if answer.reply is not Reply.UNKNOWN]
    if not known:
        return Health(State.UNKNOWN, f"{need.owner} could not be asked for: {_say_unknown(answers)}")
    judge = _judge_delegation if need.type == "NS" else _judge_alias
    found = judge(need, known, evidence)
    if found is not None:
        return found
    return _judge_caa(need, evidence) or Health(State.HEALTHY)


def _say_unknown(answers: Sequence[Answer]) -> str:
    reasons = [f"{answer.server}: {answer.why}" for answer in answers if answer.reply is Reply.UNKNOWN]
    more = len(reasons) - _FEW
    return "; ".join(reasons[:_FEW]) + (f"; and {more} more servers" if more > 0 else "")


def _names(answers: Iterable[Answer]) -> str:
    servers = list(dict.fromkeys(answer.server for answer in answers))
    more = len(servers) - _FEW
    return ", ".join(servers[:_FEW]) + (f" and {more} more" if more > 0 else "")


def _report(need: Need, reason: str, advice: str = "") -> Health:
    return Health(State.DEGRADED, reason, advice or f"set {need.text}", Actor.ZONE_OWNER)


# --- CNAME ------------------------------------------------------------------------------------------------------------


def _judge_alias(need: Need, known: Sequence[Answer], evidence: Evidence) -> Health | None:
    known = _without_covered(need, known, evidence)
    absent = [answer for answer in known if answer.reply is Reply.ABSENT]
    accepted = {*need.values, *need.accepts}
    others = [answer for answer in known if answer.reply is Reply.FOUND and not _is_alias(answer, accepted)]
    beside = _list_beside(need, evidence)
    if others:
        targets = sorted({value for answer in others for value in answer.values} - accepted)
        has_several = any(len(answer.values) > 1 for answer in others)
        where = f"{', '.join(targets)} ({_names(others)})"
        reason = f"{need.owner} CNAME {'has several targets: ' if has_several else 'points to '}{where}"
        return _report(need, f"{reason}, must be {_say_values(need)}")
    if absent:
        return _judge_absent(need, absent, known, beside)
    if beside:
        reason = f"{need.owner} has {_say_types(beside)} beside its CNAME"
        return _report(need, reason, f"remove all other records of {need.owner}")
    return None


def _without_covered(need: Need, known: Sequence[Answer], evidence: Evidence) -> Sequence[Answer]:
    """The answers about a challenge. What a server gives from the wildcard beside it is no record of its own."""
    if need.purpose != "certificate":
        return known
    wildcard = f"*.{need.owner.partition('.')[2]}"
    covering = {value for answer in evidence.of(wildcard, need.type) for value in answer.values} - {*need.values}
    return [
        replace(answer, reply=Reply.ABSENT, values=()) if covering.intersection(answer.values) else answer
        for answer in known
    ]


def _is_alias(answer: Answer, accepted: Collection[str]) -> bool:
    return len(answer.values) == 1 and answer.values[0] in accepted


def _list_beside(need: Need, evidence: Evidence) -> dict[str, Sequence[Answer]]:
    """The other types of records at the name, with the answers that have them."""
    found = {
        type: [answer for answer in evidence.of(need.owner, type) if answer.reply is Reply.FOUND] for type in BESIDE
    }
    return {type: answers for type, answers in found.items() if answers}


def _judge_absent(
    need: Need, absent: Sequence[Answer], known: Sequence[Answer], beside: Mapping[str, Sequence[Answer]]
) -> Health:
    if len(absent) < len(known):
        reason = f"{need.owner} CNAME is missing at {_names(absent)}, and set at other servers of the zone"
        return _report(need, reason, f"set {need.text} at every server, or wait until the zone is transferred")
    addresses = {type: answers for type, answers in beside.items() if type in _ADDRESSES}
    if addresses and (need.job is None or need.job.error != _DNS_ERROR):
        reason = (
            f"{need.owner} has {_say_types(addresses)} instead of a CNAME, as behind a CDN: "
            "whether they lead to the platform is unknown"
        )
        return Health(State.UNKNOWN, reason, f"set {need.text}", Actor.ZONE_OWNER)
    if beside:
        reason = f"{need.owner} has {_say_types(beside)}, and no CNAME"
        return _report(need, reason, f"remove all other records of {need.owner}, and set {need.text}")
    reason = f"{need.owner} has no CNAME"
    if need.purpose == "certificate":
        reason += f", without which *.{need.owner.partition('.')[2]} gets no certificate"
    return _report(need, f"{reason} ({_names(absent)})")


def _say_types(beside: Mapping[str, Sequence[Answer]]) -> str:
    types = list(beside)
    return f"{' and '.join(filter(None, (', '.join(types[:-1]), types[-1])))} records"


def _say_values(need: Need) -> str:
    return " or ".join(dict.fromkeys((*need.values, *need.accepts)))


# --- delegations ------------------------------------------------------------------------------------------------------


def _judge_delegation(need: Need, known: Sequence[Answer], evidence: Evidence) -> Health | None:
    wanted = set(need.values)
    for answer in sorted(known, key=lambda answer: len(wanted.intersection(answer.values))):
        found = set(answer.values)
        if found == wanted:
            continue
        missing, extra = sorted(wanted - found), sorted(found - wanted)
        server = f"({answer.server})"
        if not found:
            return _report(need, f"{need.owner} is not delegated {server}", f"set {need.text}")
        if not missing:
            reason = f"{need.owner} is also delegated to {', '.join(extra)} {server}"
            return _report(need, reason, f"remove {need.owner} NS {', '.join(extra)}")
        if len(missing) == len(wanted):
            reason = f"{need.owner} is delegated to {', '.join(extra)} {server}, must be {', '.join(need.values)}"
            return _report(need, reason)
        reason = f"{need.owner} has {len(wanted) - len(missing)} of {len(wanted)} NS records {server}"
        if extra:
            reason += f", and others: {', '.join(extra)}"
        return _report(need, reason, f"set {need.owner} NS {', '.join(missing)}")
    return None


# --- CAA --------------------------------------------------------------------------------------------------------------


def _judge_caa(need: Need, evidence: Evidence) -> Health | None:
    """Whether the CAA records that apply forbid the authority. The first name that has any decides."""
    if not _has_certificate(need):
        return None
    for name in list_caa_names(need):
        answers = evidence.of(name, "CAA")
        found = [answer for answer in answers if answer.reply is Reply.FOUND]
        for answer in found:
            if (wrong := _check_caa(need, name, answer)) is not None:
                return wrong
        if found:
            return None
        if not answers or all(answer.reply is Reply.UNKNOWN for answer in answers):
            why = _say_unknown(answers) if answers else evidence.unreachable.get(name, "no server was asked")
            return Health(State.UNKNOWN, f"the CAA records of {name} could not be asked for: {why}")
    return None


def _check_caa(need: Need, name: str, answer: Answer) -> Health | None:
    properties = [_read_caa(value) for value in answer.values]
    if any(flags & _CRITICAL and tag not in _KNOWN_TAGS for flags, tag, _ in properties):
        reason = f"a critical CAA record of {name} ({answer.server}) is unknown to certificate authorities"
        return _report(need, reason, f"remove the critical CAA record of {name}")
    authority = need.job.authority if need.job is not None else ""
    domain = _AUTHORITIES.get(authority, authority)
    is_wildcard = need.owner.startswith("*.")
    tags = {tag for _, tag, _ in properties}
    tag = "issuewild" if is_wildcard and "issuewild" in tags else "issue"
    allowed = [value for _, key, value in properties if key == tag]
    if not allowed or any(_allows(value, domain, _find_method(need)) for value in allowed):
        return None
    reason = f"the CAA records of {name} ({answer.server}) forbid {domain} to issue a certificate for {need.owner}"
    return _report(need, reason, f'set {name} CAA 0 {tag} "{domain}"')


def _find_method(need: Need) -> str:
    """The method by which the authority checks who owns the name; empty if it is not known."""
    if need.type == "NS":
        return ""
    return "dns-01" if need.owner.startswith("*.") else "http-01"


def _read_caa(text: str) -> tuple[int, str, str]:
    """Flags, tag and value of `0 issue "letsencrypt.org"`."""
    flags, _, rest = text.partition(" ")
    tag, _, value = rest.partition(" ")
    return int(flags) if flags.isdecimal() else 0, tag.lower(), value.strip().strip('"')


def _allows(value: str, domain: str, method: str) -> bool:
    """Whether one `issue` property allows an authority, which has an account of the platform."""
    issuer, *parameters = (part.strip() for part in value.split(";"))
    if issuer.lower().rstrip(".") != domain:
        return False
    pairs = {key.strip().lower(): text.strip() for key, _, text in (part.partition("=") for part in parameters)}
    methods = pairs.get("validationmethods")
    return "accounturi" not in pairs and (methods is None or not method or method in methods.lower().split(","))
