"""What an apply tells while it waits: in the bar's own line at a terminal, in lines elsewhere, always in the record."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from reconciler.cli.applying.bar import Bar, Line
from reconciler.cli.applying.progress import Drawn, EventLog, Lines, Records
from reconciler.cli.terminal.wait_notices import ReadProgress
from reconciler.model.event import Waited


def test_a_wait_before_the_first_call_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    EventLog().waited(41.25)
    assert capsys.readouterr().err == "waiting 41.2 s for the request budget\n"


def test_a_wait_during_the_calls_is_told_to_whoever_tells(capsys: pytest.CaptureFixture[str]) -> None:
    record = io.StringIO()
    EventLog(tellers=[Lines(120), Records(record, "a file")]).waited(12)
    assert capsys.readouterr().err.strip() == "waiting 12.0 s for the request budget"
    assert record.getvalue() == '{"version": 1, "event": "waited", "seconds": 12}\n'


def test_a_wait_of_an_instant_is_worth_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    EventLog().waited(0.2)
    EventLog(tellers=[Lines(120)]).waited(0.2)
    assert capsys.readouterr().err == ""


def test_the_bar_counts_a_wait_down() -> None:
    now = 100.0
    line = Line(console=Console(file=io.StringIO(), force_terminal=True), get_time=lambda: now)
    drawing = Bar(line, line.add_task("applying", total=9))
    Drawn(drawing).tell(Waited(7.5), 0)
    now = 102.0
    assert line.state(line.tasks[0]).wait == 5.5
    now = 110.0
    assert line.state(line.tasks[0]).wait == 0


def test_a_reason_to_try_again_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    told = ReadProgress()
    for _ in range(20):
        told.retried("cannot reach http://127.0.0.1:1: connection refused")
    assert capsys.readouterr().err == "cannot reach http://127.0.0.1:1: connection refused; trying again\n"


def test_the_number_of_the_request_makes_no_other_reason(capsys: pytest.CaptureFixture[str]) -> None:
    told = ReadProgress()
    for number in range(20):
        told.retried(f"500 internal error (operation op_2Xy{number})")
    assert capsys.readouterr().err == "500 internal error (operation op_2Xy0); trying again\n"


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    told = ReadProgress(quiet=True)
    told.retried("cannot reach it")
    told.waited(30)
    assert capsys.readouterr().err == ""
