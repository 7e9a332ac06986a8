"""Values as YAML: read back as they were, and laid out as `fmt` would."""

from __future__ import annotations

from typing import Any

import pytest
import yaml as yaml_1_1
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.project.yaml import emit
from reconciler.project.yaml import reader as yaml
from reconciler.project.yaml.format import format_text
from tests.harness.tiers import examples
from tests.laws.accounts import DESCRIPTIONS, METADATA
from tests.project.test_yaml import JSON

TEXT = st.text() | st.sampled_from([*DESCRIPTIONS, *METADATA]) | st.text("ab \n#:-\t'\"|>", max_size=12)


def spelt(value: Any) -> str:
    return "\n".join(emit.block({"spec": value})) + "\n"


def read(text: str) -> Any:
    reading = yaml.read(text.encode(), "f.yaml")
    assert reading.problems == []
    return reading.documents[0].value["spec"]


@settings(max_examples=examples(200))
@given(TEXT)
def test_any_text_reads_back(text: str) -> None:
    assert read(spelt({"a": text, "b": [text]})) == {"a": text, "b": [text]}


@settings(max_examples=examples(100))
@given(JSON)
def test_any_value_reads_back(value: Any) -> None:
    assert read(spelt(value)) == value


@settings(max_examples=examples(40))  # ruamel.yaml is slow
@given(st.dictionaries(st.sampled_from("abc"), TEXT | st.lists(TEXT, max_size=2), max_size=3))
def test_the_layout_is_that_of_fmt(value: Any) -> None:
    text = f"kind: IPPolicy\nname: x\n{spelt(value)}"
    assert format_text(text, "f.yaml") == text


@pytest.mark.parametrize("text", ["no", "on", "1e3", "2020-01-01", "12:30:45", "0o17", "~", "=", "<<", "y", "1_000"])
def test_what_another_reader_may_take_for_something_else_is_quoted(text: str) -> None:
    assert emit.scalar(text) == f'"{text}"'
    assert yaml_1_1.safe_load(spelt({"a": text})) == {"spec": {"a": text}}


def test_plain_words_stay_plain() -> None:
    assert emit.scalar("Agent of the Berlin site") == "Agent of the Berlin site"


def test_several_lines_stand_below_each_other() -> None:
    assert spelt({"body": "one\n  two\n"}) == "spec:\n  body: |\n    one\n      two\n"


def test_what_cannot_be_seen_is_spelt_out() -> None:
    assert emit.scalar("a\u202eb\x1b\U000e0001") == '"a\\u202Eb\\e\\U000E0001"'


JOINED = [
    "\U0001f469\u200d\U0001f4bb",
    "\u2764\ufe0f\u200d\U0001f525",
    "\u0645\u06cc\u200c\u062e",
    "\u0d28\u0d4d\u200d",
]


@pytest.mark.parametrize("text", JOINED)
def test_what_joins_letters_and_emoji_stays(text: str) -> None:
    assert emit.scalar(text) == f'"{text}"'
    assert list(emit.block({"a": f"{text}\n{text}"})) == ["a: |-", f"  {text}", f"  {text}"]
    written = spelt({"a": text, "b": f"{text}\n{text}"})
    assert format_text(written, "f.yaml") == written


@pytest.mark.parametrize("text", ["\u200d", "a\u200db", " \u200c", "\u0645\u200c\u200c"])
def test_what_joins_nothing_is_spelt_out(text: str) -> None:
    assert "\\u200" in emit.scalar(text)


def test_a_reference_stands_on_one_line() -> None:
    assert spelt({"backend_id": {"ref": "TunnelGroupBackend/a"}}) == (
        "spec:\n  backend_id: {ref: TunnelGroupBackend/a}\n"
    )
