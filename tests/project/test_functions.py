"""The functions of `${{ … }}`: their values and their errors."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.project.documents import functions
from reconciler.project.documents.functions import InvalidCall

VALUES = {"var.name": "EU-West", "var.list": ["a", "b"], "var.none": "", "var.flag": True, "var.number": 7}


def evaluate(expression: str) -> Any:
    return functions.evaluate(expression, VALUES.__getitem__, lambda value: None)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("lower(var.name)", "eu-west"),
        ("lower( 'A' )", "a"),
        ('join(var.list, ", ")', "a, b"),
        ('split("a,b", ",")', ["a", "b"]),
        ('split(var.none, ",")', []),
        ('default(var.none, "x")', "x"),
        ("default(var.number, 1)", 7),
        ('default(var.list, "x")', ["a", "b"]),
        ('format("{0}-{1}-{0}", var.name, var.flag)', "EU-West-true-EU-West"),
        ('format("{0}", "{1}")', "{1}"),
        ('join(split(lower("A B"), " "), "-")', "a-b"),
        (r'lower("\u007d\"")', '}"'),
    ],
)
def test_a_call_has_a_value(expression: str, value: Any) -> None:
    assert evaluate(expression) == value
    assert evaluate(expression) == value


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("upper(var.name)", "unknown function upper"),
        ("lower(uper(var.name))", "unknown function uper"),
        ("lower()", "lower takes 1 argument"),
        ('join("a", ",")', "join takes a list, found text"),
        ('lower(split("a", ","))', "lower takes text, found a list"),
        ('split("a", "")', "the separator of split is empty"),
        ('format("{1}", "a")', "format has no argument for {1}"),
        ("lower(IPPolicy/a.id)", "IPPolicy/a.id is a reference"),
        ('lower("a"', "expected ',' or ')'"),
        ('lower("a") + 1', "cannot read '+ 1'"),
        ('lower("a") lower("b")', "unexpected lower after the call"),
        ("lower(;)", "cannot read ';)'"),
        ("lower(" * 12 + '"a"' + ")" * 12, "more than 8 calls inside each other"),
        ('join(split("' + "a," * 60_000 + '", ","), "xx")', "more than 100,000 characters or items"),
    ],
)
def test_a_wrong_call_is_refused(expression: str, problem: str) -> None:
    with pytest.raises(InvalidCall) as raised:
        evaluate(expression)
    assert problem in str(raised.value)
