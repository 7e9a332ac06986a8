"""The detector is tested: bugs that are planted do not survive. All of them: `make mutants`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.tiers import only_if
from tests.simulation import mutants
from tests.simulation.planted import SAMPLE


@pytest.mark.parametrize("name", only_if(lambda name: name == SAMPLE[0], SAMPLE))
def test_a_planted_bug_is_caught_by_the_simulation(name: str) -> None:
    bug = next(bug for bug in mutants.EVERY_BUG if bug.name == name)
    assert mutants.verdict(bug).by == "simulation"


def test_each_planted_bug_has_its_text_in_the_source(tmp_path: Path) -> None:
    for bug in mutants.EVERY_BUG:
        source = mutants.ROOT / "reconciler" / bug.file
        copy = tmp_path / "reconciler" / bug.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(source.read_text())
        mutants.plant(bug, tmp_path)
        compile(copy.read_text(), bug.file, "exec")


def test_planted_bugs_are_distinct() -> None:
    assert len({bug.name for bug in mutants.EVERY_BUG}) == len(mutants.EVERY_BUG) >= 20
