"""Reading policy documents, and the findings about their shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kinds import policy
from reconciler.model.address import Address
from reconciler.model.problem import Severity
from reconciler.model.value import Ref, Secret, Template

GOOD: dict[str, Any] = {
    "on_tcp_connect": [{"actions": [{"type": "restrict-ips", "config": {"enforce": True}}]}],
    "on_http_request": [
        {
            "name": "deny others",
            "expressions": ["!('10.0.0.0/8' in conn.client_ip)", 'req.url.path.matches(r"\\(")'],
            "actions": [{"type": "deny", "config": {"status_code": 403}}, {"type": "custom-response"}],
        },
        {"actions": [{"type": "url-rewrite", "config": {"from": "/(a)", "to": "/$1"}}]},
    ],
    "on_http_response": [{"actions": [{"type": "compress-response", "config": {"algorithms": ["gzip"]}}]}],
}


def said(document: Any) -> list[tuple[tuple[str | int, ...], str]]:
    return [(each.path, each.text) for each in policy.findings(document)]


# --- reading ----------------------------------------------------------------------------------------------------------


def test_json_and_yaml_spell_the_same_document() -> None:
    assert policy.parse(json.dumps(GOOD)) == GOOD
    assert policy.parse("on_http_request:\n  - actions: [{type: deny}]\n") == {
        "on_http_request": [{"actions": [{"type": "deny"}]}]
    }


def test_yaml_is_yaml_1_2() -> None:
    assert policy.parse("a: no\nb: on\nc: 0o17\nd: 2020-01-01\n") == {"a": "no", "b": "on", "c": 15, "d": "2020-01-01"}


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner)),
        min_size=1,
        max_size=4,
    )
)
def test_every_small_json_object_is_read_back(document: dict[str, Any]) -> None:
    assert policy.parse(json.dumps(document)) == document


@given(st.text(max_size=60))
def test_any_text_is_either_a_document_or_has_a_reason_not_to_be(text: str) -> None:
    assert (policy.parse(text) is None) == (policy.why_not(text) is not None)


BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("{}", "not a policy document"),
        ("- a", "not a policy document"),
        ("hello", "not a policy document"),
        ("a: [", "line 1"),
        ("a: 1\nb: 2\na: 3\n", "line 3"),
        ('{"a": 1, "a": 2}', "neither"),
        ("a: !!python/object:os.system x", "neither"),
        ("a: &a\n  b: *a\n", "too deep"),
        (BOMB, "too large"),
        ("a: " + "[" * 5000, "neither"),
        ("a: " + "x" * 300_000, "shorten"),
    ],
)
def test_what_is_no_document_is_told_why(text: str, words: str) -> None:
    assert policy.parse(text) is None
    assert words in (policy.why_not(text) or "")


# --- shape ------------------------------------------------------------------------------------------------------------


def test_a_good_policy_has_no_findings() -> None:
    assert said(GOOD) == []


@pytest.mark.parametrize(
    ("document", "path", "words"),
    [
        ({"on_http_request": {}}, ("on_http_request",), "not a list"),
        ({"on_http_request": ["deny"]}, ("on_http_request", 0), "not a rule"),
        ({"on_http_request": [{}]}, ("on_http_request", 0), "no actions"),
        ({"on_http_request": [{"actions": []}]}, ("on_http_request", 0, "actions"), "no actions"),
        ({"on_http_request": [{"actions": None}]}, ("on_http_request", 0, "actions"), "no actions"),
        ({"on_http_request": [{"actions": ["deny"]}]}, ("on_http_request", 0, "actions", 0), "not an action"),
        ({"on_http_request": [{"actions": [{}]}]}, ("on_http_request", 0, "actions", 0), "no type"),
        ({"on_http_request": [{"actions": [{"type": 1}]}]}, ("on_http_request", 0, "actions", 0, "type"), "no type"),
        (
            {"on_http_request": [{"actions": [{"type": "deny", "config": []}]}]},
            ("on_http_request", 0, "actions", 0, "config"),
            "not a mapping",
        ),
        (
            {"on_http_request": [{"name": 1, "actions": [{"type": "deny"}]}]},
            ("on_http_request", 0, "name"),
            "not text",
        ),
        (
            {"on_http_request": [{"expressions": "true", "actions": [{"type": "deny"}]}]},
            ("on_http_request", 0, "expressions"),
            "not a list",
        ),
        (
            {"on_http_request": [{"expressions": [True], "actions": [{"type": "deny"}]}]},
            ("on_http_request", 0, "expressions", 0),
            "not an expression",
        ),
    ],
)
def test_a_wrong_shape_is_an_error_at_the_very_value(document: Any, path: tuple[str | int, ...], words: str) -> None:
    (only,) = policy.findings(document)
    assert only.path == path
    assert words in only.text
    assert only.severity is Severity.ERROR


def test_an_unknown_key_is_an_error_that_names_the_one_that_was_meant() -> None:
    (only,) = policy.findings({"on_http_request": [{"expresions": [], "actions": [{"type": "deny"}]}]})
    assert (only.path, only.remedy, only.severity) == (
        ("on_http_request", 0, "expresions"),
        "did you mean expressions?",
        Severity.ERROR,
    )


def test_an_unknown_action_is_a_warning_because_the_platform_learns_new_ones() -> None:
    (only,) = policy.findings({"on_http_request": [{"actions": [{"type": "denny"}]}]})
    assert (only.path[-1], only.remedy, only.severity) == ("type", "did you mean deny?", Severity.WARNING)


def test_an_unknown_phase_is_a_warning() -> None:
    (only,) = policy.findings({"on_http_reqest": [], "on_http_request": []})
    assert (only.path, only.remedy, only.severity) == (
        ("on_http_reqest",),
        "did you mean on_http_request?",
        Severity.WARNING,
    )


def test_within_a_text_the_words_say_where_to_look() -> None:
    (only,) = policy.findings('{"on_http_request": [{"actions": []}]}', "traffic_policy")
    assert only.path == ("traffic_policy",)
    assert only.text == "on_http_request[0].actions: has no actions"


def test_the_path_begins_where_the_policy_stands() -> None:
    (only,) = policy.findings({"on_http_request": [{}]}, "traffic_policy", "value")
    assert only.path == ("traffic_policy", "value", "on_http_request", 0)


REF = Ref(Address("ReservedDomain", "app"), "domain")


@pytest.mark.parametrize("value", [REF, Template(("a", REF)), None])
def test_what_is_not_known_yet_is_left_alone(value: Any) -> None:
    assert said(value) == []


def test_references_inside_a_policy_are_left_alone() -> None:
    held = Secret("x", "env:X")
    rule = {"name": REF, "expressions": [REF], "actions": [{"type": "deny", "config": {"a": held}}, REF]}
    assert said({"on_http_request": [rule, REF], "on_http_response": REF}) == []


@pytest.mark.parametrize(
    "expression",
    [
        "true",
        "(a && b) || !(c)",
        "'(' == \")\"",
        r"'it\'s (' != ''",
        'r"\\" == r"("',
        '"""a " (""" == x',
        "a[0] == {'b': [1]}['b'][0] // not closed: (",
    ],
)
def test_brackets_in_quotes_and_comments_do_not_count(expression: str) -> None:
    assert said({"on_http_request": [{"expressions": [expression], "actions": [{"type": "deny"}]}]}) == []


@pytest.mark.parametrize("expression", ["(a", "a)", "[a)", "'a", 'x == "a', "{'a': (1}"])
def test_a_bracket_or_a_quote_without_its_other_half_is_an_error(expression: str) -> None:
    (only,) = policy.findings({"on_http_request": [{"expressions": [expression], "actions": [{"type": "deny"}]}]})
    assert only.path == ("on_http_request", 0, "expressions", 0)
