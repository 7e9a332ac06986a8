"""Tells at a glance that an expression is in order, as most are, without loading the language's implementation.

What it says yes to is a part of the language that needs no grammar: names, calls, texts, whole numbers, brackets, and
what stands between them. It never says that something is wrong: whatever it does not know is for `cel` to judge.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_LONGEST = 500  # characters
_DEEPEST = 8  # brackets within brackets
_NAME = r"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+"
_TOKEN = re.compile(
    rf"""
      (?P<name> {_NAME} ) (?: (?P<call> \( ) | (?!['"]) )
    | \. (?P<member> {_NAME} ) (?P<method> \( )?+
    | (?P<value> (?: "[^"\\]*" | '[^'\\]*' ) (?!['"]) | \d{{1,15}}(?![\w.]) )
    | (?P<between> && | \|\| | [=!<>]= | [<>+] )
    | (?P<unless> ! )
    | (?P<opening> [(\[] ) | (?P<closing> [)\]] ) | (?P<comma> , )
    """,
    re.VERBOSE | re.ASCII,
)
# What the language keeps for itself, and calls that are more than calls.
_OWN = frozenset(
    """
    all as bind break const continue else exists existsOne exists_one false filter for function has if import in let
    loop map namespace null optFlatMap optMap package return true var void while
    """.split()  # noqa: SIM905 - as a paragraph they can be read
)
_GROUP, _LIST, _CALL, _INDEX = "group", "list", "call", "index"
_CLOSED_BY = {_GROUP: ")", _CALL: ")", _LIST: "]", _INDEX: "]"}


def is_in_order(text: str, variables: Collection[str], functions: Collection[str]) -> bool:
    """Whether the text surely is an expression that speaks of nothing but these. No: it is not known here."""
    if len(text) > _LONGEST or not text.isascii() or not text.isprintable():
        return False
    reading = _Reading(variables, functions)
    at = 0
    while at < len(text):
        if text[at] == " ":
            at += 1
            continue
        token = _TOKEN.match(text, at)
        if token is None or not reading.take(token):
            return False
        at = token.end()
    return reading.is_whole


class _Reading:
    """Where in the expression we are: whether a value comes next, and within which brackets."""

    def __init__(self, variables: Collection[str], functions: Collection[str]) -> None:
        self._variables = variables
        self._functions = functions
        self._open: list[str] = []
        self._wants_value = True
        self._may_close = False  # brackets that have nothing in them yet

    @property
    def is_whole(self) -> bool:
        return not self._wants_value and not self._open

    def take(self, token: re.Match[str]) -> bool:
        """Whether it can stand here."""
        empty, self._may_close = self._may_close, False
        match token.lastgroup:
            case "closing":
                return self._closes(token[0], empty)
            case "comma":
                if self._wants_value or not self._open or self._open[-1] not in (_LIST, _CALL):
                    return False
                self._wants_value = True
                return True
        return self._value(token) if self._wants_value else self._further(token)

    def _value(self, token: re.Match[str]) -> bool:
        match token.lastgroup:
            case "unless":
                return True
            case "value":
                self._wants_value = False
                return True
            case "opening":
                return self._opens(_GROUP if token[0] == "(" else _LIST)
            case "name":
                self._wants_value = False
                return token[0] in ("true", "false", "null") or self._is_known(token["name"])
            case "call":
                name = token["name"]
                known = self._is_known(name) if "." in name else name in self._functions and name not in _OWN
                return known and self._opens(_CALL)
        return False

    def _further(self, token: re.Match[str]) -> bool:
        """What may stand behind a value."""
        match token.lastgroup:
            case "between":
                self._wants_value = True
                return True
            case "name" if token[0] == "in":
                self._wants_value = True
                return True
            case "member":
                return _OWN.isdisjoint(token["member"].split("."))
            case "method":
                return _OWN.isdisjoint(token["member"].split(".")) and self._opens(_CALL)
            case "opening" if token[0] == "[":
                return self._opens(_INDEX)
        return False

    def _is_known(self, name: str) -> bool:
        parts = name.split(".")
        return parts[0] in self._variables and _OWN.isdisjoint(parts)

    def _opens(self, what: str) -> bool:
        self._open.append(what)
        self._wants_value = True
        self._may_close = what in (_LIST, _CALL)
        return len(self._open) <= _DEEPEST

    def _closes(self, bracket: str, empty: bool) -> bool:
        if not self._open or _CLOSED_BY[self._open.pop()] != bracket or (self._wants_value and not empty):
            return False
        self._wants_value = False
        return True
