"""Shortens long lines of a diff to the part in which a removed and an added line differ."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from reconciler.rendering import terminal_text
from reconciler.rendering.plan.outline import DiffLine

_OTHER = {"-": "+", "+": "-"}
_AFTER = 12  # cells that are shown at least after the first difference


def excerpts(lines: Sequence[DiffLine], room: int) -> Iterator[str]:
    """The text of each line in at most `room` cells.

    A line is cut at its end, and also at its beginning if it would otherwise show only the prefix that it shares with
    the most similar line of the other side. If different lines still look the same, their lengths are added.
    """
    sides = {sign: sorted({line.text for line in lines if line.sign == sign}) for sign in _OTHER}
    common = [_common_length(line.text, sides[_OTHER[line.sign]]) if line.sign in _OTHER else 0 for line in lines]
    texts = [_excerpt(line.text, same, room) for line, same in zip(lines, common, strict=True)]
    originals: dict[str, set[str]] = {}
    for line, excerpt in zip(lines, texts, strict=True):
        originals.setdefault(excerpt, set()).add(line.text)
    for line, same, excerpt in zip(lines, common, texts, strict=True):
        length = f" ({len(line.text)} characters)"
        yield excerpt if len(originals[excerpt]) == 1 else _excerpt(line.text, same, room - len(length)) + length


def _excerpt(text: str, common: int, room: int) -> str:
    if terminal_text.width(text) <= room:
        return text
    is_hidden = terminal_text.width(text[:common]) > room - _AFTER
    return terminal_text.cut(terminal_text.ELLIPSIS + text[max(common - room // 3, 0) :] if is_hidden else text, room)


def _common_length(text: str, others: Sequence[str]) -> int:
    """The length of the longest prefix that the text shares with another one; 0 if it equals one of them."""
    place = bisect_left(others, text)
    if text in others[place : place + 1]:
        return 0
    return max((_prefix_length(text, other) for other in others[max(place - 1, 0) : place + 1]), default=0)


def _prefix_length(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
