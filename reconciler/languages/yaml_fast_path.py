"""Reads ordinary YAML fast, and leaves everything unusual to the full reader, `project.yaml.reader`.

The values are those of the full reader, without positions. Tags, anchors, odd or repeated keys, excess and mistakes are
left to the full reader.
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
MAX_SCALAR: Final = 1024 * 1024  # characters; as much as an included file may have


_NO_BREAKS: Final = (b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
_NO_BREAK: Final = re.compile("[\x85\u2028\u2029]")
_QUESTION: Final = re.compile(rb"(?:^|[\s\[{,])\?[^\s]")
_NAMED: Final = re.compile(rb"[&*][\w-]++[^\w\s,\]}-]")
_GLUED: Final = re.compile(r"\?[^\s,\[\]{}]")
_NAME_ENDS: Final = ("", " ", "\t", "\r", "\n", ",", "]", "}")


class _Unusual(Exception):
    pass


ParsedDocuments = list[tuple[Json, int, int]]
"""The value of each document, and its beginning as line and column, from 0."""


def read_documents(text: bytes) -> ParsedDocuments | None:
    """None: something is unusual, so read it carefully."""
    try:
        return _FastReader(text).run()
    except (_Unusual, ValueError, yaml_error.YAMLError):
        return None


def is_deeper(text: bytes, levels: int) -> bool:
    """Whether lists and maps stand within each other beyond so many levels, as far as the text can be read at all."""
    depth = 0
    parser = CParser(text)
    try:
        while (event := parser.get_event()) is not None and depth <= levels:
            depth += isinstance(event, events.CollectionStartEvent) - isinstance(event, events.CollectionEndEvent)
    except (ValueError, yaml_error.YAMLError):
        return False
    return depth > levels


class Misreading(NamedTuple):
    """A place (line and column from 0) at which YAML 1.2 means something else than libyaml reads."""

    text: str
    remedy: str
    line: int
    column: int


def find_misreading(text: bytes) -> Misreading | None:
    """The first place that libyaml would misread without a word; None if there is none, or the text is no YAML.

    It takes `?x` for the key x within brackets, ends the name of an anchor at a ':', and takes three characters for
    ends of lines that are none in YAML 1.2.
    """
    decoded = text.decode(errors="replace") if any(each in text for each in _NO_BREAKS) else ""
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
        self._meanings: dict[str, Json] = {}  # of what is not quoted; one object for all that are equal
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
        # The hot loop: every key and value of every file comes by here, so it is one function with plain locals.
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
        """One text for all the keys of that name: a project has thousands of each."""
        if text == "<<" or plain(text) is not text:
            raise _Unusual
        key = self._keys[text] = intern(text)
        return key

    def _parse_plain(self, text: str) -> Json:
        if len(text) > MAX_SCALAR:
            raise _Unusual
        return plain(text)
