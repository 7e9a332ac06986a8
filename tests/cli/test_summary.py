"""The summary of an apply: each outcome of its calls, what still differs, health, and why nothing was sent."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter

import pytest
from msgspec.structs import replace

from reconciler.cli.applying import summary
from reconciler.cli.applying.progress import EventLog, JsonLogReporter
from reconciler.cli.terminal import output
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.event import Ended, Outcome, Started
from reconciler.model.health import Health, HealthRow, State, Wait
from reconciler.model.plan import Approval, Call, Plan, Verb
from reconciler.model.problem import Position, Problem, Severity
from reconciler.operations.results import ApplyResult, HealthWait, SkippedCall, Status


def test_a_field_that_the_platform_does_not_change_is_reported_with_how_to_ignore_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fields = (
        FieldChange("saml.allow_idp_initiated", False, True, ChangedBy.PLATFORM),
        FieldChange("traffic_policy.value.on_http_request[0].name", "a", "b", ChangedBy.PLATFORM),
    )
    change = Change(Address("HTTPSEdgeRoute", "web"), Action.UPDATE, Reason.FIELDS, id="edghtsrt_1", fields=fields)
    summary.print_remaining((change,))
    output = capsys.readouterr().err
    assert "error: applied, but these resources still differ from the manifests:" in output
    assert "HTTPSEdgeRoute/web" in output
    assert "`lifecycle: {ignore: [saml.allow_idp_initiated, traffic_policy.value]}`" in output


@pytest.mark.parametrize(
    ("number", "more"),
    [(0, ""), (1, ""), (99, ""), (100, ""), (101, "… and 1 more problem;"), (102, "… and 2 more problems;")],
)
@pytest.mark.parametrize("warnings", [0, 3])
def test_a_hundred_problems_are_printed_and_the_rest_is_counted(
    capsys: pytest.CaptureFixture[str], number: int, more: str, warnings: int
) -> None:
    """Errors are printed before warnings are left out, and the last line counts all of them."""
    quiet = [
        Problem(f"warning {place}", "", "", Position("a.yaml", place, 1), Severity.WARNING, code="policy")
        for place in range(1, min(warnings, number) + 1)
    ]
    problems = [
        Problem(f"error {place}", "", "", Position("b.yaml", place, 1), code="policy")
        for place in range(number - len(quiet))
    ]
    output.print_problems([*quiet, *problems])
    lines = capsys.readouterr().err.splitlines()
    printed = [line for line in lines if line.startswith(("a.yaml", "b.yaml"))]
    assert len(printed) == min(number, 100)
    assert len([line for line in printed if "error" in line]) == min(len(problems), 100)
    assert [line[: len(more)] for line in lines if line.startswith("…")] == ([more] if more else [])
    errors = f"{len(problems)} error{'' if len(problems) == 1 else 's'}" if problems else ""
    others = f"{len(quiet)} warning{'' if len(quiet) == 1 else 's'}" if quiet else ""
    assert lines[-1:] == ([", ".join(filter(None, (errors, others)))] if number else [])


# --- the whole summary

CALLS = tuple(
    Call(f"update IPPolicy/p{place}", Address("IPPolicy", f"p{place}"), Verb.UPDATE, "/ip_policies")
    for place in range(3)
)
CHANGES = tuple(Change(call.address, Action.UPDATE, Reason.FIELDS) for call in CALLS)
PLAN = Plan("prod", calls=CALLS, changes=CHANGES)
WORDING = summary.Wording("Apply these changes?", "Applied:")
DONE, ALREADY, FAILED, SKIPPED, UNKNOWN = Outcome


def end(*outcomes: Outcome) -> tuple[Ended, ...]:
    whys = {DONE: "", ALREADY: "it was deleted before", FAILED: "refused", SKIPPED: "needs p1", UNKNOWN: ""}
    return tuple(Ended(call, outcome, 0.0, why=whys[outcome]) for call, outcome in zip(CALLS, outcomes, strict=False))


def add(number: int) -> Plan:
    parent = Address("IPPolicy", "office")
    rules = (Address("IPPolicyRule", f"ipr_{place}") for place in range(number))
    return replace(
        PLAN, additions=tuple(Change(rule, Action.DELETE, Reason.ADDED, rule.name, parent=parent) for rule in rules)
    )


def judge(*waits: Wait, seconds: float = 61.0, is_interrupted: bool = False) -> HealthWait:
    states = {Wait.READY: State.HEALTHY, Wait.REPORTED: State.DEGRADED}
    rows = tuple(
        (HealthRow(f"TLSEdge/e{place}", "", Health(states.get(wait, State.PROGRESSING), "slow")), wait)
        for place, wait in enumerate(waits)
    )
    return HealthWait(rows, seconds, is_interrupted)


WHOLE = end(DONE, DONE, DONE)
WARNING = Problem("odd", severity=Severity.WARNING, code="odd")
SUMMARIES: list[tuple[ApplyResult, int, str, str]] = [
    (ApplyResult(Status.APPLIED, PLAN, WHOLE), 0, "Applied: 3 updated.\n", ""),
    (ApplyResult(Status.UNCHANGED, Plan("prod")), 0, "", ""),
    (
        ApplyResult(Status.PARTIAL, PLAN, end(DONE, FAILED, SKIPPED)),
        5,
        "1 call succeeded, 1 failed, 1 skipped.\n",
        "failed: update IPPolicy/p1: refused\nskipped: update IPPolicy/p2: needs p1\n",
    ),
    (
        ApplyResult(Status.PARTIAL, PLAN, end(DONE, DONE, UNKNOWN)),
        5,
        "2 calls succeeded, 0 failed, 0 skipped, 1 unknown.\n",
        "unknown: update IPPolicy/p2: sent, but the outcome was not recorded; the next run checks it\n",
    ),
    (
        ApplyResult(Status.FAILED, PLAN, end(FAILED, FAILED, FAILED)),
        1,
        "0 calls succeeded, 3 failed, 0 skipped.\n",
        "".join(f"failed: update IPPolicy/p{place}: refused\n" for place in range(3)),
    ),
    (ApplyResult(Status.APPLIED, PLAN, WHOLE, problems=(WARNING,)), 0, "Applied: 3 updated.\n", "warning: odd\n"),
    (
        ApplyResult(Status.FAILED, PLAN, WHOLE, problems=(Problem("odd", code="odd"),)),
        1,
        "Applied: 3 updated.\n",
        "error: all calls succeeded, but these problems remain:\nodd\n1 error\n",
    ),
    (
        ApplyResult(Status.PARTIAL, PLAN, WHOLE, failure="the disk is full"),
        5,
        "3 calls succeeded, 0 failed, 0 skipped.\n",
        "error: the disk is full\n",
    ),
    (
        ApplyResult(Status.APPLIED, PLAN, WHOLE, unverified="it cannot be read"),
        0,
        "Applied: 3 updated.\n",
        "error: it cannot be read\n",
    ),
    (
        ApplyResult(Status.PARTIAL, PLAN, WHOLE, skipped=(SkippedCall(CALLS[0], "it changed"),)),
        5,
        "Applied: 3 updated.\n",
        "skipped: update IPPolicy/p0: it changed\n",
    ),
    (
        ApplyResult(Status.APPLIED, PLAN, WHOLE, recorded_in_store=("SSHCredential/a", "SSHCredential/b")),
        0,
        "Applied: 3 updated.\nRecorded as managed in the store: SSHCredential/a, SSHCredential/b.\n",
        "",
    ),
    (
        ApplyResult(Status.APPLIED, PLAN, WHOLE, health=judge(Wait.READY, Wait.READY)),
        0,
        "Applied: 3 updated.\nHealthy: 2 objects.\n",
        "",
    ),
    (
        ApplyResult(Status.APPLIED, PLAN, WHOLE, health=judge(Wait.READY, Wait.FAILED, Wait.REPORTED)),
        7,
        "Applied: 3 updated.\nHealthy: 1 object.\n",
        "degraded, not waited for: TLSEdge/e2: slow\nerror: applied, but not healthy after 61 s:\n  TLSEdge/e1: slow\n",
    ),
    (
        ApplyResult(Status.APPLIED, PLAN, WHOLE, health=judge(Wait.WAITING, is_interrupted=True)),
        130,
        "Applied: 3 updated.\n",
        "interrupted: the changes are applied, and their health was not waited for any longer\n  TLSEdge/e0: slow\n",
    ),
]


@pytest.mark.parametrize(("result", "code", "out", "err"), SUMMARIES)
def test_a_summary_has_each_outcome_and_its_exit_code(
    capsys: pytest.CaptureFixture[str], result: ApplyResult, code: int, out: str, err: str
) -> None:
    assert summary.print_summary(result, WORDING, has_begun=True) == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (out, err)


COUNTED = {DONE: "succeeded", ALREADY: "succeeded", FAILED: "failed", SKIPPED: "skipped", UNKNOWN: "unknown"}
"""Under which word the summary counts a call."""


def test_each_call_is_counted_once_in_the_summary_under_the_word_of_its_outcome(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also in the summary after a second interrupt. Only a run whose calls all succeeded has no counts."""
    assert COUNTED.keys() == set(Outcome)
    for outcomes in itertools.combinations_with_replacement(Outcome, len(CALLS)):
        ended, log = end(*outcomes), EventLog()
        for call, event in zip(CALLS, ended, strict=True):
            log.report(Started(call, 0.0))
            log.report(event)
        expected = Counter(COUNTED[outcome] for outcome in outcomes)
        summary.print_summary(ApplyResult(Status.PARTIAL, PLAN, ended), WORDING, has_begun=True)
        summary.report_interrupted(PLAN, log, WORDING)
        for line in capsys.readouterr().out.splitlines():
            if expected["succeeded"] == len(CALLS):
                assert line == "Applied: 3 updated."
            else:
                found = re.findall(r"([0-9]+) (?:calls? )?(succeeded|failed|skipped|unknown)", line)
                assert Counter({word: int(number) for number, word in found}) == expected, outcomes


def test_a_problem_that_was_printed_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    result = ApplyResult(Status.APPLIED, PLAN, WHOLE, problems=(WARNING,))
    summary.print_summary(result, WORDING, has_begun=True, printed=[WARNING])
    assert capsys.readouterr().err == ""


NEEDED = replace(PLAN, approvals=(Approval("delete", "BotUser", 2, "irreversible"),))
REFUSALS: list[tuple[ApplyResult, int, str]] = [
    (ApplyResult(Status.DECLINED, PLAN), 1, "Cancelled; nothing was changed.\n"),
    (ApplyResult(Status.STALE, PLAN, changed=("IPPolicy/a changed", "plan again")), 3,
     "IPPolicy/a changed\nerror: plan again\n"),
    (ApplyResult(Status.FAILED, replace(PLAN, problems=(Problem("odd", code="odd"),))), 1,
     "error: nothing was changed: the plan has errors\n"),
    (ApplyResult(Status.BLOCKED, replace(PLAN, problems=(Problem("odd", rule="r", code="policy"),))), 4,
     "error: nothing was changed: a policy does not allow the plan\n"),
    (ApplyResult(Status.BLOCKED, NEEDED), 4,
     "blocked: delete:BotUser=2: irreversible\n"
     "error: nothing was changed: approval required: pass --allow delete:BotUser=2\n"),
]  # fmt: skip


@pytest.mark.parametrize(("result", "code", "err"), REFUSALS)
def test_the_reason_is_printed_if_nothing_was_sent(
    capsys: pytest.CaptureFixture[str], result: ApplyResult, code: int, err: str
) -> None:
    assert summary.print_summary(result, WORDING, has_begun=False) == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", err)


@pytest.mark.parametrize(
    ("number", "more"),
    [(1, ""), (20, ""), (21, "1 more addition"), (22, "2 more additions"), (43, "23 more additions")],
)
def test_twenty_additions_are_listed_and_the_rest_is_counted(
    capsys: pytest.CaptureFixture[str], number: int, more: str
) -> None:
    summary.print_summary(ApplyResult(Status.APPLIED, add(number), WHOLE), WORDING, has_begun=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("not managed: ")]
    assert len([line for line in lines if "added to IPPolicy/office on the platform" in line]) == min(number, 20)
    assert [line for line in lines if "more" in line] == ([f"not managed: {more}"] if more else [])


def test_a_second_interrupt_counts_the_calls_that_were_running_as_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    log = EventLog()
    log.report(Started(CALLS[0], 0.0))
    log.report(end(DONE)[0])
    log.report(Started(CALLS[1], 0.0))
    summary.report_interrupted(PLAN, log, WORDING)
    printed = capsys.readouterr()
    assert printed.out == "1 call succeeded, 0 failed, 1 skipped, 1 unknown.\n"
    assert printed.err == (
        "unknown: update IPPolicy/p1: interrupted while in progress; the next run checks it\n"
        "skipped: update IPPolicy/p2: the run was stopped\n"
    )


@pytest.mark.parametrize("outcome", Outcome)
def test_a_call_that_failed_or_is_unknown_is_an_error_in_a_json_log(
    capsys: pytest.CaptureFixture[str], outcome: Outcome
) -> None:
    output.set_log_format("json")
    JsonLogReporter().report(Ended(CALLS[0], outcome, 0.0, why="x"), 1)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    levels = {FAILED: ["error"], UNKNOWN: ["error"], SKIPPED: []}  # skipped calls are in the summary
    assert [line["level"] for line in lines] == levels.get(outcome, ["info"])
