"""Unquoted scalars have the values of the core schema of YAML 1.2, whichever reader reads the text."""

from __future__ import annotations

from itertools import product

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kinds.rules import traffic_policy
from reconciler.languages.yaml.reader import read
from reconciler.languages.yaml.scalars import MAY_BE_PLAIN, plain
from reconciler.model.numerals import to_plain
from reconciler.project.yaml.emit import scalar
from reconciler.rendering.plan import approval_entries


def test_scalars_are_those_of_yaml_1_2() -> None:
    assert traffic_policy.parse("a: no\nb: on\nc: 15\nd: 2020-01-01\n") == {
        "a": "no",
        "b": "on",
        "c": 15,
        "d": "2020-01-01",
    }


@pytest.mark.parametrize(
    ("written", "meant"),
    [("1_000", 1000), ("0b11", 3), ("2024-01-01 10:00:00", "2024-01-01 10:00:00"), ("0o17", 15), ("no", "no")],
)
def test_a_scalar_has_the_same_value_with_each_reader(written: str, meant: object) -> None:
    for else_ in ("x", "&anchor x"):
        document = traffic_policy.parse(f"on_http_request: [{{value: {written}, other: {else_}}}]")
        assert document is not None
        assert to_plain(document["on_http_request"][0]["value"]) == meant
        assert str(document["on_http_request"][0]["value"]) == written


# --- beside PyYAML, which reads YAML 1.1 ------------------------------------------------------------------------------


def in_every_casing(word: str) -> list[str]:
    return sorted({"".join(letters) for letters in product(*((letter.lower(), letter.upper()) for letter in word))})


TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")  # the only ones of YAML 1.2
WORDS = [
    word for base in ("true", "false", "null", "yes", "no", "on", "off", "y", "n") for word in in_every_casing(base)
]
NUMBERS: dict[str, object] = {
    "0": 0,
    "7": 7,
    "-7": -7,
    "+7": 7,
    "007": 7,
    "010": 10,
    "0o10": 8,
    "0o17": 15,
    "0x1F": 31,
    "0xff": 255,
    "1.5": 1.5,
    ".5": 0.5,
    "5.": 5.0,
    "-.5": -0.5,
    "1e3": 1000.0,
    "1E3": 1000.0,
    "1e+3": 1000.0,
    "1E-3": 0.001,
    "1.0e3": 1000.0,
    "12e03": 12000.0,
    "-0": 0,
}
TEXTS = [
    *("1:30", "1:30:45", "190:20:30", "-1:30", "2024-01-01", "2024-01-01T10:00:00Z", "2024-1-1", "0o8", "0xg", "0b12"),
    *("1e", "e3", "1.2.3", "1-2", "+", "-", ".", "..", "+.", "._", "_1", "10.0.0.0/8", "12e", "0o", "0x", "=", "1,5"),
    *("1 000", "NaN", "nan", "inf", "Infinity", "+inf", "o17", "0O17", "0X1F", "None", "none", "nil", "undefined"),
]


def read_by_each_reader(text: str) -> list[object]:
    """The value of a scalar in a manifest, and in a policy that is text, read quickly and with an anchor beside it."""
    manifest = read(f"value: {text}\n".encode(), "a.yaml")
    assert manifest.problems == []
    found: list[object] = [manifest.documents[0].value["value"]]
    for beside in ("x", "&anchor x"):
        document = traffic_policy.parse(f"on_http_request: [{{value: {text}, other: {beside}}}]")
        assert document is not None
        found.append(document["on_http_request"][0]["value"])
    return [to_plain(value) for value in found]


@pytest.mark.parametrize("word", WORDS)
def test_only_the_words_of_yaml_1_2_are_no_text(word: str) -> None:
    meant = True if word in TRUE else False if word in FALSE else None if word in ("null", "Null", "NULL") else word
    assert read_by_each_reader(word) == [meant] * 3
    assert [type(value) for value in read_by_each_reader(word)] == [type(meant)] * 3
    if yaml.safe_load(word) != meant:  # what YAML 1.1 reads in another way are these words only
        assert word.lower() in ("yes", "no", "on", "off")


@pytest.mark.parametrize(("text", "meant"), NUMBERS.items())
def test_a_number_has_its_value_of_yaml_1_2(text: str, meant: object) -> None:
    found = read_by_each_reader(text)
    assert (found, {type(value) for value in found}) == ([meant] * 3, {type(meant)})
    older = yaml.safe_load(text)
    if isinstance(older, (int, float)) and older != meant:
        assert text == "010"  # octal in YAML 1.1


@pytest.mark.parametrize(("text", "meant"), [("1_000", 1000), ("0b11", 3)])
def test_a_policy_that_is_text_has_the_numbers_of_yaml_1_1_too(text: str, meant: int) -> None:
    assert read_by_each_reader(text) == [text, meant, meant]
    assert yaml.safe_load(text) == meant


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_resembles_a_number_is_a_text(text: str) -> None:
    if text not in ("1,5", "-"):  # within brackets a comma ends a value, and a dash alone begins an entry
        assert read_by_each_reader(text) == [text] * 3


@pytest.mark.parametrize(
    "text", [*WORDS, *NUMBERS, *TEXTS, "~", "", " a", "a ", "a: b", "a #b", "- a", "? a", "!a", "%a"]
)
def test_a_text_that_we_write_is_the_same_for_readers_of_yaml_1_1_and_1_2(text: str) -> None:
    written = f"value: {scalar(text)}\n"
    assert yaml.safe_load(written) == {"value": text}
    assert read(written.encode(), "a.yaml").documents[0].value == {"value": text}
    entry = f"value: {approval_entries._quote(text)}\n"
    assert yaml.safe_load(entry) == {"value": text}
    assert read(entry.encode(), "a.yaml").documents[0].value == {"value": text}


@given(st.text(min_size=1))
def test_only_some_characters_begin_a_scalar_that_is_no_text(text: str) -> None:
    assert text[0] in MAY_BE_PLAIN or plain(text) is text
