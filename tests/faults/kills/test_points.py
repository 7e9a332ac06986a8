"""After a crash at any point, one run without faults completes the changes, and the next plan is empty.

Complete: each declared object exists once, no undeclared object remains, and the token of each credential was delivered
to its target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

import pytest

from reconciler.engine import recovery
from reconciler.engine.apply import POINTS
from reconciler.model.plan import Verb
from tests.faults.kills import crashing, projects
from tests.faults.kills.crashing import Change, Known, Survivors
from tests.harness.tiers import only_if

SLICES = 8
BUILDING, REBUILDING, FIFTY = (Change(make()) for make in (projects.create_all, projects.replace_all, projects.fifty))
LOSSY = tuple(Change(change.project, loses_answers=True) for change in (BUILDING, REBUILDING, FIFTY))
ALL = (BUILDING, REBUILDING, FIFTY, *LOSSY)

by_slice = pytest.mark.parametrize("slice_", range(SLICES))


def part(count: int, slice_: int) -> range:
    """The slice's share: neighbours stay together, which often leave the same behind."""
    return range(count * slice_ // SLICES, count * (slice_ + 1) // SLICES)


def flaws(change: Change, moments: Iterable[int]) -> list[str]:
    start, runs = change.start(), Known(change)
    passed = runs.moments(start)
    return [
        f"died {' '.join(passed[moment])} (moment {moment}): {flaw}"
        for moment in moments
        if moment < len(passed)
        for flaw in runs.flaws(runs.kill_at(start, moment))
    ]


def kinds_of_moments(change: Change, start: Survivors) -> list[int]:
    """The first moment of each kind: a point of one verb, or of what is written beside the calls."""
    verbs = {call.id: call.verb for call in crashing.plan_change(change).calls}
    first: dict[tuple[str, Verb | None], int] = {}
    for moment, (point, what) in enumerate(change.moments(start)):
        first.setdefault((point, verbs.get(what)), moment)
    return list(first.values())


def flaws_of_slice(change: Change, slice_: int) -> list[str]:
    return flaws(change, part(len(change.moments(change.start())), slice_))


def flaws_of_pairs(runs: Known, pairs: Iterable[tuple[int, int]]) -> list[str]:
    start = runs.change.start()
    passed = runs.moments(start)
    found = []
    for first, second in pairs:
        after = runs.kill_at(start, first)
        again = runs.moments(after)
        if second < len(again):
            scenario = f"died {' '.join(passed[first])}, then {' '.join(again[second])} (moments {first}, {second})"
            found += [f"{scenario}: {flaw}" for flaw in runs.flaws(runs.kill_at(after, second))]
    return found


def pairs(runs: Known, slice_: int) -> Iterator[tuple[int, int]]:
    start = runs.change.start()
    for first in part(len(runs.moments(start)), slice_):
        for second in range(len(runs.moments(runs.kill_at(start, first)))):
            yield first, second


@pytest.mark.parametrize("change", only_if(lambda change: change is FIFTY, [FIFTY, LOSSY[2]]), ids=str)
def test_one_rerun_is_enough_after_a_crash_at_each_kind_of_point(change: Change) -> None:
    assert flaws(change, kinds_of_moments(change, change.start())) == []


@by_slice
@pytest.mark.parametrize(
    "change", only_if(lambda change: change is not FIFTY, [BUILDING, REBUILDING, FIFTY, *LOSSY[:2]]), ids=str
)
def test_one_rerun_is_enough_after_a_crash_at_any_point(change: Change, slice_: int) -> None:
    assert flaws_of_slice(change, slice_) == []


@pytest.mark.parametrize("slice_", only_if(lambda slice_: slice_ == 0, range(SLICES)))
@pytest.mark.parametrize("change", [BUILDING, REBUILDING], ids=str)
def test_one_rerun_is_enough_after_crashes_at_any_two_points(change: Change, slice_: int) -> None:
    runs = Known(change)
    assert flaws_of_pairs(runs, pairs(runs, slice_)) == []


@pytest.mark.parametrize("change", only_if(lambda change: change is LOSSY[1], LOSSY), ids=str)
def test_one_rerun_is_enough_after_lost_responses_and_two_crashes(change: Change) -> None:
    random = Random(1)
    length = len(change.moments(change.start()))
    drawn = [(random.randrange(length), random.randrange(length)) for _ in range(60)]
    assert flaws_of_pairs(Known(change), drawn) == []


@pytest.mark.soak
@by_slice
def test_one_rerun_is_enough_after_lost_responses_and_a_crash_at_any_point(slice_: int) -> None:
    assert flaws_of_slice(LOSSY[2], slice_) == []


@pytest.mark.soak
@by_slice
@pytest.mark.parametrize("change", LOSSY[:2], ids=str)
def test_one_rerun_is_enough_after_lost_responses_and_crashes_at_any_two_points(change: Change, slice_: int) -> None:
    runs = Known(change)
    assert flaws_of_pairs(runs, pairs(runs, slice_)) == []


# --- that nothing is forgotten ----------------------------------------------------------------------------------------


def test_each_checkpoint_of_the_engine_is_a_kill_point() -> None:
    passed = {point for change in ALL for point, _ in change.moments(change.start())}
    assert passed >= {*POINTS, *crashing.WIRE}


def test_each_type_of_call_is_killed_at_each_point_of_a_request() -> None:
    calls = {call.id: call for change in ALL for call in crashing.plan_change(change).calls}
    met = {
        (calls[what].verb, point) for change in ALL for point, what in change.moments(change.start()) if what in calls
    }
    assert met >= {(verb, f"{edge} send") for verb in Verb for edge in ("before", "after")}


def test_the_projects_contain_each_special_case() -> None:
    plan = crashing.plan_change(FIFTY)
    created_kinds = {call.address.kind for call in plan.calls if call.verb is Verb.CREATE}
    assert {"BotUser", "EventSource", "TunnelCredential"} <= created_kinds
    assert {change.order for change in plan.changes} >= {"create_first", "delete_first"}
    assert FIFTY.project.resources >= 50
    assert [change.project.resources for change in (BUILDING, REBUILDING)] == [5, 6]  # one stays as it is


def test_runs_that_start_from_the_same_state_are_the_same() -> None:
    """What lets `Known` play equal remains once."""
    for change in (REBUILDING, LOSSY[0]):
        found: dict[str, tuple[list[tuple[str, str]], str]] = {}
        start = change.start()
        for moment in range(len(change.moments(start))):
            state = change.kill_at(start, moment)
            run, remains = change.go(after := state.copy()), state.remains
            assert found.setdefault(remains, (run.moments.passed, after.remains)) == (run.moments.passed, after.remains)
        assert 1 < len(found) < len(change.moments(start))


# --- that these tests can fail ----------------------------------------------------------------------------------------


def test_an_engine_without_recovery_of_lost_creates_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def blind(*_: object) -> list[object]:
        return []

    monkeypatch.setattr(recovery, "find_by_intent", blind)
    assert flaws(LOSSY[0], range(20, 60))
