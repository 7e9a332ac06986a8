"""Reads YAML 1.2 (core schema) into plain JSON values, with the position of each value.

libyaml parses; the meaning of a scalar is decided here, so that `no` and `2024-01-01` are text. Every error is a
problem with a position, never an exception.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from sys import intern
from typing import Any, Final, NamedTuple

from msgspec import Struct, field
from yaml import error as yaml_error
from yaml import events
from yaml._yaml import CParser

from reconciler.languages.yaml.errors import MAX_BYTES, bytes_problem, explain_foreign_syntax, syntax_problem
from reconciler.languages.yaml.misreadings import find_misreading
from reconciler.languages.yaml.positions import COLUMN_BITS, Places, key_mark, position
from reconciler.languages.yaml.scalars import MAY_BE_PLAIN, plain
from reconciler.model.problem import Position, Problem
from reconciler.model.value import Json

MAX_VALUES: Final = 500_000  # keys and values of one file: room for 10,000 resources of 25 fields
MAX_DEPTH: Final = 64
MAX_SCALAR: Final = 1024 * 1024  # characters, as for an included file
MAX_DOCUMENTS: Final = 20_000
MAX_PROBLEMS: Final = 100  # per file
MAX_EXPANDED: Final = 100_000  # values from aliases: refuses an alias bomb early
MAX_COPIED: Final = MAX_BYTES  # characters from aliases: as many as the file itself may have
_SMALL: Final = 4 * MAX_DOCUMENTS  # bytes: a smaller file cannot exceed any limit
_NEAR: Final = 10_000  # values within which a duplicate key is searched for
_KNOWN: Final = frozenset({"map", "seq", "str", "null", "bool", "int", "float", "binary", "timestamp", "set", "omap"})
_MAY_BE_PLAIN: Final = MAY_BE_PLAIN | {""}  # what an unquoted scalar begins with that may be no text
_TAG: Final = "tag:yaml.org,2002:"
MERGE: Final = "\0<<"
"""The key that stands for a merge key in a document of a dialect that has them."""


class Dialect(NamedTuple):
    """What a document may contain.

    merges    merge keys (`<<`) of YAML 1.1, and keys that are no text, as their JSON
    plain     the value of an unquoted scalar; raises ValueError
    depth     levels of maps and lists
    values    keys and values of the file
    """

    merges: bool = False
    plain: Callable[[str], Json] = plain
    depth: int = MAX_DEPTH
    values: int = MAX_VALUES


MANIFEST: Final = Dialect()


class Document(NamedTuple):
    """One document of a file. Not `sound`: it has problems, and only its address can be used."""

    value: Json
    places: Places
    sound: bool = True


class Reading(Struct):
    """The documents and problems of a file. Not `complete`: the rest after the last problem could not be read.

    `copied_values` and `copied_characters` come from aliases.
    """

    documents: list[Document] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    complete: bool = True
    copied_values: int = 0
    copied_characters: int = 0


def read(text: bytes, file: str, dialect: Dialect = MANIFEST) -> Reading:
    """Reads the documents of a file. `file`: its name in positions."""
    reading = Reading()
    unreadable = bytes_problem(text, file) or _check_size(text, file, dialect) or _check_misreading(text, file)
    if unreadable is None:
        _Reader(text.removeprefix(b"\xef\xbb\xbf"), file, reading, dialect).run()
    else:
        reading.problems.append(unreadable)
        reading.complete = False
    return reading


def _check_size(text: bytes, file: str, dialect: Dialect) -> Problem | None:
    """Refuses a file that is too large, without parsing it: half a million values would take a second."""
    if len(text) <= min(_SMALL, dialect.values):
        return None
    marks = text.count(b"\n") + text.count(b",") + text.count(b": ") + text.count(b"- ")
    if marks > dialect.values:
        return Problem(_too_many(dialect), "split the file", position=Position(file, 1, 1), code="limit-exceeded")
    if text.count(b"\n---") >= MAX_DOCUMENTS:
        return Problem(
            f"more than {MAX_DOCUMENTS:,} documents in one file",
            "split the file",
            position=Position(file, 1, 1),
            code="limit-exceeded",
        )
    return None


def _too_many(dialect: Dialect) -> str:
    return f"more than {dialect.values:,} values in one file"


def _check_misreading(text: bytes, file: str) -> Problem | None:
    found = find_misreading(text)
    if found is None:
        return None
    return Problem(
        found.text, found.remedy, position=Position(file, found.line + 1, found.column + 1), code="unsupported-yaml"
    )


class _Stop(Exception):
    """Stops reading at this position."""

    def __init__(self, mark: Any, text: str, remedy: str = "", code: str = "limit-exceeded") -> None:
        super().__init__(text)
        self.mark = mark
        self.remedy = remedy
        self.code = code


class _Anchor(Struct):
    value: Json
    start: int
    end: int = 0  # 0 while its value is being read
    height: int = 0
    characters: int = -1  # of all texts inside; -1: not counted


class _Reader:
    """One pass over libyaml's events, with an explicit stack instead of recursion."""

    def __init__(self, text: bytes, file: str, reading: Reading, dialect: Dialect) -> None:
        self._parser = CParser(text)
        self._text = text
        self._file = file
        self._reading = reading
        self._dialect = dialect
        self._marks: array[int] = array("Q")
        self._keys: dict[str, str] = {}  # ordinary ones, interned
        self._texts: dict[str, str] = {}  # quoted, or in blocks: equal ones share an object
        self._meanings: dict[str, Json] = {}  # of unquoted scalars
        self._is_long = len(text) > MAX_SCALAR

    def _begin(self) -> None:
        self._start = len(self._marks)
        self._anchors: dict[str, _Anchor] = {}
        self._open: list[tuple[int, _Anchor]] = []
        self._sound = True

    def run(self) -> None:
        try:
            while isinstance(event := self._parser.get_event(), (events.StreamStartEvent, events.DocumentStartEvent)):
                if isinstance(event, events.DocumentStartEvent):
                    self._document(event)
        except _Stop as stop:
            self._stop(Problem(str(stop), stop.remedy, position=self._at(stop.mark), code=stop.code))
        except yaml_error.MarkedYAMLError as error:
            self._stop(syntax_problem(error, self._file))
        except yaml_error.YAMLError as error:
            self._stop(Problem(f"invalid YAML: {error}", position=Position(self._file, 1, 1), code="invalid-yaml"))

    def _stop(self, problem: Problem) -> None:
        self._reading.problems.append(explain_foreign_syntax(problem, self._text))
        self._reading.complete = False

    def _document(self, start: Any) -> None:
        if len(self._reading.documents) >= MAX_DOCUMENTS:
            raise _Stop(start.start_mark, f"more than {MAX_DOCUMENTS:,} documents in one file", "split the file")
        self._begin()
        root: list[Json] = []
        self._fill(root)
        if len(self._marks) > self._dialect.values:
            raise _Stop(start.start_mark, _too_many(self._dialect), "split the file")
        self._parser.get_event()  # the document's end
        places = Places(self._file, root[0], self._marks, self._start)
        self._reading.documents.append(Document(root[0], places, self._sound))

    def _fill(self, root: list[Json]) -> None:
        # Hot loop for every key and value of every file: one function with local variables.
        get, add_mark = self._parser.get_event, self._marks.append
        keys, texts, meanings, is_long = self._keys, self._texts, self._meanings, self._is_long
        scalar, map_start, list_start = events.ScalarEvent, events.MappingStartEvent, events.SequenceStartEvent
        alias, is_unusual = events.AliasEvent, is_long or self._dialect.plain is not plain
        stack: list[Any] = []
        container: Any = root
        is_map = False
        key: str | None = None
        value: Any
        while True:
            event: Any = get()
            kind = event.__class__
            if kind is scalar:
                mark = event.start_mark
                add_mark(mark.line << COLUMN_BITS | mark.column)
                text = event.value
                if event.tag is not None or event.anchor is not None:
                    value = self._read_marked_scalar(event)
                elif is_map and key is None:
                    key = keys.get(text) or self._key(event, self._read_scalar(event))
                    if key in container:
                        key = self._duplicate(event, container, key)
                    continue
                else:
                    if event.style:
                        value = texts.setdefault(text, text)
                        if is_long:
                            self._check_length(event)
                    elif text in meanings:
                        value = meanings[text]
                    elif is_unusual or text[:1] in _MAY_BE_PLAIN:
                        value = self._read_scalar(event)
                    else:
                        value = meanings[text] = text
                    if is_map:
                        container[key] = value
                        key = None
                        continue
            elif kind is map_start or kind is list_start:
                value = {} if kind is map_start else []
                self._enter(event, value, len(stack) + 1, is_map and key is None)
            elif kind is alias:
                value = self._alias(event, len(stack))
            else:
                if self._open and self._open[-1][0] == len(stack):
                    self._open.pop()[1].end = len(self._marks)
                container = stack.pop()
                if not stack:
                    return
                is_map = container.__class__ is dict
                continue
            if not is_map:
                container.append(value)
            elif key is None:
                key = self._key(event, value)
                if key in container:
                    key = self._duplicate(event, container, key)
                continue
            else:
                container[key] = value
                key = None
            if kind is map_start or kind is list_start:
                stack.append(container)
                container = value
                is_map = kind is map_start
            elif not stack:
                return

    def _enter(self, event: Any, value: Json, depth: int, is_key: bool) -> None:
        mark = event.start_mark
        if is_key:
            raise _Stop(
                mark, "a key must be text", "write a list or map as a value, not as a key", code="unsupported-yaml"
            )
        if depth > self._dialect.depth:
            raise self._too_deep(mark)
        if event.tag is not None:
            expected = "map" if event.__class__ is events.MappingStartEvent else "seq"
            if event.tag not in ("!", _TAG + expected):
                self._problem(mark, f"unknown tag {_quote_tag(event.tag)}", "remove it, or quote the text")
        # _check_size counted scalars; collections and aliases are counted here.
        if len(self._marks) > self._dialect.values:
            raise _Stop(mark, _too_many(self._dialect), "split the file")
        self._marks.append(mark.line << COLUMN_BITS | mark.column)
        if event.anchor is not None:
            anchor = self._anchors[event.anchor] = _Anchor(value, len(self._marks) - 1)
            self._open.append((depth, anchor))

    def _alias(self, event: Any, depth: int) -> Json:
        mark = event.start_mark
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            # The name is not repeated: it may be an unquoted secret that begins with a star.
            raise _Stop(
                mark,
                "undefined alias (*)",
                "define the anchor first, or quote the text",
                code="unsupported-yaml",
            )
        if not anchor.end:
            raise _Stop(
                mark,
                "the alias refers to a value that contains it",
                "refer to an inner value",
                code="unsupported-yaml",
            )
        reading = self._reading
        reading.copied_values += anchor.end - anchor.start
        if reading.copied_values > MAX_EXPANDED:
            raise _Stop(mark, f"aliases expand to more than {MAX_EXPANDED:,} values", "use fewer aliases")
        if anchor.characters < 0:
            anchor.characters = _count_characters(anchor.value)
        reading.copied_characters += anchor.characters
        if reading.copied_characters > MAX_COPIED:
            raise _Stop(mark, f"aliases expand to more than {MAX_COPIED:,} characters", "use fewer aliases")
        anchor.height = anchor.height or _height(anchor.value)
        if depth + anchor.height > self._dialect.depth:
            raise self._too_deep(mark)
        self._marks.append(mark.line << COLUMN_BITS | mark.column)
        self._marks.extend(self._marks[anchor.start + 1 : anchor.end])
        return anchor.value

    def _too_deep(self, mark: Any) -> _Stop:
        return _Stop(mark, f"nested deeper than {self._dialect.depth} levels", "reduce the nesting")

    def _read_scalar(self, event: Any) -> Json:
        text = event.value
        if self._is_long:
            self._check_length(event)
        if event.style:
            return self._texts.setdefault(text, text)
        try:
            value = self._dialect.plain(text)
        except ValueError as error:
            self._problem(event.start_mark, str(error), "quote it if it is text")
            return text
        return self._meanings.setdefault(text, value)

    def _read_marked_scalar(self, event: Any) -> Json:
        """Reads a scalar with a tag or an anchor."""
        value = self._read_scalar(event) if event.tag is None else self._read_tagged_scalar(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchor(value, len(self._marks) - 1, len(self._marks))
        return value

    def _check_length(self, event: Any) -> None:
        if len(event.value) > MAX_SCALAR:
            raise _Stop(
                event.start_mark,
                f"text longer than {MAX_SCALAR // 1024 // 1024} MiB",
                "move it to a file, and read it with {from_file: PATH}",
            )

    def _read_tagged_scalar(self, event: Any) -> Json:
        """Reads a scalar with a tag. Tags of the core schema require a matching text."""
        tag, text = event.tag, event.value
        if self._is_long:
            self._check_length(event)
        if tag in ("!", _TAG + "str"):
            return text
        try:
            value = self._dialect.plain(text)
        except ValueError:
            value = text
        match tag.removeprefix(_TAG), value:
            case ("null", None) | ("bool", bool()) | ("float", float()):
                return value
            case ("int", int()) if not isinstance(value, bool):
                return value
            case ("float", int()) if not isinstance(value, bool):
                return float(value)
            case (("null" | "bool" | "int" | "float"), _):
                self._problem(event.start_mark, f"{_quote_tag(tag)} does not fit this value", "remove the tag")
            case _:
                self._problem(event.start_mark, f"unknown tag {_quote_tag(tag)}", "remove it, or quote the text")
        return text

    def _key(self, event: Any, value: Json) -> str:
        """The key of a value. Ordinary keys are kept: a project has thousands of each."""
        if value.__class__ is str and value != "<<":
            key = intern(value)
            if event.__class__ is events.ScalarEvent and not event.style and event.tag is None:
                self._keys[key] = key
            return key
        if value == "<<" and (event.__class__ is events.AliasEvent or event.style):
            return "<<"  # quoted: ordinary text
        if self._dialect.merges:
            return MERGE if value == "<<" else json.dumps(value)
        if value == "<<":
            self._problem(
                event.start_mark, "merge keys (<<) are not supported (YAML 1.2 has none)", "write the fields out"
            )
        else:
            text = getattr(event, "value", "") or "(empty)"
            self._problem(event.start_mark, f"the key {_quote(text)} is not text", "quote it")
        return f"\0{len(self._marks)}"  # keeps the structure of the document; no key of a user contains NUL

    def _duplicate(self, event: Any, container: dict[str, Json], key: str) -> str:
        text = f"duplicate key {_quote(key)}"
        if len(self._marks) - self._start < _NEAR:
            first = position(self._file, key_mark(self._marks, container, key, len(self._marks) - 1))
            text += f", first at line {first.line}, column {first.column}"
        self._problem(event.start_mark, text, "remove one of the two", code="duplicate-key")
        return f"\0{len(self._marks)}"

    def _problem(self, mark: Any, text: str, remedy: str, code: str = "unsupported-yaml") -> None:
        self._sound = False
        if len(self._reading.problems) >= MAX_PROBLEMS:
            raise _Stop(
                mark,
                f"more than {MAX_PROBLEMS} problems in this file",
                "correct those above first",
                code="too-many-problems",
            )
        self._reading.problems.append(Problem(text, remedy, position=self._at(mark), code=code))

    def _at(self, mark: Any) -> Position:
        return Position(self._file, mark.line + 1, mark.column + 1)


def _count_characters(value: Json) -> int:
    """The characters of all texts and keys, each of which takes up to four bytes."""
    match value:
        case str():
            return len(value) if value.isascii() else 4 * len(value)
        case dict():
            return sum(_count_characters(key) + _count_characters(item) for key, item in value.items())
        case list():
            return sum(map(_count_characters, value))
    return 0


def _height(value: Json) -> int:
    if isinstance(value, (dict, list)):
        return 1 + max(map(_height, value.values() if isinstance(value, dict) else value), default=0)
    return 0


def _quote(text: str) -> str:
    """Quotes a piece of the user's text for a message, on one line and shortened."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _quote_tag(tag: str) -> str:
    """Quotes a tag for a message. Only standard tags: another one may be a secret that begins with `!`."""
    name = tag.removeprefix(_TAG)
    return f"!!{name}" if tag.startswith(_TAG) and name in _KNOWN else "(!)"


def resolve_merges(value: Json) -> Json:
    """The value with the maps of its merge keys merged: a map's own keys win, then those of the first map.

    Raises ValueError if a merge key has no map.
    """
    if isinstance(value, list):
        return [resolve_merges(item) for item in value]
    if not isinstance(value, dict):
        return value
    merged: dict[str, Json] = {}
    bases = value.get(MERGE, [])
    for base in bases if isinstance(bases, list) else [bases]:
        if not isinstance(base, dict):
            raise ValueError("a merge key (<<) has no map")
        merged = {**resolve_merges(base), **merged}
    return {**merged, **{key: resolve_merges(item) for key, item in value.items() if key != MERGE}}
