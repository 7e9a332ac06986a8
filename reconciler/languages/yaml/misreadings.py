"""Texts that libyaml reads in another way than YAML 1.2 says."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from yaml import error as yaml_error
from yaml import tokens
from yaml._yaml import CParser

_NO_BREAKS: Final = (b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
_NO_BREAK: Final = re.compile("[\x85\u2028\u2029]")
_QUESTION: Final = re.compile(rb"(?:^|[\s\[{,])\?[^\s]")
_NAMED: Final = re.compile(rb"[&*][\w-]++[^\w\s,\]}-]")
_GLUED: Final = re.compile(r"\?[^\s,\[\]{}]")
_NAME_ENDS: Final = ("", " ", "\t", "\r", "\n", ",", "]", "}")


class Misreading(NamedTuple):
    """A position (line and column from 0) at which libyaml deviates from YAML 1.2."""

    text: str
    remedy: str
    line: int
    column: int


def find_misreading(text: bytes) -> Misreading | None:
    """The first position that libyaml would silently misread; None if there is none, or the text is not YAML.

    libyaml reads `?x` within brackets as the key x, ends the name of an anchor at a ':', and accepts three characters
    as line breaks that are none in YAML 1.2.
    """
    decoded = text.decode(errors="replace") if any(sign in text for sign in _NO_BREAKS) else ""
    if (found := _NO_BREAK.search(decoded)) is not None:
        line, column = _place(decoded, found.start())
        remedy = "remove it, or write it as an escape in double quotes"
        return Misreading(f"line separator U+{ord(found[0]):04X}", remedy, line, column)
    is_doubtful = (b"?" in text and _QUESTION.search(text)) or ((b"&" in text or b"*" in text) and _NAMED.search(text))
    return _misread_token(text.removeprefix(b"\xef\xbb\xbf")) if is_doubtful else None


def _misread_token(text: bytes) -> Misreading | None:
    decoded = text.decode(errors="replace")
    parser = CParser(text)
    depth = 0
    try:
        while (token := parser.get_token()) is not None:
            kind = type(token)
            if kind in (tokens.FlowSequenceStartToken, tokens.FlowMappingStartToken):
                depth += 1
            elif kind in (tokens.FlowSequenceEndToken, tokens.FlowMappingEndToken):
                depth -= 1
            mark = token.start_mark
            if kind is tokens.KeyToken and depth and _GLUED.match(decoded, mark.index):
                what = "'?' within brackets begins a key only before a space"
                return Misreading(what, "put the text in quotes", mark.line, mark.column)
            end = token.end_mark.index
            if kind in (tokens.AnchorToken, tokens.AliasToken) and decoded[end : end + 1] not in _NAME_ENDS:
                what = f"{decoded[end]!r} in the name of an anchor"
                return Misreading(
                    what, "name it with letters, digits, '-' and '_'", token.end_mark.line, token.end_mark.column
                )
    except (ValueError, yaml_error.YAMLError):
        return None
    return None


def _place(text: str, at: int) -> tuple[int, int]:
    before = text[:at]
    return before.count("\n"), at - before.rfind("\n") - 1
