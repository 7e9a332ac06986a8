"""`history`: the calls of earlier runs."""

from __future__ import annotations

import json
import time

import pytest

from reconciler.cli.commands import history
from reconciler.model.event import Outcome
from reconciler.store.reading import RecordedCall
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Shell


def test_history_shows_the_outcome_of_each_call(shell: Shell, sandbox: Sandbox) -> None:
    assert shell("history") == Output(0, "", "No calls recorded yet.\n")
    shell("apply", "-y")
    result = shell("history")
    assert result.code == 0
    assert sorted(line.split("  ", 1)[1] for line in result.out.splitlines()) == [
        f"apply    succeeded  create {address}"
        for address in ("IPPolicy/office", "ReservedDomain/pay", "TLSEdge/payments")
    ]


MOMENTS = {
    0.0: "1970-01-01 00:00:00Z",
    951_782_399.9: "2000-02-28 23:59:59Z",
    1_774_747_800.0: "2026-03-29 01:30:00Z",  # the clocks of Europe change in this hour, and in the next one
    1_792_891_800.5: "2026-10-25 01:30:00Z",
    4_102_444_799.0: "2099-12-31 23:59:59Z",
}
ZONES = ("UTC0", "LINT-14", "NST+3:30", "CET-1CEST,M3.5.0,M10.5.0/3")


@pytest.mark.parametrize("zone", ZONES)
def test_the_time_of_a_call_is_that_of_utc_in_every_zone(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        lines = [line_of(at=moment) for moment in MOMENTS]
    time.tzset()
    assert [line.partition("  ")[0] for line in lines] == list(MOMENTS.values())


def line_of(*, at: float = 0.0, outcome: Outcome = Outcome.DONE, why: str = "", command: str = "apply") -> str:
    call, address = "create IPPolicy/office", "IPPolicy/office"
    return history._line(RecordedCall("r", command, at - 60, call, address, "POST", outcome, None, why, at))


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("command", ["apply", "adopt", "destroy"])
def test_a_line_has_the_columns_of_every_other_line(outcome: Outcome, command: str) -> None:
    line = line_of(outcome=outcome, command=command, why="why\x1b[2J")
    assert line.index("create") == line_of().index("create")
    assert line.split() == ["1970-01-01", "00:00:00Z", command, outcome, "create", "IPPolicy/office:", "why\\x1b[2J"]


def test_the_text_has_the_same_calls_as_json(shell: Shell, sandbox: Sandbox) -> None:
    shell("apply", "-y")
    records = [json.loads(line) for line in shell("history", "--format", "json").out.splitlines()]
    lines = [history._line(RecordedCall(**record)) for record in records]
    assert shell("history").out.splitlines() == lines
    assert shell("history", "--limit", "2").out.splitlines() == lines[:2]


def test_a_limit_of_the_history_out_of_range_is_a_usage_error(shell: Shell) -> None:
    result = shell("history", "--limit", "9" * 20)
    assert result.code == 64
    assert "is not in the range" in result.err
