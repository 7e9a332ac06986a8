"""`fmt`: one canonical layout for manifests. Text in, text out; comments stay, and so does the meaning.

Documents and their keys are moved as pieces of text, so that a comment goes with the key below it; ruamel.yaml then
writes each piece anew with our indentation. What would come out with another meaning is refused, not written.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.emitter import RoundTripEmitter
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.resolver import VersionedResolver

from reconciler.model.manifest import Path
from reconciler.model.problem import Position, Problem, Rejected
from reconciler.model.value import Json
from reconciler.project.yaml import emit
from reconciler.project.yaml import reader as yaml

ORDER: Final = ("kind", "name", "for_each", "id", "ensure", "moved", "lifecycle", "deliver", "rotate", "spec")
_WIDTH: Final = 1 << 20  # lines are never folded: a folded text reads differently in a diff
_MARKER: Final = re.compile(r"---(\s+#.*|\s*)")
_MODELINE: Final = re.compile(r"#\s*yaml-language-server\s*:.*\$schema=\S+.*")
SCHEMAS: Final = ".schemas"  # below the project's root: what `init` and `schema --all` write for editors
_END: Final = re.compile(r"^\.\.\.\n\Z", re.MULTILINE)  # ruamel.yaml ends a text with `|+` so
_ROUNDS: Final = 4  # a comment may settle only when written again


class _TextScalars(VersionedResolver):
    """Takes every unquoted scalar for text, so that it is written as it was: ruamel.yaml would round large numbers."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is ScalarNode and value:
            return self.DEFAULT_SCALAR_TAG
        return super().resolve(kind, value, implicit)


class _EscapingEmitter(RoundTripEmitter):
    """In double quotes what cannot be seen is spelt out: it may turn the text around it, or pass for nothing."""

    def write_double_quoted(self, text: Any, split: Any = True) -> None:
        self.write_indicator(emit.quote(str(text)), need_whitespace=True)


def format_text(text: str, file: str) -> str:
    """The canonical text of a manifest file. Rejected if the file has problems, or cannot be laid out safely."""
    before = yaml.read(text.encode(), file)
    if before.problems:
        raise Rejected(before.problems)
    laid_out = _format_once(text, file)
    for _ in range(_ROUNDS):
        if (lost := _find_loss(before, text, laid_out, file)) is not None:
            raise Rejected([lost])
        again = _format_once(laid_out, file)
        if again == laid_out:
            return laid_out
        laid_out = again
    raise Rejected([_cannot_format(file)])


def _find_loss(before: yaml.Reading, text: str, laid_out: str, file: str) -> Problem | None:
    """What the text says and would not say any more."""
    after = yaml.read(laid_out.encode(), file)
    # Nothing between two `---` says nothing; the order of keys means nothing.
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
    kept = _comments(laid_out)
    if kept == _comments(text):
        return None
    for number, line in enumerate(text.splitlines(), 1):
        for comment in _comments(line):
            if comment not in kept:
                where = Position(file, number, 1)
                remedy = "move it above the key"
                return Problem(
                    "cannot be formatted without losing this comment", remedy, "", where, code="cannot-format"
                )
            kept.remove(comment)
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
    pieces = [_document(piece, file) for piece in _documents(text, file)]
    return "---\n".join(piece for piece in pieces if piece)


def add_modeline(text: str, schema: str) -> str:
    """The text with the line that tells editors its schema, on top of each document without one: the language server
    takes it to be about one document only."""
    line = f"# yaml-language-server: $schema={schema}\n"
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    pieces = re.split(r"^(---[ \t]*(?:[ \t]#.*)?\n)", text.removeprefix(mark), flags=re.MULTILINE)
    bodies = pieces[::2]
    have_modeline = [any(_MODELINE.fullmatch(line.strip()) for line in body.splitlines()) for body in bodies]
    if len(bodies) > 1 and all(not line.strip() or line.startswith("#") for line in bodies[0].splitlines()):
        have_modeline[:2] = [
            True,
            have_modeline[0] or have_modeline[1],
        ]  # what comes before the first --- is about what follows it
    pieces[::2] = [body if has_one else line + body for body, has_one in zip(bodies, have_modeline, strict=True)]
    return mark + "".join(pieces)


def _documents(text: str, file: str) -> list[str]:
    """The text between the `---` lines. Other marks of documents and directives are not ours to move."""
    lines = text.replace("\r\n", "\n").removeprefix("\ufeff").splitlines(keepends=True)
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
    """Lines that begin a document. A `---` within a text is indented, or else libyaml would not have read it."""
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
    if rest and _MODELINE.fullmatch(first.rstrip()):
        return f"{first.rstrip()}\n{_document(rest, file)}"  # it is about the document, not about the key below it
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
        writer.dump(writer.load(text), out)
    except YAMLError:
        raise Rejected([_cannot_format(file)]) from None
    return _END.sub("", out.getvalue()).strip("\n") + "\n"


def _reorder(text: str, file: str) -> str:
    """The same document with the keys of a block map in our order, each with the comments right above it."""
    reading = yaml.read(text.encode(), file)
    if len(reading.documents) != 1 or not isinstance(reading.documents[0].value, dict):
        return text
    document = reading.documents[0]
    begins = [(document.places.key((key,)), key) for key in document.value]
    if not begins or any(where.column != 1 for where, _ in begins):
        return text
    lines = text.splitlines(keepends=True)
    first_lines = [_first_comment(lines, where.line - 1) for where, _ in begins]
    end = len(lines)
    while end > begins[-1][0].line and (lines[end - 1].startswith("#") or not lines[end - 1].strip()):
        end -= 1  # comments behind the last value stay behind
    ends = [*first_lines[1:], end]
    pieces = {key: lines[start:stop] for (_, key), start, stop in zip(begins, first_lines, ends, strict=True)}
    keys = sorted(pieces, key=lambda key: ORDER.index(key) if key in ORDER else len(ORDER))
    if keys == list(pieces):
        return text
    body = "".join("".join(pieces[key]) for key in keys)
    return "".join(lines[: first_lines[0]]) + body + "".join(lines[end:])


def _first_comment(lines: list[str], line: int) -> int:
    """The first of the unindented comment lines right above a line."""
    while line > 0 and lines[line - 1].startswith("#"):
        line -= 1
    return line


def _comments(text: str) -> list[str]:
    """The comments, whatever their order. Of text that looks like one this holds as well."""
    return sorted(match[1].rstrip() for match in re.finditer(r"(?:^|(?<=\s))(#.*)$", text, re.MULTILINE))


def _differences(old: Json, new: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    """What is another value, or one of another type: 1, 1.0 and true differ. The order of keys means nothing."""
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
