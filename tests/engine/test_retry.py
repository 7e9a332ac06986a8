"""How long to wait before another attempt."""

from __future__ import annotations

import pytest

from reconciler.engine.ports import Conflict, Failure, Gone, Lost, Refused, Transient
from reconciler.engine.retry import READS, RetryPolicy, wait_seconds

POLICY = RetryPolicy()


def test_the_maximum_wait_doubles_up_to_the_cap() -> None:
    ceilings = [wait_seconds(attempt, Transient("502", status=502), 1.0, POLICY) for attempt in range(1, 10)]
    assert ceilings == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


def test_jitter_is_full() -> None:
    assert wait_seconds(5, Transient("502", status=502), 0.0, POLICY) == 0.0
    assert wait_seconds(5, Transient("502", status=502), 0.25, POLICY) == 2.0


def test_the_last_attempt_is_not_retried() -> None:
    assert wait_seconds(POLICY.attempts, Transient("502"), 0.5, POLICY) is None
    assert wait_seconds(READS.attempts, Transient("502"), 0.5, READS) is None


def test_a_retry_waits_for_the_retry_after_of_the_platform() -> None:
    wait = wait_seconds(1, Transient("429", status=429, retry_after=7), 0.5, POLICY)
    assert wait is not None
    assert 7 <= wait <= 7.5


def test_a_retry_after_of_hours_is_not_retried() -> None:
    assert wait_seconds(1, Transient("429", status=429, retry_after=3600), 0.5, POLICY) is None


@pytest.mark.parametrize(("wait", "waits"), [(0.0, 0.25), (300.0, 300.25), (300.1, None)])
def test_retry_after_is_the_least_wait_up_to_a_limit(wait: float, waits: float | None) -> None:
    assert wait_seconds(1, Transient("429", status=429, retry_after=wait), 0.5, POLICY) == waits


def test_a_rate_limited_call_waits_at_least_half_of_a_growing_time() -> None:
    """Eight times as long as after another failure: a part of a refilled budget is what the next attempt needs."""
    failure = Transient("429", status=429)
    least = [wait_seconds(attempt, failure, 0.0, POLICY) for attempt in range(1, 8)]
    most = [wait_seconds(attempt, failure, 1.0, POLICY) for attempt in range(1, 8)]
    assert (least, most) == ([2, 4, 8, 16, 30, 30, 30], [4, 8, 16, 32, 60, 60, 60])
    assert wait_seconds(1, Lost("429 of a gateway", status=429), 0.0, POLICY) == 2


def test_the_last_attempt_is_the_one_that_the_policy_names() -> None:
    policy = RetryPolicy(attempts=5, state_attempts=3)
    for status, last in ((502, 5), (429, 5), (400, 3)):
        failure = Transient("no", status=status)
        waits = [wait_seconds(attempt, failure, 0.5, policy) is not None for attempt in range(1, 7)]
        assert waits == [attempt < last for attempt in range(1, 7)]


def test_a_long_series_of_attempts_does_not_overflow() -> None:
    assert wait_seconds(5000, Transient("502"), 1.0, RetryPolicy(attempts=10_000)) == POLICY.cap
    endless = RetryPolicy(attempts=10_000, base=1, cap=1e12)
    waits = [wait_seconds(attempt, Transient("502"), 1.0, endless) for attempt in (30, 31, 32, 5000)]
    assert waits == [2.0**29, 2.0**30, 2.0**30, 2.0**30]


def test_a_rate_limited_read_waits_until_the_budget_is_refilled() -> None:
    failure = Transient("429", status=429)
    least = sum(wait_seconds(attempt, failure, 0.0, READS) or 0 for attempt in range(1, READS.attempts))
    assert least >= 30  # half of the platform's window, and a whole one on average


def test_a_state_conflict_is_retried_less_often_than_an_outage() -> None:
    assert wait_seconds(POLICY.state_attempts, Transient("446", status=400), 0.5, POLICY) is None


@pytest.mark.parametrize("failure", [Refused("no"), Conflict("no"), Gone("no")])
def test_a_final_failure_is_not_retried(failure: Failure) -> None:
    assert wait_seconds(1, failure, 0.5, POLICY) is None


def test_a_lost_response_is_retried() -> None:
    assert wait_seconds(1, Lost("reset"), 0.5, POLICY) == 0.25
