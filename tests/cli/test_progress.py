"""How commands report reading and waiting: at a terminal on its last line, otherwise in lines, and in a file."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from rich.console import Console

from reconciler.cli.applying.bar import Bar, Line
from reconciler.cli.applying.progress import (
    BarReporter,
    EventFileReporter,
    EventLog,
    LineReporter,
    report_progress,
    write_events,
)
from reconciler.cli.fleets.progress import LineReporter as FleetLines
from reconciler.cli.fleets.progress import describe_progress
from reconciler.cli.terminal import output
from reconciler.cli.terminal.options import Options
from reconciler.cli.terminal.wait_notices import ReadProgress
from reconciler.fleet.coordinator import FleetProgress
from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome, Retried, Waited
from reconciler.model.fleet import TaskState
from reconciler.model.plan import Call, Verb
from reconciler.operations.reporting import ListRead, Note, OperationEvent, ReadRetried
from tests.cli.test_bar import terminal
from tests.harness.platform import SandboxProcess
from tests.harness.project import Shell


def test_a_wait_before_the_first_call_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    EventLog().report_wait(41.25)
    assert capsys.readouterr().err == "waiting 41.2 s for the request budget\n"


def test_a_wait_during_the_calls_is_passed_to_every_reporter(capsys: pytest.CaptureFixture[str]) -> None:
    record = io.StringIO()
    EventLog(reporters=[LineReporter(120), EventFileReporter(record, "a file")]).report_wait(12)
    assert capsys.readouterr().err.strip() == "waiting 12.0 s for the request budget"
    assert record.getvalue() == '{"version": 2, "event": "waited", "seconds": 12}\n'


def test_a_short_wait_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    EventLog().report_wait(0.2)
    EventLog(reporters=[LineReporter(120)]).report_wait(0.2)
    assert capsys.readouterr().err == ""


def test_the_bar_counts_a_wait_down() -> None:
    now = 100.0
    line = Line(console=Console(file=io.StringIO(), force_terminal=True), get_time=lambda: now)
    drawing = Bar(line, line.add_task("applying", total=9))
    BarReporter(drawing).report(Waited(7.5), 0)
    now = 102.0
    assert line.state(line.tasks[0]).wait == 5.5
    now = 110.0
    assert line.state(line.tasks[0]).wait == 0


def test_a_reason_for_retries_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ReadProgress()
    for _ in range(20):
        progress.report_retry("cannot reach http://127.0.0.1:1: connection refused")
    assert capsys.readouterr().err == "cannot reach http://127.0.0.1:1: connection refused; retrying\n"


def test_retries_with_different_operation_ids_are_one_reason(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ReadProgress()
    for number in range(20):
        progress.report_retry(f"500 internal error (operation op_2Xy{number})")
    assert capsys.readouterr().err == "500 internal error (operation op_2Xy0); retrying\n"


def test_quiet_prints_no_retries_and_waits(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ReadProgress(quiet=True)
    progress.report_retry("cannot reach it")
    progress.report_wait(30)
    assert capsys.readouterr().err == ""


LISTS: list[OperationEvent] = [
    ListRead(0, 28),
    ListRead(12, 28),
    Note("the key may not read api_keys"),
    ListRead(27, 28),
    ListRead(28, 28),
]


def test_the_lists_that_were_read_are_counted_on_the_last_line_of_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    progress = ReadProgress()
    for event in LISTS:
        progress(event)
    first, second, third = (f"reading the account, {number} of 28 lists" for number in (0, 12, 27))
    assert capsys.readouterr().err == (
        f"\r\r{first}\r{' ' * len(first)}\r{second}\r{' ' * len(second)}\rthe key may not read api_keys\n"
        f"\r\r{third}\r{' ' * len(third)}\r"
    )


@pytest.mark.parametrize("reason", ["pipeline", "dumb", "json", "quiet"])
def test_lists_are_counted_only_at_a_terminal_that_can_erase_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setenv("TERM", "dumb" if reason == "dumb" else "xterm")
    monkeypatch.setenv("RECONCILER_LOG_FORMAT", "json" if reason == "json" else "text")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: reason != "pipeline")
    progress = ReadProgress(quiet=reason == "quiet")
    for event in LISTS:
        progress(event)
    assert "reading" not in capsys.readouterr().err


@pytest.mark.parametrize(("command", "code", "summary"), [("plan", 0, "3 to create"), ("drift", 2, "Drift: 3")])
def test_a_terminal_shows_what_is_read_before_the_platform_answers(
    shell: Shell, start_sandbox: Callable[..., SandboxProcess], command: str, code: int, summary: str
) -> None:
    slow = start_sandbox(latency_ms=1000)
    with terminal(command, width=60, environment=slow.environ) as screen:
        begun = screen.read_until(b"reading the account, 0 of 28 lists")
        assert slow.log() == []
        assert b"\rreading the project\r" in begun
        output = screen.read_until().decode()
        assert screen.process.wait() == code
    assert "reading the account, 27 of 28 lists" in output
    *_, result = output.split(" \r")
    assert "reading" not in result
    assert summary in result


class _Closed:
    """A bar on a terminal that was closed."""

    def advance(self, ended: int) -> None:
        raise OSError(errno.EIO, "closed")


def test_an_apply_ignores_that_its_terminal_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    discarded: list[object] = []
    monkeypatch.setattr(output, "discard", discarded.append)
    BarReporter(cast("Bar", _Closed())).report(ENDED[0], 1)
    assert discarded == [sys.stderr]


CALL = Call("create a", Address("IPPolicy", "a"), Verb.CREATE, "/ip_policies")
ENDED = [Ended(CALL, outcome, 1.0, why="odd" if outcome is Outcome.FAILED else "") for outcome in Outcome]


def test_the_bar_prints_every_end_but_those_of_skipped_calls_and_failures_in_red() -> None:
    file = io.StringIO()
    console = Console(file=file, width=60, force_terminal=True, color_system="standard", legacy_windows=False)
    line = Line(console=console)
    reporter = BarReporter(Bar(line, line.add_task("applying", total=9)))
    for number, event in enumerate(ENDED, 1):
        reporter.report(event, number)
        assert line.tasks[0].completed == number
    reporter.report(Waited(0.99), 5)
    assert line.state(line.tasks[0]).wait == 0
    reporter.report(Waited(1.0), 5)
    assert line.state(line.tasks[0]).wait > 0
    red = [text.startswith("\x1b[31m") for text in file.getvalue().splitlines()]
    assert red == [
        outcome in (Outcome.FAILED, Outcome.UNKNOWN) for outcome in Outcome if outcome is not Outcome.SKIPPED
    ]


@pytest.mark.parametrize(
    ("total", "quiet", "events", "is_json", "has_color", "expected"),
    [
        (3, False, "", False, False, ["LineReporter"]),
        (3, False, "", False, True, ["BarReporter"]),
        (3, False, "", True, True, ["JsonLogReporter"]),
        (3, False, "events.jsonl", False, False, ["LineReporter", "EventFileReporter"]),
        (3, False, "-", False, True, ["EventFileReporter"]),
        (3, True, "", False, True, []),
        (0, False, "", False, True, []),
    ],
)
def test_the_options_and_the_terminal_select_the_reporters(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    total: int,
    quiet: bool,
    events: str,
    is_json: bool,
    has_color: bool,
    expected: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output, "is_json_log", lambda: is_json)
    monkeypatch.setattr(output, "supports_color", lambda *_: has_color)
    observer: Any = LineReporter(1)
    for watched in (None, observer):
        log = EventLog()
        options = Options(quiet=quiet, events=events, observer=watched)
        with write_events(log, options), report_progress(log, options, total):
            found = [*log.reporters, *log.files]
        assert [type(one).__name__ for one in found if one is not observer] == expected
        assert (observer in found) is (watched is not None)


@pytest.mark.parametrize("total", [9, 10, 120])
def test_lines_are_numbered_and_aligned(capsys: pytest.CaptureFixture[str], total: int) -> None:
    reporter = LineReporter(total)
    for number, event in enumerate(ENDED, 1):
        reporter.report(event, number)
    reporter.report(Retried(CALL, 2, 1.5, "busy"), len(ENDED))
    lines = capsys.readouterr().err.splitlines()
    digits = len(str(total))
    heads = [line[: 2 * digits + 3] for line in lines]
    numbers = [number for number, event in enumerate(ENDED, 1) if event.outcome is not Outcome.SKIPPED]
    assert heads == [*(f"{number:>{digits}}/{total}  " for number in numbers), " " * (2 * digits + 3)]


def test_waits_retries_and_notes_are_printed_as_they_happen(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        progress = ReadProgress(quiet)
        progress(Waited(1.0))
        progress(Waited(0.9))
        progress(ReadRetried(2.0, "busy"))
        progress(Note("a note"))
        progress(Note("a detail", (), True))
    assert capsys.readouterr().err.splitlines() == [
        "waiting 1.0 s for the request budget",
        "busy; retrying",
        "a note",
        "a detail",
        "a note",
    ]


# --- a fleet

SOME = {TaskState.SUCCEEDED: 3, TaskState.FAILED: 1, TaskState.RUNNING: 2, TaskState.WAITING: 4}
SLOW = tuple((f"m{place}", 30.0 * place) for place in range(5, 0, -1))
FLEETS = [
    (FleetProgress({TaskState.WAITING: 1}, "", 0.0), "0 of 1 done, 1 waiting"),
    (FleetProgress(SOME, "w", 0.5), "4 of 10 done, 1 failed, 6 waiting, 0.5/s, about 12 s left"),
    (FleetProgress(SOME, "w", 0.5, "paused"), "4 of 10 done, 1 failed, 6 waiting; the run waits: paused"),
    (
        FleetProgress(SOME, "w", 0.5, slow=SLOW[:3]),
        "4 of 10 done, 1 failed, 6 waiting, waiting for m5 (2 min), m4 (2 min), m3 (90 s)",
    ),
    (
        FleetProgress(SOME, "w", 0.5, slow=SLOW),
        "4 of 10 done, 1 failed, 6 waiting, waiting for m5 (2 min), m4 (2 min), m3 (90 s) and 2 more",
    ),
    (FleetProgress({TaskState.SUCCEEDED: 9}, "w", 2.0), "9 of 9 done, 2.0/s"),
]


@pytest.mark.parametrize(("progress", "text"), FLEETS)
def test_the_progress_of_a_fleet_is_one_line(progress: FleetProgress, text: str) -> None:
    assert describe_progress("planning", progress) == f"planning: {text}"


def test_a_line_about_a_fleet_is_printed_every_ten_seconds_and_when_the_wave_or_the_wait_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 100.0
    report = FleetLines("planning", lambda: now)
    first, other = FLEETS[1][0], FLEETS[2][0]
    printed = []
    for moment, progress in (
        (100.0, first),
        (109.9, first),
        (110.0, first),
        (111.0, replace(first, wave="next")),
        (112.0, replace(first, wave="next")),
        (113.0, other),
        (114.0, other),
        (115.0, first),
        (124.9, first),
        (125.0, first),
    ):
        now = moment
        report(progress)
        if capsys.readouterr().err:
            printed.append(moment)
    assert printed == [110.0, 111.0, 113.0, 115.0, 125.0]
