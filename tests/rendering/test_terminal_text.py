from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.rendering import terminal_text


@given(st.text(st.characters()))
def test_no_control_character_is_left_in_sanitized_text(text: str) -> None:
    assert not {unicodedata.category(character) for character in terminal_text.sanitize(text)} & {
        "Cc",
        "Cf",
        "Cs",
        "Zl",
        "Zp",
    }


@given(st.text(st.characters()))
def test_sanitized_text_is_not_changed_again(text: str) -> None:
    assert terminal_text.sanitize(terminal_text.sanitize(text)) == terminal_text.sanitize(text)


@given(st.text(), st.integers(2, 60))
def test_a_truncated_text_fits(text: str, limit: int) -> None:
    assert terminal_text.width(terminal_text.cut(terminal_text.sanitize(text), limit)) <= limit


@given(st.text(), st.integers(2, 60))
def test_wrapped_lines_fit_and_lose_nothing(text: str, limit: int) -> None:
    lines = terminal_text.wrap(terminal_text.sanitize(text), limit)
    assert all(terminal_text.width(line) <= limit for line in lines)
    assert "".join(lines).replace(" ", "") == terminal_text.sanitize(text).replace(" ", "")


def test_an_escape_sequence_is_escaped() -> None:
    assert terminal_text.sanitize("a\x1b[31m\u202eb\n\t\x9b") == r"a\x1b[31m\u202eb\n\t\x9b"


@pytest.mark.parametrize(
    ("invisible", "spelt"),
    [
        ("\u3164", r"\u3164"),  # a Hangul filler, which is a letter
        ("\u2800", r"\u2800"),  # a cell of Braille with no dot in it
        ("\ufe0f", r"\ufe0f"),  # a variation selector
        ("\U000e0100", r"\U000e0100"),
        ("\U000e0041", r"\U000e0041"),  # a tag
    ],
)
def test_invisible_characters_are_escaped_with_all_digits(invisible: str, spelt: str) -> None:
    assert terminal_text.sanitize(f"a{invisible}1") == f"a{spelt}1"


def test_wide_letters_have_width_two_and_marks_zero() -> None:
    assert terminal_text.width("日本e\u0301") == 5


def test_a_variation_selector_after_an_emoji_is_not_escaped() -> None:
    assert terminal_text.sanitize("We \u2764\ufe0f tunnels") == "We \u2764\ufe0f tunnels"
    assert terminal_text.width("\u2764\ufe0f") == terminal_text.width("\u2764")
    assert terminal_text.sanitize("a\ufe0f") == r"a\ufe0f"


def test_nothing_but_a_variation_selector_is_left_after_an_emoji() -> None:
    assert (
        terminal_text.sanitize("\u2764\x1b\u2764\u200d\u2764\ufe0e\ufe0f")
        == "\u2764\\x1b\u2764\\u200d\u2764\ufe0e\\ufe0f"
    )


@pytest.mark.parametrize("limit", range(1, 9))
def test_a_word_is_broken_without_empty_lines(limit: int) -> None:
    for word in ("abcdefgh", "ab.cdefgh", "漢字漢字"):
        lines = terminal_text.wrap(word, limit)
        assert "".join(lines) == word
        assert all(lines)
        assert max(terminal_text.width(line) for line in lines) <= max(limit, 2 if word[0] > "z" else 1)
