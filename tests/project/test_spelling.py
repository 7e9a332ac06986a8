"""Values as YAML: read back as they were, and laid out as `fmt` would."""

from __future__ import annotations

from typing import Any

import pytest
import yaml as yaml_1_1
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.project import spelling, yaml
from reconciler.project.editing import is_formatted
from tests.laws.accounts import DESCRIPTIONS, METADATA
from tests.project.test_yaml import JSON

TEXT = st.text() | st.sampled_from([*DESCRIPTIONS, *METADATA]) | st.text("ab \n#:-\t'\"|>", max_size=12)


def spelt(value: Any) -> str:
    return "\n".join(spelling.block({"spec": value})) + "\n"


def read(text: str) -> Any:
    reading = yaml.read(text.encode(), "f.yaml")
    assert reading.problems == []
    return reading.documents[0].value["spec"]


@settings(max_examples=200, deadline=None)
@given(TEXT)
def test_any_text_reads_back(text: str) -> None:
    assert read(spelt({"a": text, "b": [text]})) == {"a": text, "b": [text]}


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_any_value_reads_back(value: Any) -> None:
    assert read(spelt(value)) == value


@settings(max_examples=40, deadline=None)  # ruamel.yaml is slow
@given(st.dictionaries(st.sampled_from("abc"), TEXT | st.lists(TEXT, max_size=2), max_size=3))
def test_the_layout_is_that_of_fmt(value: Any) -> None:
    text = f"kind: IPPolicy\nname: x\n{spelt(value)}"
    assert is_formatted(text, "f.yaml")


@pytest.mark.parametrize("text", ["no", "on", "1e3", "2020-01-01", "12:30:45", "0o17", "~", "=", "<<", "y", "1_000"])
def test_what_another_reader_may_take_for_something_else_is_quoted(text: str) -> None:
    assert spelling.scalar(text) == f'"{text}"'
    assert yaml_1_1.safe_load(spelt({"a": text})) == {"spec": {"a": text}}


def test_plain_words_stay_plain() -> None:
    assert spelling.scalar("Agent of the Berlin site") == "Agent of the Berlin site"


def test_several_lines_stand_below_each_other() -> None:
    assert spelt({"body": "one\n  two\n"}) == "spec:\n  body: |\n    one\n      two\n"


def test_what_cannot_be_seen_is_spelt_out() -> None:
    assert spelling.scalar("a\u202eb\x1b\U000e0001") == '"a\\u202Eb\\e\\U000E0001"'


def test_a_reference_stands_on_one_line() -> None:
    assert spelt({"backend_id": {"ref": "TunnelGroupBackend/a"}}) == (
        "spec:\n  backend_id: {ref: TunnelGroupBackend/a}\n"
    )
