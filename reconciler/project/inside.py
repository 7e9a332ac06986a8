"""Where a character of a text stands in the YAML file that the text was read from.

Texts are quoted, folded and indented in many ways. What is not understood for certain is placed at the text's
beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.model.problem import Position

_Placed = tuple[str, int, int]  # a character, and its line and column from 1


def place(lines: Sequence[str], start: Position, text: str, offset: int) -> Position:
    """Where the character at an offset stands. `lines` are the file's, `start` is where the text's scalar begins."""
    found = list(_characters(lines, start))
    told = "".join(each[0] for each in found)
    if told.rstrip() != text.rstrip() or not found:
        return start
    _, line, column = found[min(offset, len(found) - 1)]
    return Position(start.file, line, column + max(0, offset - len(found) + 1))


def offset(text: str, line: int, column: int) -> int:
    """The offset of a place within a text, both from 1."""
    return sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column - 1


def _characters(lines: Sequence[str], start: Position) -> Iterator[_Placed]:
    first = lines[start.line - 1][start.column - 1 :] if start.line <= len(lines) else ""
    if first.startswith(("|", ">")):
        yield from _block(lines, start.line, folded=first.startswith(">"))
    elif first.startswith(("'", '"')):
        yield from _quoted(first, start)
    else:
        yield from ((sign, start.line, start.column + at) for at, sign in enumerate(first.partition(" #")[0].rstrip()))


def _quoted(first: str, start: Position) -> Iterator[_Placed]:
    """A text in quotes on one line; of escapes those of the quote and the backslash."""
    quote, at = first[0], 1
    escape = "\\" if quote == '"' else "'"
    while at < len(first):
        step = 2 if first[at] == escape and first[at + 1 : at + 2] in (quote, escape) else 1
        if first[at] == quote and step == 1:
            return
        yield first[at + step - 1], start.line, start.column + at
        at += step


def _block(lines: Sequence[str], line: int, *, folded: bool) -> Iterator[_Placed]:
    """Indented lines below their `|` or `>`; folded ones only where each continues the one before."""
    indent = 0
    for number in range(line, len(lines)):
        text = lines[number]
        if text.strip():
            here = len(text) - len(text.lstrip(" "))
            indent = indent or here
            if here < indent or not indent:
                return
        elif folded or not indent:
            return
        yield from ((sign, number + 1, indent + 1 + at) for at, sign in enumerate(text[indent:]))
        yield (" " if folded else "\n"), number + 1, len(text) + 1
