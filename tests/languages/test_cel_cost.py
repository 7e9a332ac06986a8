"""The estimate of the size of what an expression builds is an upper bound."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages import cel_cost
from reconciler.languages.cel import EvaluationFailed, InvalidExpression, Language
from tests.harness.steps import count_steps

LANGUAGE = Language("resource", functions=("refs",))
ITEM = "refs(resource).filter(v, v.name != {}).map(v, v.name + {})"
TEXTS = st.recursive(
    st.sampled_from(["'ab'", "resource.text", "resource.list[0]", "string(17)"]),
    lambda inner: st.one_of(
        st.builds("{} + {}".format, inner, inner),
        st.builds("({}).replace({}, {})".format, inner, inner, inner),
        st.builds("({}).split({}).join({})".format, inner, inner, inner),
        st.builds("['x', {}].map(v, v + {}).join({})".format, inner, inner, inner),
        st.builds("resource.list.filter(v, v != {}).map(v, [v, {}]).map(w, w.join('-')).join('')".format, inner, inner),
        st.builds("'%s: %s'.format([{}, resource.list])".format, inner),
        st.builds("(resource.list.size() > 2 ? {} : {})".format, inner, inner),
        st.builds("strings.quote({})".format, inner),
        st.builds("({}).upperAscii()".format, inner),
        st.builds(f"{ITEM}.join({{}})".format, inner, inner, inner),
        st.builds("refs(resource).map(v, refs(v).map(w, w.list.map(x, x + {})))[0][0][0]".format, inner),
        st.builds("refs(resource)[0].name.replace('a', {})".format, inner),
    ),
    max_leaves=7,
)


@given(TEXTS, st.text("abé'\n", max_size=6), st.lists(st.text("ab", max_size=5), min_size=1, max_size=5))
def test_no_result_is_larger_than_the_estimate(text: str, value: str, several: list[str]) -> None:
    values: dict[str, Any] = {"resource": {"text": value, "list": several}}
    related = [{"name": name, "list": several} for name in several]
    bound = cel_cost.limit_list(len(related), cel_cost.limit_each(related))
    try:
        expression = LANGUAGE.expression(text, "STRING")
        most = cel_cost.estimate(expression.written, {**values, cel_cost.result_of("refs"): bound})
        if most > 1e6:
            return
        answer = expression.ask(LANGUAGE.bind(values, None, lambda *_: related, lambda _: bound))
    except (InvalidExpression, EvaluationFailed):
        return
    assert isinstance(answer, str)
    assert most == 0 or len(answer) <= most
    size = cel_cost.measure(values).whole + bound.whole
    if size <= expression.room:
        assert most <= cel_cost.MAX_COST


def test_a_shared_value_is_measured_at_each_place() -> None:
    twice = ["abc", [1, 2, 3]]
    bound = cel_cost.measure({"k": twice, "l": twice})
    assert (bound.text, bound.items, bound.whole) == (3, 3, 1 + 2 * (2 + 1 + 4 + 4))


@pytest.mark.parametrize(
    ("text", "several", "most"),
    [
        ("refs(resource).map(v, v.name).join()", 1000, 100_000),
        ("refs(resource).filter(v, v.name != '').map(v, v.name + '-').join()", 1000, 100_000),
        ("refs(resource).map(v, v.name + '-').filter(v, v != '').map(v, v + '-').join()", 1000, 200_000),
        ("refs(resource).map(v, refs(v).map(w, w.name + v.name))[0]", 30, 200_000),
    ],
)
def test_a_large_field_that_an_expression_does_not_read_costs_nothing(text: str, several: int, most: int) -> None:
    item = cel_cost.limit_each([{"name": f"n{number}", "spec": {"text": "x" * 10_000}} for number in range(several)])
    bounds = {cel_cost.result_of("refs"): cel_cost.limit_list(several, item)}
    assert 0 < cel_cost.estimate(LANGUAGE.expression(text, "").written, bounds) < most


def test_the_items_of_a_long_list_are_measured_once() -> None:
    values = {"resource": [{"name": f"n{number}", "list": [number]} for number in range(400)]}
    expression = LANGUAGE.expression("resource.map(v, v.name + 'x').join()", "")
    cel_cost.estimate(expression.written, values)
    assert count_steps(lambda: cel_cost.estimate(expression.written, values)) < 1500


@given(st.binary(max_size=40))
def test_any_bytes_have_an_estimate(written: bytes) -> None:
    assert cel_cost.estimate(written, {}) >= 0
