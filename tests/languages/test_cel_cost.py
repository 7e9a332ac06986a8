"""The estimate of the size of what an expression builds is an upper bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages import cel_cost
from reconciler.languages.cel import EvaluationFailed, InvalidExpression, Language

LANGUAGE = Language("resource")
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
    ),
    max_leaves=7,
)


@given(TEXTS, st.text("abé'\n", max_size=6), st.lists(st.text("ab", max_size=5), min_size=1, max_size=5))
def test_no_result_is_larger_than_the_estimate(text: str, value: str, several: list[str]) -> None:
    values = {"resource": {"text": value, "list": several}}
    try:
        expression = LANGUAGE.expression(text, "STRING")
        most = cel_cost.estimate(expression.written, values)
        if most > 1e6:
            return
        answer = expression.ask(LANGUAGE.bind(values))
    except (InvalidExpression, EvaluationFailed):
        return
    assert isinstance(answer, str)
    assert most == 0 or len(answer) <= most
    size = LANGUAGE.bind(values).size
    if size <= expression.room:
        assert most <= cel_cost.MAX_COST


def test_a_shared_value_is_measured_at_each_place() -> None:
    twice = ["abc", [1, 2, 3]]
    bound = cel_cost.measure({"k": twice, "l": twice})
    assert (bound.text, bound.items, bound.whole) == (3, 3, 1 + 2 * (2 + 1 + 4 + 4))


@given(st.binary(max_size=40))
def test_any_bytes_have_an_estimate(written: bytes) -> None:
    assert cel_cost.estimate(written, {}) >= 0
