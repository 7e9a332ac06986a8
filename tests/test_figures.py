"""docs/reliability.md and docs/sandbox.md give the sizes that the tests have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

from tests.clients import test_agents, test_management
from tests.faults.kills import test_points
from tests.faults.kills.crashing import Known
from tests.faults.matrix.test_matrix import CELLS
from tests.laws import test_laws
from tests.planning import test_risks
from tests.planning.test_pending import ROWS
from tests.security.test_origin import EACH
from tests.simulation.mutants import EVERY_BUG

ROOT = Path(__file__).parents[1]
RELIABILITY = ("docs/reliability.md",)


def count_cases(test: Any) -> int:
    """The parameters of a test with one list of them."""
    [mark] = test.pytestmark
    return len(mark.args[1])


def count_points() -> int:
    small = (test_points.BUILDING, test_points.REBUILDING)
    changes = (*small, test_points.FIFTY, *test_points.LOSSY[: len(small)])
    return sum(len(change.moments(change.start())) for change in changes)


def count_pairs() -> int:
    known = [Known(change) for change in (test_points.BUILDING, test_points.REBUILDING)]
    return sum(len(list(test_points.pairs(kill, part))) for kill in known for part in range(test_points.SLICES))


def count_successes(client: str) -> str:
    calls = [call for call in test_management.CALLS if call.client == client]
    return f"{sum(str(call) not in test_management.REFUSED for call in calls)} of {len(calls)}"


def count_agent_calls(client: str) -> str:
    calls = len(test_agents.CALLS[client])
    return f"{calls} of {calls}"


@pytest.mark.parametrize(
    ("row", "size", "pages"),
    [
        ("network faults × operations", lambda: f"{len(CELLS)} cells", RELIABILITY),
        ("killed at each point of an apply", lambda: f"{count_points()} points", RELIABILITY),
        ("killed at two points in a row", lambda: f"{count_pairs():,} pairs", RELIABILITY),
        ("properties of planning", lambda: str(sum(map(is_hypothesis_test, vars(test_laws).values()))), RELIABILITY),
        (
            "which changes widen access or stop agents",
            lambda: f"{len(test_risks.WIDER) + count_cases(test_risks.test_disabling_changes_have_the_risk)} rows",
            RELIABILITY,
        ),
        ("drift and pending changes", lambda: f"{len(ROWS)} rows", RELIABILITY),
        ("next pages and redirects", lambda: f"{EACH:,} of each", RELIABILITY),
        ("injected bugs", lambda: str(len(EVERY_BUG)), RELIABILITY),
        ("`@ngrok/ngrok-api`", lambda: count_successes("typescript"), ("docs/sandbox.md",)),
        ("`com.ngrok:ngrok-api-java`", lambda: count_successes("java"), ("docs/sandbox.md",)),
        ("configuration version 3 |", lambda: count_agent_calls("pyngrok 3"), ("docs/sandbox.md",)),
        ("configuration version 2 |", lambda: count_agent_calls("pyngrok 2"), ("docs/sandbox.md",)),
        ("Node.js, `ngrok`", lambda: count_agent_calls("ngrok"), ("docs/sandbox.md",)),
    ],
)
def test_a_page_states_the_size_of_the_tests(row: str, size: Callable[[], str], pages: tuple[str, ...]) -> None:
    for page in pages:
        lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
        [cells] = [line.split("|") for line in lines if "|" in line and row in line]
        assert size() in cells[2].strip().split(", "), page
