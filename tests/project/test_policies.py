"""Reading policies: what is wrong with one is told at its very place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.problem import Position, Rejected
from reconciler.planning.policies.rule import Rule
from reconciler.project.policies import offsets
from reconciler.project.policies.load import load_policies
from reconciler.project.settings.config import load_config
from reconciler.project.yaml import reader as yaml

GOOD = "policy: a\ncheck: resource.kind != ''\nmessage: ${resource.name} has no kind\n"


def load(root: Path, text: str | None = GOOD, settings: str = "") -> tuple[Rule, ...]:
    (root / "reconciler.yaml").write_text(f"version: 1\nstack: prod\n{settings}", encoding="utf-8")
    if text is not None:
        (root / "policies").mkdir(exist_ok=True)
        (root / "policies/a.yaml").write_text(text, encoding="utf-8")
    return load_policies(load_config(root, {}))


def refused(root: Path, text: str) -> list[str]:
    with pytest.raises(Rejected) as caught:
        load(root, text)
    return [str(problem) for problem in caught.value.problems]


def test_a_project_without_policies_has_none(tmp_path: Path) -> None:
    assert load(tmp_path, None) == ()


def test_a_folder_that_is_asked_for_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(Rejected) as caught:
        load(tmp_path, None, "policies: [rules]\n")
    assert str(caught.value) == "reconciler.yaml:3:12: there is no file rules; paths are relative to the project's root"


def test_a_policy_outside_the_project_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="only paths below the project"):
        load(tmp_path, None, "policies: [../rules]\n")


def test_a_rule_knows_what_it_speaks_of(tmp_path: Path) -> None:
    (rule,) = load(tmp_path)
    assert (rule.name, rule.uses) == ("a", frozenset({"resource"}))
    assert (rule.needs_plan, rule.is_about_resources) == (False, True)


@pytest.mark.parametrize(
    ("check", "place"),
    [
        ("check: resource.kind == 1 +", "2:28"),
        ("check: 'resource.kind == ''x'' && nope'", "2:35"),
        ('check: "resource.kind == \\"x\\" && nope"', "2:35"),
        ("check: |\n  true &&\n\n    nope", "5:5"),
        ("check: >-\n  true &&\n  nope", "4:3"),
        ("check: nope # resource", "2:8"),
        ("check: true\n  && nope", "2:8"),  # a plain text on several lines: where it begins
    ],
)
def test_an_expression_is_wrong_at_its_line_and_column(tmp_path: Path, check: str, place: str) -> None:
    (told,) = refused(tmp_path, f"policy: a\n{check}\nmessage: x\n")
    assert told.startswith(f"policies/a.yaml:{place}: a.check: the expression ")


def test_an_unknown_name_is_told_with_those_there_are(tmp_path: Path) -> None:
    (told,) = refused(tmp_path, "policy: a\ncheck: resorce.kind == ''\nmessage: x\n")
    assert told == (
        "policies/a.yaml:2:8: a.check: the expression uses the unknown name resorce.kind; "
        "use change, now, plan or resource"
    )


def test_an_expression_in_a_message_is_wrong_at_its_place(tmp_path: Path) -> None:
    (told,) = refused(tmp_path, "policy: a\ncheck: resource.ok\nmessage: the ${resource.kind} ${nope}\n")
    assert told.startswith("policies/a.yaml:3:33: a.message: the expression uses the unknown name nope")


def test_a_check_answers_with_true_or_false(tmp_path: Path) -> None:
    (told,) = refused(tmp_path, "policy: a\ncheck: size(resource.kind)\nmessage: x\n")
    assert "the expression evaluates to a number, not to true or false" in told


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    text = (
        "policy: a b\nseverity: loud\nscope: {kinds: [TLSEgde], actions: [vanish]}\ncheck: x\nmessage: y\n---\n"
        "policy: b\nscope: {kinds: [TLSEgde]}\ncheck: true ==\nmessage: ${\n---\n- a\n---\n"
        "policy: c\ncheck: resource.ok\nmessage: x\nexemptions: [{address: x, until: 2030-13-01}]\n"
    )
    assert refused(tmp_path, text) == [
        "policies/a.yaml:1:9: a b.policy: is not a valid name; use up to 100 letters, digits, '.', '_' and '-', "
        "beginning with a letter or digit",
        "policies/a.yaml:2:11: a b.severity: 'loud' is not one of error or warning",
        "policies/a.yaml:3:37: a b.scope.actions[0]: 'vanish' is not one of create, update, replace, delete, adopt, "
        "forget or move",
        "policies/a.yaml:8:17: b.scope.kinds[0]: unknown kind 'TLSEgde'; did you mean TLSEdge?",
        "policies/a.yaml:9:15: b.check: the expression ends unexpectedly; expressions are written in CEL (https://cel.dev)",
        "policies/a.yaml:12:1: expected a map, found a list; begin with policy:",
        "policies/a.yaml:17:14: c.exemptions[0].reason: missing required field",
        "policies/a.yaml:17:34: c.exemptions[0].until: is not a date; write it as 2030-12-31",
    ]


def test_a_name_is_used_once(tmp_path: Path) -> None:
    assert refused(tmp_path, f"{GOOD}---\n{GOOD}") == [
        "policies/a.yaml:5:9: a: duplicate policy name, first used at policies/a.yaml:1:1; rename one of the two"
    ]


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=12))
def test_every_character_of_a_quoted_or_literal_text_is_found_where_it_stands(text: str) -> None:
    single = "a: '" + text.replace("'", "''") + "'\n"
    double = 'a: "' + text.replace("\\", "\\\\").replace('"', '\\"') + '"\n'
    literal = f"a: |2-\n  {text}\n"
    for file in (single, double, literal):
        (document,) = yaml.read(file.encode(), "f").documents
        if document.value != {"a": text}:
            continue  # a text of blanks that YAML takes for none
        lines = file.splitlines()
        for at, sign in enumerate(text):
            where = offsets.place(lines, document.places[("a",)], text, at)
            shown = lines[where.line - 1][where.column - 1 :]
            assert shown.startswith((sign, "\\" + sign)) or where == document.places[("a",)]


def test_what_is_behind_the_end_stands_behind_it() -> None:
    assert offsets.place(["a: bc"], Position("f", 1, 4), "bc", 2) == Position("f", 1, 6)


def test_the_schema_takes_the_starter_set_and_refuses_what_reading_refuses() -> None:
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
