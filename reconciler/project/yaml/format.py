"""Formats manifests in one canonical layout (`fmt`). Keeps comments and values, or refuses.

Keys are reordered as pieces of text, so that a comment stays with the key below it. ruamel.yaml then writes each
document with canonical indentation. The result is read again and must have the same values and comments.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.emitter import RoundTripEmitter
from ruamel.yaml.error import ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.resolver import VersionedResolver

from reconciler.languages.yaml import reader as yaml
from reconciler.model.manifest import Path
from reconciler.model.problem import Position, Problem, Rejected
from reconciler.model.value import Json
from reconciler.project.yaml import emit
from reconciler.project.yaml.formatted import is_formatted

ORDER: Final = (
    "kind", "component", "name", "for_each", "when", "id", "ensure", "moved", "lifecycle", "deliver", "rotate", "with",
    "spec",
)  # fmt: skip
_WIDTH: Final = 1 << 20  # never folds lines
_MARKER: Final = re.compile(r"---(\s+#.*|\s*)")
_MODELINE: Final = re.compile(r"#\s*yaml-language-server\s*:.*\$schema=\S+.*")
_END: Final = re.compile(r"^\.\.\.\n\Z", re.MULTILINE)  # ruamel.yaml adds it after a text with `|+`
_ROUNDS: Final = 4  # a comment may move again in a second round


class _TextScalars(VersionedResolver):
    """Reads every unquoted scalar as text, so that it is written unchanged: ruamel.yaml would round large numbers."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is ScalarNode and value:
            return self.DEFAULT_SCALAR_TAG
        return super().resolve(kind, value, implicit)


class _EscapingEmitter(RoundTripEmitter):
    """Escapes invisible characters in double quotes: they can reverse or hide text."""

    def write_double_quoted(self, text: Any, split: Any = True) -> None:
        self.write_indicator(emit.quote(str(text)), need_whitespace=True)


def format_text(text: str, file: str) -> str:
    """Formats a manifest file. Raises Rejected if the file has problems, or a value or comment would be lost."""
    text = text.removeprefix("\ufeff")
    before = yaml.read(text.encode(), file)
    if before.problems:
        raise Rejected(before.problems)
    formatted = _format_once(text, file)
    if formatted == text:
        return text
    for _ in range(_ROUNDS):
        if (lost := _find_loss(before, text, formatted, file)) is not None:
            raise Rejected([lost])
        again = _format_once(formatted, file)
        if again == formatted:
            return formatted
        formatted = again
    raise Rejected([_cannot_format(file)])


def _find_loss(before: yaml.Reading, text: str, formatted: str, file: str) -> Problem | None:
    """Reports a value or comment that differs between the text and its formatted form."""
    after = yaml.read(formatted.encode(), file)
    # Empty documents and the order of keys have no meaning.
    old, new = (
        [document for document in reading.documents if document.value is not None] for reading in (before, after)
    )
    if after.problems or len(old) != len(new):
        return _cannot_format(file)
    for one, other in zip(old, new, strict=True):
        for path, value in _differences(one.value, other.value, ()):
            remedy = "write it in double quotes" if isinstance(value, str) else ""
            return Problem(
                "cannot be formatted without changing this value",
                remedy,
                "",
                one.places.nearest(path),
                code="cannot-format",
            )
    comments = comments_of(formatted)
    if comments == comments_of(text):
        return None
    for number, line in enumerate(text.splitlines(), 1):
        for comment in comments_of(line):
            if comment not in comments:
                where = Position(file, number, 1)
                remedy = "move it above the key"
                return Problem(
                    "cannot be formatted without losing this comment", remedy, "", where, code="cannot-format"
                )
            comments.remove(comment)
    return _cannot_format(file)


def _cannot_format(file: str) -> Problem:
    where = Position(file, 1, 1)
    return Problem(
        "cannot be formatted without losing a comment",
        "move comments to lines of their own",
        "",
        where,
        code="cannot-format",
    )


def _format_once(text: str, file: str) -> str:
    pieces = [_document(piece, file) for piece in split_documents(text, file)]
    return "---\n".join(piece for piece in pieces if piece)


def add_modeline(text: str, schema: str) -> str:
    """Adds the line that names the schema for editors to each document that has none.

    The language server applies the line to one document only.
    """
    line = f"# yaml-language-server: $schema={schema}\n"
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    pieces = re.split(r"^(---[ \t]*(?:[ \t]#.*)?\n)", text.removeprefix(mark), flags=re.MULTILINE)
    bodies = pieces[::2]
    have_modeline = [any(is_modeline(line) for line in body.splitlines()) for body in bodies]
    if len(bodies) > 1 and all(not line.strip() or line.startswith("#") for line in bodies[0].splitlines()):
        have_modeline[:2] = [
            True,
            have_modeline[0] or have_modeline[1],
        ]  # a comment before the first --- belongs to the document after it
    pieces[::2] = [body if has_one else line + body for body, has_one in zip(bodies, have_modeline, strict=True)]
    return mark + "".join(pieces)


def is_modeline(line: str) -> bool:
    """Whether a line is a comment that names the schema of a document for editors."""
    return _MODELINE.fullmatch(line.strip()) is not None


def split_documents(text: str, file: str) -> list[str]:
    """Splits a file at its `---` lines. Raises Rejected for directives and other document markers."""
    lines = text.replace("\r\n", "\n").splitlines(keepends=True)
    starts = _marker_lines(text, file)
    pieces: list[list[str]] = [[]]
    for number, line in enumerate(lines):
        if number not in starts:
            pieces[-1].append(line)
            continue
        if any(piece.strip() for piece in pieces[-1]):
            pieces.append([])
        else:
            pieces[-1] = []
        if comment := line.removeprefix("---").strip():
            pieces[-1].append(f"{comment}\n")
    return ["".join(piece) for piece in pieces]


def _marker_lines(text: str, file: str) -> set[int]:
    """Numbers of the lines that begin a document. A `---` within a text is always indented."""
    starts = set()
    for number, line in enumerate(text.splitlines()):
        if line.startswith(("...", "%")):
            where = Position(file, number + 1, 1)
            raise Rejected(
                [
                    Problem(
                        "directives and '...' are not supported by fmt", "remove them", "", where, code="cannot-format"
                    )
                ]
            )
        if line.startswith("---"):
            if not _MARKER.fullmatch(line):
                where = Position(file, number + 1, 1)
                raise Rejected(
                    [Problem("text on the line of a '---'", "put it on the next line", "", where, code="cannot-format")]
                )
            starts.add(number)
    return starts


def _document(text: str, file: str) -> str:
    text = text.strip("\n") + "\n"
    first, _, rest = text.partition("\n")
    if rest and is_modeline(first):
        return f"{first.rstrip()}\n{_document(rest, file)}"  # belongs to the document, not to the key below
    if is_formatted(text, ORDER):
        return text
    return _round_trip(text, file)


def _round_trip(text: str, file: str) -> str:
    text = _reorder(text, file)
    documents = yaml.read(text.encode(), file).documents
    if not documents or not isinstance(documents[0].value, (dict, list)):
        return text if text.strip() else ""
    writer = YAML()
    writer.Resolver = _TextScalars
    writer.Emitter = _EscapingEmitter
    writer.preserve_quotes = True
    writer.width = _WIDTH
    writer.brace_single_entry_mapping_in_flow_sequence = True
    writer.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)
            writer.dump(writer.load(text), out)
    except YAMLError:  # unlike libyaml, ruamel.yaml accepts no tab between a key and its value
        where = Position(file, 1, 1)
        remedy = "replace tab characters by spaces"
        raise Rejected([Problem("cannot be formatted", remedy, "", where, code="cannot-format")]) from None
    return _END.sub("", out.getvalue()).strip("\n") + "\n"


def _reorder(text: str, file: str) -> str:
    """Moves the keys of a block map into canonical order, each with the comments above it."""
    reading = yaml.read(text.encode(), file)
    if len(reading.documents) != 1 or not isinstance(reading.documents[0].value, dict):
        return text
    document = reading.documents[0]
    begins = [(document.places.key((key,)), key) for key in document.value]
    if not begins or any(where.column != 1 for where, _ in begins):
        return text
    lines = text.splitlines(keepends=True)
    first_lines = [first_comment(lines, where.line - 1) for where, _ in begins]
    end = len(lines)
    while end > begins[-1][0].line and (lines[end - 1].startswith("#") or not lines[end - 1].strip()):
        end -= 1  # comments after the last value stay there
    ends = [*first_lines[1:], end]
    pieces = {key: lines[start:stop] for (_, key), start, stop in zip(begins, first_lines, ends, strict=True)}
    keys = sorted(pieces, key=lambda key: ORDER.index(key) if key in ORDER else len(ORDER))
    if keys == list(pieces):
        return text
    body = "".join("".join(pieces[key]) for key in keys)
    return "".join(lines[: first_lines[0]]) + body + "".join(lines[end:])


def first_comment(lines: list[str], line: int) -> int:
    """The first of the unindented comment lines right above a line."""
    while line > 0 and lines[line - 1].startswith("#"):
        line -= 1
    return line


def comments_of(text: str) -> list[str]:
    """The comments of a text, sorted, including text that only looks like a comment."""
    return sorted(match[1].rstrip() for match in re.finditer(r"(?:^|(?<=\s))(#.*)$", text, re.MULTILINE))


def _differences(old: Json, new: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    """Paths and old values that differ, also in type: 1, 1.0 and true differ. The order of keys has no meaning."""
    match old, new:
        case (dict(), dict()) if old.keys() == new.keys():
            for key, item in old.items():
                yield from _differences(item, new[key], (*path, key))
        case (list(), list()) if len(old) == len(new):
            for index, item in enumerate(old):
                yield from _differences(item, new[index], (*path, index))
        case _:
            if type(old) is not type(new) or old != new:
                yield path, old
