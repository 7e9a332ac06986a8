"""How long ways in were open and objects were not healthy, from recorded drift checks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.access_change import Verdict
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.history import CheckedHealth, DriftCheck, Opening
from reconciler.rendering.spans import list_openings, list_unhealthy

ENTRIES = ("https://a.example.com", "https://b.example.com")
OBJECTS = ("ReservedDomain/shop", "TLSCertificate/shop")


def build_opening(entry_point: str, after: str = "everyone") -> Opening:
    return Opening(entry_point, Verdict.WIDENS, "203.0.113.0/24", after)


def access_check(at: float, *found: Opening, complete: bool = True) -> DriftCheck:
    return DriftCheck(at, 1, complete=complete, openings=found)


def health_check(at: float, complete: bool = True, **states: State) -> DriftCheck:
    rows = tuple(HealthRow(f"ReservedDomain/{name}", f"rd_{name}", Health(state)) for name, state in states.items())
    return DriftCheck(at, 1, complete=complete, health=CheckedHealth(5, rows))


def test_an_opening_stands_until_the_first_check_that_does_not_find_it() -> None:
    a, b = map(build_opening, ENTRIES)
    spans = list_openings(
        [access_check(1), access_check(2, a), access_check(3, a, b), access_check(5, b), access_check(6, b)]
    )
    assert [(span.found, span.since, span.ended, span.duration(10)) for span in spans] == [
        (b, 3, None, 7),
        (a, 2, 5, 3),
    ]


def test_an_opening_that_changes_stands_on_and_is_shown_as_it_is() -> None:
    (span,) = list_openings(
        [access_check(1, build_opening(ENTRIES[0], "0.0.0.0/1")), access_check(2, build_opening(ENTRIES[0]))]
    )
    assert (span.since, span.found.after) == (1, "everyone")


def test_an_incomplete_check_ends_no_opening() -> None:
    (a, _) = map(build_opening, ENTRIES)
    (span,) = list_openings([access_check(1, a), access_check(2, complete=False)])
    assert (span.ended, span.duration(3)) == (None, 2)
    (span,) = list_openings([access_check(1, a), access_check(2, complete=False), access_check(4)])
    assert span.ended == 4


def test_an_object_is_ill_until_a_check_finds_it_healthy() -> None:
    degraded, unknown = State.DEGRADED, State.UNKNOWN
    checks = [health_check(1, shop=degraded), health_check(2, shop=State.PROGRESSING), health_check(3, shop=unknown)]
    (span,) = list_unhealthy(checks)
    assert (span.since, span.ended, span.found.health.state) == (1, None, State.PROGRESSING)
    (span,) = list_unhealthy([*checks, DriftCheck(4, 1), health_check(5, complete=False), health_check(6)])
    assert (span.since, span.ended) == (1, 6)
    assert list_unhealthy([health_check(1, shop=unknown), health_check(2, shop=State.HEALTHY)]) == []


histories = st.lists(
    st.tuples(st.booleans(), st.sets(st.sampled_from(ENTRIES))).map(
        lambda drawn: access_check(0, *map(build_opening, sorted(drawn[1])), complete=drawn[0])
    ),
    max_size=12,
).map(lambda checks: [DriftCheck(at, 1, complete=c.complete, openings=c.openings) for at, c in enumerate(checks)])


@given(histories)
def test_each_opening_of_a_check_is_within_one_span_and_only_a_complete_check_ends_a_span(
    checks: list[DriftCheck],
) -> None:
    spans = list_openings(checks)
    for check in checks:
        for entry in ENTRIES:
            covering = [
                span
                for span in spans
                if span.found.entry_point == entry
                and span.since <= check.at < (span.ended if span.ended is not None else float("inf"))
            ]
            found = entry in {item.entry_point for item in check.openings}
            assert len(covering) == 1 if found else not (covering and check.complete)
    ends = {span.ended for span in spans if span.ended is not None}
    assert ends <= {check.at for check in checks if check.complete}
