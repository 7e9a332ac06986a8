"""Each command and flag in each state of a project: its exit code, its streams, its calls and the files it writes.

The table is `outcomes.txt`: a row for each command line, a column for each state of `states.py`. A cell is the exit
code, `o` and `e` for text on standard output and standard error, `+2` for two calls that change the account, and `w` if
a YAML file was written. An answer at a terminal is in parentheses; without one, there is no terminal.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.core import Option

from reconciler.cli.main import COMMANDS, reconciler
from reconciler.model import exit_codes
from reconciler.model.plan import Plan
from tests.cli.states import STATES, prepare
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project
from tests.harness.tiers import is_quick

HERE = Path(__file__).parent
Table = dict[str, dict[str, str]]  # row → state → cell

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


def read_table(file: Path) -> Table:
    header, *lines = (line for line in file.read_text(encoding="utf-8").splitlines() if line)
    states = header.split()
    rows = (line.split() for line in lines)
    return {" ".join(words[: -len(states)]): dict(zip(states, words[-len(states) :], strict=True)) for words in rows}


TABLE = read_table(HERE / "outcomes.txt")


def code_of(cell: str) -> int:
    return int(re.match(r"\d+", cell)[0])  # type: ignore[index]


def choose_quick(table: Table) -> set[tuple[str, str]]:
    """The cells of `make test`: where the flags of a row matter first, each exit code of a command, each state."""
    chosen, seen = set(), set[object]()
    for row, cells in table.items():
        command = row.split()[0]
        plain = f"{command} -y" if f"{command} -y" in table else command
        bare = table.get(plain, {})
        state = next((state for state, cell in cells.items() if cell != bare.get(state)), "")
        if not state:
            continue
        chosen |= {(row, state), *([(plain, state)] if bare else [])}  # with the flags, and without
        seen |= {(command, code_of(cells[state])), state}
    for row, cells in table.items():
        for state, cell in cells.items():
            features: set[object] = {(row.split()[0], code_of(cell)), state}
            if not features <= seen:
                seen |= features
                chosen.add((row, state))
    return chosen


QUICK = choose_quick(TABLE)


class Terminal(io.StringIO):
    """A terminal at which somebody has typed an answer."""

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self._reader, writer = os.pipe()
        os.write(writer, answer.encode())
        os.close(writer)

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._reader

    def close(self) -> None:
        if not self.closed:
            os.close(self._reader)
        super().close()


def run(row: str, project: Project) -> Output:
    words = row.split()
    typed = Terminal(f"{words.pop()[1:-1]}\n") if words[-1].startswith("(") else io.StringIO()
    with pytest.MonkeyPatch.context() as patch, typed:
        patch.setattr("sys.stdin", typed)
        return project(*words)


def observe(row: str, project: Project, sandbox: Sandbox) -> tuple[str, Output]:
    """The cell of a row, and what the command printed."""
    before = read_yaml(project)
    sandbox.forget_log()
    result = run(row, project)
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
        check_streams(row, result)
    assert wrong == []


def check_streams(row: str, result: Output) -> None:
    """Laws of all commands: JSON is whole or absent, and a failure has a reason."""
    if "json" in row.split() and result.out:
        json.loads(f"[{','.join(result.out.splitlines())}]" if row.startswith("history") else result.out)
    if result.code not in (exit_codes.DONE, exit_codes.CHANGES, exit_codes.DEGRADED):
        assert result.err, row
    assert "Traceback" not in result.err, row
    assert "unexpected" not in result.err, row


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
