"""Policy files: their parts, defaults and positions. Invalid policies are in `mistakes/policies`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages.yaml import reader as yaml
from reconciler.model.problem import Position, Rejected
from reconciler.planning.policies.rule import Rule
from reconciler.project.policies import offsets
from reconciler.project.policies.load import load_policies
from reconciler.project.settings.config import load_config

GOOD = "policy: a\ncheck: resource.kind != ''\nmessage: ${resource.name} has no kind\n"


def load(root: Path, text: str | None = GOOD, settings: str = "") -> tuple[Rule, ...]:
    (root / "reconciler.yaml").write_text(f"version: 1\nstack: prod\n{settings}", encoding="utf-8")
    if text is not None:
        (root / "policies").mkdir(exist_ok=True)
        (root / "policies/a.yaml").write_text(text, encoding="utf-8")
    return load_policies(load_config(root, {}))


def problem_lines(root: Path, text: str) -> list[str]:
    with pytest.raises(Rejected) as caught:
        load(root, text)
    return [str(problem) for problem in caught.value.problems]


def test_a_project_without_policies_has_none(tmp_path: Path) -> None:
    assert load(tmp_path, None) == ()


def test_a_listed_folder_of_policies_must_exist(tmp_path: Path) -> None:
    with pytest.raises(Rejected) as caught:
        load(tmp_path, None, "policies: [rules]\n")
    assert str(caught.value) == "reconciler.yaml:3:12: there is no file rules; paths are relative to the project's root"


def test_a_policy_outside_the_project_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="only paths below the project"):
        load(tmp_path, None, "policies: [../rules]\n")


def test_a_rule_records_the_variables_that_it_uses(tmp_path: Path) -> None:
    (rule,) = load(tmp_path)
    assert (rule.name, rule.uses) == ("a", frozenset({"resource"}))
    assert (rule.needs_plan, rule.is_about_resources) == (False, True)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=12))
def test_each_character_of_a_quoted_or_literal_text_has_its_position(text: str) -> None:
    single = "a: '" + text.replace("'", "''") + "'\n"
    double = 'a: "' + text.replace("\\", "\\\\").replace('"', '\\"') + '"\n'
    literal = f"a: |2-\n  {text}\n"
    for file in (single, double, literal):
        (document,) = yaml.read(file.encode(), "f").documents
        if document.value != {"a": text}:
            continue  # a text of spaces, which YAML does not keep
        lines = file.splitlines()
        for at, sign in enumerate(text):
            where = offsets.place(lines, document.places[("a",)], text, at)
            rest = lines[where.line - 1][where.column - 1 :]
            assert rest.startswith((sign, "\\" + sign)) or where == document.places[("a",)]


def test_an_offset_after_the_end_of_a_text_has_the_position_after_it() -> None:
    assert offsets.place(["a: bc"], Position("f", 1, 4), "bc", 2) == Position("f", 1, 6)


def test_the_schema_accepts_the_examples_and_refuses_invalid_policies() -> None:
    root = Path(__file__).parents[2]
    schema = jsonschema.Draft202012Validator(json.loads((root / "schemas/policy.json").read_text(encoding="utf-8")))
    for file in (root / "examples/policies/policies").iterdir():
        assert all(schema.is_valid(document.value) for document in yaml.read(file.read_bytes(), file.name).documents)
    good = {"policy": "a", "check": "true", "message": "x"}
    assert schema.is_valid(good)
    wrongs: list[dict[str, Any]] = [
        {"severity": "loud"},
        {"scope": {"action": []}},
        {"exemptions": [{"address": "x"}]},
        {"check": True},
    ]
    assert not any(schema.is_valid({**good, **wrong}) for wrong in wrongs)


FULL = """\
# ours
policy: full.name-1
description: why
severity: warning
scope:
  kinds: [TLSEdge, IPPolicy]
  addresses: ["TLSEdge/a*"]
  actions: [create, replace]
check: >-
  resource.kind != ''
message: "${resource.name}${resource.kind} in ${ plan } {x} ${"
remedy: do it
field: tls_termination.min_version
exemptions:
  - {address: TLSEdge/a, reason: old, until: 2030-12-31}
  - address: "*"
    reason: new
    until: '2031-01-01'
"""


def test_a_policy_is_read_with_all_its_parts(tmp_path: Path) -> None:
    (rule,) = load(tmp_path, FULL)
    assert (rule.name, rule.severity, rule.remedy, rule.field) == (
        "full.name-1",
        "warning",
        "do it",
        "tls_termination.min_version",
    )
    assert (rule.kinds, rule.addresses) == (("TLSEdge", "IPPolicy"), ("TLSEdge/a*",))
    assert [str(action) for action in rule.actions] == ["create", "replace"]
    assert [
        (exemption.addresses, exemption.reason, str(exemption.until), str(exemption.position))
        for exemption in rule.exemptions
    ] == [
        ("TLSEdge/a", "old", "2030-12-31", "policies/a.yaml:15:5"),
        ("*", "new", "2031-01-01", "policies/a.yaml:16:5"),
    ]
    assert [part if isinstance(part, str) else type(part).__name__ for part in rule.message] == [
        "Expression",
        "Expression",
        " in ",
        "Expression",
        " {x} ${",
    ]
    assert (rule.position, rule.places["check"]) == (
        Position("policies/a.yaml", 2, 1),
        Position("policies/a.yaml", 10, 3),
    )


def test_a_policy_of_required_fields_has_defaults(tmp_path: Path) -> None:
    (rule,) = load(tmp_path, "policy: a\ncheck: 'true'\nmessage: m\n")
    assert (rule.severity, rule.remedy, rule.field, rule.message) == ("error", "", "", ("m",))
    assert (rule.kinds, rule.addresses, rule.actions, rule.exemptions) == ((), (), (), ())


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [("a" * 100, True), ("a" * 101, False), ("1._-", True), ("-a", False), (".a", False), ("a/b", False)],
)
def test_the_name_of_a_policy_has_up_to_100_plain_characters(tmp_path: Path, name: str, is_valid: bool) -> None:
    text = f"policy: {name}\ncheck: 'true'\nmessage: m\n"
    if is_valid:
        assert [rule.name for rule in load(tmp_path, text)] == [name]
    else:
        (line,) = problem_lines(tmp_path, text)
        assert "is not a valid name; use up to 100 letters" in line


def test_policies_are_read_once_from_each_listed_file_and_sorted_by_name(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/x.yaml").write_text(GOOD.replace("policy: a", "policy: c"), encoding="utf-8")
    text = f"{GOOD.replace('policy: a', 'policy: d')}---\n{GOOD.replace('policy: a', 'policy: b')}"
    settings = "policies: [policies, policies/a.yaml, ./policies, more]\n"
    assert [rule.name for rule in load(tmp_path, text, settings)] == ["b", "c", "d"]


def test_an_unreadable_file_of_policies_is_reported_where_it_is_listed(tmp_path: Path) -> None:
    load(tmp_path)
    (tmp_path / "policies/a.yaml").write_text(" " * (5 * 1024 * 1024 + 1), encoding="utf-8")
    for settings, where in (("", "reconciler.yaml:1:1"), ("policies: [policies]\n", "reconciler.yaml:3:12")):
        with pytest.raises(Rejected) as caught:
            load(tmp_path, None, settings)
        assert str(caught.value) == f"{where}: policies/a.yaml is larger than 5 MiB; use a smaller file"
