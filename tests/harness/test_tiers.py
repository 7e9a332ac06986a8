"""The rules of tests/harness/tiers.py; `make test` covers each fault, class of operations, outcome and kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

from reconciler import kinds
from tests.faults.matrix.table import CLASSES, FAULTS, OPERATIONS, Cell, cells
from tests.faults.matrix.test_matrix import CELLS
from tests.harness.tiers import QUICK_EXAMPLES, examples, first_of_each, full, only_if
from tests.kinds.test_life import WHOLE, first_lives


def quick_cases(parameters: Iterable[Any]) -> list[Any]:
    """The cases that stay in `make test`."""
    stay = [parameter.values for parameter in parameters if all(mark.name != full.name for mark in parameter.marks)]
    return [values[0] if len(values) == 1 else values for values in stay]


def test_a_case_is_quick_if_a_feature_has_a_new_value() -> None:
    cases = first_of_each([(1, "a"), (1, "b"), (2, "b"), (2, "a")], lambda case: case[0], lambda case: case[1] == "b")
    assert [case.values for case in cases] == [(1, "a"), (1, "b"), (2, "b"), (2, "a")]
    assert quick_cases(cases) == [(1, "a"), (1, "b"), (2, "b")]


def test_none_is_no_value_of_a_feature() -> None:
    assert quick_cases(first_of_each([1, 2, 3], lambda case: case if case % 2 else None)) == [1, 3]


def test_a_case_is_quick_if_the_rule_is_true() -> None:
    assert quick_cases(only_if(lambda case: case < 2, range(4))) == [0, 1]


@pytest.mark.parametrize(
    ("profile", "number", "expected"), [("quick", 60, QUICK_EXAMPLES), ("quick", 10, 10), ("full", 60, 60)]
)
def test_a_profile_limits_the_examples_of_a_property(profile: str, number: int, expected: int) -> None:
    loaded = settings.get_current_profile_name()
    settings.load_profile(profile)
    try:
        assert examples(number) == expected
    finally:
        settings.load_profile(loaded)


def test_make_test_covers_each_fault_with_each_class_of_operations() -> None:
    assert sorted(operation for cls in CLASSES for operation in cls) == sorted(OPERATIONS)
    quick: list[Cell] = quick_cases(CELLS)
    met = {(cell.fault, members) for cell in quick for members in CLASSES if cell.operation in members}
    assert met == {(fault, members) for fault in FAULTS for members in CLASSES}


def test_make_test_covers_each_outcome_of_an_operation() -> None:
    def column(cell: Cell) -> tuple[str, bool, str]:
        return cell.operation, cell.lasting, cell.outcome

    assert {column(cell) for cell in quick_cases(CELLS)} == {column(cell) for cell in cells()}


def test_make_test_covers_a_whole_life_of_each_kind() -> None:
    assert {life.kind for life in quick_cases(first_lives(WHOLE))} == {kind.name for kind in kinds.every()}
