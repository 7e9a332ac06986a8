"""Results: what their statuses mean to a pipeline."""

from __future__ import annotations

import json
import typing

import pytest
from msgspec.structs import replace

from reconciler.model import exit_codes
from reconciler.model.change import Action, Change, Reason
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Approval, Call, Plan, Verb
from reconciler.model.problem import Position, Problem, Severity
from reconciler.operations.reporting import CallsBegan, Note, OperationEvent, Planned
from reconciler.operations.results import ApplyResult, DriftResult, SkippedCall, Status, ValidationResult
from tests.harness.builders import at, snapshot

NO_PROJECT: typing.Any = None
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


def test_a_result_has_the_reasons_of_its_status() -> None:
    """Every other status has a reason, which programs show as it is."""
    needed = Approval("delete", "ReservedDomain", 1, "deletes 1 of 1")
    problem = Problem("is wrong", "correct it", "IPPolicy/a", code="x")
    skipped = (SkippedCall(CALLS[0], "it changed"),)
    results: list[tuple[ApplyResult, tuple[str, ...]]] = [
        (
            ApplyResult(Status.BLOCKED, replace(PLAN, approvals=(needed,))),
            ("approval required: delete:ReservedDomain=1: deletes 1 of 1",),
        ),
        (ApplyResult(Status.BLOCKED, PLAN, problems=(problem,)), ("IPPolicy/a: is wrong; correct it",)),
        (ApplyResult(Status.DECLINED, PLAN), ("the plan was not approved by the caller",)),
        (ApplyResult(Status.STALE, PLAN, changed=("a changed", "plan again")), ("a changed", "plan again")),
        (ApplyResult(Status.FAILED, PLAN, (replace(FAILED, why="no"),)), ("failed: b: no",)),
        (ApplyResult(Status.PARTIAL, PLAN, (DONE,), skipped), ("skipped: a: it changed",)),
        (ApplyResult(Status.FAILED, PLAN, unverified="not verified"), ("not verified",)),
        (ApplyResult(Status.INTERRUPTED, PLAN, (DONE,)), ("interrupted: no further call was started",)),
    ]
    assert [result.reasons for result, _ in results] == [reasons for _, reasons in results]
    assert ApplyResult(Status.APPLIED, PLAN, (DONE, ALREADY)).reasons == ()


def test_a_result_is_written_for_programs_and_people() -> None:
    result = ApplyResult(Status.FAILED, PLAN, (DONE, replace(FAILED, why="no")))
    written = json.loads(result.to_json())
    assert (written["version"], written["status"], written["exit_code"]) == (1, "failed", 1)
    assert written["reasons"] == ["failed: b: no"]
    assert [call["outcome"] for call in written["calls"]] == ["succeeded", "failed"]
    assert "1 of 2 calls succeeded." in result.markdown()
    assert "<!doctype html>" in result.html()
    invalid = ValidationResult(
        "eu", (Problem("is wrong", "correct it", position=Position("a.yaml", 3, 1), code="x"),), 2, 1
    )
    problem = json.loads(invalid.to_json())["problems"][0]
    assert (problem["problem"], problem["file"], problem["line"]) == ("is wrong", "a.yaml", 3)
    assert "**invalid: 1 error**" in invalid.markdown()
    assert "a.yaml:3:1" in invalid.html()


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
        DriftResult(Plan("prod", changes=changes), snapshot(), NO_PROJECT)
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
