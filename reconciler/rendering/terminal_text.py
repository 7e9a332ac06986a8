"""Text on a terminal: how many cells it takes, how it is cut and wrapped, and what must never reach the terminal.

Text from the platform or from Git may hold anything; `clean` is the one place that makes it harmless.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# Controls, invisible formats (among them the bidirectional overrides, which make text read as what it is not),
# surrogates, and the separators that some terminals and log viewers take for a new line.
_UNSAFE_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Letters, marks and a sign that show nothing either: fillers, variation selectors, the empty cell of Braille.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PRINTABLE_ASCII = re.compile(r"[ -~]*")
# What the runners of pipelines obey: `::error …::` at the beginning of a line, where wrapping may put any piece of a
# text, and `##[error]` or `##vso[…]` anywhere within one.
_ORDER = re.compile(r"::(?=[A-Za-z][A-Za-z-]*(\s[^\n]*)?::)|##(?=[A-Za-z]*\[)")
ELLIPSIS = "…"


def sanitize(text: str) -> str:
    """On one line, with everything a terminal or a pipeline might obey spelt out: `\\x1b`, `\\u202e`, `\\n`."""
    if not _PRINTABLE_ASCII.fullmatch(text):
        text = "".join(_legible(text))
    if "::" in text or "##" in text:
        text = _ORDER.sub(lambda found: f"{found[0][0]}\\x{ord(found[0][1]):02x}", text)
    return text


def width(text: str) -> int:
    """Cells that clean text takes."""
    if _PRINTABLE_ASCII.fullmatch(text):
        return len(text)
    return sum(_cells(each) for each in text)


def cut(text: str, limit: int) -> str:
    """At most `limit` cells, ending in an ellipsis if anything is missing."""
    if width(text) <= limit:
        return text
    taken, used = [], 0
    for each in text:
        used += _cells(each)
        if used > limit - 1:
            break
        taken.append(each)
    return "".join(taken) + ELLIPSIS


def wrap(text: str, limit: int) -> list[str]:
    """Lines of at most `limit` cells, broken at spaces; a longer word is broken anywhere."""
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
    pieces, piece, used = [], "", 0
    for each in word:
        if used + _cells(each) > limit and piece:
            pieces.append(piece)
            piece, used = "", 0
        piece += each
        used += _cells(each)
    return [*pieces, piece]


def _legible(text: str) -> Iterator[str]:
    before = " "
    for each in text:
        # How a sign looks that is an emoji too; behind anything else it is nothing to be seen.
        yield each if each in "\ufe0e\ufe0f" and unicodedata.category(before) == "So" else _spelt(each)
        before = each


@lru_cache(maxsize=1024)
def _spelt(character: str) -> str:
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
