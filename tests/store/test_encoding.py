from __future__ import annotations

import hashlib
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.store.encoding import encode_json, seal
from tests.harness.tiers import examples

CONTENT = st.lists(st.none() | st.integers() | st.text(max_size=5), max_size=4)
VALUES = (
    st.none() | st.booleans() | st.integers(-1, 1) | st.sampled_from([0.0, 1.0]) | st.text() | st.lists(st.booleans())
)


def test_a_seal_does_not_change_between_versions() -> None:
    assert seal("prod", "BotUser/ci", "bot_1", "{}", 0, None) == "2535db527defb292"


@settings(max_examples=examples(100), deadline=None)
@given(CONTENT, CONTENT)
def test_rows_with_different_content_have_different_seals(one: list[object], other: list[object]) -> None:
    assert (seal(*one) == seal(*other)) == (json.dumps(one) == json.dumps(other))


def test_json_is_encoded_with_sorted_names() -> None:
    assert encode_json({"b": 1, "a": "ü"}) == '{"a": "\\u00fc", "b": 1}'


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(VALUES))
def test_a_seal_is_the_digest_of_the_json_of_the_content(content: list[object]) -> None:
    assert seal(*content) == hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()
