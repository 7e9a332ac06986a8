"""The issue about the drift of a stack, at a code host in memory."""

from __future__ import annotations

from typing import cast

import pytest
from msgspec.structs import replace

from reconciler.api.code_hosts import Issue, IssueResult, IssueTracker
from reconciler.engine.ports import Failure, Transient
from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.access_test import AccessResult, AccessStatus, Expected
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Reason
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.plan import Plan
from reconciler.model.problem import Position, Problem, Severity
from reconciler.operations.drift_issue import find_issue, update_issue
from reconciler.operations.drift_state import DriftState, digest_object, read_line, write_line
from reconciler.operations.reporting import Note, OperationEvent

STATE = DriftState("0123456789abcdef")
CHANGES = (Change(Address("IPPolicy", "office"), Action.UPDATE, Reason.FIELDS, id="ipp_1"),)
ERRORS = (Problem("the list of TLSEdge could not be read", "", code="unreadable"),)


class Tracker:
    """Records each request, and answers with a result or a failure."""

    def __init__(self, result: IssueResult | Failure, written: DriftState | None = None) -> None:
        self.result = result
        self.issue = Issue(1, "t", f"<!-- -->\n{write_line(written)}\n") if written is not None else None
        self.calls: list[tuple[str, str]] = []

    def find_issue(self, marker: str) -> Issue | None:
        assert marker.startswith("<!-- reconciler stack=")
        return self.issue

    def upsert_issue(self, title: str, body: str, earlier: Issue | None) -> IssueResult:
        return self._record("upsert", title, body, earlier)

    def close_issue(self, body: str, earlier: Issue | None) -> IssueResult:
        return self._record("close", "", body, earlier)

    def _record(self, name: str, title: str, body: str, earlier: Issue | None) -> IssueResult:
        assert body.startswith("<!-- reconciler stack=")
        assert (read_line(body), earlier) == (STATE, self.issue)
        self.calls.append((name, title))
        if isinstance(self.result, Failure):
            raise self.result
        return self.result


def update(tracker: Tracker, plan: Plan) -> list[OperationEvent]:
    events: list[OperationEvent] = []
    issues = cast(IssueTracker, tracker)
    issue = find_issue(issues, plan, events.append)
    assert not isinstance(issue, Failure)
    update_issue(issues, issue, plan, STATE, events.append)
    return events


@pytest.mark.parametrize(
    ("plan", "result", "call", "note"),
    [
        (Plan("prod", changes=CHANGES), IssueResult.OPENED, "upsert", "Issue opened."),
        (Plan("prod", changes=CHANGES), IssueResult.UPDATED, "upsert", "Issue updated."),
        (Plan("prod", changes=CHANGES), IssueResult.CURRENT, "upsert", "Issue unchanged."),
        (Plan("prod", changes=CHANGES, problems=ERRORS), IssueResult.OPENED, "upsert", "Issue opened."),
        (Plan("prod"), IssueResult.CLOSED, "close", "Issue closed."),
    ],
)
def test_drift_updates_the_issue_and_its_absence_closes_it(
    plan: Plan, result: IssueResult, call: str, note: str
) -> None:
    tracker = Tracker(result)
    assert update(tracker, plan) == [Note(note, is_detail=True)]
    assert tracker.calls == [(call, "Drift in prod" if call == "upsert" else "")]


def test_without_drift_and_without_an_issue_nothing_is_reported() -> None:
    assert update(Tracker(IssueResult.NONE), Plan("prod")) == []


def test_a_plan_with_errors_and_no_drift_does_not_close_the_issue() -> None:
    tracker = Tracker(IssueResult.CLOSED)
    assert update(tracker, Plan("prod", problems=ERRORS)) == [
        Note("note: issue not changed, because the plan has errors")
    ]
    assert tracker.calls == []


def test_additions_that_could_not_be_read_do_not_close_the_issue() -> None:
    unread = Problem("cannot determine whether IPPolicyRule objects were added", "", code="additions-unknown")
    tracker = Tracker(IssueResult.CLOSED)
    plan = Plan("prod", problems=(replace(unread, severity=Severity.WARNING),))
    assert update(tracker, plan) == [Note("note: issue not changed, because the account was not read completely")]
    assert tracker.calls == []


OPENED = AccessChange(
    "https://ledger.example.com",
    Verdict.WIDENS,
    "203.0.113.0/24",
    "everyone",
    "GET https://ledger.example.com/ from 192.0.2.1",
    True,
    ("IPPolicy/office",),
    "d1",
)


@pytest.mark.parametrize(
    ("access", "title"),
    [
        ((OPENED,), "https://ledger.example.com is open to everyone (manifests: 203.0.113.0/24)"),
        (
            (replace(OPENED, is_certain=False),),
            "https://ledger.example.com may be open to everyone (manifests: 203.0.113.0/24)",
        ),
        (
            (OPENED, replace(OPENED, entry_point="https://b.example.com")),
            "https://ledger.example.com is open to everyone (manifests: 203.0.113.0/24), and 1 more entry point",
        ),
        (
            (replace(OPENED, verdict=Verdict.LOCKS_OUT, after="no one"),),
            "https://ledger.example.com refuses everyone (manifests: 203.0.113.0/24)",
        ),
        (
            (replace(OPENED, before="gates of stack web", after="gates of stack web"),),
            "https://ledger.example.com lets in more requests",
        ),
        ((replace(OPENED, verdict=Verdict.NARROWS, after="no one"),), ""),
    ],
)
def test_the_title_has_the_entry_point_and_who_gets_through(access: tuple[AccessChange, ...], title: str) -> None:
    tracker = Tracker(IssueResult.OPENED)
    update(tracker, Plan("prod", changes=CHANGES, access=access))
    assert tracker.calls == [("upsert", f"Drift in prod: {title}" if title else "Drift in prod")]


def fail(test: str) -> AccessResult:
    return AccessResult(test, AccessStatus.FAILED, Expected.DENY, Expected.ALLOW, "everyone", Position("t.yaml", 1, 1))


ONE, MANY = (fail("dashboard from 203.0.113.9"),), tuple(fail(f"test {number}\n" * 60) for number in range(3))


@pytest.mark.parametrize(
    ("plan", "title"),
    [
        (
            Plan("prod", access_tests=ONE),
            "Drift in prod: access test fails: dashboard from 203.0.113.9 (expected deny, found allow)",
        ),
        (
            Plan("prod", access_tests=ONE, health=(HealthRow("TLSEdge/shop", "", Health(State.DEGRADED)),)),
            "Drift and health in prod: access test fails: dashboard from 203.0.113.9 (expected deny, found allow); "
            "TLSEdge/shop is degraded",
        ),
        (
            Plan("prod", access_tests=ONE, access=(OPENED,)),
            "Drift in prod: https://ledger.example.com is open to everyone (manifests: 203.0.113.0/24)",
        ),
    ],
)
def test_the_title_names_the_first_failed_access_test_if_nothing_else_is_opened(plan: Plan, title: str) -> None:
    tracker = Tracker(IssueResult.OPENED)
    update(tracker, plan)
    assert tracker.calls == [("upsert", title)]


def test_the_title_counts_the_other_failed_access_tests_also_after_a_long_name() -> None:
    tracker = Tracker(IssueResult.OPENED)
    update(tracker, Plan("prod", access_tests=MANY))
    ((_, title),) = tracker.calls
    assert title.endswith("… (expected deny, found allow), and 2 more tests")
    assert len(title) <= 255
    assert "\n" not in title


def test_a_title_is_no_longer_than_code_hosts_accept() -> None:
    tracker = Tracker(IssueResult.OPENED)
    long = replace(OPENED, after="everyone\n" + "192.0.2.0/24, " * 50)
    update(tracker, Plan("prod" * 60, changes=CHANGES, access=(long,)))
    ((_, title),) = tracker.calls
    assert len(title) <= 255
    assert "\n" not in title


def test_a_failed_request_is_a_warning_in_quiet_output_too() -> None:
    tracker = Tracker(Transient("the host returned 503"))
    assert update(tracker, Plan("prod", changes=CHANGES)) == [Note("warning: issue not changed: the host returned 503")]


def test_a_title_has_no_control_characters() -> None:
    tracker = Tracker(IssueResult.OPENED)
    update(tracker, Plan("a\x1bb", changes=CHANGES))
    ((_, title),) = tracker.calls
    assert title.startswith("Drift in a")
    assert "\x1b" not in title


SHOP, EDGE = (
    HealthRow("ReservedDomain/shop", "rd_1", Health(State.HEALTHY)),
    HealthRow("TLSEdge/shop", "", Health(State.HEALTHY)),
)


def rows(*states: State) -> tuple[HealthRow, ...]:
    return tuple(replace(row, health=Health(state)) for row, state in zip((SHOP, EDGE), states, strict=False))


@pytest.mark.parametrize(
    ("plan", "title"),
    [
        (Plan("prod", health=rows(State.DEGRADED)), "Health in prod: ReservedDomain/shop is degraded"),
        (
            Plan("prod", changes=CHANGES, health=rows(State.DEGRADED, State.DEGRADED)),
            "Drift and health in prod: ReservedDomain/shop is degraded, and 1 more object",
        ),
        (
            Plan("prod", changes=CHANGES, access=(OPENED,), health=rows(State.DEGRADED)),
            "Drift and health in prod: https://ledger.example.com is open to everyone (manifests: 203.0.113.0/24); "
            "ReservedDomain/shop is degraded",
        ),
        (Plan("prod", changes=CHANGES, health=rows(State.UNKNOWN, State.PROGRESSING)), "Drift in prod"),
    ],
)
def test_the_title_names_drift_and_health_apart(plan: Plan, title: str) -> None:
    tracker = Tracker(IssueResult.OPENED)
    assert update(tracker, plan) == [Note("Issue opened.", is_detail=True)]
    assert tracker.calls == [("upsert", title)]


@pytest.mark.parametrize(
    ("states", "was_degraded", "why"),
    [
        ((State.HEALTHY, State.UNKNOWN), (), "the health of TLSEdge/shop is unknown"),
        ((State.PROGRESSING,), (SHOP,), "ReservedDomain/shop was degraded and is not healthy yet"),
        (None, (SHOP,), "it names degraded objects, and health was not judged: pass --health"),
    ],
)
def test_an_issue_is_not_closed_while_it_is_not_known_that_everything_works(
    states: tuple[State, ...] | None, was_degraded: tuple[HealthRow, ...], why: str
) -> None:
    tracker = Tracker(IssueResult.CLOSED, DriftState("", tuple(map(digest_object, was_degraded))))
    plan = Plan("prod", health=None if states is None else rows(*states))
    assert update(tracker, plan) == [Note(f"note: issue not changed, because {why}")]
    assert tracker.calls == []


@pytest.mark.parametrize("states", [(State.HEALTHY, State.HEALTHY), (State.HEALTHY, State.PROGRESSING), ()])
def test_an_issue_is_closed_when_neither_drift_nor_a_degraded_object_is_left(states: tuple[State, ...]) -> None:
    tracker = Tracker(IssueResult.CLOSED, DriftState("", (digest_object(SHOP),)))
    assert update(tracker, Plan("prod", health=rows(*states))) == [Note("Issue closed.", is_detail=True)]
