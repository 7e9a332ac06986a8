"""Mistakes in the expressions of traffic policies are errors; names that this version does not know are warnings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages import cel_check
from reconciler.model.problem import Severity

ERROR, WARNING = Severity.ERROR, Severity.WARNING


@pytest.mark.parametrize(
    ("text", "message", "remedy", "place"),
    [
        ("req.mehtod == 'GET'", "req has no member 'mehtod'", "did you mean req.method?", (1, 5)),
        ("true &&\n  req.mehtod == 'GET'", "req has no member 'mehtod'", "did you mean req.method?", (2, 7)),
        ("res.status_coed > 1", "res has no member 'status_coed'", "did you mean res.status_code?", (1, 5)),
        ("conn.geo.cty == ''", "conn.geo has no member 'cty'", "did you mean conn.geo.city?", (1, 10)),
        ("req.url.pth == ''", "req.url has no member 'pth'", "did you mean req.url.path?", (1, 9)),
        ("!req.headers.exists('x')", (
            "exists is called with arguments of "
            "the wrong type"
        ), "check the number and types of its arguments", (1, 14)),
        ("has(conn.tls.clint)", "conn.tls has no member 'clint'", "did you mean conn.tls.client?", (1, 14)),
        ("req.url.path.startWith('/')", "unknown method 'startWith'", "did you mean startsWith?", (1, 14)),
        ("req.headers['x'][0].includes('a')", "text has no method 'includes'", "did you mean contains?", (1, 21)),
        ("getReqHeader('a').exists(v, v.conains('x'))", "unknown method 'conains'",
         "did you mean contains?", (1, 31)),
        ("hasReqHaeder('x')", "unknown function 'hasReqHaeder'", "did you mean hasReqHeader?", (1, 1)),
        ("json.dcode('a').x == 1", "unknown function 'json.dcode'", "did you mean json.decode?", (1, 6)),
        ("requ.method == ''", "unknown variable 'requ'", "did you mean req?", (1, 1)),
        ("req.method.size > 1", "text has no member 'size'", "write size(…)", (1, 12)),
        ("req.url.path", "the condition evaluates to text, not to true or false",
         "compare it with a value, as in `conn.client_ip == '192.0.2.1'`", (1, 1)),
        ("size(req.method)", "the condition evaluates to a number, not to true or false",
         "compare it with a value, as in `conn.client_ip == '192.0.2.1'`", (1, 1)),
        ("res.status_code == 'ok'", (
            "the expression applies the operator "
            "'==' to int, string"
        ), "expressions are written in CEL (https://cel.dev)", (1, 17)),
        ("res.status_code in ['300', 'ok']", (
            "the expression uses 'in' with int and "
            "list(string)"
        ), "expressions are written in CEL (https://cel.dev)", (1, 17)),
        ("'a' in req.url.path", "the expression uses 'in' with string and string", (
            "expressions are written in CEL "
            "(https://cel.dev)"
        ), (1, 5)),
        ("(req.a", "the expression ends unexpectedly", "expressions are written in CEL (https://cel.dev)", (1, 7)),
    ],
)  # fmt: skip
def test_a_certain_mistake_is_an_error_at_its_place(
    text: str, message: str, remedy: str, place: tuple[int, int]
) -> None:
    (only,) = cel_check.find_flaws(text)
    assert (only.text, only.remedy, only.severity, (only.line, only.column)) == (message, remedy, ERROR, place)
    assert only.code.startswith("traffic-")


@pytest.mark.parametrize(
    ("text", "code", "remedy"),
    [
        ("conn.tls.ja3_fingerprint == 'x'", "traffic-variable", "did you mean conn.tls.ja4_fingerprint?"),
        ("req.path == '/'", "traffic-variable", "did you mean req.url.path?"),
        (
            "actions.ngrok.shiny.thing == 1",
            "traffic-variable",
            "check the spelling",
        ),
        ("request.method == 'GET'", "traffic-variable", "did you mean req?"),
        (
            "brandNew(req.method)",
            "traffic-function",
            "check the spelling",
        ),
        (
            "vars.x.quux()",
            "traffic-method",
            "check the spelling",
        ),
        ("req.Method == 'GET'", "traffic-renamed", "write req.method"),
        ("req.content_length == null", "traffic-types", "expressions are written in CEL (https://cel.dev)"),
        ("double(conn.geo.latitude) > 45", "traffic-types", "expressions are written in CEL (https://cel.dev)"),
        ("req.?method.orValue('') == 'x'", "traffic-unchecked", "write has(req.method) && …"),
        ("req.method" + ".lower()" * 60 + " == 'get'", "traffic-unchecked", "simplify the expression"),
    ],
)
def test_a_name_unknown_to_this_version_is_a_warning(text: str, code: str, remedy: str) -> None:
    (only,) = cel_check.find_flaws(text)
    assert (only.code, only.remedy, only.severity) == (code, remedy, WARNING)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("res.status_code >= '300'", 17),
        ('res.status_code == "200"', 17),
        ("'4' <= conn.server_port", 5),
        ("res.status_code in ['300', '301']", 17),
    ],
)
def test_a_number_in_quotes_as_guides_show_it_is_a_warning(text: str, column: int) -> None:
    (only,) = cel_check.find_flaws(text)
    assert (only.code, only.severity, only.column) == ("traffic-types", WARNING, column)
    assert only.remedy == "write the number without quotes"


def test_a_sort_with_a_comparison_as_guides_show_it_is_one_warning() -> None:
    (only,) = cel_check.find_flaws("vars.list.sort(x, y, x.age < y.age)[0].name == 'a'")
    assert (only.code, only.severity, only.column) == ("traffic-method", WARNING, 11)
    assert only.remedy == "write list<dyn>.sort(), or list<dyn>.sortBy(x, key)"
    unknown = cel_check.find_flaws("vars.list.sort(x, y, x.age < z.age) == []")
    assert [flaw.text for flaw in unknown][1:] == ["unknown variable 'z'"]


@pytest.mark.parametrize(
    "text",
    [
        "has(req.headers['x']) && has(conn.tls.client) && has(req.url.path) && has(vars.x)",
        "req.headers.exists(name, name.lowerAscii() == 'x-a') && vars.x.decodeJson().y",
        "vars.list.sortBy(x, x.age).size() > 1",
        "hash.md5(req.url.path, 'hex') == req.url.path.md5() && [1, 2].slice(0, 1).distinct() == [1]",
        "'(' == \")\" || r\"\\d(\" == \"(\" || {'b': [true]}['b'][0] // not closed: (",
    ],
)
def test_documented_expressions_are_valid(text: str) -> None:
    assert cel_check.find_flaws(text) == ()


def test_only_a_condition_must_be_true_or_false() -> None:
    assert cel_check.find_flaws("req.url.path.size() + 1", is_condition=False) == ()
    assert [flaw.code for flaw in cel_check.find_flaws("req.url.path.size() + 1")] == ["traffic-condition"]


@given(st.text(max_size=30), st.booleans())
def test_any_text_is_checked_and_its_flaws_are_within_it(text: str, is_condition: bool) -> None:
    lines = text.split("\n")
    for flaw in cel_check.find_flaws(text, is_condition=is_condition):
        assert 1 <= flaw.line <= len(lines) + 1
        assert flaw.column >= 1


CONDITIONS = st.recursive(
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


@given(CONDITIONS)
def test_a_plain_condition_has_no_flaws(text: str) -> None:
    assert cel_check.find_flaws(text) == ()


@pytest.mark.parametrize("text", ["req.url.path", "conn.client_ip", "vars"])
def test_a_variable_is_no_condition(text: str) -> None:
    assert cel_check.find_flaws(text, is_condition=False) == ()
    assert (cel_check.find_flaws(text) == ()) is (text == "vars")
