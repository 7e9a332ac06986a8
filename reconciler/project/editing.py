"""`fmt`: one canonical layout for manifests. Text in, text out; comments stay, and so does the meaning.

Documents and their keys are moved as pieces of text, so that a comment goes with the key below it; ruamel.yaml then
writes each piece anew with our indentation. What would come out with another meaning is refused, not written.
"""

from __future__ import annotations

import io
import re
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.resolver import VersionedResolver

from reconciler.model.problem import Position, Problem, Rejected
from reconciler.project import yaml

ORDER: Final = ("kind", "name", "for_each", "id", "ensure", "moved", "lifecycle", "deliver", "rotate", "spec")
_WIDTH: Final = 1 << 20  # lines are never folded: a folded text reads differently in a diff
_MARKER: Final = re.compile(r"---(\s+#.*|\s*)")
_MODELINE: Final = re.compile(r"#\s*yaml-language-server\s*:.*\$schema=\S+.*")
SCHEMAS: Final = ".schemas"  # below the project's root: what `init` and `schema --all` write for editors
_ROUNDS: Final = 4  # a comment may settle only when written again


class _AsWritten(VersionedResolver):
    """Takes every unquoted scalar for text, so that it is written as it was: ruamel.yaml would round large numbers."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is ScalarNode and value:
            return self.DEFAULT_SCALAR_TAG
        return super().resolve(kind, value, implicit)


def fmt(text: str, file: str) -> str:
    """The canonical text of a manifest file. Rejected if the file has problems, or cannot be laid out safely."""
    before = yaml.read(text.encode(), file)
    if before.problems:
        raise Rejected(before.problems)
    laid_out = text
    for _ in range(_ROUNDS):
        again = _once(laid_out, file)
        if again == laid_out:
            break
        laid_out = again
    else:
        raise Rejected([_cannot(file)])
    after = yaml.read(laid_out.encode(), file)
    same_values = _meaning(after) == _meaning(before)
    if after.problems or not same_values or _comments(laid_out) != _comments(text):
        raise Rejected([_cannot(file)])
    return laid_out


def is_formatted(text: str, file: str) -> bool:
    return fmt(text, file) == text


def _cannot(file: str) -> Problem:
    where = Position(file, 1, 1)
    return Problem("cannot be laid out without losing something", "move comments to lines of their own", "", where)


def _once(text: str, file: str) -> str:
    pieces = [_document(piece, file) for piece in _documents(text, file)]
    return "---\n".join(piece for piece in pieces if piece)


def with_modeline(text: str, file: str, schema: str) -> str:
    """The text with the line that tells editors its schema, on top of each document without one: the language server
    takes it to be about one document only. `text` is laid out already, `file` is below the root."""
    line = f"# yaml-language-server: $schema={'../' * file.count('/')}{SCHEMAS}/{schema}.json\n"
    pieces = re.split(r"^---\n", text, flags=re.MULTILINE)
    told = (any(_MODELINE.fullmatch(each.strip()) for each in piece.splitlines()) for piece in pieces)
    return "---\n".join(piece if has_one else line + piece for piece, has_one in zip(pieces, told, strict=True))


def _documents(text: str, file: str) -> list[str]:
    """The text between the `---` lines. Other marks of documents and directives are not ours to move."""
    lines = text.replace("\r\n", "\n").removeprefix("\ufeff").splitlines(keepends=True)
    starts = _marker_lines(text, file)
    pieces: list[list[str]] = [[]]
    for number, line in enumerate(lines):
        if number not in starts:
            pieces[-1].append(line)
            continue
        if any(each.strip() for each in pieces[-1]):
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
            raise Rejected([Problem("directives and '...' cannot be laid out", "remove them", "", where)])
        if line.startswith("---"):
            if not _MARKER.fullmatch(line):
                where = Position(file, number + 1, 1)
                raise Rejected([Problem("text on the line of a '---'", "put it on the next line", "", where)])
            starts.add(number)
    return starts


def _document(text: str, file: str) -> str:
    text = text.strip("\n") + "\n"
    first, _, rest = text.partition("\n")
    if rest and _MODELINE.fullmatch(first.rstrip()):
        return f"{first.rstrip()}\n{_document(rest, file)}"  # it is about the document, not about the key below it
    text = _reordered(text, file)
    documents = yaml.read(text.encode(), file).documents
    if not documents or not isinstance(documents[0].value, (dict, list)):
        return text if text.strip() else ""
    writer = YAML()
    writer.Resolver = _AsWritten
    writer.preserve_quotes = True
    writer.width = _WIDTH
    writer.brace_single_entry_mapping_in_flow_sequence = True
    writer.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    try:
        writer.dump(writer.load(text), out)
    except YAMLError:
        raise Rejected([_cannot(file)]) from None
    return out.getvalue().strip("\n") + "\n"


def _reordered(text: str, file: str) -> str:
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


def _meaning(reading: yaml.Reading) -> list[object]:
    """What the file says; nothing between two `---` says nothing."""
    return [_shape(each.value) for each in reading.documents if each.value is not None]


def _shape(value: object) -> object:
    """The value with its types, so that 1, 1.0 and true differ; the order of keys means nothing."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return (type(value).__name__, value)
