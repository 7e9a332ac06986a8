"""How an apply reports waits: in the bar at a terminal, otherwise in lines, and always in the file of events."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from reconciler.cli.applying.bar import Bar, Line
from reconciler.cli.applying.progress import BarReporter, EventFileReporter, EventLog, LineReporter
from reconciler.cli.terminal.wait_notices import ReadProgress
from reconciler.model.event import Waited


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
