"""Validation of the values of a spec: one problem a value, with position and remedy."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field as PydanticField
from pydantic import ValidationError

from reconciler.kinds.types.fields import check_with
from reconciler.languages.yaml import reader as yaml
from reconciler.model.fields.annotations import Between, Sensitive
from reconciler.model.fields.field import fields_of
from reconciler.model.fields.form import Form
from reconciler.model.problem import Finding, Position
from reconciler.model.value import Sealed, Secret, value_at
from reconciler.project.documents import validation
from tests.project.texts import load_one, problem_lines


def _check_even(text: str) -> str | None:
    return None if len(text) % 2 == 0 else f"{text!r} is odd: {text}; write {text}{text}"


class Part(Form):
    number: float = 0.5
    key: str


class Sample(Form):
    text: str = ""
    choice: Literal["edge", "upstream"] = "edge"
    one: Literal[1] = 1
    size: Annotated[int, Between(1, 5)] = 3
    most: Annotated[int, PydanticField(le=9, gt=1)] = 2
    least: Annotated[int | None, PydanticField(ge=2)] = None
    flag: bool = False
    names: list[str] = []  # noqa: RUF012 - as in forms, which copy it
    labels: dict[str, str] = {}  # noqa: RUF012 - as above
    part: Part | None = None
    parts: list[Part] = []  # noqa: RUF012 - as in forms, which copy it
    mixed: str | list[str] = ""
    even: Annotated[str, check_with(_check_even)] = ""
    secret: Annotated[Annotated[str, check_with(_check_even)], Sensitive] = ""
    hidden: Annotated[Literal["a", "b"], Sensitive] = "a"


def findings(value: Any) -> list[str]:
    try:
        Sample.model_validate(value)
    except ValidationError as error:
        found = validation.problems_of(error, value, fields_of(Sample))
        return [
            f"{'.'.join(map(str, finding.path))}: {finding.text}; {finding.remedy} ({finding.code})"
            for finding in found
        ]
    return []


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({"text": 1}, ["text: expected text, found a whole number; quote it (wrong-type)"]),
        ({"text": 1.5}, ["text: expected text, found a number; quote it (wrong-type)"]),
        ({"text": True}, ["text: expected text, found true; quote it (wrong-type)"]),
        ({"text": None}, ["text: expected text, found nothing; set a value, or remove the line (wrong-type)"]),
        ({"text": []}, ['text: expected text, found a list; write text, as in "value" (wrong-type)']),
        ({"text": {}}, ['text: expected text, found a map; write text, as in "value" (wrong-type)']),
        ({"text": {"env": "X"}}, ["text: expected text, found a map; write {from_env: X} (wrong-type)"]),
        ({"text": {"env": "X", "a": 1}}, ['text: expected text, found a map; write text, as in "value" (wrong-type)']),
        ({"size": "3"}, ["size: expected a whole number, found text; remove the quotes (wrong-type)"]),
        ({"size": "x"}, ["size: expected a whole number, found text; write digits without quotes, as in 10 (wrong-t"]),
        ({"size": ".inf"}, ["size: expected a whole number, found text; write digits without quotes, as in 10 (wro"]),
        ({"size": 1.5}, ["size: expected a whole number, found a number; write digits without quotes, as in 10 (wr"]),
        ({"size": 0}, ["size: 0 is out of range; write a number from 1 to 5 (value-out-of-range)"]),
        ({"most": 10}, ["most: must be at most 9; the default is 2 (value-out-of-range)"]),
        ({"least": 1}, ["least: must be at least 2;  (value-out-of-range)"]),
        ({"most": 1}, ["most: must be more than 1; the default is 2 (value-out-of-range)"]),
        ({"flag": "true"}, ["flag: expected true or false, found text; remove the quotes (wrong-type)"]),
        ({"flag": 1}, ["flag: expected true or false, found a whole number; write true or false (wrong-type)"]),
        ({"flag": "yes"}, ["flag: expected true or false, found text; write true or false (wrong-type)"]),
        ({"names": "a"}, ["names: expected a list, found text; put it in brackets: [ … ] (wrong-type)"]),
        ({"names": {"a": 1}}, ["names: expected a list, found a map; write a list (wrong-type)"]),
        ({"names": {"ref": "A/b"}}, ["names: expected a list, found a reference; put it in brackets: [ … ] (wrong-t"]),
        ({"names": ["a", 1]}, ["names.1: expected text, found a whole number; quote it (wrong-type)"]),
        ({"labels": []}, ["labels: expected a map, found a list; write a map, as in {key: value} (wrong-type)"]),
        ({"labels": {"a": 1}}, ["labels.a: expected text, found a whole number; quote it (wrong-type)"]),
        ({"part": {}}, ["part.key: missing required field;  (missing-field)"]),
        ({"part": {"key": "a", "kez": 1}}, ["part.kez: unknown field; did you mean key? (unknown-field)"]),
        ({"part": {"key": "a", "zzz": 1}}, ["part.zzz: unknown field; use number or key (unknown-field)"]),
        ({"part": {"key": "a", "number": "0.5"}}, ["part.number: expected a number, found text; remove the quotes (w"]),
        ({"parts": [{"key": "a"}, {}]}, ["parts.1.key: missing required field;  (missing-field)"]),
        (
            {"parts": [1]},
            ["parts.0: expected a map, found a whole number; write a map, as in {key: value} (wrong-type)"],
        ),
        ({"txt": 1}, ["txt: unknown field; did you mean text? (unknown-field)"]),
        ({"choice": "egde"}, ["choice: 'egde' is not one of edge or upstream; did you mean edge? (unknown-choice)"]),
        ({"choice": "zzzz"}, ["choice: 'zzzz' is not one of edge or upstream;  (unknown-choice)"]),
        (
            {"choice": 1},
            ["choice: expected one of edge or upstream, found a whole number; write one of"],
        ),
        ({"one": 2}, ["one: expected 1, found 2; write 1 (unknown-choice)"]),
        ({"one": "1"}, ["one: '1' is not one of 1; did you mean 1? (unknown-choice)"]),
        ({"one": []}, ["one: expected one of 1, found a list; write one of 1 (wrong-type)"]),
        ({"mixed": 1}, ["mixed: expected text or a list, found a whole number; quote it (wrong-type)"]),
        ({"mixed": [1]}, ["mixed: expected text, found a list; "]),
        ({"even": "abc"}, ["even: 'abc' is odd: abc; write abcabc (invalid-value)"]),
        ({"secret": "abc"}, ["secret: the value is odd: …; write …… (invalid-value)"]),
        ({"hidden": "canary"}, ["hidden: this is not one of a or b;  (unknown-choice)"]),
        ({"secret": 12345}, ["secret: expected text, found a whole number; quote it (wrong-type)"]),
        ({"text": 1, "flag": 2}, ["text: expected text, found a whole", "flag: expected true or false, found a whole"]),
    ],
)
def test_an_invalid_value_is_one_finding_with_a_remedy(value: Any, lines: list[str]) -> None:
    found = findings(value)
    if "mixed" in value and isinstance(value["mixed"], list):
        assert {text.partition(":")[0] for text in found} <= {"mixed", "mixed.0"}
        return
    assert [text[: len(line)] for text, line in zip(found, lines, strict=True)] == lines


def test_a_failed_rule_does_not_quote_a_secret() -> None:
    for secret in (Secret("abc", "env:X"), Sealed("env:X")):
        with pytest.raises(ValidationError) as raised:
            Sample.model_validate({"even": "abc"})
        (found,) = validation.problems_of(raised.value, {"even": secret}, fields_of(Sample))
        assert found.text == ("the value is odd: …" if type(secret) is Secret else "'abc' is odd: abc")


@pytest.mark.parametrize(
    ("path", "name", "is_sensitive"),
    [
        (("text",), "text", False),
        (("part", "key"), "key", False),
        (("parts", 3, "key"), "key", False),
        (("labels", "any"), "", False),
        (("labels", "any", "deep"), None, False),
        (("names", 0), "", False),
        (("names", "a"), None, False),
        (("parts", "key"), None, False),
        (("none",), None, False),
        (("text", "deep"), None, False),
        (("secret",), "secret", True),
        (("secret", "deep"), None, True),
        ((0,), None, False),
        ((), None, False),
    ],
)
def test_a_field_is_found_by_its_path(path: Any, name: str | None, is_sensitive: bool) -> None:
    field, sensitive = validation.field_at(fields_of(Sample), path)
    assert sensitive == is_sensitive
    assert (field is None) == (name is None)
    if field is not None and name:
        assert field.name == name


@pytest.mark.parametrize(
    ("path", "value"), [((), {"a": [1]}), (("a", 0), 1), (("a", 1), None), (("a", "b"), None), (("a", 0, 0), None)]
)
def test_a_value_is_found_by_its_path(path: Any, value: Any) -> None:
    assert value_at({"a": [1]}, path) == value


def test_a_finding_becomes_a_problem_at_its_key_or_value() -> None:
    places = yaml.read(b"spec:\n  a: {b: 1}\n", "f").documents[0].places
    is_key = Finding(("a", "b"), "text", code="x", is_key=True)
    plain = Finding(("a", "b"), "text", "remedy", code="x", values={"n": 1})
    for finding, where in ((is_key, 7), (plain, 10)):
        problem = validation.to_problem(finding, places, "K/n", ("spec",))
        assert (problem.position, problem.subject) == (Position("f", 2, where), "K/n.a.b")
    assert str(validation.to_problem(plain, places, "", ("spec",))) == "f:2:10: a.b: text; remedy"
    missing = Finding(("a", "c"), "text", code="x", is_key=True)
    assert validation.to_problem(missing, places, "", ("spec",)).position == Position("f", 2, 6)


def test_findings_beyond_a_hundred_of_one_resource_are_counted_not_listed() -> None:
    for count in (99, 100, 101, 150):
        lines = problem_lines(
            "kind: IPPolicy\nname: a\nspec:\n" + "".join(f"  k{number}: 1\n" for number in range(count))
        )
        assert len(lines) == min(count, 101)
        more = [line for line in lines if "more than 100 problems in this resource; correct those above first" in line]
        assert len(more) == (count > 100)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("protect: true", "protect: unknown field; write it under lifecycle, as in lifecycle: {protect: …}"),
        ("lifecycle: {}", "lifecycle: unknown field; write it beside spec"),
        ("name: x", "name: unknown field; write it beside spec"),
        ("descripton: x", "descripton: unknown field; did you mean description?"),
    ],
)
def test_a_key_of_the_envelope_inside_the_spec_is_reported_as_that(text: str, line: str) -> None:
    assert problem_lines(f"kind: IPPolicy\nname: a\nspec: {{{text}}}\n") == [f"a.yaml:3:8: IPPolicy/a.{line}"]


@pytest.mark.parametrize(
    ("more", "is_complete"),
    [
        ("ensure: absent", True),
        ("ensure: forgotten", True),
        ("id: edghtsrt_1\nspec: {edge_id: e}", True),
        ("spec: {edge_id: e, match: /, match_type: exact_path}", True),
        ("spec: {edge_id: edghts_1}", False),
        ("id: edghtsrt_1", False),
        ("ensure: absent\nspec: {backend: {}}", False),
    ],
)
def test_fields_are_required_if_the_object_must_exist(more: str, is_complete: bool) -> None:
    text = f"kind: HTTPSEdgeRoute\nname: r\n{more}\n"
    if is_complete:
        load_one(text)
    else:
        assert all("missing required field" in line for line in problem_lines(text))
