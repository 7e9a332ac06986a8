"""Each command and flag in each state of a project: its exit code, its streams, its calls and the files it writes.

The table is `outcomes.txt`: a row for each command line, a column for each state of `states.py`. A cell is the exit
code, `o` and `e` for text on standard output and standard error, `+2` for two calls that change the account, and `w` if
a YAML file was written. An answer at a terminal is in parentheses; without one, there is no terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.core import Option

from reconciler.cli.main import COMMANDS, reconciler
from reconciler.model import exit_codes
from reconciler.model.plan import Plan
from tests.cli.states import STATES, prepare
from tests.harness.outcomes import check_streams, choose_quick, read_table, run_row
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project
from tests.harness.tiers import is_quick

HERE = Path(__file__).parent

# Commands that no state of an account decides about.
ELSEWHERE = {
    "agent": "end_to_end/test_agent_config.py",
    "comment": "cli/test_comment.py",
    "completion": "cli/test_completion.py",
    "fleet": "fleet/test_commands.py",
    "init": "cli/test_init.py",
    "kinds": "cli/test_kinds.py",
    "sandbox": "cli/test_sandbox.py",
    "schema": "cli/test_schema.py",
    "show": "cli/test_show.py",
}
# Options without a row, and where they are tested.
OPTIONS = {
    "--adopt": "end_to_end/test_adopt.py",
    "--append": "end_to_end/test_import.py",
    "--all": "end_to_end/test_import.py",
    "--base": "end_to_end/test_review.py",
    "--certificate": "cli/test_access.py",
    "--check": "cli/test_dns.py",
    "--days": "cli/test_report.py",
    "--env": "end_to_end/test_environments.py",
    "--explain": "cli/test_access.py",
    "--from": "cli/test_access.py",
    "--host": "cli/test_access.py",
    "--id": "end_to_end/test_adopt.py",
    "--inline": "cli/test_fmt.py",
    "--issue": "end_to_end/test_drift_issue.py",
    "--kind": "end_to_end/test_import.py",
    "--limit": "cli/test_history.py",
    "--log-format": "cli/test_main.py",
    "--max-age": "end_to_end/test_plan_file_rules.py",
    "--method": "cli/test_access.py",
    "--modeline": "cli/test_fmt.py",
    "--nameserver": "cli/test_dns.py",
    "--no-color": "cli/test_apply.py",
    "--notify": "end_to_end/test_notify.py",
    "--parallelism": "cli/test_apply.py",
    "--partial": "end_to_end/test_stale.py",
    "--plan": "end_to_end/test_stale.py",
    "--project": "cli/test_subfolders.py",
    "--replace": "cli/test_selection.py",
    "--reviewed": "end_to_end/test_apply_reviewed.py",
    "--secrets": "end_to_end/test_unread_secrets.py",
    "--signed-in": "cli/test_access.py",
    "--snapshot": "end_to_end/test_snapshots.py",
    "--trace": "cli/test_telemetry.py",
    "--var": "cli/test_validate.py",
    "--verify": "cli/test_dns.py",
    "--wait-timeout": "cli/test_apply.py",
    "--with-token": "cli/test_access.py",
    "--write-tests": "cli/test_access.py",
}


TABLE = read_table(HERE / "outcomes.txt")


QUICK = choose_quick(TABLE)


def observe(row: str, project: Project, sandbox: Sandbox) -> tuple[str, Output]:
    """The cell of a row, and what the command printed."""
    before = read_yaml(project)
    sandbox.forget_log()
    result = run_row(row.split(), project)
    calls, is_written = len(sandbox.calls()), read_yaml(project) != before
    streams = "o" * bool(result.out) + "e" * bool(result.err)
    return f"{result.code}{streams}{f'+{calls}' * bool(calls)}{'w' * is_written}", result


def read_yaml(project: Project) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in project.root.rglob("*.yaml")}


def is_lasting(row: str, cell: str) -> bool:
    """Whether the next command may find another state."""
    return row.split()[0] in ("apply", "destroy", "adopt", "accept") or "--record" in row or cell[-1] == "w"


@pytest.mark.parametrize("state", STATES)
def test_a_command_does_and_prints_what_the_table_has(on_sandbox: Project, sandbox: Sandbox, state: str) -> None:
    rows = [row for row in TABLE if not is_quick() or (row, state) in QUICK]
    wrong, is_prepared = [], False
    for row in sorted(rows, key=lambda row: is_lasting(row, TABLE[row][state])):
        if not is_prepared:
            prepare(state, on_sandbox, sandbox)
        cell, result = observe(row, on_sandbox, sandbox)
        is_prepared = not (is_lasting(row, cell) and ("+" in cell or "w" in cell or "--record" in row))
        if cell != TABLE[row][state]:
            wrong.append(f"{row}: {cell} instead of {TABLE[row][state]}: {result}")
        check_streams(row, result, reason=result.err)
    assert wrong == []


def test_the_table_has_a_column_for_each_state() -> None:
    assert all(list(cells) == list(STATES) for cells in TABLE.values())


def list_options(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from list_options(found, context)
    for parameter in command.params:
        if isinstance(parameter, Option):
            yield from (max(parameter.opts, key=len),)


def test_each_command_and_option_is_in_the_table_or_tested_elsewhere() -> None:
    context = click.Context(reconciler)
    used = {word for row in TABLE for word in row.split()}
    used |= {long for short, long in (("-q", "--quiet"), ("-y", "--auto-approve")) if short in used}
    assert {row.split()[0] for row in TABLE} | ELSEWHERE.keys() == set(COMMANDS)
    for name in COMMANDS.keys() - ELSEWHERE.keys():
        command = reconciler.get_command(context, name)
        assert command is not None
        missing = set(list_options(command, context)) - used - OPTIONS.keys() - {"--help"}
        assert not missing, f"{name}: give each a row, or name its test"


@pytest.mark.parametrize(("name", "file"), [*ELSEWHERE.items(), *OPTIONS.items()])
def test_an_option_without_a_row_is_named_by_another_test(name: str, file: str) -> None:
    assert name in (HERE.parent / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("flags", [(), ("--fail-on", "approvals"), ("--detailed-exitcode",)], ids=" ".join)
def test_an_error_that_blocks_the_plan_is_reported_before_a_missing_approval(
    on_sandbox: Project, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    prepare("unread+unappr", on_sandbox, sandbox)
    monkeypatch.setattr(Plan, "blocking_errors", property(lambda plan: plan.errors))
    assert on_sandbox("plan", *flags).code == exit_codes.ERROR
    applied = on_sandbox("apply", "-y", "-q")
    assert (applied.code, applied.err.splitlines()[-1]) == (1, "error: nothing was changed: the plan has errors")
    assert sandbox.calls() == []
