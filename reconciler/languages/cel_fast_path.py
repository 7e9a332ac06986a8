"""Recognizes common valid conditions without loading the CEL implementation.

Accepts a small part of the language: comparisons of known variables with texts and integers, common methods and
functions, and `&&`, `||`, `!` and brackets. Never reports an error: `cel_check` checks everything else.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from reconciler.languages import traffic_catalog

_LONGEST: Final = 500  # characters
_DEEPEST: Final = 8  # nesting of brackets
_NAME: Final = r"[A-Za-z_]\w*+(?>(?:\.[A-Za-z_]\w*+)*)"
_TEXT: Final = r"(?:'[^'\\]*+'|\"[^\"\\]*+\")(?!['\"])"
_ATOM: Final = re.compile(
    rf"""
      (?P<string> [A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*? ) \. (?:startsWith|endsWith|contains) \( {_TEXT} \) (?! [.\[?] )
    | {_TEXT} \ in \ (?P<holder> {_NAME} ) (?! [.(\[] )
    | (?P<has> hasReqHeader|hasQueryParam|hasReqCookie|hasResHeader|hasResCookie ) \( {_TEXT} \) (?! [.\[?] )
    | (?P<text> {_NAME} ) (?: \ ?[!=]=\ ? {_TEXT} | \ in \ \[ {_TEXT} (?> (?: ,\ ? {_TEXT} )* ) \] ) (?! [.\[?] )
    | (?P<int> {_NAME} ) \ ?(?:[!=]=|[<>]=?)\ ? \d{{1,15}}+ (?![\w.])
    | (?P<bool> {_NAME} ) (?! [.(\['"] )
    """,
    re.VERBOSE | re.ASCII,
)
_ONLY_NAME: Final = re.compile(_NAME, re.ASCII)


@cache
def _of(*types: str) -> frozenset[str]:
    return frozenset(name for name, kind in traffic_catalog.variables().items() if kind.startswith(types))


def is_surely_valid(text: str, *, is_condition: bool = True) -> bool:
    """Whether the text is certainly a valid expression. False means unknown."""
    text = text.strip(" ")
    if len(text) > _LONGEST or not text.isascii() or not text.isprintable():
        return False
    if not is_condition and _ONLY_NAME.fullmatch(text):
        return text in traffic_catalog.variables()
    at, depth, wants = 0, 0, True
    while at < len(text):
        sign = text[at]
        if sign == " " or (wants and sign == "!"):
            at += 1
        elif wants and sign == "(":
            depth, at = depth + 1, at + 1
            if depth > _DEEPEST:
                return False
        elif not wants and sign == ")":
            depth, at = depth - 1, at + 1
            if depth < 0:
                return False
        elif not wants and text[at : at + 2] in ("&&", "||"):
            wants, at = True, at + 2
        elif wants and (atom := _ATOM.match(text, at)) is not None and _is_known(atom):
            wants, at = False, atom.end()
        else:
            return False
    return not wants and depth == 0


def _is_known(atom: re.Match[str]) -> bool:
    match atom.lastgroup:
        case "string" | "text":
            return atom[atom.lastgroup] in _of("string")
        case "holder":
            return atom["holder"] in _of("list<string>", "map<string")
        case "int":
            return atom["int"] in _of("int")
        case "bool":
            return atom["bool"] in ("true", "false") or atom["bool"] in _of("bool")
    return atom.lastgroup == "has"
