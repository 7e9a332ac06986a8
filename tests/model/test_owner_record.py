"""The owner record beside the user's own metadata."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.owner_record import Owner, holds, read, write

OWNER = Owner("prod", Address("TLSEdge", "payments"), "intent-1")
FULL = Owner("prod", Address("TLSEdge", "payments"), "intent-1", {"description": "0123456789"}, True, True, "edgtls_1")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.text() | JSON.map(json.dumps) | JSON.map(lambda value: json.dumps(value, indent=2) + "\n"))
def test_any_text_is_read_back_byte_for_byte(text: str) -> None:
    assert read(write(text, FULL)) == (text, FULL)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", "two\nlines", "ends in a line\n", "\r\n", '{"a": 1}\n', "{ \n}", '{"a":{"reconciler":1}}'],
)
def test_texts_with_special_endings_are_read_back_unchanged(text: str) -> None:
    assert read(write(text, OWNER)) == (text, OWNER)


def test_a_record_in_a_json_object_is_one_of_its_keys() -> None:
    assert json.loads(write('{"team": "a"}', OWNER))["team"] == "a"


def test_no_metadata_is_an_empty_text_without_an_owner() -> None:
    assert read(None) == ("", None)


def test_a_record_is_found_in_indented_json() -> None:
    spread = json.dumps(json.loads(write('{"team": "a"}', OWNER)), indent=2, separators=(",", " : "))
    text, owner = read(spread)
    assert (json.loads(text), owner) == ({"team": "a"}, OWNER)


def test_a_record_is_found_in_json_with_sorted_keys() -> None:
    text, owner = read(json.dumps(json.loads(write('{"team": "a"}', FULL)), sort_keys=True))
    assert (json.loads(text), owner) == ({"team": "a"}, FULL)


def test_a_line_after_the_record_is_part_of_the_user_s_text() -> None:
    assert read(write("mine", OWNER) + "\nby hand") == ("mine\nby hand", OWNER)


def test_a_record_is_found_when_the_text_before_it_was_removed() -> None:
    assert read(write("mine", OWNER).removeprefix("mine\n")) == ("", OWNER)


def test_a_record_is_found_before_a_carriage_return() -> None:
    assert read(write("mine", OWNER) + "\r\n")[1] == OWNER


@pytest.mark.parametrize("value", ['"\\ud83d"', '"\ud83d"', "NaN", "1e999"])
def test_a_record_is_found_beside_values_that_strict_json_refuses(value: str) -> None:
    text = write('{"a":0}', OWNER).replace(":0", f":{value}")
    assert text.startswith('{"a":')
    assert read(text)[1] == OWNER


def test_the_last_of_two_records_in_lines_is_used() -> None:
    first = write("mine", Owner("other", Address("TLSEdge", "b"), "intent-2"))
    assert read(write(first, OWNER)) == (first, OWNER)


@pytest.mark.parametrize(
    "record",
    [
        '"x"',
        "[]",
        "null",
        "{}",
        '{"stack": 1, "address": "TLSEdge/a", "intent": "i"}',
        '{"stack": "prod", "address": "no address", "intent": "i"}',
        '{"stack": "prod", "address": "TLSEdge/a"}',
        "[" * 5000,
        '{"a":' * 5000,
    ],
)
@pytest.mark.parametrize("around", ['{"reconciler":%s}', "text\n#reconciler %s"])
def test_an_invalid_record_is_part_of_the_user_s_text(record: str, around: str) -> None:
    text = around % record
    assert read(text) == (text, None)


def test_a_record_within_a_line_is_part_of_the_user_s_text() -> None:
    text = write("mine", OWNER).replace("\n", " ")
    assert read(text) == (text, None)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("applied", [1], {}),
        ("applied", {"a": 5}, {"a": "5"}),
        ("protect", "yes", False),
        ("pending", 1, False),
        ("replaces", ["x"], None),
    ],
)
def test_an_invalid_part_of_a_record_is_ignored(name: str, value: object, expected: object) -> None:
    record = {"stack": "prod", "address": "TLSEdge/a", "intent": "i", name: value}
    owner = read(json.dumps({"reconciler": record}))[1]
    assert owner is not None
    assert getattr(owner, name) == expected


@pytest.mark.parametrize("escaped", [False, True])
def test_an_applied_field_is_found_in_a_record_with_escaped_names(escaped: bool) -> None:
    text = write("", OWNER._replace(applied={"region": "0123456789", "tls.enabled": "9876543210"}))
    if escaped:
        text = text.replace("region", "\\u0072egion").replace("tls", "\\u0074ls")
    owner = read(text)[1]
    assert owner is not None
    held = [name for name in ("region", "tls", "enabled", "reg", "stack", "url") if holds(owner.applied, name)]
    assert held == ["region", "tls"]
