"""JSON bodies: special numbers, depth and unpaired surrogates."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.answers import DEEPEST, decode, encode


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b'{"a": "\\ud83d"}', {"a": "\ufffd"}),
        (b'{"a": "\xed\xa0\xbd"}', {"a": "\ufffd"}),
        (b'["\xed\xbf\xbf", 1]', ["\ufffd", 1]),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        ('"\ud7ff \U0001f600"'.encode(), "\ud7ff \U0001f600"),
    ],
)
def test_an_unpaired_surrogate_is_replaced(content: bytes, value: Any) -> None:
    assert decode(content) == (value, True)


@pytest.mark.parametrize("content", [b"NaN", b"-Infinity", b"1e999", b"{", b"", b"\xff", b"[" * 5000])
def test_invalid_json_and_special_numbers_are_refused(content: bytes) -> None:
    assert decode(content) == (None, False)


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    value: Any = 1
    for _ in range(DEEPEST):
        value = [value]
    assert decode(json.dumps(value).encode()) == (value, True)
    assert decode(json.dumps({"a": [value]}).encode()) == (None, False)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b'{"\\ud83d": ["\\udead", {"x": "\\ud83d"}], "n": 1.5, "b": true, "z": null}',
         {"\ufffd": ["\ufffd", {"x": "\ufffd"}], "n": 1.5, "b": True, "z": None}),
        (b'{"a": "\\u00fc"}', {"a": "\u00fc"}),
        (b'{"a": "\\UD83D"}', None),
        (b" [] ", []),
        (b"-1e308", -1e308),
        (b"\xef\xbb\xbf[1]", [1]),
        ('{"a": "\u00fc"}'.encode("utf-16"), {"a": "\u00fc"}),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
    ],
)  # fmt: skip
def test_a_repair_of_surrogates_does_not_change_other_values(content: bytes, value: Any) -> None:
    assert decode(content) == (value, value is not None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.booleans())
def test_every_json_value_is_decoded_as_encoded(value: Any, is_escaped: bool) -> None:
    assert decode(json.dumps(value, ensure_ascii=is_escaped).encode()) == (value, True)


@pytest.mark.parametrize(
    ("body", "content"),
    [
        ({"a": [1, "ü"], "b": None}, '{"a":[1,"ü"],"b":null}'.encode()),
        ({"a": "\ud83d", "b": "ü"}, b'{"a":"\\ud83d","b":"\\u00fc"}'),
    ],
)
def test_a_body_is_compact_and_in_utf_8_if_possible(body: Any, content: bytes) -> None:
    assert encode(body) == content


@given(JSON)
def test_a_large_answer_is_read_as_a_small_one(value: Any) -> None:
    content = encode(value)
    assert repr(decode(content + b" " * 20_000)) == repr(decode(content))


@pytest.mark.parametrize(
    "content", [b'["\\ud83d"]', b"NaN", b"1e999", b"{", b"1" * 400, b"-0", b'{"a": 1, "a": 2.0}', b"[" * 5000]
)
def test_a_large_answer_is_judged_as_a_small_one(content: bytes) -> None:
    assert repr(decode(content + b" " * 20_000)) == repr(decode(content))


def test_a_large_value_that_is_nested_too_deeply_is_refused() -> None:
    value: Any = "x" * 20_000
    for _ in range(DEEPEST):
        value = [value]
    assert decode(json.dumps(value).encode()) == (value, True)
    assert decode(json.dumps({"a": [value]}).encode()) == (None, False)
