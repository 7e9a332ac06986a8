"""Whether a drift check is news, for every pair of what the check before found and what this one finds."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import cast

import pytest

from reconciler.model.access_test import AccessResult, AccessStatus, Expected
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.plan import Plan
from reconciler.model.problem import Position, Problem, Severity
from reconciler.operations.drift import build_check, is_news
from reconciler.operations.drift_state import DriftState, find_state
from reconciler.operations.open_project import OpenProject
from reconciler.operations.results import DriftResult
from tests.harness.builders import at, manifest, snapshot

PROJECT = cast(OpenProject, SimpleNamespace(options=SimpleNamespace(now=0.0), manifest=manifest()))
GOOD, DRIFT, DEGRADED, BOTH = "good", "drift", "degraded", "drift and degraded"
STATES = (GOOD, DRIFT, DEGRADED, BOTH)


def fail(severity: Severity = Severity.ERROR) -> AccessResult:
    where = Position("access.yaml", 1, 1)
    return AccessResult(
        "the office", AccessStatus.FAILED, Expected.DENY, Expected.ALLOW, "everyone", where, severity=severity
    )


def check(
    state: str,
    *,
    is_judged: bool = True,
    is_read: bool = True,
    has_pending: bool = False,
    tests: tuple[AccessResult, ...] = (),
) -> DriftResult:
    """A drift check that finds this. `is_read`: the whole account; `has_pending`: Git has a change of its own too."""
    causes = [ChangedBy.PLATFORM] * (DRIFT in state) + [ChangedBy.GIT] * has_pending
    changes = tuple(
        Change(
            at(f"TLSEdge/{cause.name.lower()}"),
            Action.UPDATE,
            Reason.FIELDS,
            fields=(FieldChange("description", "a", "b", changed_by=cause),),
            is_pending=cause is ChangedBy.GIT,
        )
        for cause in causes
    )
    rows = (HealthRow("TLSEdge/shop", "edgtls_1", Health(State.DEGRADED if DEGRADED in state else State.HEALTHY)),)
    unread = () if is_read else (Problem("a list could not be read", "", Severity.WARNING, code="additions-unknown"),)
    plan = Plan("prod", changes=changes, health=rows if is_judged else None, access_tests=tests, problems=unread)
    return DriftResult(plan, snapshot(), PROJECT)


def read_earlier(state: str | None) -> DriftState | None:
    return None if state is None else find_state(build_check(PROJECT, check(state)))


@pytest.mark.parametrize("earlier", [None, *STATES])
def test_with_health_a_check_is_news_if_it_finds_something_else_than_the_one_before(earlier: str | None) -> None:
    """What is good is none if that may be due to what was not read, or if nothing else is known."""
    for state, is_read, has_pending in itertools.product(STATES, (True, False), (True, False)):
        found = check(state, is_read=is_read, has_pending=has_pending)
        expected = state != (earlier or GOOD) and (state != GOOD or is_read)
        assert is_news(PROJECT, found, read_earlier(earlier)) is expected, (state, is_read, has_pending)


@pytest.mark.parametrize("earlier", [None, *STATES])
def test_without_health_drift_is_news_each_time(earlier: str | None) -> None:
    for state, is_read in itertools.product(STATES, (True, False)):
        found = check(state, is_read=is_read, is_judged=False)
        assert is_news(PROJECT, found, read_earlier(earlier)) is (DRIFT in state), (state, is_read)


@pytest.mark.parametrize("earlier", [None, *STATES])
def test_a_failed_access_test_is_news_each_time_and_one_that_warns_is_not(earlier: str | None) -> None:
    """No check keeps a record of access tests, so that it is not known whether one failed before."""
    for state, is_judged, is_read in itertools.product(STATES, (True, False), (True, False)):
        cases = {
            tests: check(state, is_judged=is_judged, is_read=is_read, tests=tests)
            for tests in ((), (fail(Severity.WARNING),), (fail(),), (fail(Severity.WARNING), fail()))
        }
        without, warned, *failed = (is_news(PROJECT, found, read_earlier(earlier)) for found in cases.values())
        assert (warned, failed) == (without, [True, True]), (state, is_judged, is_read)
