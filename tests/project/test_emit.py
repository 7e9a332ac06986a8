"""Values rendered as YAML: they read back equal, and have the layout of `fmt`."""

from __future__ import annotations

from typing import Any

import pytest
import yaml as yaml_1_1
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.languages.yaml import reader as yaml
from reconciler.project.yaml import emit
from reconciler.project.yaml.format import format_text
from tests.harness.tiers import examples
from tests.languages.test_reader import JSON
from tests.laws.accounts import DESCRIPTIONS, METADATA

TEXT = st.text() | st.sampled_from([*DESCRIPTIONS, *METADATA]) | st.text("ab \n#:-\t'\"|>", max_size=12)


def render(value: Any) -> str:
    return "\n".join(emit.block({"spec": value})) + "\n"


def read(text: str) -> Any:
    reading = yaml.read(text.encode(), "f.yaml")
    assert reading.problems == []
    return reading.documents[0].value["spec"]


@settings(max_examples=examples(200))
@given(TEXT)
def test_any_text_reads_back(text: str) -> None:
    assert read(render({"a": text, "b": [text]})) == {"a": text, "b": [text]}


@settings(max_examples=examples(100))
@given(JSON)
def test_any_value_reads_back(value: Any) -> None:
    assert read(render(value)) == value


@settings(max_examples=examples(40))  # ruamel.yaml is slow
@given(st.dictionaries(st.sampled_from("abc"), TEXT | st.lists(TEXT, max_size=2), max_size=3))
def test_the_layout_is_that_of_fmt(value: Any) -> None:
    text = f"kind: IPPolicy\nname: x\n{render(value)}"
    assert format_text(text, "f.yaml") == text


@pytest.mark.parametrize("text", ["no", "on", "1e3", "2020-01-01", "12:30:45", "0o17", "~", "=", "<<", "y", "1_000"])
def test_text_that_yaml_1_1_reads_as_another_type_is_quoted(text: str) -> None:
    assert emit.scalar(text) == f'"{text}"'
    assert yaml_1_1.safe_load(render({"a": text})) == {"spec": {"a": text}}


def test_plain_words_are_not_quoted() -> None:
    assert emit.scalar("Agent of the Berlin site") == "Agent of the Berlin site"


def test_text_of_several_lines_is_a_block() -> None:
    assert render({"body": "one\n  two\n"}) == "spec:\n  body: |\n    one\n      two\n"


def test_invisible_characters_are_escaped() -> None:
    assert emit.scalar("a\u202eb\x1b\U000e0001") == '"a\\u202Eb\\e\\U000E0001"'


JOINED = [
    "\U0001f469\u200d\U0001f4bb",
    "\u2764\ufe0f\u200d\U0001f525",
    "\u0645\u06cc\u200c\u062e",
    "\u0d28\u0d4d\u200d",
]


@pytest.mark.parametrize("text", JOINED)
def test_joiners_within_letters_and_emoji_are_not_escaped(text: str) -> None:
    assert emit.scalar(text) == f'"{text}"'
    assert list(emit.block({"a": f"{text}\n{text}"})) == ["a: |-", f"  {text}", f"  {text}"]
    written = render({"a": text, "b": f"{text}\n{text}"})
    assert format_text(written, "f.yaml") == written


@pytest.mark.parametrize("text", ["\u200d", "a\u200db", " \u200c", "\u0645\u200c\u200c"])
def test_joiners_that_join_nothing_are_escaped(text: str) -> None:
    assert "\\u200" in emit.scalar(text)


def test_a_reference_is_rendered_on_one_line() -> None:
    assert render({"backend_id": {"ref": "TunnelGroupBackend/a"}}) == (
        "spec:\n  backend_id: {ref: TunnelGroupBackend/a}\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": {}}, "a: {}"),
        ({"a": []}, "a: []"),
        ({"a": {"b": 1}}, "a:\n  b: 1"),
        ({"a": [1, {"b": 1, "c": [2]}]}, "a:\n  - 1\n  - b: 1\n    c:\n      - 2"),
        ({"a": [[1, 2]]}, "a:\n  -   - 1\n      - 2"),
        ({"a": {"ref": "A/b"}}, "a: {ref: A/b}"),
        ({"a": {"from_file": "f, g"}}, 'a: {from_file: "f, g"}'),
        ({"a": {"from_env": "X"}}, "a: {from_env: X}"),
        ({"a": {"ref": "A/b", "c": 1}}, "a:\n  ref: A/b\n  c: 1"),
        ({"a": "1\n2\n"}, "a: |\n  1\n  2"),
        ({"a": "1\n2"}, "a: |-\n  1\n  2"),
        ({"a": "1\n\n2"}, "a: |-\n  1\n\n  2"),
        ({"a": "1\n2\n\n"}, 'a: "1\\n2\\n\\n"'),
        ({"a": "\n1"}, 'a: "\\n1"'),
        ({"a": " 1\n2"}, 'a: " 1\\n2"'),
        ({"a": "1 \n2"}, 'a: "1 \\n2"'),
        ({"a": "1\u202e\n2"}, 'a: "1\\u202E\\n2"'),
        ({"a": "1\t2\n3"}, 'a: "1\\t2\\n3"'),
        ({"a b": {"c: d": 1}}, 'a b:\n  "c: d": 1'),
        ({"a": [["x, y"], {"ref": "z"}]}, 'a:\n  -   - "x, y"\n  - {ref: z}'),
        ({"a": None, "b": True, "c": 1.5}, "a: null\nb: true\nc: 1.5"),
        ({"a": "\u00e9\x85\ufffe\ud800"}, 'a: "\u00e9\\N\\uFFFE\\uD800"'),
    ],
)
def test_values_are_rendered_in_one_layout(value: Any, text: str) -> None:
    assert "\n".join(emit.block(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, "b"], "c d": {}}, "{a: [1, b], c d: {}}"),
        ([], "[]"),
        (["a, b", "c]", "{d", "e f", "g(h, i)"], '["a, b", "c]", "{d", e f, "g(h, i)"]'),
        ("a, b", '"a, b"'),
        ("", '""'),
        ("TRUE", '"TRUE"'),
        ("a: b", '"a: b"'),
        ("1a", '"1a"'),
        (7, "7"),
    ],
)
def test_values_are_rendered_on_one_line(value: Any, text: str) -> None:
    assert emit.flow(value) == text
