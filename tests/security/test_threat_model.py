"""Every row of docs/security.md names a test that exists, or is marked as a limit that no test shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?`")
_CELL = re.compile(r"(?<!\\)\|")


def rows() -> list[tuple[str, str, str]]:
    """Rows of the tables: attempt, result, tests."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in _CELL.split(line)[1:-1]] for line in lines]
    return [(row[0], row[1], row[2]) for row in cells if row[0] not in ("attempt", "---")]


def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:60])
def test_each_row_names_a_test_that_exists(row: tuple[str, str, str]) -> None:
    _, result, named = row
    if named == "—":
        assert "possible" in result, "a limit that no test shows says that the attempt is possible"
        return
    tests = _TEST.findall(named)
    assert tests, named
    for file, function in tests:
        path = ROOT / file
        assert path.exists(), file
        if function:
            assert function in functions_of(path), f"{file}::{function}"


def test_the_page_has_a_table_for_each_attacker() -> None:
    assert _SECTION.findall(PAGE.read_text(encoding="utf-8")) == [
        "Author of a pull request from a fork",
        "Author with push rights",
        "Compromised dependency of a job",
        "Hostile answers of the platform",
        "Other user of the machine",
    ]
