"""Each `fleet` command and flag in each state of a fleet: its exit code, its streams, and what it changes.

The table is `outcomes.txt`: a row for each command line, a column for each state of `states.py`. `LAST` is the id of
the newest run, `PLAN` that of the newest plan, and `SHAPE` the first shape of the newest run. In a cell, `+2` is two
calls that change accounts, `r` a new run, `w` a file that was written, `p` that the fleet is paused afterwards.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest
from click.core import Option

from reconciler.cli.commands.fleet import COMMANDS
from reconciler.cli.main import reconciler
from tests.fleet.states import STATES, FleetProject, open_fleet, prepare
from tests.harness.outcomes import Table, check_streams, code_of, read_table, run_row
from tests.harness.project import Output
from tests.harness.tiers import is_quick

HERE = Path(__file__).parent


def choose_few(table: Table) -> set[tuple[str, str]]:
    """The cells of `make test`: where the flags of a row matter first, and each exit code of a command."""
    chosen = {}
    for row, cells in table.items():
        command = row.split()[0]
        bare = next(table[name] for name in (f"{command} -y", command, f"{command} LAST") if name in table)
        chosen[row] = next((state for state, cell in cells.items() if cell != bare.get(state)), "")
    codes = {(row.split()[0], code_of(table[row][state])) for row, state in chosen.items() if state}
    few = {(row, state) for row, state in chosen.items() if state}
    for row, cells in table.items():
        for state, cell in cells.items():
            if (row.split()[0], code_of(cell)) not in codes:
                codes.add((row.split()[0], code_of(cell)))
                few.add((row, state))
    return few


TABLE = read_table(HERE / "outcomes.txt")
QUICK = choose_few(TABLE)
# Options without a row, and where they are tested.
OPTIONS = {
    "--file": "fleet/test_commands.py",
    "--log-format": "cli/test_shared_options.py",
    "--no-color": "cli/test_shared_options.py",
    "--reason": "fleet/test_commands.py",
    "--repository": "fleet/test_commands.py",
    "--scheduler": "fleet/test_commands.py",
    "--trace": "cli/test_shared_options.py",
    "--workers": "fleet/test_commands.py",
}


def fill(row: str, project: FleetProject) -> list[str]:
    """The words of a row, with the newest run, the newest plan and a shape in place of their names."""
    last = next(iter(project.list_runs()), "none")
    plan = next(iter(project.list_runs("plan")), "none")
    shape = next(iter(project.list_shapes(last)), "0" * 12)
    return row.replace("LAST", last).replace("PLAN", plan).replace("SHAPE", shape).split()


def observe(row: str, project: FleetProject) -> tuple[str, Output]:
    """The cell of a row, and what the command printed."""
    words, runs, before = fill(row, project), project.list_runs(), list_files(project)
    project.sandbox.forget_log()
    result = run_row(["fleet", *words], project)
    calls = len(project.sandbox.calls())
    marks = [f"+{calls}" * bool(calls), "r" * (len(project.list_runs()) > len(runs))]
    marks += ["w" * (list_files(project) != before), "p" * project.is_paused]
    return f"{result.code}{'o' * bool(result.out)}{'e' * bool(result.err)}{''.join(marks)}", result


def list_files(project: FleetProject) -> set[Path]:
    return {file for file in project.root.iterdir() if file.is_file()}


@pytest.mark.parametrize("state", STATES)
def test_a_command_does_and_prints_what_the_table_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    rows = [row for row in TABLE if not is_quick() or (row, state) in QUICK]
    wrong = []
    with open_fleet(tmp_path / "fleet", capsys) as project:
        for row, (cell, result) in observe_all(rows, state, project):
            if cell != TABLE[row][state]:
                wrong.append(f"{row}: {cell} instead of {TABLE[row][state]}: {result}")
            is_page = "--format" in row and "text" not in row
            check_streams(row, result, reason=result.err if is_page else result.err or result.out)
            check_suggestions(result, project)
            check_exit_code(row, result)
    assert wrong == []


def observe_all(rows: Iterable[str], state: str, project: FleetProject) -> Iterator[tuple[str, tuple[str, Output]]]:
    """What each row does in the state: first those that only read."""
    copy, is_changed, has_sent = project.root.with_name("copy"), False, True
    for row in sorted(rows, key=lambda row: row.split()[0] not in ("validate", "status", "report")):
        if has_sent:
            prepare(state, project)
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(project.root, copy)
        elif is_changed:
            shutil.rmtree(project.root)
            shutil.copytree(copy, project.root)
        cell, result = observe(row, project)
        yield row, (cell, result)
        has_sent, is_changed = "+" in cell, row.split()[0] not in ("validate", "status", "report")


_COMMAND = re.compile(r"reconciler fleet ([a-z]+)((?: [\w=*/.-]+)*)")


def check_suggestions(result: Output, project: FleetProject) -> None:
    """Each command that a command suggests is one with valid options, and its run exists."""
    runs = project.list_runs()
    text = result.err if result.out.startswith("{") else f"{result.out}\n{result.err}"
    for name, more in _COMMAND.findall(text):
        words = more.removesuffix(".").split()
        context = find_command(name).make_context(name, list(words))
        assert context.params.get("run", "") in ("", *runs), (name, words)


def find_command(name: str) -> click.Command:
    fleet = reconciler.get_command(click.Context(reconciler), "fleet")
    assert isinstance(fleet, click.Group)
    command = fleet.get_command(click.Context(fleet), name)
    assert command is not None, name
    return command


def check_exit_code(row: str, result: Output) -> None:
    """The JSON of a run says the exit code of the command that made it."""
    if row.split()[0] in ("plan", "drift", "resume", "retry", "apply") and result.out.startswith("{"):
        assert json.loads(result.out)["exit_code"] == result.code, row


def list_options(command: click.Command) -> Iterator[str]:
    yield from (max(parameter.opts, key=len) for parameter in command.params if isinstance(parameter, Option))


def test_the_table_has_each_state_command_and_option() -> None:
    assert all(list(cells) == list(STATES) for cells in TABLE.values())
    assert {row.split()[0] for row in TABLE} == set(COMMANDS)
    long = {"-q": "--quiet", "-y": "--auto-approve"}
    for name in COMMANDS:
        used = {long.get(word, word) for row in TABLE if row.split()[0] == name for word in row.split()}
        shared = {long.get(word, word) for row in TABLE for word in row.split()} if name in SHARING else used
        assert set(list_options(find_command(name))) - shared - OPTIONS.keys() == set(), name


SHARING = ("drift", "status", "report", "resume", "retry", "apply")
"""Commands whose shared options (`--format`, `--quiet`, `--select`) have rows with another command."""


@pytest.mark.parametrize(("name", "file"), OPTIONS.items())
def test_an_option_without_a_row_is_named_by_another_test(name: str, file: str) -> None:
    assert name in (HERE.parent / file).read_text(encoding="utf-8")
