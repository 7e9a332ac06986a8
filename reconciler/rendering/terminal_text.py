"""Text on a terminal: width in cells, truncation, wrapping, and escapes for control characters.

Text from the platform or from Git may contain anything; `sanitize` is the one place that makes it harmless.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# Controls, invisible formats (among them bidirectional overrides, which reorder the text that a reader sees),
# surrogates, and separators that some terminals and log viewers print as a new line.
_UNSAFE_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Letters, marks and a symbol without a glyph: fillers, variation selectors, the empty cell of Braille.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PRINTABLE_ASCII = re.compile(r"[ -~]*")
# Commands to the runners of pipelines: `::error …::` at the beginning of a line, where wrapping may move any part of a
# text, and `##[error]` or `##vso[…]` anywhere in a line.
_RUNNER_COMMAND = re.compile(r"::(?=[A-Za-z][A-Za-z-]*(\s[^\n]*)?::)|##(?=[A-Za-z]*\[)")
ELLIPSIS = "…"
# What wrapping keeps on one line if it can: ids, names and numbers.
_WORD = re.compile(r"[A-Za-z0-9_-]+|[^A-Za-z0-9_-]")


def sanitize(text: str) -> str:
    """The text on one line, with escapes for what terminals and pipelines interpret: `\\x1b`, `\\u202e`, `\\n`."""
    if not _PRINTABLE_ASCII.fullmatch(text):
        text = "".join(_legible(text))
    if "::" in text or "##" in text:
        text = _RUNNER_COMMAND.sub(lambda match: f"{match[0][0]}\\x{ord(match[0][1]):02x}", text)
    return text


def width(text: str) -> int:
    """The number of cells that sanitized text takes."""
    if _PRINTABLE_ASCII.fullmatch(text):
        return len(text)
    return sum(_cells(character) for character in text)


def cut(text: str, limit: int) -> str:
    """The text in at most `limit` cells, with an ellipsis at its end if it was cut."""
    if width(text) <= limit:
        return text
    start, used = [], 0
    for character in text:
        used += _cells(character)
        if used > limit - 1:
            break
        start.append(character)
    return "".join(start) + ELLIPSIS


def wrap(text: str, limit: int) -> list[str]:
    """Lines of at most `limit` cells, broken at spaces; a longer word at punctuation. No id is broken if it fits."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        if line and width(line) + 1 + width(word) <= limit:
            line = f"{line} {word}"
            continue
        if line:
            lines.append(line)
        *full, line = _pieces(word, limit)
        lines.extend(full)
    return [*lines, line]


def _pieces(word: str, limit: int) -> list[str]:
    if width(word) <= limit:
        return [word]
    pieces, piece, used = [], "", 0
    for part in _WORD.findall(word):
        for unit in [part] if width(part) <= limit else part:
            if used + width(unit) > limit and piece:
                pieces.append(piece)
                piece, used = "", 0
            piece += unit
            used += width(unit)
    return [*pieces, piece]


def _legible(text: str) -> Iterator[str]:
    before = " "
    for character in text:
        # A variation selector after a symbol chooses its emoji form; after anything else it is invisible.
        is_form = character in "\ufe0e\ufe0f" and unicodedata.category(before) == "So"
        yield character if is_form else _escape_unsafe(character)
        before = character


@lru_cache(maxsize=1024)
def _escape_unsafe(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE_CATEGORIES and not _BLANK.match(character):
        return character
    return _NAMED.get(character) or _escape(ord(character))


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@lru_cache(maxsize=1024)
def _cells(character: str) -> int:
    if unicodedata.combining(character) or character in "\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
