"""Reads YAML in which nothing is out of the ordinary, as nearly all of a project is, and leaves the rest alone.

What is read here is what the careful reader in `project.yaml` finds in the same text, without the place of each value.
Tags, anchors, odd or repeated keys, excess and mistakes are not for here.
"""

from __future__ import annotations

from sys import intern
from typing import Any, Final

from yaml import error as yaml_error
from yaml import events
from yaml._yaml import CParser

from reconciler.kinds.scalars import plain
from reconciler.model.value import Json

MAX_DEPTH: Final = 64
MAX_SCALAR: Final = 1024 * 1024  # characters; as much as an included file may have


class _Unusual(Exception):
    pass


Skimmed = list[tuple[Json, int, int]]
"""The value of each document, and its beginning as line and column, from 0."""


def documents(text: bytes) -> Skimmed | None:
    """None: something is unusual, so read it carefully."""
    try:
        return _Skimmer(text).run()
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


class _Skimmer:
    def __init__(self, text: bytes) -> None:
        self._get = CParser(text).get_event
        self._is_long = len(text) > MAX_SCALAR
        self._meanings: dict[str, Json] = {}  # of what is not quoted; one object for all that are equal
        self._quoted: dict[str, str] = {}
        self._keys: dict[str, str] = {}

    def run(self) -> Skimmed:
        found: Skimmed = []
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
                    value = meanings[text] = self._meaning(text)
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

    def _meaning(self, text: str) -> Json:
        if len(text) > MAX_SCALAR:
            raise _Unusual
        return plain(text)
