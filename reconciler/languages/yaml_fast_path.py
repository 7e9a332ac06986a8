"""Reads ordinary YAML fast. Everything unusual is left to the full reader, `project.yaml.reader`.

Returns the same values as the full reader, without positions. Unusual are tags, anchors, keys that are not text,
duplicate keys, sizes beyond the limits, and errors.
"""

from __future__ import annotations

import re
from sys import intern
from typing import Any, Final, NamedTuple

from yaml import error as yaml_error
from yaml import events, tokens
from yaml._yaml import CParser

from reconciler.languages.yaml_scalars import plain
from reconciler.model.value import Json

MAX_DEPTH: Final = 64
MAX_SCALAR: Final = 1024 * 1024  # characters, as for an included file


_NO_BREAKS: Final = (b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
_NO_BREAK: Final = re.compile("[\x85\u2028\u2029]")
_QUESTION: Final = re.compile(rb"(?:^|[\s\[{,])\?[^\s]")
_NAMED: Final = re.compile(rb"[&*][\w-]++[^\w\s,\]}-]")
_GLUED: Final = re.compile(r"\?[^\s,\[\]{}]")
_NAME_ENDS: Final = ("", " ", "\t", "\r", "\n", ",", "]", "}")


class _Unusual(Exception):
    pass


ParsedDocuments = list[tuple[Json, int, int]]
"""The value of each document with the line and column of its beginning, from 0."""


def read_documents(text: bytes) -> ParsedDocuments | None:
    """Reads the documents of a file; None if something in it is unusual."""
    try:
        return _FastReader(text).run()
    except (_Unusual, ValueError, yaml_error.YAMLError):
        return None


def is_deeper(text: bytes, levels: int) -> bool:
    """Whether lists and maps are nested deeper than `levels`. False for a text that cannot be parsed."""
    depth = 0
    parser = CParser(text)
    try:
        while (event := parser.get_event()) is not None and depth <= levels:
            depth += isinstance(event, events.CollectionStartEvent) - isinstance(event, events.CollectionEndEvent)
    except (ValueError, yaml_error.YAMLError):
        return False
    return depth > levels


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


class _FastReader:
    def __init__(self, text: bytes) -> None:
        self._get = CParser(text).get_event
        self._is_long = len(text) > MAX_SCALAR
        self._meanings: dict[str, Json] = {}  # of unquoted scalars; equal ones share an object
        self._quoted: dict[str, str] = {}
        self._keys: dict[str, str] = {}

    def run(self) -> ParsedDocuments:
        found: ParsedDocuments = []
        get = self._get
        get()  # the stream's start
        while type(get()) is events.DocumentStartEvent:
            first: Any = get()
            mark = first.start_mark
            found.append((self._value(first), mark.line, mark.column))
            get()  # the document's end
        return found

    def _value(self, event: Any) -> Json:
        # Hot loop for every key and value of every file: one function with local variables.
        get, meanings, quoted, keys, is_long = self._get, self._meanings, self._quoted, self._keys, self._is_long
        scalar, map_start, list_start = events.ScalarEvent, events.MappingStartEvent, events.SequenceStartEvent
        alias = events.AliasEvent
        stack: list[Any] = []
        container: Any = []
        is_map = False
        key: str | None = None
        value: Any
        while True:
            kind = type(event)
            if kind is scalar:
                if event.tag is not None or event.anchor is not None:
                    raise _Unusual
                text = event.value
                if is_map and key is None:
                    key = keys.get(text) or self._key(text)
                    if key in container:
                        raise _Unusual
                    event = get()
                    continue
                if event.style:
                    value = quoted.setdefault(text, text)
                    if is_long and len(text) > MAX_SCALAR:
                        raise _Unusual
                elif text in meanings:
                    value = meanings[text]
                else:
                    value = meanings[text] = self._parse_plain(text)
                if is_map:
                    container[key] = value
                    key = None
                elif stack:
                    container.append(value)
                else:
                    return value
            elif kind is map_start or kind is list_start:
                if event.tag is not None or event.anchor is not None or len(stack) >= MAX_DEPTH:
                    raise _Unusual
                value = {} if kind is map_start else []
                if is_map:
                    if key is None:
                        raise _Unusual
                    container[key] = value
                    key = None
                else:
                    container.append(value)
                stack.append(container)
                container = value
                is_map = kind is map_start
            elif kind is alias:
                raise _Unusual
            else:
                value = container
                container = stack.pop()
                if not stack:
                    return value
                is_map = type(container) is dict
            event = get()

    def _key(self, text: str) -> str:
        """Interns a key: a project has thousands of each."""
        if text == "<<" or plain(text) is not text:
            raise _Unusual
        key = self._keys[text] = intern(text)
        return key

    def _parse_plain(self, text: str) -> Json:
        if len(text) > MAX_SCALAR:
            raise _Unusual
        return plain(text)
