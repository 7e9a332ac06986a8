"""Renders plain values as YAML in the layout of `fmt`. Every YAML reader reads the texts as text.

The reader of manifests reads back exactly these values.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from reconciler.languages.yaml import scalars
from reconciler.model.numerals import Spelled

INDENT: Final = "  "
_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*( [A-Za-z0-9_.(/@+][A-Za-z0-9_.,()'/@+-]*)*")
_WORDS: Final = frozenset("y n yes no on off true false null".split())  # noqa: SIM905 - one word here, more elsewhere
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # invisible, or line breaks
_JOINERS: Final = "\u200c\u200d"  # part of words in many scripts, and of emoji
_NO_CHARACTERS: Final = "\ufffe\uffff"  # valid in YAML only as escapes
_SHORT: Final = dict(zip('\0\x07\x08\t\n\x0b\x0c\r\x1b"\\\x85\u2028\u2029', '0abtnvfre"\\NLP', strict=True))
_FLOW_BREAKERS: Final = frozenset(",[]{}")


def block(value: Any, indent: str = "") -> Iterator[str]:
    """The lines of a non-empty map or list in block style."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _entry(f"{indent}{scalar(key)}:", item, indent)
    else:
        for item in value:
            yield from _item(item, f"{indent}{INDENT}")


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if is_flow(value):
        yield f"{head} {flow(value)}"
    elif isinstance(value, dict):
        yield head
        yield from block(value, indent + INDENT)
    elif isinstance(value, list):
        yield head
        yield from block(value, indent)
    elif isinstance(value, str) and _is_literal(value):
        yield f"{head} {'|' if value.endswith(chr(10)) else '|-'}"
        yield from (f"{indent}{INDENT}{line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {scalar(value)}"


def _item(value: Any, indent: str) -> Iterator[str]:
    if is_flow(value) or not isinstance(value, (dict, list)):
        yield f"{indent}- {flow(value)}"
        return
    first, *rest = block(value, indent + INDENT)
    yield f"{indent}- {first.removeprefix(indent + INDENT)}"
    yield from rest


def is_flow(value: Any) -> bool:
    """Whether a value is rendered on one line: an empty map or list, or a source such as `{ref: …}`."""
    return value in ({}, []) or (
        isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("ref", "from_env", "from_file")
    )


def flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_inside(key)}: {_inside(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_inside(item) for item in value) + "]"
    return scalar(value)


def _inside(value: Any) -> str:
    text = flow(value)
    is_bare = isinstance(value, str) and not text.startswith('"')
    return quote(value) if is_bare and not _FLOW_BREAKERS.isdisjoint(text) else text


def scalar(value: Any) -> str:
    """Renders a scalar on one line."""
    if isinstance(value, str):
        return value if _is_plain(value) else quote(value)
    return value.spelling if isinstance(value, Spelled) else json.dumps(value)


def _is_plain(text: str) -> bool:
    if not _PLAIN.fullmatch(text) or text.lower() in _WORDS:
        return False
    return bool(scalars.plain(text) == text)


def quote(text: str) -> str:
    """Renders a text in double quotes, on one line."""
    return f'"{"".join(_escape(character, before) for before, character in pairwise(f" {text}"))}"'


def _escape(character: str, before: str) -> str:
    """Escapes a character as ruamel.yaml does, and in addition every invisible character."""
    if character in _SHORT:
        return f"\\{_SHORT[character]}"
    if not _is_hidden(character, before):
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _is_hidden(character: str, before: str) -> bool:
    if character in _JOINERS:  # after ASCII they join nothing and are invisible
        return before.isascii() or unicodedata.category(before)[0] not in "LMS"
    return unicodedata.category(character) in _HIDDEN or character in _NO_CHARACTERS


def _is_literal(text: str) -> bool:
    """Whether a text of several lines can be a literal block (`|`)."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and lines[0] != ""
        and not text[0].isspace()
        and not text.endswith("\n\n")
        and all(line == line.rstrip() for line in lines)
        and all(character == "\n" or not _is_hidden(character, before) for before, character in pairwise(f" {text}"))
    )
