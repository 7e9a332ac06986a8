"""What the answers of name servers say about the records that an account needs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.health.dns_check import judge_need, judge_records, list_needs, list_questions
from reconciler.model.dns import Answer, CertificateJob, Evidence, Reply
from reconciler.model.health import Actor, Health, Record, State

TARGET = "abc.cname.platform.example"
SHOP = Record("shop.example.com", "CNAME", TARGET, "ReservedDomain/shop", "traffic")
WILD = Record("*.apps.example.com", "CNAME", "wild.cname.platform.example", "ReservedDomain/apps", "traffic")
CHALLENGE = Record(
    "_acme-challenge.apps.example.com", "CNAME", "c.acme.platform.example", "ReservedDomain/apps", "certificate"
)
NS = tuple(
    Record("agents.example.com", "NS", f"ns-{number}.platform.example", "AgentIngress/agents", "agents")
    for number in (1, 2, 3, 4)
)
JOB = CertificateJob("letsencrypt")
SERVER = "ns1.example.net"

Answers = Mapping[tuple[str, str], list[Answer]]


def answer(*values: str, server: str = SERVER) -> Answer:
    return Answer(server, Reply.FOUND, values)


def absent(server: str = SERVER) -> Answer:
    return Answer(server, Reply.ABSENT)


def silent(server: str = SERVER) -> Answer:
    return Answer(server, Reply.UNKNOWN, why="no answer within 3 s")


def identify(*records: Record) -> list[Record]:
    """The records of objects whose ids are their names."""
    return [replace(record, object=record.object or record.needed_by) for record in records]


def judge(given: Answers, *records: Record, job: CertificateJob | None = None) -> list[Health]:
    own = identify(*records)
    jobs = {} if job is None else {record.object: job for record in own}
    return [finding.health for finding in judge_records(own, jobs, Evidence(given))]


def judge_shop(*answers: Answer, job: CertificateJob | None = None, **beside: list[Answer]) -> Health:
    others = {("shop.example.com", type): list(given) for type, given in beside.items()}
    caa = {("example.com", "CAA"): [absent()]}
    (health,) = judge({("shop.example.com", "CNAME"): [*answers], **caa, **others}, SHOP, job=job)
    return health


# --- CNAME ------------------------------------------------------------------------------------------------------------


def test_a_cname_with_its_target_at_every_server_is_healthy() -> None:
    assert judge_shop(answer(TARGET), answer(TARGET, server="ns2.example.net")) == Health(State.HEALTHY)


def test_a_server_without_an_answer_does_not_matter_beside_one_that_has_the_record() -> None:
    assert judge_shop(answer(TARGET), silent("ns2.example.net")) == Health(State.HEALTHY)


def test_a_missing_cname_is_to_be_set_by_the_owner_of_the_zone() -> None:
    assert judge_shop(absent()) == Health(
        State.DEGRADED,
        "shop.example.com has no CNAME (ns1.example.net)",
        f"set shop.example.com CNAME {TARGET}",
        Actor.ZONE_OWNER,
    )


def test_another_target_is_reported_with_the_server_that_has_it() -> None:
    health = judge_shop(answer(TARGET), answer("old.example.net", server="ns2.example.net"))
    assert health.state is State.DEGRADED
    assert health.reason == (f"shop.example.com CNAME points to old.example.net (ns2.example.net), must be {TARGET}")


def test_a_record_that_one_server_lacks_is_degraded() -> None:
    health = judge_shop(answer(TARGET), absent("ns2.example.net"))
    assert health.state is State.DEGRADED
    assert "missing at ns2.example.net, and set at other servers" in health.reason


def test_several_targets_are_wrong_even_if_one_is_right() -> None:
    health = judge_shop(answer(TARGET, "old.example.net"))
    assert (health.state, "several targets" in health.reason) == (State.DEGRADED, True)


def test_other_records_beside_a_cname_are_to_be_removed() -> None:
    health = judge_shop(answer(TARGET), TXT=[answer('"v=spf1"')], MX=[answer("10 mail")], A=[absent()])
    assert (health.state, health.reason) == (State.DEGRADED, "shop.example.com has MX and TXT records beside its CNAME")
    assert health.advice == "remove all other records of shop.example.com"


def test_addresses_instead_of_a_cname_cannot_be_distinguished_from_a_cdn() -> None:
    health = judge_shop(absent(), A=[answer("192.0.2.1")], job=JOB)
    assert (health.state, health.reason) == (
        State.UNKNOWN,
        "shop.example.com has A records instead of a CNAME, as behind a CDN: "
        "whether they lead to the platform is unknown",
    )


def test_addresses_instead_of_a_cname_are_wrong_if_the_certificate_has_an_error() -> None:
    health = judge_shop(absent(), A=[answer("192.0.2.1")], job=CertificateJob("letsencrypt", "DNS_ERROR"))
    assert health.state is State.DEGRADED
    assert "shop.example.com has A records, and no CNAME" in health.reason


@pytest.mark.parametrize("answers", [[silent()], [silent(), silent("ns2.example.net")], []])
def test_without_an_answer_a_record_is_unknown_and_not_absent(answers: list[Answer]) -> None:
    assert judge_shop(*answers).state is State.UNKNOWN


def test_a_zone_that_cannot_be_found_is_unknown_with_the_reason() -> None:
    (finding,) = judge_records([SHOP], {}, Evidence({}, {"shop.example.com": "the root: no answer within 3 s"}))
    assert finding.health.state is State.UNKNOWN
    assert finding.health.reason == "shop.example.com could not be asked for: the root: no answer within 3 s"


# --- wildcards --------------------------------------------------------------------------------------------------------


def test_a_wildcard_without_its_challenge_gets_no_certificate() -> None:
    given = {
        (WILD.owner, "CNAME"): [answer(WILD.value)],
        (CHALLENGE.owner, "CNAME"): [absent()],
        ("apps.example.com", "CAA"): [absent()],
        ("example.com", "CAA"): [absent()],
    }
    wildcard, challenge = judge(given, WILD, CHALLENGE, job=JOB)
    assert wildcard == Health(State.HEALTHY)
    assert challenge.state is State.DEGRADED
    assert challenge.reason == (
        "_acme-challenge.apps.example.com has no CNAME, without which *.apps.example.com gets no certificate "
        "(ns1.example.net)"
    )


def test_a_challenge_that_only_the_wildcard_answers_is_missing() -> None:
    """A name server gives the wildcard's record for every name below, also for the challenge."""
    for value in (WILD.value, "old.example.net"):
        given = {(WILD.owner, "CNAME"): [answer(value)], (CHALLENGE.owner, "CNAME"): [answer(value)]}
        _, challenge = judge(given, WILD, CHALLENGE)
        assert challenge.reason.startswith("_acme-challenge.apps.example.com has no CNAME, without which")


def test_a_host_below_a_wildcard_of_the_account_may_rest_on_its_record() -> None:
    below = Record("x.apps.example.com", "CNAME", TARGET, "ReservedDomain/x", "traffic")
    for value, state in ((TARGET, State.HEALTHY), (WILD.value, State.HEALTHY), ("old.example.net", State.DEGRADED)):
        given = {(WILD.owner, "CNAME"): [answer(WILD.value)], (below.owner, "CNAME"): [answer(value)]}
        assert judge(given, WILD, below)[1].state is state


def test_a_wildcard_may_not_rest_on_the_record_of_a_wildcard_above_it() -> None:
    deeper = Record("*.eu.apps.example.com", "CNAME", TARGET, "ReservedDomain/eu", "traffic")
    given = {(WILD.owner, "CNAME"): [answer(WILD.value)], (deeper.owner, "CNAME"): [answer(WILD.value)]}
    assert judge(given, WILD, deeper)[1].state is State.DEGRADED


# --- delegations ------------------------------------------------------------------------------------------------------


def judge_delegation(*answers: Answer) -> Health:
    (health,) = judge({("agents.example.com", "NS"): [*answers]}, *NS)
    return health


ALL = tuple(record.value for record in NS)


def test_a_delegation_to_all_servers_is_healthy() -> None:
    assert judge_delegation(answer(*ALL)) == Health(State.HEALTHY)


def test_a_partial_delegation_names_the_missing_servers() -> None:
    health = judge_delegation(answer(*ALL), answer(*ALL[:2], server="ns2.example.net"))
    assert (health.state, health.actor) == (State.DEGRADED, Actor.ZONE_OWNER)
    assert health.reason == "agents.example.com has 2 of 4 NS records (ns2.example.net)"
    assert health.advice == "set agents.example.com NS ns-3.platform.example, ns-4.platform.example"


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        (absent(), "agents.example.com is not delegated"),
        (answer("old.example.net"), "is delegated to old.example.net (ns1.example.net), must be ns-1.platform.example"),
        (answer(*ALL, "old.example.net"), "is also delegated to old.example.net"),
        (answer(*ALL[1:], "old.example.net"), "has 3 of 4 NS records (ns1.example.net), and others: old.example.net"),
    ],
)
def test_a_wrong_delegation_is_degraded(answer: Answer, given: str) -> None:
    health = judge_delegation(answer)
    assert health.state is State.DEGRADED
    assert given in health.reason


# --- CAA --------------------------------------------------------------------------------------------------------------


def judge_caa(*values: str, record: Record = SHOP, at: str = "example.com", job: CertificateJob = JOB) -> Health:
    given = {(record.owner, "CNAME"): [answer(record.value)]}
    given |= {(name, "CAA"): [absent()] for name in ("apps.example.com", "example.com")}
    given[at, "CAA"] = [answer(*values)]
    (health,) = judge(given, record, job=job)
    return health


@pytest.mark.parametrize(
    "values",
    [
        ['0 issue "letsencrypt.org"'],
        ['0 issue "LetsEncrypt.org."'],
        ['0 issue "other.example"', '0 issue "letsencrypt.org"'],
        ['0 issue "letsencrypt.org; validationmethods=http-01,dns-01"'],
        ['0 iodef "mailto:x@example.com"'],
        ['128 issue "letsencrypt.org"'],
        ['0 unheard "of"', '0 issue "letsencrypt.org"'],
        ['0 issuewild ";"'],  # only about wildcards
    ],
)
def test_caa_records_that_allow_the_authority_are_healthy(values: list[str]) -> None:
    assert judge_caa(*values) == Health(State.HEALTHY)


@pytest.mark.parametrize(
    "values",
    [
        ['0 issue "other.example"'],
        ['0 issue ";"'],
        ['0 issue ""'],
        ['0 issue "evil-letsencrypt.org"'],
        ['0 issue "letsencrypt.org; accounturi=https://acme.example/1"'],
        ['0 issue "letsencrypt.org; validationmethods=dns-01"'],
        ['128 unheard "of"', '0 issue "letsencrypt.org"'],
        ['0 issuewild "letsencrypt.org"', '0 issue "other.example"'],
    ],
)
def test_caa_records_that_forbid_the_authority_are_degraded(values: list[str]) -> None:
    health = judge_caa(*values)
    assert (health.state, health.actor) == (State.DEGRADED, Actor.ZONE_OWNER)
    assert "CAA record" in health.reason
    assert "example.com (ns1.example.net)" in health.reason


def test_caa_records_for_wildcards_precede_others_for_a_wildcard() -> None:
    assert judge_caa('0 issue "letsencrypt.org"', '0 issuewild ";"', record=WILD).state is State.DEGRADED
    assert judge_caa('0 issue ";"', '0 issuewild "letsencrypt.org"', record=WILD).state is State.HEALTHY
    assert judge_caa('0 issue "letsencrypt.org; validationmethods=http-01"', record=WILD).state is State.DEGRADED


def test_the_nearest_name_with_caa_records_decides() -> None:
    given = {
        (WILD.owner, "CNAME"): [answer(WILD.value)],
        ("apps.example.com", "CAA"): [answer('0 issue "letsencrypt.org"')],
        ("example.com", "CAA"): [answer('0 issue ";"')],
    }
    (health,) = judge(given, WILD, job=JOB)
    assert health == Health(State.HEALTHY)


def test_caa_records_do_not_matter_without_a_certificate_of_the_platform() -> None:
    given = {(SHOP.owner, "CNAME"): [answer(TARGET)], ("example.com", "CAA"): [answer('0 issue ";"')]}
    assert judge(given, SHOP) == [Health(State.HEALTHY)]


def test_unreadable_caa_records_are_unknown() -> None:
    given = {(SHOP.owner, "CNAME"): [answer(TARGET)], ("example.com", "CAA"): [silent()]}
    (health,) = judge(given, SHOP, job=JOB)
    assert (health.state, "CAA records of example.com" in health.reason) == (State.UNKNOWN, True)


# --- what the platform says -------------------------------------------------------------------------------------------


def clock(hour: int, minute: int) -> float:
    return datetime(2026, 6, 1, hour, minute, tzinfo=UTC).timestamp()


FAILED = CertificateJob("letsencrypt", "DNS_ERROR", clock(14, 2), clock(14, 20))


def test_one_sentence_joins_what_the_platform_and_the_name_server_say() -> None:
    health = judge_shop(answer("old.example.net"), job=FAILED)
    assert health.reason == (
        "DNS_ERROR since 2026-06-01 14:02 UTC: shop.example.com CNAME points to old.example.net (ns1.example.net), "
        f"must be {TARGET}; the platform retries at 2026-06-01 14:20 UTC"
    )
    assert health.retries_at == FAILED.retries_at


def test_a_record_that_was_set_after_the_error_waits_for_the_platform() -> None:
    health = judge_shop(answer(TARGET), job=FAILED)
    assert (health.state, health.actor) == (State.PROGRESSING, Actor.PLATFORM)
    assert health.reason == (
        "DNS_ERROR since 2026-06-01 14:02 UTC, and shop.example.com is set now; "
        "the platform retries at 2026-06-01 14:20 UTC"
    )


def test_only_the_missing_record_of_a_wildcard_is_reported_with_the_error() -> None:
    given = {
        (WILD.owner, "CNAME"): [answer(WILD.value)],
        (CHALLENGE.owner, "CNAME"): [absent()],
        ("apps.example.com", "CAA"): [absent()],
        ("example.com", "CAA"): [absent()],
    }
    wildcard, challenge = judge(given, WILD, CHALLENGE, job=FAILED)
    assert wildcard == Health(State.HEALTHY)
    assert challenge.reason.startswith("DNS_ERROR since")


def test_the_missing_record_of_an_object_with_the_same_address_in_another_stack_delays_nothing() -> None:
    other = Record("shop.example.org", "CNAME", TARGET, SHOP.needed_by, "traffic", "ReservedDomain/rd_2")
    given = {
        (SHOP.owner, "CNAME"): [answer(TARGET)],
        (other.owner, "CNAME"): [absent()],
        ("example.com", "CAA"): [absent()],
    }
    own, theirs = judge(given, replace(SHOP, object="ReservedDomain/rd_1"), other, job=FAILED)
    assert "shop.example.com is set now" in own.reason
    assert (own.state, theirs.state) == (State.PROGRESSING, State.DEGRADED)


def test_an_error_that_is_not_about_dns_is_not_mixed_in() -> None:
    job = CertificateJob("letsencrypt", "INTERNAL_ERROR", clock(14, 2), clock(14, 20))
    assert judge_shop(answer(TARGET), job=job) == Health(State.HEALTHY)
    assert judge_shop(absent(), job=job).reason == "shop.example.com has no CNAME (ns1.example.net)"


# --- laws -------------------------------------------------------------------------------------------------------------

answers = st.sampled_from([answer(TARGET), answer("old.example.net"), absent(), silent()])
everything = st.fixed_dictionaries(
    {},
    optional={
        (name, type): st.lists(answers, max_size=3)
        for record in (SHOP, WILD, CHALLENGE, NS[0])
        for name, type in (
            *((record.owner, type) for type in (record.type, "A", "TXT")),
            *((name, "CAA") for name in ("apps.example.com", "example.com")),
        )
    },
)


@given(everything, st.sampled_from([None, JOB, FAILED]))
def test_only_an_answer_proves_that_a_record_is_missing_or_set(given: Answers, job: CertificateJob | None) -> None:
    records = identify(SHOP, WILD, CHALLENGE, *NS)
    jobs = {} if job is None else {record.object: job for record in records}
    for need in list_needs(records, jobs):
        health = judge_need(need, Evidence(given))
        known = [answer for answer in given.get((need.owner, need.type), []) if answer.reply is not Reply.UNKNOWN]
        if not known:
            assert health.state is State.UNKNOWN
        assert (health.state is State.HEALTHY) is (health.reason == "")
        if health.state is State.DEGRADED:
            assert health.advice
            assert health.actor is Actor.ZONE_OWNER


@given(st.sampled_from([None, JOB]))
def test_all_names_that_a_verdict_depends_on_are_queried(job: CertificateJob | None) -> None:
    """Answers to all questions, and to nothing else, leave nothing unknown."""
    records = identify(SHOP, WILD, CHALLENGE, *NS)
    jobs = {} if job is None else {record.object: job for record in records}
    needs = list_needs(records, jobs)
    given = {question: [absent()] for need in needs for question in list_questions(need)}
    given |= {(need.owner, need.type): [answer(*need.values)] for need in needs}
    assert {judge_need(need, Evidence(given)).state for need in needs} == {State.HEALTHY}
