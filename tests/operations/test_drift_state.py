"""The state of a stack between two drift checks: when it changed, and the line of an issue that holds it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.access_change import Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.history import CheckedHealth, DriftCheck, DriftedResource, Opening
from reconciler.operations.drift_state import IN_SYNC, DriftState, find_state, follow_states, read_line, write_line

EDGE = DriftedResource(Address("TLSEdge", "shop"), Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM, ("description",))


def health_check(*states: State, moved: tuple[DriftedResource, ...] = (), opened: str = "") -> DriftCheck:
    rows = tuple(HealthRow(f"ReservedDomain/{at}", f"rd_{at}", Health(state)) for at, state in enumerate(states))
    openings = (Opening("https://a.example.com", Verdict.WIDENS, "no one", opened),) if opened else ()
    return DriftCheck(0.0, 1, moved=moved, openings=openings, health=CheckedHealth(9, rows))


def test_the_state_differs_if_drift_or_what_is_degraded_does() -> None:
    git = DriftedResource(EDGE.address, Action.UPDATE, Reason.FIELDS, ChangedBy.GIT, ("description",))
    assert find_state(health_check(State.PROGRESSING, State.HEALTHY, moved=(git,))) == IN_SYNC
    checks = [
        health_check(State.DEGRADED),
        health_check(State.DEGRADED, State.DEGRADED),
        health_check(moved=(EDGE,)),
        health_check(moved=(EDGE,), opened="everyone"),
        health_check(moved=(EDGE,), opened="0.0.0.0/1"),
    ]
    states = [*map(find_state, checks)]
    assert len({*states}) == len(checks)
    assert [*map(find_state, checks)] == states
    assert not any(state.is_good for state in states)


def test_a_degraded_object_of_unknown_health_counts_as_degraded_until_it_is_healthy() -> None:
    degraded, unknown, healthy = map(health_check, (State.DEGRADED, State.UNKNOWN, State.HEALTHY))
    assert follow_states([]) is None
    assert follow_states([DriftCheck(0.0, 1)]) is None
    assert follow_states([unknown]) == IN_SYNC
    assert follow_states([degraded, unknown, unknown]) == find_state(degraded)
    assert follow_states([degraded, unknown, healthy, unknown]) == IN_SYNC
    assert find_state(DriftCheck(0.0, 1), find_state(degraded)) == find_state(degraded)


names = st.text("0123456789abcdef", min_size=16, max_size=16)


@given(st.builds(DriftState, st.just("") | names, st.sets(names, max_size=5).map(lambda found: tuple(sorted(found)))))
def test_a_state_is_read_as_it_was_written(state: DriftState) -> None:
    assert read_line(f"<!-- stack -->\n{write_line(state)}\nmore") == state


WRITTEN = write_line(DriftState("0123456789abcdef", ("0123456789abcdef", "1123456789abcdef")))


@given(st.integers(0, len(WRITTEN) - 1), st.text(max_size=3))
def test_an_edited_line_is_no_state_or_another_one_in_the_same_form(place: int, text: str) -> None:
    body = f"<!-- stack -->\n{WRITTEN[:place]}{text}{WRITTEN[place + 1 :]}\nmore"
    state = read_line(body)
    assert state is None or body.split("\n")[1].removesuffix("\r") == write_line(state)


def test_only_the_second_line_of_a_body_is_read() -> None:
    for body in (
        "",
        WRITTEN,
        f"a\nb\n{WRITTEN}",
        f"a\n {WRITTEN}",
        f"a\n{WRITTEN} {WRITTEN}",
        "a\n" + "<!-- " * 99_999,
    ):
        assert read_line(body) is None
    many = ",".join(f"{number:016x}" for number in range(201))
    assert read_line(f"a\n<!-- reconciler state drift=none degraded={many} -->") is None
