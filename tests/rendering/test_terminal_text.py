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


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("\x00\x1f\x7f\x9f\xad", r"\x00\x1f\x7f\x9f\xad"),
        ("\n\r\t", r"\n\r\t"),
        ("\u0600\ud800\u2028\u2029\ufeff", r"\u0600\ud800\u2028\u2029\ufeff"),
        ("\U000110bd\U000e0001", r"\U000110bd\U000e0001"),
        ("\xa0\xff\u0100\uffff\U00010000\ue000", "\xa0\xff\u0100\uffff\U00010000\ue000"),
        ("\u034e\u034f\u0350", "\u034e\\u034f\u0350"),
        ("a\ufe0f\u2764\ufe0f\ufe0f", "a\\ufe0f\u2764\ufe0f\\ufe0f"),
        ("::error::", r":\x3aerror::"),
        ("a ::add-mask a=b,c=d::x", r"a :\x3aadd-mask a=b,c=d::x"),
        ("::1, a::b, ::x y", "::1, a::b, ::x y"),
        ("##[x] ##vso[y] ### ##x", r"#\x23[x] #\x23vso[y] ### ##x"),
    ],
)
def test_text_is_escaped_where_it_would_have_an_effect(text: str, spelt: str) -> None:
    assert terminal_text.sanitize(text) == spelt


@pytest.mark.parametrize(
    ("text", "cuts"),
    [
        ("abcd", ["…", "a…", "ab…", "abcd", "abcd"]),
        ("漢字a", ["…", "…", "漢…", "漢…", "漢字a"]),
        ("e\u0301e", ["…", "e\u0301e", "e\u0301e", "e\u0301e", "e\u0301e"]),
    ],
)
def test_a_text_is_cut_to_so_many_cells(text: str, cuts: list[str]) -> None:
    assert [terminal_text.cut(text, limit) for limit in range(1, 6)] == cuts


@pytest.mark.parametrize(
    ("limit", "lines"),
    [
        (4, ["a bc", "def.", "ghij", "k-l", "mnop", "qr"]),
        (5, ["a bc", "def.", "ghij", "k-l", "mnopq", "r"]),
        (8, ["a bc", "def.ghij", "k-l", "mnopqr"]),
        (10, ["a bc", "def.ghij", "k-l mnopqr"]),
        (13, ["a bc def.ghij", "k-l mnopqr"]),
        (24, ["a bc def.ghij k-l mnopqr"]),
    ],
)
def test_lines_are_broken_at_spaces_and_long_words_at_punctuation(limit: int, lines: list[str]) -> None:
    assert terminal_text.wrap("a bc def.ghij k-l mnopqr", limit) == lines


def test_an_empty_text_is_one_empty_line() -> None:
    assert terminal_text.wrap("", 5) == [""]
    assert terminal_text.wrap("a  b", 5) == ["a  b"]
