"""An expression that could take too much is refused before it is evaluated, and no other."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages import cel_cost
from reconciler.languages.cel import EvaluationFailed, InvalidExpression, Language

LANGUAGE = Language("resource")
LONG = f"'{'a' * 100}'"
HOSTILE = [
    "'a'" + f".replace('a', {LONG})" * 5 + ".size() > 0",
    "'a'" + f".replace('', {LONG})" * 5 + ".size() > 0",
    "[" * 6 + "1" + ("].map(a, [" + ",".join("a" * 10) + "])[0]") * 5 + "].map(b, b == b)[0]",
    "'%s'.format([" + "[" * 5 + "1" + ("].map(a, [" + ",".join("a" * 20) + "])[0]") * 5 + "]).size() > 0",
    f"[{','.join('1' * 99)}].map(a, [{','.join('1' * 99)}].map(b, {LONG}.replace('a', {LONG}))).size() > 0",
    f"[{','.join('1' * 99)}].map(a, {LONG}.replace('a', {LONG}).replace('a', {LONG})).join({LONG}).size() > 0",
]
GROWING = [
    "resource.text" + ".replace('a', resource.text)" * 4 + " != ''",
    "resource.list.map(a, resource.list.map(b, resource.text + a + b)).size() > 0",
    "resource.text.split('').join(resource.text).split('').join(resource.text) != ''",
    "resource.list.map(a, resource.list.join(resource.text)).join('') != ''",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_an_expression_that_grows_without_bounds_is_refused_before_it_runs(text: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidExpression, match="could build more than 64 million characters and items"):
        LANGUAGE.expression(text, "")
    assert time.process_time() - began < 5


@pytest.mark.parametrize("text", GROWING)
def test_what_grows_with_what_is_declared_is_refused_only_where_there_is_much(text: str) -> None:
    expression = LANGUAGE.expression(text)
    little: dict[str, Any] = {"text": "aa", "list": ["a", "b"]}
    assert expression.ask(LANGUAGE.bind({"resource": little})) is True
    much = {"text": "a" * 20_000, "list": ["a" * 50] * 2_000}
    with pytest.raises(EvaluationFailed, match="could build more than 64 million"):
        expression.ask(LANGUAGE.bind({"resource": much}))


@pytest.mark.parametrize(
    "text",
    [
        "resource.rules.all(r, resource.rules.exists(s, s.name == r.name))",
        "resource.rules.filter(r, r.name.startsWith('r')).map(r, r.name + '-' + resource.kind).join(', ') != ''",
        "resource.policy.contains('x') || resource.policy.replace('a', 'bb').size() > 0",
        "resource.rules.all(r, r.name != resource.kind + '-x')",
    ],
)
def test_what_policies_do_is_not_refused_on_large_resources(text: str) -> None:
    resource = {
        "kind": "TLSEdge",
        "policy": "p" * 200_000,
        "rules": [{"name": f"r{number}", "ports": [1, 2]} for number in range(90)],
    }
    assert LANGUAGE.expression(text).ask(LANGUAGE.bind({"resource": resource})) is True


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
def test_nothing_is_built_beyond_the_estimate(text: str, value: str, several: list[str]) -> None:
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


def test_values_are_measured_with_everything_in_them_written_out() -> None:
    twice = ["abc", [1, 2, 3]]
    bound = cel_cost.measure({"k": twice, "l": twice})
    assert (bound.text, bound.items, bound.whole) == (3, 3, 1 + 2 * (2 + 1 + 4 + 4))


@given(st.binary(max_size=40))
def test_bytes_that_are_no_expression_are_no_expression(written: bytes) -> None:
    assert cel_cost.estimate(written, {}) >= 0
