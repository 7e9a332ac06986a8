"""Problems of several resources with one cause in a file are merged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.problem import Position, Problem, Severity, merge_repeated

PLACE = Position("a.yaml", 3, 1)


def problem(subject: str, text: str = "unknown field", **more: object) -> Problem:
    return Problem(text, "remove it", subject, **{"position": PLACE, "code": "unknown-field", **more})  # type: ignore[arg-type]


def test_the_same_problem_of_several_instances_is_merged_with_their_number() -> None:
    names = ("a", "b.x", "c", "d")
    (merged,) = merge_repeated(problem(f"IPPolicy/{name}.spec.foo") for name in names)
    assert str(merged) == "a.yaml:3:1: IPPolicy/a.spec.foo: unknown field (4 resources: a, b.x, c, …); remove it"


def test_a_text_that_names_its_instance_is_the_same_for_each() -> None:
    (merged,) = merge_repeated(problem(f"IPPolicy/p-{name}.x", f"p-{name} is wrong") for name in "ab")
    assert merged.text == "p-a is wrong (2 resources: p-a, p-b)"


@pytest.mark.parametrize(
    "other",
    [
        problem("IPPolicy/b", position=Position("a.yaml", 4, 1)),
        problem("IPPolicy/b", position=None),
        problem("IPPolicy/b", code="missing-field"),
        problem("IPPolicy/b", "refers to IPPolicy/y, which is not declared"),
        problem("IPPolicy/b", severity=Severity.WARNING),
        problem("IPPolicy/b", rule="office-only"),
        problem("TLSEdge/b"),
        problem("platform"),
        problem("IPPolicy/a"),
    ],
)
def test_different_problems_are_not_merged(other: Problem) -> None:
    problems = [problem("IPPolicy/a"), other]
    assert merge_repeated(problems) == problems


@given(st.lists(st.builds(problem, st.sampled_from(["A/a", "A/b", "A/a.x", "B/a", "", "x"]), st.sampled_from("xy"))))
def test_no_problem_is_lost_and_each_resource_is_counted(problems: list[Problem]) -> None:
    merged = merge_repeated(problems)
    assert {one.severity for one in merged} == {one.severity for one in problems}
    assert len(merged) <= len(problems)
    assert bool(merged) == bool(problems)
    assert all(any(other.subject == one.subject for other in problems) for one in merged)
