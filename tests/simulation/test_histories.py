"""Whatever happens to a run, one clean rerun makes everything right. What `right` means is listed in `invariants`."""

from __future__ import annotations

import pytest

from tests.harness.tiers import only_if
from tests.simulation import simulate
from tests.simulation.found import FOUND

HISTORIES = 10_000
QUICK = 250  # of them in `make test`
A_TEST = 250
SOAK = 1_000_000
SOAK_TEST = 5_000


def expect_none(seeds: range) -> None:
    for seed, broken in simulate.find_failures(seeds).items():
        report = "\n  ".join(broken)
        pytest.fail(
            f"history {seed} ends badly:\n  {report}\nreplay: .venv/bin/python -m tests.simulation {seed}",
            pytrace=False,
        )


@pytest.mark.parametrize("seed", FOUND, ids=str)
def test_recorded_seeds_find_no_violation(seed: int) -> None:
    expect_none(range(seed, seed + 1))


@pytest.mark.parametrize("first", only_if(lambda first: first < QUICK, range(0, HISTORIES, A_TEST)))
def test_one_clean_run_after_a_history_leaves_no_violation(first: int) -> None:
    expect_none(range(first, first + A_TEST))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(HISTORIES, HISTORIES + SOAK, SOAK_TEST))
def test_one_clean_run_after_each_of_a_million_histories_leaves_no_violation(first: int) -> None:
    expect_none(range(first, first + SOAK_TEST))


def test_a_seed_determines_a_history() -> None:
    def play(seed: int) -> list[str]:
        lines: list[str] = []
        simulate.play(seed, lines.append)
        return lines

    assert [play(seed) for seed in range(30)] == [play(seed) for seed in range(30)]
