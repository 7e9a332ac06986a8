"""The policy of `apply --wait`: what is waited for, when an error ends the wait, and how often it reads."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.health.waiting import (
    HOLDS,
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    Watched,
    decide_wait,
    follow,
    next_pause,
)
from reconciler.model.health import Actor, Health, HealthRow, State, Wait
from tests.harness.tiers import examples

START, TIMEOUT = 1_000_000.0, 600.0

HEALTHY = Health(State.HEALTHY)
UNKNOWN = Health(State.UNKNOWN)
ISSUING = Health(State.PROGRESSING, actor=Actor.PLATFORM)
OFFLINE = Health(State.PROGRESSING, actor=Actor.AGENT)
LONG_OFFLINE = Health(State.DEGRADED, actor=Actor.AGENT)
NOT_YET_VALID = Health(State.PROGRESSING)
EXPIRING = Health(State.DEGRADED, actor=Actor.YOU)


def dns_error(retries_in: float | None) -> Health:
    retries_at = None if retries_in is None else START + retries_in
    return Health(State.DEGRADED, actor=Actor.ZONE_OWNER, retries_at=retries_at)


def internal_error(retries_in: float) -> Health:
    return Health(State.PROGRESSING, actor=Actor.PLATFORM, retries_at=START + retries_in)


def decide(health: Health, passed: float, *, held: float | None = None, served: bool = False) -> Wait:
    """What is decided `passed` seconds after the start, of an object that is in this state for `held` seconds."""
    now = START + passed
    since = now - (passed if held is None else held)
    [wait] = decide_wait([Watched(HealthRow("Kind/a", "1", health), since, served)], START, now, TIMEOUT)
    return wait


@pytest.mark.parametrize(
    ("health", "passed", "served", "wait"),
    [
        (HEALTHY, 0, False, Wait.READY),
        (HEALTHY, TIMEOUT, False, Wait.READY),
        (ISSUING, 0, False, Wait.WAITING),
        (ISSUING, TIMEOUT - 1, False, Wait.WAITING),
        (ISSUING, TIMEOUT, False, Wait.FAILED),
        # An unknown state is never waited for, whatever was before.
        (UNKNOWN, 0, False, Wait.REPORTED),
        (UNKNOWN, TIMEOUT, True, Wait.REPORTED),
        # An agent is waited for only if it served before the apply.
        (OFFLINE, 0, False, Wait.REPORTED),
        (OFFLINE, TIMEOUT, False, Wait.REPORTED),
        (LONG_OFFLINE, TIMEOUT, False, Wait.REPORTED),
        (OFFLINE, 100, True, Wait.WAITING),
        (LONG_OFFLINE, 100, True, Wait.WAITING),
        (LONG_OFFLINE, TIMEOUT, True, Wait.FAILED),
        # Only time can change it.
        (NOT_YET_VALID, 0, False, Wait.REPORTED),
        # An error that nobody tries again in time fails once it has held.
        (EXPIRING, HOLDS - 1, False, Wait.WAITING),
        (EXPIRING, HOLDS, False, Wait.FAILED),
        (dns_error(86_400), HOLDS - 1, False, Wait.WAITING),
        (dns_error(86_400), HOLDS, False, Wait.FAILED),
        (dns_error(TIMEOUT + 1), HOLDS, False, Wait.FAILED),
        (dns_error(None), HOLDS, False, Wait.FAILED),
        (internal_error(86_400), HOLDS, False, Wait.FAILED),
        # One that the platform tries again in time is waited for.
        (dns_error(TIMEOUT), HOLDS, False, Wait.WAITING),
        (dns_error(60), TIMEOUT - 1, False, Wait.WAITING),
        (dns_error(60), TIMEOUT, False, Wait.FAILED),
        (internal_error(60), HOLDS, False, Wait.WAITING),
    ],
)
def test_a_wait_ends_as_soon_as_waiting_cannot_help(health: Health, passed: float, served: bool, wait: Wait) -> None:
    assert decide(health, passed, served=served) is wait


def test_an_error_must_hold_from_when_it_began_and_not_from_the_start() -> None:
    assert decide(dns_error(86_400), 300, held=HOLDS - 1) is Wait.WAITING
    assert decide(dns_error(86_400), 300, held=HOLDS) is Wait.FAILED


def test_an_error_holds_across_attempts_of_the_platform_and_begins_again_after_another_state() -> None:
    key = ("ReservedDomain", "1")
    watched = {key: Watched(HealthRow("", "1", dns_error(30)), START, served=True)}
    since = []
    for seconds, health in ((10, dns_error(60)), (20, ISSUING), (30, dns_error(90)), (40, internal_error(90))):
        watched = follow(watched, {key: HealthRow("", "1", health)}, START + seconds)
        since.append(watched[key].since - START)
    assert since == [0, 20, 30, 40]
    assert watched[key].served


@settings(max_examples=examples(200))
@given(
    health=st.builds(
        Health,
        st.sampled_from(State),
        actor=st.sampled_from(Actor),
        retries_at=st.none() | st.floats(START, START + 2 * TIMEOUT),
    ),
    passed=st.floats(0, 2 * TIMEOUT),
    served=st.booleans(),
)
def test_every_wait_ends_with_its_timeout_and_only_what_is_healthy_is_ready(
    health: Health, passed: float, served: bool
) -> None:
    wait = decide(health, passed, served=served)
    assert (wait is Wait.READY) is (health.state is State.HEALTHY)
    assert wait is not Wait.WAITING or passed < TIMEOUT
    if wait is Wait.FAILED:
        assert passed >= HOLDS


@settings(max_examples=examples(100))
@given(
    requests=st.integers(1, 500),
    per_minute=st.integers(0, 600),
    remaining=st.floats(0, 1000),
)
def test_readings_become_rarer_within_the_budget_and_never_outlast_the_wait(
    requests: int, per_minute: int, remaining: float
) -> None:
    pauses = [0.0]
    for _ in range(10):
        pauses.append(next_pause(pauses[-1], requests, per_minute, remaining))
    _, *pauses = pauses
    assert pauses == sorted(pauses)
    assert all(min(SHORTEST_PAUSE, remaining) <= pause <= min(LONGEST_PAUSE, remaining) for pause in pauses)
    if per_minute and requests * 120 / per_minute <= LONGEST_PAUSE <= remaining:
        assert requests <= pauses[0] * per_minute / 60 / 2 + 1e-6  # at most half of the budget
    if remaining >= LONGEST_PAUSE:
        assert pauses[-1] == LONGEST_PAUSE
