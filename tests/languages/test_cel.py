"""Expressions that could take too much time or memory are refused before they are evaluated, and no others."""

from __future__ import annotations

import time
from typing import Any

import pytest

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
def test_an_expression_is_refused_only_for_values_that_make_it_large(text: str) -> None:
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
def test_usual_expressions_are_accepted_on_large_resources(text: str) -> None:
    resource = {
        "kind": "TLSEdge",
        "policy": "p" * 200_000,
        "rules": [{"name": f"r{number}", "ports": [1, 2]} for number in range(90)],
    }
    assert LANGUAGE.expression(text).ask(LANGUAGE.bind({"resource": resource})) is True
