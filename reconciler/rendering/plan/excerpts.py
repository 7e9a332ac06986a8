"""What is shown of lines that are too long: the part by which a removed line and an added one differ."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from reconciler.rendering import terminal_text
from reconciler.rendering.plan.outline import DiffLine

_OTHER = {"-": "+", "+": "-"}
_AFTER = 12  # cells at least, from the first difference on


def excerpts(lines: Sequence[DiffLine], room: int) -> Iterator[str]:
    """The text of each line, in so many cells: cut at its end, and at its beginning where that is all it would show of
    what it has in common with the line of the other side that it is most like. Different lines that look the same then
    are told by their length.
    """
    sides = {sign: sorted({line.text for line in lines if line.sign == sign}) for sign in _OTHER}
    alike = [_alike(line.text, sides[_OTHER[line.sign]]) if line.sign in _OTHER else 0 for line in lines]
    shown = [_excerpt(line.text, same, room) for line, same in zip(lines, alike, strict=True)]
    looks: dict[str, set[str]] = {}
    for line, excerpt in zip(lines, shown, strict=True):
        looks.setdefault(excerpt, set()).add(line.text)
    for line, same, excerpt in zip(lines, alike, shown, strict=True):
        length = f" ({len(line.text)} long)"
        yield excerpt if len(looks[excerpt]) == 1 else _excerpt(line.text, same, room - len(length)) + length


def _excerpt(text: str, alike: int, room: int) -> str:
    if terminal_text.width(text) <= room:
        return text
    beyond = terminal_text.width(text[:alike]) > room - _AFTER
    return terminal_text.cut(terminal_text.ELLIPSIS + text[max(alike - room // 3, 0) :] if beyond else text, room)


def _alike(text: str, others: Sequence[str]) -> int:
    """How many characters it has in common with the beginning of one of them, the most; 0 if it is one itself."""
    place = bisect_left(others, text)
    if text in others[place : place + 1]:
        return 0
    return max((_common(text, other) for other in others[max(place - 1, 0) : place + 1]), default=0)


def _common(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
