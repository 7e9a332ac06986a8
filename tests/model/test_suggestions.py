"""Suggestions for misspelled words."""

from __future__ import annotations

from reconciler.model import suggestions
from tests.harness.steps import count_steps


def test_a_similar_word_is_suggested() -> None:
    assert suggestions.did_you_mean("HOSTPROTS", ["hostports", "metadata"]) == "did you mean hostports?"
    assert suggestions.did_you_mean("zzz", ["hostports"]) == ""
    assert suggestions.with_suggestion("field", "hostprots", ["hostports"]) == {
        "field": "hostprots",
        "suggestion": "hostports",
    }
    assert suggestions.with_suggestion("field", "zzz", ["hostports"]) == {"field": "zzz"}


def test_very_many_candidates_and_very_long_words_have_no_suggestion() -> None:
    many = [f"name{number}" for number in range(999)]
    assert suggestions.closest("nam1", [*many, "x"]) == "name1"
    assert suggestions.closest("nam1", [*many, "x", "y"]) == ""
    assert suggestions.closest("x" * 200, ["x" * 199]) == "x" * 199
    assert suggestions.closest("x" * 201, ["x" * 200]) == ""
    assert suggestions.closest("ab", ["aB", "Ab"]) == suggestions.closest("ab", ["Ab", "aB"])


def test_a_repeated_word_is_compared_once() -> None:
    many = [f"name{number}" for number in range(500)]
    once = count_steps(lambda: suggestions.closest("nmae7", many))
    assert count_steps(lambda: suggestions.closest("nmae7", many)) < 10 < 1000 < once
