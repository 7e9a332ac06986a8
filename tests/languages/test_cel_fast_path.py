"""Conditions that the fast path accepts: none that the full check would report."""

from __future__ import annotations

import subprocess
import sys
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.languages import cel_check, cel_fast_path

PIECES = st.sampled_from(
    [
        *("req", "conn", "vars", "size", "getReqHeader('a')", "hasReqHeader('a')", "has", "in", "true", "null", "foo"),
        *(
            "req.method",
            "req.mehtod",
            "req.headers['a']",
            "req.headers",
            "conn.geo",
            "conn.server_port",
            "res.status_code",
        ),
        *(
            "conn.client_ip.categories",
            "req.user_agent.is_bot",
            ".startsWith('a')",
            ".size()",
            ".x",
            "[0]",
            ".contains(1)",
        ),
        *("'GET'", '"x"', "''", "'it''s'", "['a', 'b']", "[1]", "1", "007", "1.5", "0x1f", "1u", "-"),
        *("&&", "||", "==", "!=", "<", "<=", ">=", ">", "=", "+", "?", ":", "!", ",", ".", " ", "  ", " in "),
        *("(", ")", "[", "]", "()", "{", "}", "\\", "'", '"', "$", "_", "&", "|"),
    ]
)
VALUES = st.recursive(
    st.sampled_from(
        [
            "req.method == 'GET'",
            'req.host!="a"',
            "true",
            "req.user_agent.is_bot",
            "conn.server_port >= 443",
            "'a' in conn.client_ip.categories",
            "'x-a' in req.headers",
            "req.url.path.startsWith('/a')",
            "hasReqHeader('x-a')",
            "req.method in ['GET', \"PUT\"]",
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" && ", "||"]), inner).map("".join),
        inner.map("({})".format),
        inner.map("!({})".format),
    ),
    max_leaves=6,
)


@given(st.lists(PIECES, min_size=1, max_size=7).map("".join) | VALUES, st.booleans())
@example("getReqHeader('x').lowerAscii() == 'y'", True)
@example("req.method == 'GET'.size()", True)
@example("!req.user_agent.is_bot.x", True)
@example("1 in [1]", True)
def test_a_condition_that_the_fast_path_accepts_passes_the_full_check(text: str, is_condition: bool) -> None:
    if cel_fast_path.is_surely_valid(text, is_condition=is_condition):
        with patch.object(cel_fast_path, "is_surely_valid", lambda text, is_condition: False):
            assert cel_check.find_flaws.__wrapped__(text, is_condition=is_condition) == ()


@given(VALUES.filter(lambda text: len(text) < 300))
def test_plain_conditions_are_recognized(text: str) -> None:
    assert cel_fast_path.is_surely_valid(text)


@pytest.mark.parametrize("text", ["req.url.path", "conn.client_ip", "vars"])
def test_a_variable_is_recognized_where_no_condition_is_expected(text: str) -> None:
    assert cel_fast_path.is_surely_valid(text, is_condition=False)
    assert not cel_fast_path.is_surely_valid(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "req.method ==",
        "req.method 'GET'",
        "method == 'GET'",
        "req.mehtod == 'GET'",
        "req.method == 1",
        "req.url.path.startWith('/a')",
        "hasReqHaeder('x')",
        "'a' in req.method",
        "conn.server_port",
        "(req.method == 'a'",
        "req.method == 'a')",
        "((((((((((true))))))))))",
    ],
)
def test_wrong_and_unknown_expressions_are_left_to_the_full_check(text: str) -> None:
    assert not cel_fast_path.is_surely_valid(text)


def test_a_valid_policy_is_checked_without_importing_the_cel_library() -> None:
    script = (
        "import sys\n"
        "from reconciler.kinds.rules import traffic_policy\n"
        "findings = list(traffic_policy.findings({'on_http_request': [{'expressions': [\"req.method != 'GET'\"],"
        " 'actions': [{'type': 'deny'}]}]}))\n"
        "assert not findings and not any(name.startswith('cel_expr_python') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
