"""The tiers of the tests: which cases `make test` leaves to `make test-full`, and how many examples each gives a law.

`make test` proves every promise once. What it leaves out has the marker `full`; `make test-full` runs all tests but
those with a marker of their own (`soak`, `postgres`, `editor`, `clients`). Cases of a table are chosen by a rule, not
by name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

QUICK_EXAMPLES = 10
"""Examples of each law in `make test`. tests/conftest.py sets it in the default profile of hypothesis."""

FULL_EXAMPLES = 100
"""Examples in all other profiles, for a law that asks for no other number."""

full = pytest.mark.full
T = TypeVar("T")


def is_quick() -> bool:
    """Whether this is `make test`."""
    return settings().max_examples == QUICK_EXAMPLES


def examples(number: int) -> int:
    """For `settings(max_examples=…)`: this number in `make test-full`, and at most `QUICK_EXAMPLES` in `make test`."""
    return min(number, QUICK_EXAMPLES) if is_quick() else number


def first_of_each(cases: Iterable[T], *features: Callable[[T], Hashable]) -> list[Any]:
    """Parameters for a test, in the given order. A case is in `make test` if a feature has a new value in it.

    A case that is a tuple is several parameters. None is no value of a feature.
    """
    seen: set[tuple[int, Hashable]] = {(number, None) for number in range(len(features))}
    found = []
    for case in cases:
        new = {(number, feature(case)) for number, feature in enumerate(features)} - seen
        seen |= new
        found.append(_parameters(case, bool(new)))
    return found


def only_if(stays: Callable[[T], bool], cases: Iterable[T]) -> list[Any]:
    """Parameters for a test, in the given order. A case is in `make test` if the rule is true.

    A case that is a tuple is several parameters.
    """
    return [_parameters(case, stays(case)) for case in cases]


def _parameters(case: Any, stays: bool) -> Any:
    return pytest.param(*(case if type(case) is tuple else (case,)), marks=() if stays else full)
