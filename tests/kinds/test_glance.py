"""What is seen to be in order at a glance: nothing that the language itself would object to."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.kinds import cel, glance
from reconciler.kinds.policy import _FUNCTIONS, VARIABLES

PIECES = st.sampled_from(
    [
        *("req", "conn", "vars", "int", "size", "getReqHeader", "all", "has", "in", "true", "null", "foo", "time.now"),
        *("req.method", "req.headers['a']", "conn.geo.country", ".startsWith", ".all", ".x", ".in", "a.b"),
        *("'GET'", '"x"', "''", "'it''s'", "r'x'", "1", "007", "1.5", "0x1f", "1u", "-", "123456789012345"),
        *("&&", "||", "==", "!=", "<", "<=", ">=", ">", "=", "+", "?", ":", "!", ",", ".", " ", "  "),
        *("(", ")", "[", "]", "()", "[]", "{", "}", "\\", "'", '"', "$", "_", "&", "|"),
    ]
)
VALUES = st.recursive(
    st.sampled_from(["req.method", "'GET'", "17", "true", "conn.client_ip", "vars", "time.now()", "rand.double()"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" == ", "&&", " || ", "+", " in ", " < ", "!="]), inner).map("".join),
        inner.map("({})".format),
        inner.map("!({})".format),
        inner.map("getReqHeader({})".format),
        inner.map("req.url.path.startsWith({})".format),
        inner.map("req.headers[{}].size()".format),
        st.lists(inner, max_size=3).map(lambda several: f"[{', '.join(several)}]"),
    ),
    max_leaves=6,
)


@given(st.lists(PIECES, min_size=1, max_size=9).map("".join) | VALUES)
@example("getReqHeader('x').lowerAscii() == 'y'")
def test_what_is_in_order_at_a_glance_is_in_order(text: str) -> None:
    if glance.is_in_order(text, VARIABLES, _FUNCTIONS):
        assert cel.broken(text) is None
        assert [each for each in cel.strangers(text, VARIABLES) if each.name not in _FUNCTIONS] == []


@given(VALUES.filter(lambda text: len(text) < 300))
def test_plain_expressions_are_seen_to_be_in_order(text: str) -> None:
    assert glance.is_in_order(text, VARIABLES, _FUNCTIONS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "req.method ==",
        "req.method 'GET'",
        "method == 'GET'",
        "getReqHedaer('x')",
        "req.headers.all(h, h != 'x')",
        "has(req.method)",
        "req.x ? 1 : 2",
        "(req.method",
        "req.method)",
        "[1,]",
        "req.in",
        "((((((((((1))))))))))",
    ],
)
def test_what_is_wrong_or_not_known_is_left_to_others(text: str) -> None:
    assert not glance.is_in_order(text, VARIABLES, _FUNCTIONS)


def test_a_policy_in_order_is_checked_without_the_language() -> None:
    asked = (
        "import sys\n"
        "from reconciler.kinds import policy\n"
        "told = list(policy.findings({'on_http_request': [{'expressions': [\"req.method != 'GET'\"],"
        " 'actions': [{'type': 'deny'}]}]}))\n"
        "assert not told and not any(name.startswith('cel_expr_python') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", asked], check=True)
