"""Results: what their statuses mean to a pipeline."""

from __future__ import annotations

import typing

import pytest
from msgspec.structs import replace

from reconciler.model import exit_codes
from reconciler.model.change import Action, Change, Reason
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.problem import Problem, Severity
from reconciler.operations.reporting import CallsBegan, Note, OperationEvent, Planned
from reconciler.operations.results import ApplyResult, DriftResult, Status, ValidationResult
from tests.harness.builders import at, snapshot

CALLS = tuple(Call(name, at(f"IPPolicy/{name}"), Verb.CREATE, "/ip_policies") for name in "ab")
PLAN = Plan("prod", calls=CALLS)
DONE, ALREADY, FAILED = (
    Ended(call, outcome, 0.0)
    for call, outcome in ((CALLS[0], Outcome.DONE), (CALLS[1], Outcome.ALREADY), (CALLS[1], Outcome.FAILED))
)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status.UNCHANGED, 0),
        (Status.APPLIED, 0),
        (Status.PARTIAL, 5),
        (Status.STALE, 3),
        (Status.BLOCKED, 4),
        (Status.DECLINED, 1),
        (Status.FAILED, 1),
        (Status.UNAUTHORIZED, 6),
        (Status.INTERRUPTED, 130),
    ],
)
def test_each_status_has_the_exit_code_that_pipelines_branch_on(status: Status, code: int) -> None:
    assert ApplyResult(status, PLAN).exit_code == code
    assert code in exit_codes.MEANINGS


@pytest.mark.parametrize(
    ("outcomes", "failure", "is_complete"),
    [
        ((DONE, ALREADY), "", True),
        ((DONE, ALREADY), "the disk is full", False),
        ((DONE,), "", False),
        ((DONE, FAILED), "", False),
        ((), "", False),
    ],
)
def test_an_apply_is_complete_once_every_call_succeeded_and_was_stored(
    outcomes: tuple[Ended, ...], failure: str, is_complete: bool
) -> None:
    assert ApplyResult(Status.PARTIAL, PLAN, outcomes, failure=failure).is_complete is is_complete


def test_calls_are_found_by_their_outcome() -> None:
    result = ApplyResult(Status.PARTIAL, PLAN, (FAILED, DONE, ALREADY))
    assert result.with_outcome(Outcome.DONE, Outcome.FAILED) == [FAILED, DONE]
    assert result.with_outcome(Outcome.UNKNOWN) == []


def test_a_validation_is_valid_unless_one_problem_is_an_error() -> None:
    error, warning = Problem("no", code="x"), Problem("hm", code="y", severity=Severity.WARNING)
    assert [ValidationResult(None, problems).is_valid for problems in ((), (warning,), (warning, error))] == [
        True,
        True,
        False,
    ]


def test_drift_differs_from_pending_changes() -> None:
    change = Change(at("IPPolicy/a"), Action.UPDATE, Reason.FIELDS)
    results = [
        DriftResult(Plan("prod", changes=changes), snapshot())
        for changes in ((), (change,), (replace(change, is_pending=True),))
    ]
    assert [(result.has_drift, result.has_pending) for result in results] == [
        (False, False),
        (True, False),
        (False, True),
    ]


# --- many events -----------------------------------------------------------------------------------------------------


def test_frequent_events_have_no_dictionary() -> None:
    events = typing.get_args(OperationEvent)
    assert {Ended, Planned, CallsBegan, Note} <= {*events}
    assert [event.__name__ for event in events if event.__dictoffset__] == []
    assert (CallsBegan(3).is_cleanup, Note("a").is_detail) == (False, False)
