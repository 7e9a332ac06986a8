"""Which calls may start."""

from __future__ import annotations

import time

import pytest

from reconciler.engine.schedule import Schedule, State
from reconciler.model.address import Address
from reconciler.model.event import Outcome
from reconciler.model.plan import Call, Verb


def call(id: str, *needs: str) -> Call:
    return Call(id, Address("BotUser", "a"), Verb.CREATE, "/bot_users", needs=needs)


def start_all(schedule: Schedule) -> list[str]:
    ids = []
    while ready := schedule.take():
        ids.append(ready.id)
    return ids


def test_calls_without_needs_are_ready_in_the_order_of_the_plan() -> None:
    assert start_all(Schedule([call("b"), call("a"), call("c")])) == ["b", "a", "c"]


def test_the_first_call_of_the_longest_chain_starts_first() -> None:
    schedule = Schedule([call("x"), call("a"), call("b", "a"), call("y"), call("p"), call("q", "p"), call("r", "q")])
    assert start_all(schedule) == ["p", "a", "x", "y"]
    schedule.end("a", Outcome.DONE)
    schedule.end("p", Outcome.DONE)
    assert start_all(schedule) == ["q", "b"]


def test_all_slots_are_used_until_the_end() -> None:
    """Twelve calls on their own, and a chain of three at the plan's end: five places need three turns, and no more."""
    schedule = Schedule([*(call(f"c{number}") for number in range(12)), call("p"), call("q", "p"), call("r", "q")])
    turns = 0
    while not schedule.is_over:
        turns += 1
        for ready_call in [ready for _ in range(5) if (ready := schedule.take())]:
            schedule.end(ready_call.id, Outcome.DONE)
    assert turns == 3


def test_a_call_becomes_ready_when_its_last_need_has_succeeded() -> None:
    schedule = Schedule([call("a"), call("b"), call("c", "a", "b", "a")])
    start_all(schedule)
    schedule.end("a", Outcome.DONE)
    assert schedule.take() is None
    schedule.end("b", Outcome.ALREADY)
    assert start_all(schedule) == ["c"]


def test_dependents_of_a_failed_call_are_skipped_with_the_reason() -> None:
    schedule = Schedule([call("a"), call("b", "a"), call("c", "b"), call("d")])
    start_all(schedule)
    skipped = schedule.end("a", Outcome.FAILED)
    assert [(skipped_call.id, why) for skipped_call, why in skipped] == [
        ("b", "it needs a, which failed"),
        ("c", "it needs b, which was skipped"),
    ]
    assert schedule.take() is None
    schedule.end("d", Outcome.DONE)
    assert schedule.is_over


def test_a_call_skipped_once_is_not_skipped_again_by_another_failure() -> None:
    schedule = Schedule([call("a"), call("b"), call("c", "a", "b")])
    start_all(schedule)
    assert len(schedule.end("a", Outcome.FAILED)) == 1
    assert schedule.end("b", Outcome.FAILED) == []


def test_abandon_skips_calls_that_have_not_started() -> None:
    schedule = Schedule([call("a"), call("b"), call("c", "a")])
    schedule.take()
    assert [call.id for call in schedule.abandon()] == ["b", "c"]
    assert schedule.state("a") is State.RUNNING
    assert schedule.end("a", Outcome.DONE) == []
    assert schedule.is_over


@pytest.mark.parametrize("calls", [[call("a", "b"), call("b", "a")], [call("a", "zero")], [call("a", "a")]])
def test_a_need_that_is_not_before_its_call_is_refused(calls: list[Call]) -> None:
    with pytest.raises(ValueError, match="is not before it"):
        Schedule(calls)


def test_ten_thousand_calls_in_one_chain_and_one_fan_are_linear() -> None:
    chain = [call("0"), *(call(str(n), str(n - 1)) for n in range(1, 10_000))]
    fan = [*(call(f"leaf {n}") for n in range(10_000)), call("root", *(f"leaf {n}" for n in range(10_000)))]
    started = time.perf_counter()
    for calls in (chain, fan):
        schedule = Schedule(calls)
        while ready := schedule.take():
            schedule.end(ready.id, Outcome.DONE)
        assert schedule.is_over
    assert time.perf_counter() - started < 20  # quadratic work would take minutes


def test_calls_that_cannot_be_ordered_are_refused() -> None:
    with pytest.raises(ValueError, match="two calls have the id 'a'"):
        Schedule([call("a"), call("a")])
    with pytest.raises(ValueError, match="'a' needs 'b', which is not before it"):
        Schedule([call("a", "b"), call("b")])


def test_dependents_of_an_unknown_call_are_skipped() -> None:
    schedule = Schedule([call("a"), call("b", "a")])
    start_all(schedule)
    assert [(skipped.id, why) for skipped, why in schedule.end("a", Outcome.UNKNOWN)] == [
        ("b", "it needs a, which may have failed")
    ]
    assert (start_all(schedule), schedule.is_over) == ([], True)


def test_a_skipped_call_does_not_start_when_another_need_succeeds() -> None:
    schedule = Schedule([call("a"), call("b"), call("c", "a"), call("d", "b", "c")])
    start_all(schedule)
    assert [skipped.id for skipped, _ in schedule.end("a", Outcome.FAILED)] == ["c", "d"]
    assert schedule.end("b", Outcome.FAILED) == []
    assert start_all(schedule) == []


def test_states_follow_a_call_from_its_needs_to_its_end() -> None:
    schedule = Schedule([call("a"), call("b", "a"), call("c", "b")])
    states = [[schedule.state(id) for id in "abc"]]
    schedule.take()
    states.append([schedule.state(id) for id in "abc"])
    schedule.end("a", Outcome.DONE)
    states.append([schedule.state(id) for id in "abc"])
    assert not schedule.is_over
    schedule.take()
    schedule.end("b", Outcome.FAILED)
    states.append([schedule.state(id) for id in "abc"])
    assert states == [
        [State.READY, State.BLOCKED, State.BLOCKED],
        [State.RUNNING, State.BLOCKED, State.BLOCKED],
        [State.ENDED, State.READY, State.BLOCKED],
        [State.ENDED, State.ENDED, State.ENDED],
    ]
    assert schedule.is_over


def test_an_abandoned_call_is_not_ready_and_not_abandoned_again() -> None:
    schedule = Schedule([call("a"), call("b", "a"), call("c")])
    schedule.take()
    assert [abandoned.id for abandoned in schedule.abandon()] == ["b", "c"]
    assert (schedule.take(), schedule.abandon()) == (None, [])
    assert schedule.end("a", Outcome.FAILED) == []
    assert schedule.is_over


def test_an_abandoned_call_does_not_start_when_its_need_succeeds() -> None:
    schedule = Schedule([call("a"), call("b", "a")])
    schedule.take()
    schedule.abandon()
    schedule.end("a", Outcome.DONE)
    assert (schedule.take(), schedule.state("b")) == (None, State.ENDED)


def test_a_failure_skips_the_other_dependents_of_a_skipped_call() -> None:
    schedule = Schedule([call("a"), call("b"), call("c", "a", "b"), call("d", "a"), call("e", "d")])
    start_all(schedule)
    assert [skipped.id for skipped, _ in schedule.end("b", Outcome.FAILED)] == ["c"]
    assert [skipped.id for skipped, _ in schedule.end("a", Outcome.FAILED)] == ["d", "e"]
