"""Secrets in foreign text."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote

import pytest

from reconciler.model.concealing import Veil, conceal

SECRET = 'aB3$<&"Q9zXw7\nLmN0pRsTuVqq'


@pytest.mark.parametrize(
    "quoted",
    [SECRET, json.dumps(SECRET)[1:-1], quote(SECRET), html.escape(SECRET), SECRET.encode().hex()],
)
def test_a_quoted_secret_is_concealed_however_it_is_spelt(quoted: str) -> None:
    assert conceal(f"the value {quoted} is wrong", [SECRET]) == "the value (secret) is wrong"


@pytest.mark.parametrize("before", range(3))
def test_a_secret_in_base64_is_concealed_at_every_alignment(before: int) -> None:
    coded = base64.b64encode(b"x" * before + SECRET.encode()).decode()
    shown = conceal(f"got {coded}", [SECRET])
    assert "(secret)" in shown
    assert len(shown.replace("(secret)", "")) < len("got ") + 8


def test_a_piece_of_eight_characters_is_concealed_and_one_of_seven_is_not() -> None:
    assert conceal('so aB3$<&"Q is', [SECRET]) == "so (secret) is"
    assert conceal('so aB3$<&" is', [SECRET]) == 'so aB3$<&" is'


def test_a_secret_that_was_wrapped_onto_other_lines_is_concealed() -> None:
    assert conceal('a aB3$<&"Q9z Xw7 LmN0p\n RsTuVqq b', [SECRET]) == "a (secret) b"


def test_a_short_secret_is_concealed_as_a_whole_only() -> None:
    assert conceal("ab abc abcd", ["abc"]) == "ab (secret) (secret)d"


def test_a_text_without_secrets_stays_as_it_is() -> None:
    assert conceal("all  is\nwell", [SECRET]) == "all  is\nwell"


def test_a_veil_learns_of_a_secret_later() -> None:
    veil = Veil([])
    assert veil.over("the token tok-123456789") == "the token tok-123456789"
    veil.add("tok-123456789")
    assert veil.over("the token tok-123456789") == "the token (secret)"
