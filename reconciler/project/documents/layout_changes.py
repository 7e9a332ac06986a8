"""Lists what `fmt` would change in a manifest, line by line. Hides values that may be secret, since logs show it."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final

import yaml as libyaml

from reconciler import kinds
from reconciler.languages.yaml import reader as yaml
from reconciler.model.manifest import Path
from reconciler.model.problem import Position
from reconciler.model.value import Json
from reconciler.project.documents import validation
from reconciler.project.documents.resolve import SECRET_NAME

HIDDEN: Final = "(hidden)"
_COMPARED: Final = 200  # lines from the first change on: a diff takes quadratic time
_SHOWN: Final = 20  # lines of the diff of a file
_SHORTEST: Final = 4  # characters of a secret that is also hidden elsewhere
_ODD_BREAK: Final = re.compile("\r(?!\n)")  # a line break to YAML only: positions after it are of other lines


def list_changes(file: str, text: str, formatted: str) -> Iterator[str]:
    """The first lines that formatting changes, as a diff: `line 3`, `- before`, `+ after`."""
    before, after = text.split("\n"), formatted.split("\n")
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    part = slice(same, same + _COMPARED)
    matcher = difflib.SequenceMatcher(None, before[part], after[part], autojunk=False)
    old, new = _conceal(text, file)[part], _conceal(formatted, file)[part]
    lines = [
        line
        for tag, start, end, begin, stop in matcher.get_opcodes()
        if tag != "equal"
        for line in (
            f"line {same + start + 1}",
            *(f"- {_mark_blanks(line)}" for line in old[start:end]),
            *(f"+ {_mark_blanks(line)}" for line in new[begin:stop]),
        )
    ]
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN or len(before) > part.stop:
        yield "…"


def _mark_blanks(line: str) -> str:
    """The line with the spaces at its end made visible, or a word for an empty line."""
    text = line.rstrip(" ")
    return text + r"\x20" * (len(line) - len(text)) if line else "(empty line)"


def _conceal(text: str, file: str) -> list[str]:
    """The lines of a file without values of secret fields, and of fields, comments and texts that name a secret."""
    lines, texts = text.split("\n"), set[str]()
    if _ODD_BREAK.search(text):
        return [HIDDEN if line else "" for line in lines]
    secrets = list(_list_secrets(text, file))
    ends = _find_ends(text) if secrets else {}
    for value, place in secrets:
        _hide(lines, place.line - 1, place.column - 1, ends.get(place.line - 1, 0))
        texts.add(value)
    for number, line in enumerate(lines):
        for secret in texts:
            if len(secret) >= _SHORTEST and secret in line:
                line = line.replace(secret, HIDDEN)
        head, sign, comment = line.partition("#")
        lines[number] = f"{head}{sign} {HIDDEN}" if SECRET_NAME.search(comment) else line
    return lines


def _list_secrets(text: str, file: str) -> Iterator[tuple[str, Position]]:
    for document in yaml.read(text.encode(), file).documents:
        for path, value in _list_texts(document.value, ()):
            if _is_secret(document.value, path, value):
                yield value, document.places.nearest(path)


def _list_texts(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    match value:
        case str() if value:
            yield path, value
        case dict():
            for key, item in value.items():
                yield from _list_texts(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from _list_texts(item, (*path, index))


def _is_secret(document: Json, path: Path, value: str) -> bool:
    name = document.get("kind") if isinstance(document, dict) else None
    kind = kinds.find(name) if isinstance(name, str) and name.isidentifier() else None
    if path[:1] != ("spec",) and (kind is None or path[0] not in kinds.inline_children(kind.name)):
        return False
    if any(isinstance(key, str) and SECRET_NAME.search(key) for key in path[1:]) or (
        "\n" in value and SECRET_NAME.search(value)
    ):
        return True
    return kind is not None and validation.field_in_manifest(kind, path)[1]


def _find_ends(text: str) -> Mapping[int, int]:
    """The row in which the last text ends that begins in a row, for each row. The text is readable YAML."""
    ends: dict[int, int] = defaultdict(int)
    for event in libyaml.parse(text.removeprefix("\ufeff"), Loader=libyaml.CSafeLoader):
        first, end = event.start_mark, event.end_mark
        if isinstance(event, libyaml.ScalarEvent) and first is not None and end is not None:
            ends[first.line] = max(ends[first.line], end.line if end.column else end.line - 1)
    return ends


def _hide(lines: list[str], row: int, column: int, last: int) -> None:
    """Hides a value from its place on, to its last line, with the lines below it that are indented further."""
    indent = len(lines[row]) - len(lines[row].lstrip(" "))
    lines[row] = lines[row][:column] + HIDDEN
    for below in range(row + 1, len(lines)):
        inside = lines[below].lstrip(" ")
        if below > last and inside.strip() and len(lines[below]) - len(inside) <= indent:
            break
        lines[below] = " " * (len(lines[below]) - len(inside)) + HIDDEN if inside.strip() else ""
