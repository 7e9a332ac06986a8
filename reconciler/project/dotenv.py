"""The text of dotenv files: an entry found, or set with every other byte as it was.

Quotes may hold line breaks. Where one is never closed, nobody can tell what belongs to which entry: that is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from reconciler.engine.ports import Undeliverable

_ENTRY: Final = re.compile(
    r"""
    \ufeff?[ \t]*(?:export[ \t]+)?
    (?P<name>[^\s=\#"']+)[ \t]*=[ \t]*
    (?P<value> (?:"(?:[^"\\]|\\.)*+"|'[^']*+')(?=[ \t]*(?:\#[^\n]*)?\r?(?:\n|\Z)) | [^\r\n]*)
    [^\r\n]*
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSED: Final = re.compile(r"""[^"']|"(?:[^"\\]|\\.)*"|'[^']*'""")  # within a line


def entry(text: str, name: str) -> str:
    """The entry's value; empty if there is none. Raises Undeliverable."""
    values = [each["value"].strip() for each in _entries(text) if each["name"] == name]
    value = values[-1] if values else ""  # whoever reads such a file takes the last
    if value.startswith('"'):
        try:
            return str(json.loads(value, strict=False))
        except ValueError:
            return ""
    return value.strip("'")


def with_entry(text: str, name: str, value: str) -> str:
    """The text with this entry set, wherever it stands, or added. Raises Undeliverable."""
    pieces, end = [], 0
    for each in _entries(text):
        if each["name"] == name:
            pieces += [text[end : each.start("name")], f"{name}={value}"]
            end = each.end()
    if pieces:
        return "".join([*pieces, text[end:]])
    newline = "\r\n" if "\r\n" in text else "\n"
    separator = "" if not text or text.endswith("\n") else newline
    return f"{text}{separator}{name}={value}{newline}"


def _entries(text: str) -> Iterator[re.Match[str]]:
    start = 0
    while start < len(text):
        if (found := _ENTRY.match(text, start)) is not None:
            if found["value"] and not _CLOSED.match(found["value"]):
                line = text.count("\n", 0, start) + 1
                raise Undeliverable(f"line {line} opens a quote that nothing closes; close it")
            yield found
            start = found.end()
        start = text.find("\n", start) + 1 or len(text)
