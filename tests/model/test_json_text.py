from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.json_text import write_json

TEXTS = st.text(st.characters(exclude_categories=()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=12,
)


@given(VALUES, st.integers(1, 4))
def test_the_text_is_that_of_the_standard_library(value: object, indent: int) -> None:
    assert write_json(value, indent) == json.dumps(value, indent=indent)


@pytest.mark.parametrize(
    "value",
    [{}, [], [[], {}], {"": {}}, "\ud800", {"\udfffx": ["x\ud83d"]}, math.nan, [-math.inf], -0.0, 1e22, 10**400],
    ids=repr,
)
def test_values_at_the_borders_of_json_have_the_text_of_the_standard_library(value: object) -> None:
    assert write_json(value) == json.dumps(value, indent=2)


def test_a_deep_value_has_the_text_of_the_standard_library() -> None:
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    assert write_json(deep) == json.dumps(deep, indent=2)


def test_a_value_that_is_none_of_json_is_refused() -> None:
    with pytest.raises(TypeError):
        write_json({1, 2})
