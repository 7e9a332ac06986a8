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


def taken(schedule: Schedule) -> list[str]:
    ids = []
    while ready := schedule.take():
        ids.append(ready.id)
    return ids


def test_calls_without_needs_are_ready_in_the_order_of_the_plan() -> None:
    assert taken(Schedule([call("b"), call("a"), call("c")])) == ["b", "a", "c"]


def test_what_the_longest_chain_waits_for_comes_first() -> None:
    schedule = Schedule([call("x"), call("a"), call("b", "a"), call("y"), call("p"), call("q", "p"), call("r", "q")])
    assert taken(schedule) == ["p", "a", "x", "y"]
    schedule.end("a", Outcome.DONE)
    schedule.end("p", Outcome.DONE)
    assert taken(schedule) == ["q", "b"]


def test_the_places_stay_taken_until_the_end() -> None:
    """Twelve calls on their own, and a chain of three at the plan's end: five places need three turns, and no more."""
    schedule = Schedule([*(call(f"c{number}") for number in range(12)), call("p"), call("q", "p"), call("r", "q")])
    turns = 0
    while not schedule.is_over:
        turns += 1
        for each in [ready for _ in range(5) if (ready := schedule.take())]:
            schedule.end(each.id, Outcome.DONE)
    assert turns == 3


def test_a_call_becomes_ready_when_its_last_need_has_succeeded() -> None:
    schedule = Schedule([call("a"), call("b"), call("c", "a", "b", "a")])
    taken(schedule)
    schedule.end("a", Outcome.DONE)
    assert schedule.take() is None
    schedule.end("b", Outcome.ALREADY)
    assert taken(schedule) == ["c"]


def test_a_failed_need_ends_the_whole_subtree_and_says_why() -> None:
    schedule = Schedule([call("a"), call("b", "a"), call("c", "b"), call("d")])
    taken(schedule)
    skipped = schedule.end("a", Outcome.FAILED)
    assert [(each.id, why) for each, why in skipped] == [
        ("b", "it needs a, which failed"),
        ("c", "it needs b, which was skipped"),
    ]
    assert schedule.take() is None
    schedule.end("d", Outcome.DONE)
    assert schedule.is_over


def test_a_call_skipped_once_is_not_skipped_again_by_another_failure() -> None:
    schedule = Schedule([call("a"), call("b"), call("c", "a", "b")])
    taken(schedule)
    assert len(schedule.end("a", Outcome.FAILED)) == 1
    assert schedule.end("b", Outcome.FAILED) == []


def test_abandoning_ends_what_has_not_started() -> None:
    schedule = Schedule([call("a"), call("b"), call("c", "a")])
    schedule.take()
    assert [call.id for call in schedule.abandon()] == ["b", "c"]
    assert schedule.state("a") is State.RUNNING
    assert schedule.end("a", Outcome.DONE) == []
    assert schedule.is_over


@pytest.mark.parametrize("calls", [[call("a", "b"), call("b", "a")], [call("a", "zero")], [call("a", "a")]])
def test_a_need_that_does_not_come_before_is_refused(calls: list[Call]) -> None:
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


def test_nothing_follows_a_call_that_may_have_failed() -> None:
    schedule = Schedule([call("a"), call("b", "a")])
    taken(schedule)
    assert [(skipped.id, why) for skipped, why in schedule.end("a", Outcome.UNKNOWN)] == [
        ("b", "it needs a, which may have failed")
    ]
    assert (taken(schedule), schedule.is_over) == ([], True)


def test_what_was_skipped_does_not_start_when_another_need_succeeds() -> None:
    schedule = Schedule([call("a"), call("b"), call("c", "a"), call("d", "b", "c")])
    taken(schedule)
    assert [skipped.id for skipped, _ in schedule.end("a", Outcome.FAILED)] == ["c", "d"]
    assert schedule.end("b", Outcome.FAILED) == []
    assert taken(schedule) == []


def test_states_follow_a_call_from_its_needs_to_its_end() -> None:
    schedule = Schedule([call("a"), call("b", "a"), call("c", "b")])
    states = [[schedule.state(each) for each in "abc"]]
    schedule.take()
    states.append([schedule.state(each) for each in "abc"])
    schedule.end("a", Outcome.DONE)
    states.append([schedule.state(each) for each in "abc"])
    assert not schedule.is_over
    schedule.take()
    schedule.end("b", Outcome.FAILED)
    states.append([schedule.state(each) for each in "abc"])
    assert states == [
        [State.READY, State.BLOCKED, State.BLOCKED],
        [State.RUNNING, State.BLOCKED, State.BLOCKED],
        [State.ENDED, State.READY, State.BLOCKED],
        [State.ENDED, State.ENDED, State.ENDED],
    ]
    assert schedule.is_over


def test_what_was_abandoned_is_not_taken_and_not_abandoned_again() -> None:
    schedule = Schedule([call("a"), call("b", "a"), call("c")])
    schedule.take()
    assert [each.id for each in schedule.abandon()] == ["b", "c"]
    assert (schedule.take(), schedule.abandon()) == (None, [])
    assert schedule.end("a", Outcome.FAILED) == []
    assert schedule.is_over


def test_what_was_abandoned_does_not_start_when_its_need_succeeds() -> None:
    schedule = Schedule([call("a"), call("b", "a")])
    schedule.take()
    schedule.abandon()
    schedule.end("a", Outcome.DONE)
    assert (schedule.take(), schedule.state("b")) == (None, State.ENDED)


def test_a_failure_skips_all_that_wait_for_it_although_one_was_skipped_before() -> None:
    schedule = Schedule([call("a"), call("b"), call("c", "a", "b"), call("d", "a"), call("e", "d")])
    taken(schedule)
    assert [skipped.id for skipped, _ in schedule.end("b", Outcome.FAILED)] == ["c"]
    assert [skipped.id for skipped, _ in schedule.end("a", Outcome.FAILED)] == ["d", "e"]
