"""Recognizes documents that `fmt` would not change, without the round trip through ruamel.yaml.

Goes through the lines of a document and knows the layouts that manifests usually have. Whatever it does not know is
left to the round trip: anchors, tags, folded texts, unusual characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_MAX: Final = 1 << 19  # characters: half of the width at which ruamel.yaml folds lines
_KEY: Final = r"[A-Za-z_][A-Za-z0-9_./-]{0,99}+"  # ruamel.yaml writes `? ` before one of 128 characters
_QUOTED: Final = r"""(?:"(?>(?:[^"\\]|\\[nt"\\])*)"|'(?>(?:[^']|'')*)')"""
# Unquoted text contains neither `: ` nor ` #`, and does not end with `:` or a space.
_PLAIN: Final = r"(?:[\w./$~(]|-(?=[0-9]))(?>(?:[^ :#]|:(?=[^ ])|(?<=[^ ])#| ++(?=[^ #]))*)"
_INSIDE: Final = r"[A-Za-z0-9_./](?>(?:[A-Za-z0-9_./@+*=-]|:(?=[A-Za-z0-9_/])| (?=[A-Za-z0-9_./]))*)"


def _nest(levels: int) -> str:
    """The pattern of a map or list in flow style, with so many levels of others inside."""
    value = rf"(?:{_QUOTED}|{_INSIDE}{f'|{_nest(levels - 1)}' if levels else ''})"
    entry = rf"{_KEY}: {value}"
    return rf"(?>\[(?:{value}(?>(?:, {value})*))?\]|\{{(?:{entry}(?>(?:, {entry})*))?\}})"


_HEAD: Final = re.compile(rf"( *+)(- )?(?:({_KEY}):(?: |$))?")
_VALUE: Final = re.compile(rf"(?:{_QUOTED}|{_nest(3)}|{_PLAIN})(?: ++#.*)?")
_LITERAL: Final = ("|", "|-")


def is_formatted(text: str, order: Sequence[str]) -> bool:
    """Whether `fmt` would surely not change a document, which must be valid and end with its last line.

    `order`: of the keys of the document.
    """
    if len(text) > _MAX or not text.replace("\n", "").isprintable():
        return False
    lines = text.split("\n")
    return not lines.pop() and _Lines(lines, order).are_formatted()


class _Lines:
    """One pass over the lines of a document.

    _open   the open maps and lists: the column, and whether it is a list, whose column is that of its `-`
    _has_comments, _has_flow_items  comments or empty lines, and items in flow style: ruamel.yaml mixes up the two
    _above  the column of a key without a value on its line, which a map or list must follow
    """

    def __init__(self, lines: list[str], order: Sequence[str]) -> None:
        self._lines = lines
        self._order = order
        self._last_rank = 0
        self._open = [(0, False)]
        self._above: int | None = None
        self._number = 0
        self._has_comments = False
        self._has_flow_items = False

    def are_formatted(self) -> bool:
        has_key = False
        while self._number < len(self._lines):
            line = self._lines[self._number]
            self._number += 1
            if line.endswith(" "):
                return False
            if not line or line.lstrip(" ").startswith("#"):
                self._has_comments = True
                continue
            if not self._is_entry(line):
                return False
            has_key = True
        return has_key and self._above is None and not (self._has_comments and self._has_flow_items)

    def _is_entry(self, line: str) -> bool:
        """Whether a line is a key, an item or both, at its column."""
        head = _HEAD.match(line)
        assert head is not None
        indent, dash, key = head.groups()
        column = len(indent)
        if not self._is_at_its_column(column, dash is not None) or (key is None and dash is None):
            return False
        if dash is not None:
            column += 2
            if key is not None:
                self._open.append((column, False))
        elif column == 0 and not self._is_in_order(key):
            return False
        value = line[head.end() :]
        if not value or value.lstrip(" ").startswith("#"):
            self._above = column
            self._has_comments |= value != ""
            return key is not None
        if value in _LITERAL:
            return self._skip_literal(column if key is None else column + 2)
        self._has_comments |= "#" in value
        self._has_flow_items |= key is None and value.startswith(("[", "{"))
        return _VALUE.fullmatch(value) is not None

    def _is_at_its_column(self, column: int, is_item: bool) -> bool:
        """Whether an entry belongs to an open map or list. Closes those inside it, and opens what the key above has."""
        place = (column, is_item)
        if self._above is not None:
            self._open.append(place)
            is_inside = column == self._above + 2
            self._above = None
            return is_inside
        while self._open[-1][0] > column:
            self._open.pop()
        return self._open[-1] == place

    def _is_in_order(self, key: str) -> bool:
        rank = self._order.index(key) if key in self._order else len(self._order)
        is_in_order = rank >= self._last_rank
        self._last_rank = rank
        return is_in_order

    def _skip_literal(self, column: int) -> bool:
        """Goes to the line after a text of several lines, whose content begins at a column."""
        prefix = " " * column
        first = self._number
        while self._number < len(self._lines):
            line = self._lines[self._number]
            if line.endswith(" ") or (line and not line.startswith(prefix)):
                break
            self._number += 1
        return self._number > first and self._lines[first][column : column + 1] not in ("", " ")
