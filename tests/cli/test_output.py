"""What errors print, their exit codes, and problems as lines of JSON."""

from __future__ import annotations

import json
import sys
from io import BufferedWriter, BytesIO, TextIOWrapper
from pathlib import Path
from typing import cast

import click
import pytest

from reconciler.cli.fleets import output as fleet_output
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal import exit_codes, output
from reconciler.engine.ports import Refused
from reconciler.model.problem import Position, Problem, ReconcilerError, Rejected, Severity
from reconciler.operations.errors import (
    ApprovalRequired,
    ChangedWaves,
    NothingSelected,
    NotReviewed,
    OperationError,
    UnusableSetting,
)
from reconciler.project.files import Unreadable
from reconciler.rendering.fleet.rollup import RollUp

WRONG = Problem("not a number", "write 5", "TLSEdge/a.size", Position("a.yaml", 3, 7), code="wrong-type")


@click.command("plan")
def plan() -> None:
    """A command of which the usage is cut."""


PLAN = click.Context(plan, info_name="reconciler plan")
ERRORS: list[tuple[Exception, int, list[str]]] = [
    (exit_codes.Stop(3, "error: old", "plan again"), 3, ["error: old", "plan again"]),
    (Rejected((WRONG,)), 1, ["a.yaml:3:7: TLSEdge/a.size: not a number; write 5", "1 error"]),
    (OperationError("nothing works", remedy="repair it"), 1, ["error: nothing works", "repair it"]),
    (OperationError("nothing works"), 1, ["error: nothing works"]),
    (NothingSelected("no resource matches"), 64, ["error: no resource matches"]),
    (UnusableSetting("CI is odd"), 64, ["error: CI is odd"]),
    (ChangedWaves("waves changed"), 3, ["error: waves changed"]),
    (NotReviewed("no request"), 3, ["error: no request"]),
    (ApprovalRequired("it opens"), 4, ["error: it opens"]),
    (click.UsageError("No such thing.", PLAN), 64, ["error: no such thing", "usage: reconciler plan [OPTIONS]"]),
    (click.UsageError("A URL is missing"), 64, ["error: A URL is missing"]),
    (click.ClickException("something else"), 1, ["error: something else"]),
    (FileNotFoundError(2, "No such file", "x.yaml"), 1, ["error: x.yaml: no such file"]),
    (OSError(28, "No space left"), 1, ["error: no space left"]),
    (Refused("denied", status=403), 6, ["error: denied; check the API key and its permissions"]),
    (Refused("invalid", status=400), 1, ["error: invalid"]),
    (Unreadable("x is a pipe", "name a file"), 1, ["error: x is a pipe; name a file"]),
    (Unreadable("x is a pipe", ""), 1, ["error: x is a pipe"]),
    (ReconcilerError("odd"), 1, ["error: odd"]),
    (ValueError("bug"), 1, ["error: unexpected ValueError: bug; set RECONCILER_DEBUG=1 for a traceback"]),
]


@pytest.mark.parametrize(("error", "code", "lines"), ERRORS, ids=lambda value: type(value).__name__)
def test_an_error_has_its_exit_code_and_its_lines_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, lines: list[str]
) -> None:
    monkeypatch.setenv("RECONCILER_DEBUG", "")
    assert output.print_error(error) == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err.splitlines()) == ("", lines)


def test_only_an_unexpected_error_is_raised_to_debug_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_DEBUG", "1")
    for error, code, _ in ERRORS:
        if isinstance(error, ValueError):
            with pytest.raises(ValueError, match="bug"):
                output.print_error(error)
        else:
            assert output.print_error(error) == code
    assert capsys.readouterr().out == ""


def log_of(capsys: pytest.CaptureFixture[str], *problems: Problem) -> list[dict[str, object]]:
    output.set_log_format("json")
    output.print_problems(problems)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    for line in lines:
        del line["time"]
    return lines


def test_a_problem_in_a_json_log_has_every_part_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    whole = Problem(
        "not a number", "write 5", "TLSEdge/a.size", Position("a.yaml", 3, 7), code="wrong-type", values={"found": "x"}
    )
    bare = Problem("odd", severity=Severity.WARNING, code="odd")
    assert log_of(capsys, whole, bare) == [
        {
            "level": "error",
            "message": "a.yaml:3:7: TLSEdge/a.size: not a number; write 5",
            "file": "a.yaml",
            "line": 3,
            "column": 7,
            "subject": "TLSEdge/a.size",
            "problem": "not a number",
            "remedy": "write 5",
            "code": "wrong-type",
            "values": {"found": "x"},
        },
        {"level": "warning", "message": "warning: odd", "problem": "odd", "code": "odd"},
        {"level": "info", "message": "1 error, 1 warning"},
    ]


@pytest.mark.parametrize(("errors", "warnings", "notes", "text"), [
    (0, 0, 0, "no problems"), (1, 0, 0, "1 error"), (2, 1, 0, "2 errors, 1 warning"), (0, 2, 1, "2 warnings, 1 note"),
    (0, 0, 2, "2 notes"),
])  # fmt: skip
def test_problems_are_counted_by_severity(errors: int, warnings: int, notes: int, text: str) -> None:
    numbers = {Severity.ERROR: errors, Severity.WARNING: warnings, Severity.NOTE: notes}
    assert (
        output.tally([Problem("x", severity=severity, code="x") for severity, n in numbers.items() for _ in range(n)])
        == text
    )


@pytest.mark.parametrize(("more", "text"), [(0, ""), (1, "… and 1 more problem; "), (2, "… and 2 more problems; ")])
def test_problems_beyond_the_limit_are_counted(more: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    total = output.MOST_PROBLEMS + more
    output.print_problems([Problem(f"odd {number}", code="odd") for number in range(total)])
    *listed, tally = capsys.readouterr().err.splitlines()
    assert [line for line in listed if line.startswith("… and")] == ([listed[-1]] if more else [])
    assert listed[-1].startswith(text or "odd")
    assert len(listed) == output.MOST_PROBLEMS + bool(more)
    assert tally == f"{total} errors"


@pytest.mark.parametrize(
    ("is_terminal", "term", "shows"), [(True, "xterm", True), (True, "dumb", False), (False, "xterm", False)]
)
def test_progress_is_shown_at_a_terminal_that_can_erase_it(
    is_terminal: bool, term: str, shows: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    output.show_progress("reading")
    output.show_progress("reading")
    output.show_progress("")
    assert capsys.readouterr().err == ("\r\rreading\r       \r" if shows else "")


def test_progress_is_cut_at_the_width_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    output.show_progress("reading " * 7)
    output.show_progress(" ".join(["reading"] * 7))  # the same, as it is cut
    output.print_note("note: done")
    cut = ("reading " * 7)[:49]
    assert capsys.readouterr().err == f"\r\r{cut}\r{' ' * 49}\rnote: done\n"


@pytest.mark.parametrize(
    ("is_terminal", "option", "variable", "term", "has_color"),
    [
        (True, False, "", "xterm", True),
        (False, False, "", "xterm", False),
        (True, True, "", "xterm", False),
        (True, False, "1", "xterm", False),
        (True, False, "", "dumb", False),
    ],
)
def test_a_terminal_has_colors_without_what_excludes_them(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, option: bool, variable: str, term: str, has_color: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", variable)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    assert output.supports_color(sys.stdout, option) is has_color


def test_a_line_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, write in (("stdout", output.print_result), ("stderr", output.print_note)):
        raw = BytesIO()
        with monkeypatch.context() as patched:
            patched.setattr(sys, stream, TextIOWrapper(BufferedWriter(raw)))
            write("a line")
            assert raw.getvalue() == b"a line\n"


@pytest.mark.parametrize(("is_terminal", "width"), [(False, 80), (True, 120)])
def test_only_a_terminal_has_its_width_in_the_report_of_a_fleet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_terminal: bool, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    widths: list[tuple[int, bool]] = []

    def render(_: object, columns: int, has_color: bool) -> str:
        widths.append((columns, has_color))
        return "text"

    options = FleetOptions(chosen=[("text", ""), ("text", str(tmp_path / "file"))])
    fleet_output.write_outputs(cast("RollUp", None), options, render)
    assert [columns for columns, _ in widths] == [width, 80]
    assert widths[1][1] is False
    assert (tmp_path / "file").read_text() == "text"
