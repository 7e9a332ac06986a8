"""Reads and sets entries in the text of dotenv files, keeping every other byte.

Shells read such files too, with other rules for values that continue on the next line. A file whose entries cannot be
separated with certainty is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from reconciler.engine.ports import Undeliverable

_HEAD: Final = re.compile(
    r"""\ufeff?[ \t]*(?P<export>export[ \t]+)?(?P<name>[^\s=\#"']+)[ \t]*=(?:[ \t]++(?!\#))?""", re.VERBOSE
)
_VALUE: Final = re.compile(r"""(?P<quoted>"(?>(?:[^"\\]++|\\.)*)"|'[^']*+')|(?!["'])[^\s;"'`]*""", re.DOTALL)
_CLOSED: Final = re.compile(  # the rest of a line, up to the end of everything that it opens
    r"""
    (?> (?: [^\#$"'`\\(<\n]++
      | (?<![^\s;\ufeff])\#[^\n]*
      | "(?>(?:[^"\\\n]++|\\[^\n])*)" | \$'(?>(?:[^'\\\n]++|\\[^\n])*)' | (?<!\$)'[^'\n]*+' | `[^`\n]*+`
      | \\[^\n]
      | (?<![=$])\( | \((?=[^\n)]*\))   # an array, or what a command prints
      | <(?!<-?[ \t]*["'\\A-Za-z_])     # two begin a here-document
      | [\#$]
    )* )
    (?: \n | \Z )
    """,
    re.VERBOSE,
)
_APART: Final = re.compile(r"[\s;]|\Z")
_AFTER: Final = re.compile(  # what may follow a value that is set: more words of an export, an export, a comment
    r"""
    (?P<words> (?> (?: [ \t]+[A-Za-z_]\w*=(?:"[^"\\$`\n]*"|'[^'\n]*'|[^\s"'`\\$;&|<>()\#]*) )* ) )
    (?: [ \t]*;[ \t]*export(?:[ \t]+[A-Za-z_]\w*)+ )?
    (?: [ \t]+\#[^\n]* )?
    [ \t]*\r?(?:\n|\Z)
    """,
    re.VERBOSE,
)


class _Entry(NamedTuple):
    start: int
    value: str  # as written
    end: int  # of the value


def entry(text: str, name: str) -> str:
    """The value of an entry; empty if there is none. Raises Undeliverable."""
    values = [entry.value for entry in _entries(text, name)]
    value = values[-1] if values else ""  # programs that read the file use the last one
    if value.startswith('"'):
        try:
            return str(json.loads(value, strict=False))
        except ValueError:
            return ""
    return value.strip("'")


def has_value(text: str, name: str) -> bool:
    """Whether setting the entry would overwrite a value, even an unreadable one. Raises Undeliverable."""
    return any(entry.value not in ("", '""', "''") for entry in _entries(text, name))


def with_entry(text: str, name: str, value: str) -> str:
    """Sets an entry where it is, or appends it. Returns the new text. Raises Undeliverable."""
    pieces, end = [], 0
    for entry in _entries(text, name):
        pieces += [text[end : entry.start], f"{name}={value}"]
        end = entry.end
    if pieces:
        return "".join([*pieces, text[end:]])
    newline = "\r\n" if "\r\n" in text else "\n"
    separator = "" if not text or text.endswith("\n") else newline
    return f"{text}{separator}{name}={value}{newline}"


def _entries(text: str, name: str) -> Iterator[_Entry]:
    """The entries of this name. Parses all entries: the meaning of a line depends on those before it."""
    start = 0
    while start < len(text):
        head = _HEAD.match(text, start)
        value = _VALUE.match(text, head.end()) if head else None
        # Text directly after a closing quote on a later line shows that this quote was meant to open.
        if head and (value is None or ("\n" in value[0] and not _APART.match(text, value.end()))):
            raise _refusal(text, start, "has an unclosed quote; close it")
        rest = value.end() if value else start
        closed = _CLOSED.match(text, head.end() if head and value and not value["quoted"] else rest)
        if closed is None:
            what = "has an unclosed quote, bracket or here-document, or ends with a backslash"
            raise _refusal(text, rest, f"{what}; quote the whole value")
        if head and value and head["name"] == name:
            after = _AFTER.match(text, rest)
            if after is None or (after["words"] and not head["export"]):
                what = f"has more than a comment after the value of {name}"
                raise _refusal(text, rest, f"{what}; quote the whole value, or move the rest to another line")
            yield _Entry(head.start("name"), value[0], rest)
        start = closed.end()


def _refusal(text: str, at: int, why: str) -> Undeliverable:
    line = text.count("\n", 0, at) + 1
    return Undeliverable(f"line {line} {why}")
