"""What a command shows while it reads the project, and what it prints of the problems of a plan."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.cli.terminal import exit_codes, output, workspaces
from reconciler.cli.terminal.options import Options
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from tests.harness.project import Shell


@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_shows_that_the_project_is_read_until_it_is(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    monkeypatch.setenv("RECONCILER_BASE_URL", "https://api.example.com")
    monkeypatch.setenv("RECONCILER_API_KEY", "key")
    printed: list[str] = []
    monkeypatch.setattr(output, "show_progress", printed.append)
    workspaces.open_workspace(Options(project=shell.root, quiet=quiet))
    assert printed == ([""] if quiet else ["reading the project", ""])


ERROR, WARNING = Problem("odd", code="odd"), Problem("old", severity=Severity.WARNING, code="old")
NOTE, POLICY = Problem("by the way", severity=Severity.NOTE, code="x"), Problem("no", rule="edges", code="policy")


@pytest.mark.parametrize(
    ("problems", "code", "line"),
    [
        ((), exit_codes.DONE, ""),
        ((NOTE,), exit_codes.DONE, ""),
        ((WARNING, NOTE), exit_codes.DONE, "1 warning in the plan: old\n"),
        ((ERROR,), exit_codes.ERROR, "1 error in the plan\n"),
        ((POLICY,), exit_codes.BLOCKED, "1 error in the plan\n"),
        (
            (POLICY, ERROR, WARNING, replace(WARNING, code="")),
            exit_codes.ERROR,
            "2 errors, 2 warnings in the plan: old\n",
        ),
    ],
)
def test_the_problems_of_a_plan_are_counted_and_decide_its_exit_code(
    capsys: pytest.CaptureFixture[str], problems: tuple[Problem, ...], code: int, line: str
) -> None:
    change = Change(Address("IPPolicy", "a"), Action.CREATE, Reason.DECLARED)
    for plan in (Plan("prod", problems=problems), Plan("prod", problems=problems, changes=(change,))):
        expected = exit_codes.CHANGES if plan.changes and not code else code
        assert workspaces.exit_code(plan, changes=exit_codes.CHANGES) == expected
        assert workspaces.exit_code(plan) == code
    workspaces.print_tally(Plan("prod", problems=problems))
    assert capsys.readouterr().err == line
