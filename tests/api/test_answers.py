"""What the bytes of an answer say, where JSON allows more than any platform means."""

import json
from typing import Any

import pytest

from reconciler.api.answers import DEEPEST, decode


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
def test_half_a_character_becomes_the_sign_for_what_cannot_be_read(content: bytes, value: Any) -> None:
    assert decode(content) == (value, True)


@pytest.mark.parametrize("content", [b"NaN", b"-Infinity", b"1e999", b"{", b"", b"\xff", b"[" * 5000])
def test_what_is_no_json_that_anybody_means_is_refused(content: bytes) -> None:
    assert decode(content) == (None, False)


def test_what_is_too_deep_is_refused() -> None:
    value: Any = 1
    for _ in range(DEEPEST):
        value = [value]
    assert decode(json.dumps(value).encode()) == (value, True)
    assert decode(json.dumps({"a": [value]}).encode()) == (None, False)
