"""What is recognized as a plain condition has no flaws; and the common ones are recognized."""

from __future__ import annotations

import string
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages import cel_check, traffic_catalog
from reconciler.languages.cel_plain import is_plain_condition

NAMES = st.sampled_from([*traffic_catalog.variables(), "req", "req.method.x", "req.metod", "", "vars.a"])
OPERATORS = st.sampled_from(["==", "!=", "<", "=", "===", ".startsWith", ".endsWith", ".contains", ".matches", " in "])
WRITTEN = st.text(string.ascii_letters + string.digits + " ._/:;,@~*+=-'\"\\()[]{}&|!<>", max_size=12)
CONSTANTS = st.one_of(WRITTEN.map(lambda text: f"'{text}'"), st.integers(-5, 10**10).map(str), WRITTEN)
SPACES = st.sampled_from(["", " ", "  ", "\n", "\t"])


def compare(name: str, operator: str, constant: str) -> str:
    return f"{name}{operator}({constant})" if operator.startswith(".") else f"{name} {operator} {constant}"


TERMS = st.tuples(SPACES, st.builds(compare, NAMES, OPERATORS, CONSTANTS), SPACES).map("".join)
EXPRESSIONS = st.lists(st.tuples(TERMS, st.sampled_from(["&&", "||", "", "&"])), min_size=1, max_size=3).map(
    lambda terms: "".join(part for term in terms for part in term).rstrip("&|")
)


@given(EXPRESSIONS)
def test_a_plain_condition_has_no_flaws(text: str) -> None:
    if is_plain_condition(text):
        assert cel_check.find_flaws(text) == ()


def every_comparison() -> Iterator[str]:
    for name in traffic_catalog.variables():
        for operator in ("==", "!=", ".startsWith", ".endsWith", ".contains"):
            for constant in ("''", "'a b'", "'../~*+=-_,;@:'", "0", "007", "999999999"):
                yield compare(name, operator, constant)


def test_no_comparison_of_a_documented_variable_is_recognized_and_has_flaws() -> None:
    plain = [text for text in every_comparison() if is_plain_condition(text)]
    assert len(plain) > 1_000
    assert [text for text in plain if cel_check.find_flaws(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "req.method != 'GET'",
        "req.url.path.startsWith('/api/') && req.method == 'POST'",
        "conn.client_ip == '192.0.2.1' || conn.geo.country_code == 'DE'",
        "res.status_code == 404",
    ],
)
def test_common_conditions_are_recognized(text: str) -> None:
    assert is_plain_condition(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "req.metod == 'GET'",
        "req.method == 1",
        "req.method == 'a\\d'",
        "req.method == 'a' &&",
        "req.method == 'it''s'",
        "req.headers == 'a'",
        "req.method",
        "!(req.method == 'a')",
        "req.method == '" + 1_000 * "a" + "'",
    ],
)
def test_all_others_are_left_to_the_checker(text: str) -> None:
    assert not is_plain_condition(text)
