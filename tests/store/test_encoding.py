from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.store.encoding import encode_json, seal
from tests.harness.tiers import examples

CONTENT = st.lists(st.none() | st.integers() | st.text(max_size=5), max_size=4)


def test_a_seal_does_not_change_between_versions() -> None:
    assert seal("prod", "BotUser/ci", "bot_1", "{}", 0, None) == "2535db527defb292"


@settings(max_examples=examples(100), deadline=None)
@given(CONTENT, CONTENT)
def test_rows_with_different_content_have_different_seals(one: list[object], other: list[object]) -> None:
    assert (seal(*one) == seal(*other)) == (json.dumps(one) == json.dumps(other))


def test_json_is_encoded_with_sorted_names() -> None:
    assert encode_json({"b": 1, "a": "ü"}) == '{"a": "\\u00fc", "b": 1}'
