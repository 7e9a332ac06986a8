"""SIGINT and SIGTERM at any moment of a real apply: exit 130, a true report, nothing half-written, and one rerun.

One of each project in `make test`, a seeded sample of moments in `make test-full`, all moments in `make soak`.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.faults.kills import crashing, projects, real
from tests.faults.kills.crashing import Change
from tests.faults.kills.projects import CrashProject
from tests.faults.kills.real import Moment
from tests.harness.tiers import first_of_each

Prepared = Callable[[CrashProject], Path]
MomentsOf = Callable[[CrashProject], list[Moment]]

BUILDING, REBUILDING = projects.create_all(), projects.replace_all()
REPORT = re.compile(r"(\d+) calls? succeeded, (\d+) failed, (\d+) skipped\.")
HOW = [signal.SIGINT, signal.SIGTERM]
SLICES = 8


def flaws(project: CrashProject, moment: Moment, how: signal.Signals, prepared: Path, home: Path) -> list[str]:
    point, what, nth = moment
    with real.scene(project, prepared, home) as scene:
        process = scene.start({"point": point, "what": what, "nth": nth, "signal": how})
        out, err = process.communicate(timeout=60)
        found = _untrue(project, out, err, process.returncode, len(scene.sandbox.calls()))
        return [f"{how.name} {point} {what} ({nth}): {flaw}" for flaw in [*found, *scene.flaws()]]


def _untrue(project: CrashProject, out: str, err: str, code: int, sent: int) -> list[str]:
    """What the report of an interrupted run says that is not so."""
    calls = len(crashing.plan_change(Change(project)).calls)
    report = REPORT.search(out)
    if code == 0:
        return [] if sent == calls else [f"exit 0 after {sent} of {calls} calls"]  # it was over already
    found = [] if code == 130 else [f"exit {code}: {err}"]
    if "Traceback" in err:
        found.append(err)
    if report is None:
        # Before the first call, or after the last: then the sum of all was told.
        is_summary_printed = "Applied:" in out
        return found + (
            [] if sent == (calls if is_summary_printed else 0) else [f"nothing tells of {sent} calls that were sent"]
        )
    done, failed, left = map(int, report.groups())
    if (done + failed + left, done, failed) != (calls, sent, 0):
        found.append(f"{report[0]} Sent were {sent} of {calls}")
    named = [line for line in err.splitlines() if line.startswith("skipped: ")]
    return found + ([] if len(named) == left else [f"{len(named)} of {left} are named"])


@pytest.mark.parametrize("how", HOW, ids=lambda signal: signal.name)
@pytest.mark.parametrize(
    ("project", "draw"),
    first_of_each(
        [(crash_project, draw) for crash_project in (BUILDING, REBUILDING) for draw in range(2)], lambda case: case[0]
    ),
    ids=str,
)
def test_an_interrupt_at_any_point_leaves_a_consistent_state(
    project: CrashProject, draw: int, how: signal.Signals, prepared: Prepared, moments_of: MomentsOf, tmp_path: Path
) -> None:
    moment = Random(f"{project}-{draw}-{how.name}").choice(moments_of(project))
    assert flaws(project, moment, how, prepared(project), tmp_path) == []


def test_a_second_interrupt_exits_at_once_and_names_the_running_calls(prepared: Prepared, tmp_path: Path) -> None:
    project = projects.plain()
    with real.scene(project, prepared(project), tmp_path) as scene:
        scene.sandbox.fault("POST /ip_policies", then="commit-then-hang")
        moment = {"point": "before send", "what": "create IPPolicy/office", "nth": 1, "signal": signal.SIGINT}
        process = scene.start(moment)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("interrupted: waiting for running calls to finish")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, "0 calls succeeded, 0 failed, 2 skipped, 1 unknown.\n")
        assert err.splitlines() == [
            "unknown: create IPPolicy/office: interrupted while in progress; the next run checks it",
            "skipped: create TCPEdge/db: the run was stopped",
            "skipped: create TLSEdge/pay: the run was stopped",
            "interrupted",
        ]
        assert scene.flaws() == []


@pytest.mark.soak
@pytest.mark.parametrize("how", HOW, ids=lambda signal: signal.name)
@pytest.mark.parametrize("slice_", range(SLICES))
@pytest.mark.parametrize("project", [BUILDING, REBUILDING], ids=str)
def test_an_interrupt_at_each_point_leaves_a_consistent_state(
    project: CrashProject, slice_: int, how: signal.Signals, prepared: Prepared, moments_of: MomentsOf, tmp_path: Path
) -> None:
    found = []
    for number, moment in enumerate(moments_of(project)[slice_::SLICES]):
        found += flaws(project, moment, how, prepared(project), tmp_path / str(number))
    assert found == []
