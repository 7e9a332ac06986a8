"""kill -9 of the real command, which talks to a real sandbox and keeps a real store: one rerun is enough.

Each kind of moment in `make test`, a seeded sample of moments in `make test-full`, all of them in `make soak`.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from reconciler.engine.apply import POINTS
from tests.faults.kills import projects, proxy, real
from tests.faults.kills.projects import CrashProject
from tests.faults.kills.proxy import Proxy
from tests.faults.kills.real import Moment
from tests.harness.tiers import first_of_each, only_if

Prepared = Callable[[CrashProject], Path]
MomentsOf = Callable[[CrashProject], list[Moment]]

BUILDING, REBUILDING, FIFTY = projects.create_all(), projects.replace_all(), projects.fifty()
SAMPLE = [(project, draw) for project, draws in ((BUILDING, 5), (REBUILDING, 4), (FIFTY, 4)) for draw in range(draws)]
WRITES = [f"{edge} {name}" for name in ("commit", "fsync", "link") for edge in ("before", "after")]
SLICES = 16


def flaws(project: CrashProject, moment: Moment, prepared: Path, home: Path) -> list[str]:
    """What one kill does that a rerun does not put right."""
    point, what, nth = moment
    with real.scene(project, prepared, home) as scene:
        process = scene.start({"point": point, "what": what, "nth": nth, "signal": signal.SIGKILL})
        process.communicate(timeout=60)
        # How many commits there are is for chance to say, since one serves all who wait: the last ones may not come.
        assert process.returncode == -signal.SIGKILL or (process.returncode == 0 and not what), moment
        return [f"killed {point} {what} ({nth}): {flaw}" for flaw in scene.flaws()]


def flaws_on_the_wire(project: CrashProject, phase: str, nth: int, prepared: Path, home: Path) -> list[str] | None:
    """As `flaws`, of a kill during the n-th request that changes something; None: there are not so many."""
    with real.scene(project, prepared, home) as scene:
        between = Proxy(scene.sandbox.base_url, phase, nth, lambda: process.kill())
        try:
            process = scene.start({"point": "", "what": "", "nth": 0, "signal": 0}, between.url)
            process.communicate(timeout=60)
        finally:
            between.close()
        if between.struck is None:
            assert process.returncode == 0
            return None
        assert process.returncode == -signal.SIGKILL
        return [f"killed {phase} of {between.struck}: {flaw}" for flaw in scene.flaws()]


@pytest.mark.parametrize("point", WRITES)
def test_one_rerun_is_enough_after_a_kill_at_each_kind_of_write(
    point: str, prepared: Prepared, moments_of: MomentsOf, tmp_path: Path
) -> None:
    moment = next(moment for moment in moments_of(BUILDING) if moment[0] == point)
    assert flaws(BUILDING, moment, prepared(BUILDING), tmp_path) == []


@pytest.mark.parametrize(
    ("project", "draw"), first_of_each(SAMPLE, lambda case: None if case[0] is FIFTY else case[0]), ids=str
)
def test_one_rerun_is_enough_after_a_kill(
    project: CrashProject, draw: int, prepared: Prepared, moments_of: MomentsOf, tmp_path: Path
) -> None:
    moment = Random(f"{project}-{draw}").choice(moments_of(project))
    assert flaws(project, moment, prepared(project), tmp_path) == []


@pytest.mark.parametrize("phase", proxy.PHASES)
@pytest.mark.parametrize(
    ("project", "nth"),
    only_if(lambda case: case[0] is BUILDING, [(BUILDING, 2), (REBUILDING, 3), (FIFTY, 20)]),
    ids=str,
)
def test_one_rerun_is_enough_after_a_kill_on_the_wire(
    project: CrashProject, nth: int, phase: str, prepared: Prepared, tmp_path: Path
) -> None:
    assert flaws_on_the_wire(project, phase, nth, prepared(project), tmp_path) == []


def test_a_real_apply_reaches_the_checkpoints_of_a_run_without_faults(moments_of: MomentsOf) -> None:
    passed = {point for project in (BUILDING, REBUILDING) for point, _, _ in moments_of(project)}
    only_in_trouble = {f"{edge} {step}" for step in ("search", "revoke") for edge in ("before", "after")}
    assert passed >= {*POINTS} - only_in_trouble
    assert passed >= {f"{edge} {name}" for name in ("commit", "fsync", "link") for edge in ("before", "after")}


@pytest.mark.soak
@pytest.mark.parametrize("slice_", range(SLICES))
@pytest.mark.parametrize("project", [BUILDING, REBUILDING, FIFTY], ids=str)
def test_one_rerun_is_enough_after_a_kill_at_any_point(
    project: CrashProject, slice_: int, prepared: Prepared, moments_of: MomentsOf, tmp_path: Path
) -> None:
    found = []
    for number, moment in enumerate(moments_of(project)[slice_::SLICES]):
        found += flaws(project, moment, prepared(project), tmp_path / str(number))
    assert found == []


@pytest.mark.soak
@pytest.mark.parametrize("phase", proxy.PHASES)
@pytest.mark.parametrize("project", [BUILDING, REBUILDING, FIFTY], ids=str)
def test_one_rerun_is_enough_after_a_kill_during_any_request(
    project: CrashProject, phase: str, prepared: Prepared, tmp_path: Path
) -> None:
    nth, all_found = 1, []
    while (found := flaws_on_the_wire(project, phase, nth, prepared(project), tmp_path / str(nth))) is not None:
        all_found += found
        nth += 1
    assert all_found == []
    assert nth > 5
