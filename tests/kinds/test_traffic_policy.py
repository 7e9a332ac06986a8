"""Traffic policies: reading them, and the findings about their shape, settings and expressions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kinds.rules import traffic_policy
from reconciler.languages.yaml import reader as yaml
from reconciler.model.address import Address
from reconciler.model.problem import Finding, Severity
from reconciler.model.value import Ref, Secret, Template

GOOD: dict[str, Any] = {
    "on_tcp_connect": [{"actions": [{"type": "restrict-ips", "config": {"enforce": True}}]}],
    "on_http_request": [
        {
            "name": "deny others",
            "expressions": ["!inCidrRange(conn.client_ip, '10.0.0.0/8')", 'req.url.path.matches(r"\\(")'],
            "actions": [{"type": "deny", "config": {"status_code": 403}}, {"type": "custom-response"}],
        },
        {"expressions": None, "actions": [{"type": "url-rewrite", "config": {"from": "/(a)", "to": "/$1"}}]},
    ],
    "on_http_response": [{"actions": [{"type": "compress-response", "config": {"algorithms": ["gzip"]}}]}],
}


def list_texts(document: Any) -> list[tuple[tuple[str | int, ...], str]]:
    return [(finding.path, finding.text) for finding in traffic_policy.findings(document)]


# --- reading ----------------------------------------------------------------------------------------------------------


def test_json_and_yaml_are_read_as_the_same_document() -> None:
    assert traffic_policy.parse(json.dumps(GOOD)) == GOOD
    assert traffic_policy.parse("on_http_request:\n  - actions: [{type: deny}]\n") == {
        "on_http_request": [{"actions": [{"type": "deny"}]}]
    }


def test_a_list_with_a_mapping_as_a_key_is_refused() -> None:
    text = "on_http_request: [&x 1]\non_http_response:\n  ? [{a: b}]\n  : 1\n"
    assert traffic_policy.parse(text) is None
    assert str(traffic_policy.why_not(text)).startswith("a key must be text at line 3, column 5;")


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner)),
        min_size=1,
        max_size=4,
    )
)
def test_every_small_json_object_is_read_back(document: dict[str, Any]) -> None:
    assert traffic_policy.parse(json.dumps(document)) == document


@given(st.text(max_size=60))
def test_any_text_is_a_document_or_has_a_reason_why_not(text: str) -> None:
    assert (traffic_policy.parse(text) is None) == (traffic_policy.why_not(text) is not None)


BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("- a", "not a policy document"),
        ("hello", "not a policy document"),
        ("a: [", "neither valid JSON nor valid YAML at line 2, column 1: missing value; add a value"),
        ("a: 1\nb: 2\na: 3\n", "the policy has a duplicate key at line 3"),
        ('{"a": 1, "a": 2}', "the policy has a duplicate key at line 1"),
        ("a: 1\n---\nb: 1\n", "several YAML documents"),
        ("a: 1_0\n---\nb: 1\n", "several YAML documents"),
        ("a: 1\n---\n", "several YAML documents"),
        ("a: !!python/object:os.system x", "unknown tag (!) at line 1, column 4; remove it"),
        ("a:\n  b: .inf\n", "a number that JSON cannot represent at line 2, column 6; quote it if it is text"),
        ("a:\n- 1E400\n", "number too large at line 2, column 3; quote it if it is text"),
        ("a: 1_0.5\nb: -.INF\n", "a number that JSON cannot represent at line 2, column 4"),
        (f"a: {'9' * 301}\n", "a number of more than 300 digits at line 1, column 4"),
        (f"a: {'9' * 5001}\n", "a number of more than 300 digits at line 1, column 4"),
        ("a: &a\n  b: *a\n", "the alias refers to a value that contains it at line 2, column 6"),
        (BOMB, "aliases expand to more than 100,000 values at line 5, column 29"),
        ("a: {?b: c}", "'?' within brackets begins a key only before a space at line 1, column 5"),
        ("a: &an:chor value", "':' in the name of an anchor at line 1, column 7"),
        ("a: " + "[" * 5000, "nested deeper than 40 levels at line 1, column 43"),
        ("a: " + "[" * 5000 + "]" * 5000, "nested deeper than 40 levels"),
        ("a:\n  " + "- " * 5000 + "x", "nested deeper than 40 levels"),
        ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "more than 40 levels"),
        ('{"a": ' + "[" * 500 + "]" * 500 + "}", "more than 40 levels"),
        ("a: " + "x" * 300_000, "shorten"),
    ],
)
def test_text_that_is_no_document_is_refused_with_a_reason(text: str, words: str) -> None:
    assert traffic_policy.parse(text) is None
    assert words in (traffic_policy.why_not(text) or "")


# --- shape ------------------------------------------------------------------------------------------------------------


def test_a_valid_policy_has_no_findings() -> None:
    assert list_texts(GOOD) == []


@pytest.mark.parametrize(
    ("document", "path", "words"),
    [
        ({"on_http_request": {}}, ("on_http_request",), "not a list"),
        ({"on_http_request": None}, ("on_http_request",), "no rules"),
        ({"on_http_request": [None]}, ("on_http_request", 0), "not a rule"),
        ({"on_http_request": [{"actions": [None]}]}, ("on_http_request", 0, "actions", 0), "not an action"),
        (
            {"on_http_request": [{"expressions": [None], "actions": [{"type": "deny"}]}]},
            ("on_http_request", 0, "expressions", 0),
            "not an expression",
        ),
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
def test_a_wrong_shape_is_an_error_at_its_value(document: Any, path: tuple[str | int, ...], words: str) -> None:
    (only,) = traffic_policy.findings(document)
    assert only.path == path
    assert words in only.text
    assert only.severity is Severity.ERROR


def test_an_unknown_key_is_an_error_that_suggests_a_known_one() -> None:
    (only,) = traffic_policy.findings({"on_http_request": [{"expresions": [], "actions": [{"type": "deny"}]}]})
    assert (only.path, only.remedy, only.severity) == (
        ("on_http_request", 0, "expresions"),
        "did you mean expressions?",
        Severity.ERROR,
    )


def test_an_unknown_action_is_a_warning() -> None:
    (only,) = traffic_policy.findings({"on_http_request": [{"actions": [{"type": "denny"}]}]})
    assert (only.path[-1], only.remedy, only.severity, only.code) == (
        "type",
        "did you mean deny?",
        Severity.WARNING,
        "traffic-action",
    )


def test_an_unknown_phase_is_a_warning() -> None:
    (only,) = traffic_policy.findings({"on_http_reqest": [], "on_http_request": []})
    assert (only.path, only.remedy, only.severity, only.code) == (
        ("on_http_reqest",),
        "did you mean on_http_request?",
        Severity.WARNING,
        "traffic-phase",
    )


def check_action(type_: str, config: Any, phase: str = "on_http_request") -> list[Finding]:
    return list(traffic_policy.findings({phase: [{"actions": [{"type": type_, "config": config}]}]}))


@pytest.mark.parametrize(
    ("type_", "config", "path", "message", "remedy"),
    [
        ("deny", {"status_cod": 403}, ("status_cod",), "deny has no setting 'status_cod'", "did you mean status_code?"),
        ("deny", {"Status_code": 1}, ("Status_code",), None, None),
        ("redirect", {"from": "/a"}, (), "redirect requires the setting 'to'", "add to below config"),
        ("redirect", None, None, "redirect requires the setting 'to'", "add to below config"),
        (
            "http-request",
            {"url": "https://a.internal", "query_params": [{"key": "a"}, {"kee": "a"}]},
            ("query_params", 1, "kee"),
            "http-request has no setting 'query_params.kee'",
            "did you mean key?",
        ),
        (
            "jwt-validation",
            {"issuer": {"allow_list": [{}]}, "http": {"tokens": []}, "jws": {}},
            ("issuer", "allow_list", 0),
            "jwt-validation requires the setting 'issuer.allow_list.value'",
            "add value below issuer.allow_list",
        ),
    ],
)
def test_a_wrong_or_missing_setting_is_an_error_at_its_place(
    type_: str, config: Any, path: tuple[str | int, ...] | None, message: str | None, remedy: str | None
) -> None:
    found = check_action(type_, config)
    errors = [finding for finding in found if finding.severity is Severity.ERROR]
    if message is None:
        assert (errors, [finding.code for finding in found]) == ([], ["traffic-renamed"])
        return
    at = ("on_http_request", 0, "actions", 0)
    assert (errors[0].path, errors[0].text, errors[0].remedy) == (
        at if path is None else (*at, "config", *path),
        message,
        remedy,
    )


@pytest.mark.parametrize(
    ("type_", "config", "phase", "code"),
    [
        ("deny", {"color": "red"}, "on_http_request", "traffic-setting"),
        ("custom-response", {"content": "x"}, "on_http_request", "traffic-renamed"),
        ("log", {"Metadata": {"a": "b"}}, "on_http_response", "traffic-renamed"),
        ("oidc", {"issuer_url": "https://x"}, "on_http_request", "traffic-renamed"),
        ("deny", {}, "inbound", "traffic-renamed"),
        ("compress-response", {"algorithms": ["gzip", "zstd"]}, "on_http_response", "traffic-value"),
        ("forward-internal", {"url": "https://a", "on_error": "stop"}, "on_http_request", "traffic-value"),
        ("rate-limit", {**dict.fromkeys(("name", "algorithm", "capacity", "rate"), "${vars.x}"), "bucket_key": []},
         "on_http_response", "traffic-phase"),
    ],
)  # fmt: skip
def test_a_name_unknown_to_this_version_is_a_warning_with_a_code(
    type_: str, config: Any, phase: str, code: str
) -> None:
    (only,) = check_action(type_, config, phase)
    assert (only.severity, only.code) == (Severity.WARNING, code)


@pytest.mark.parametrize("document", ["{}", " {}\n", {}])
def test_an_empty_policy_is_accepted_with_a_warning(document: Any) -> None:
    (only,) = traffic_policy.findings(document, "traffic_policy")
    assert (only.severity, only.code, only.path) == (Severity.WARNING, "traffic-empty", ("traffic_policy",))
    assert only.text == "the policy is empty: no rule applies to the traffic"


def test_a_deprecated_action_is_a_warning_with_its_remedy() -> None:
    (only,) = check_action("ai-gateway", {"on_error": "halt"}, "on_http_request")
    assert (only.severity, only.code) == (Severity.WARNING, "traffic-deprecated")
    assert only.path == ("on_http_request", 0, "actions", 0, "type")
    assert "the platform's AI gateway service" in only.remedy


def test_a_rule_outside_a_list_is_reported_and_checked() -> None:
    found = list(
        traffic_policy.findings(
            {"on_http_request": {"expressions": ["req.mehtod == ''"], "actions": [{"type": "deny"}]}}
        )
    )
    assert [finding.code for finding in found] == ["traffic-rules", "traffic-member"]


def test_a_finding_within_a_text_names_the_place_in_its_message() -> None:
    (only,) = traffic_policy.findings('{"on_http_request": [{"actions": []}]}', "traffic_policy")
    assert only.path == ("traffic_policy",)
    assert only.text == "on_http_request[0].actions: has no actions"


def test_the_path_of_a_finding_begins_at_the_policy() -> None:
    (only,) = traffic_policy.findings({"on_http_request": [{}]}, "traffic_policy", "value")
    assert only.path == ("traffic_policy", "value", "on_http_request", 0)


REF = Ref(Address("ReservedDomain", "app"), "domain")


@pytest.mark.parametrize("value", [REF, Template(("a", REF)), None])
def test_a_policy_known_after_apply_is_not_checked(value: Any) -> None:
    assert list_texts(value) == []


def test_an_optional_setting_may_be_null() -> None:
    rule = {"name": None, "expressions": None, "actions": [{"type": "deny", "config": None}]}
    assert list_texts({"on_http_request": [rule]}) == []


@pytest.mark.parametrize(
    ("word", "remedy"), [("ref", "${{ Kind/name.output }}"), ("from_env", "${secrets.get("), ("from_file", "${{ var.")]
)
def test_a_reference_of_manifests_within_a_policy_is_a_warning(word: str, remedy: str) -> None:
    (only,) = check_action("log", {"metadata": {"token": [{word: "X"}]}})
    assert only.path == ("on_http_request", 0, "actions", 0, "config", "metadata", "token", 0)
    assert (only.text.split()[0], only.severity) == (word, Severity.WARNING)
    assert remedy in only.remedy


@pytest.mark.parametrize("config", [{"ref": "X", "b": 1}, {"ref": 1}, {"ref_": "X"}, {"x": "ref"}])
def test_keys_of_a_policy_that_resemble_references_are_accepted(config: dict[str, Any]) -> None:
    assert check_action("log", {"metadata": config}) == []


def test_references_inside_a_policy_are_not_checked() -> None:
    held = Secret("x", "env:X")
    rule = {"name": REF, "expressions": [REF], "actions": [{"type": "deny", "config": {"status_code": held}}, REF]}
    assert list_texts({"on_http_request": [rule, REF], "on_http_response": REF}) == []


def test_an_expression_within_a_setting_is_reported_at_its_place() -> None:
    body = "a ${req.url.path}\n  ${req.mehtod} ${reg.x} ${req.}"
    found = check_action("custom-response", {"body": body, "headers": {"x": "$${no} ${{'a': 1}.a}"}})
    assert [(finding.path[-1], finding.text, finding.severity, finding.spot) for finding in found] == [
        ("body", "req has no member 'mehtod'", Severity.ERROR, (2, 9)),
        ("body", "${reg.x}: unknown variable 'reg'", Severity.WARNING, (2, 19)),
        ("body", "${req.}: the expression has an unexpected '.'", Severity.WARNING, (2, 32)),
    ]


def test_an_expression_where_none_is_expected_is_a_warning() -> None:
    (only,) = check_action("basic-auth", {"credentials": ["a:b"], "realm": "${req.mehtod}"})
    assert (only.severity, only.code) == (Severity.WARNING, "traffic-member")


def test_a_setting_with_expressions_is_checked() -> None:
    config = {"name": "a", "algorithm": "sliding_window", "capacity": 1, "rate": "60s"}
    (only,) = check_action(
        "rate-limit", {**config, "bucket_key": ["conn.client_ip", "conn.clientip", "getReqHeader('x')"]}
    )
    assert (only.path[-2:], only.severity, only.spot) == (("bucket_key", 1), Severity.ERROR, (1, 6))


@given(st.text(max_size=30))
def test_any_text_is_checked_as_an_expression(text: str) -> None:
    found = traffic_policy.findings({"on_http_request": [{"expressions": [text], "actions": [{"type": "deny"}]}]})
    assert all(finding.path[0] == "on_http_request" for finding in found)


# --- published policies -----------------------------------------------------------------------------------------------

_FILE = Path(__file__).parent / "corpus" / "traffic_policies.yaml"
CORPUS: Any = yaml.read(_FILE.read_bytes(), _FILE.name).documents[0].value


@pytest.mark.parametrize("entry", CORPUS["right"], ids=lambda entry: str(entry["policy"])[:80])
def test_a_published_policy_has_no_error(entry: Any) -> None:
    found = list(traffic_policy.findings(entry["policy"]))
    assert [(finding.code, finding.severity) for finding in found] == [
        (code, Severity.WARNING) for code in entry.get("codes", [])
    ]


@pytest.mark.parametrize("entry", CORPUS["wrong"], ids=lambda entry: str(entry["policy"])[:80])
def test_a_published_policy_that_cannot_work_is_an_error(entry: Any) -> None:
    found = [finding for finding in traffic_policy.findings(entry["policy"]) if finding.severity is Severity.ERROR]
    assert [finding.code for finding in found] == entry["codes"]
