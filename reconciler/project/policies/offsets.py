"""Maps an offset in a text to its position in the YAML file that contains the text.

Supports plain, quoted, literal and folded texts. In any other case the position is the beginning of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from reconciler.languages.yaml import reader as yaml
from reconciler.model.problem import Finding, Position, Problem
from reconciler.model.value import Json, Value
from reconciler.project import files

_Placed = tuple[str, int, int]  # a character with its line and column, from 1


def place(lines: Sequence[str], start: Position, text: str, offset: int) -> Position:
    """The position of the character at an offset. `lines`: of the file; `start`: position of the text's scalar."""
    characters = list(_characters(lines, start))
    content = "".join(placed[0] for placed in characters)
    if content.rstrip() != text.rstrip() or not characters:
        return start
    _, line, column = characters[min(offset, len(characters) - 1)]
    return Position(start.file, line, column + max(0, offset - len(characters) + 1))


def pinpoint(problem: Problem, finding: Finding, written: Value, text: Value, sources: Mapping[str, bytes]) -> Problem:
    """Moves the problem of a finding with a `spot`, or `within` a text, to its exact position.

    `problem` has the position of the value `written`, which is resolved to `text`; `sources` are contents of files. If
    the position in the file is unknown, the message names the position in the text.
    """
    start = problem.position
    if start is None or not isinstance(text, str) or not (finding.within or finding.spot):
        return problem
    at, is_exact = _locate(finding, text)
    if isinstance(written, Mapping):  # {from_file: path}
        file = files.path_inside(str(next(iter(written.values()), "")))
        if sources.get(file, b"").decode(errors="replace").rstrip("\r\n") == text.rstrip("\r\n"):
            return replace(problem, position=Position(file, at.line, at.column))
    lines = _lines(sources.get(start.file, b""))
    found = place(lines, start, text, offset(text, at.line, at.column))
    if found != start or (at.line, at.column) == (1, 1):
        return replace(problem, position=found) if is_exact else problem
    what = f"column {at.column}" if at.line == 1 else f"line {at.line}, column {at.column}"
    return replace(problem, text=f"{problem.text} ({what} of the text)")


def _locate(finding: Finding, text: str) -> tuple[Position, bool]:
    """The position of a finding within the text, and whether it is exact."""
    if not finding.within:
        return Position("", *(finding.spot or (1, 1))), True
    documents = yaml.read(text.encode(errors="surrogatepass"), "").documents
    if not documents:
        return Position("", 1, 1), False
    places = documents[0].places
    at = places.key(finding.within) if finding.is_key and finding.within in places else places.nearest(finding.within)
    if finding.spot is None:
        return at, True
    value: Json = documents[0].value
    for part in finding.within:
        value = value[part]
    if not isinstance(value, str):
        return at, True
    return place(_lines(text.encode(errors="surrogatepass")), at, value, offset(value, *finding.spot)), True


def _lines(text: bytes) -> list[str]:
    return text.decode(errors="replace").removeprefix("\ufeff").splitlines()


def offset(text: str, line: int, column: int) -> int:
    """The offset of a line and column, both from 1, in a text."""
    return sum(len(part) + 1 for part in text.split("\n")[: line - 1]) + column - 1


def _characters(lines: Sequence[str], start: Position) -> Iterator[_Placed]:
    first = lines[start.line - 1][start.column - 1 :] if start.line <= len(lines) else ""
    if first.startswith(("|", ">")):
        yield from _block(lines, start.line, folded=first.startswith(">"))
    elif first.startswith(("'", '"')):
        yield from _read_quoted(first, start)
    else:
        yield from ((sign, start.line, start.column + at) for at, sign in enumerate(first.partition(" #")[0].rstrip()))


def _read_quoted(first: str, start: Position) -> Iterator[_Placed]:
    """The characters of a quoted text on one line, with escaped quotes and backslashes."""
    quote, at = first[0], 1
    escape = "\\" if quote == '"' else "'"
    while at < len(first):
        step = 2 if first[at] == escape and first[at + 1 : at + 2] in (quote, escape) else 1
        if first[at] == quote and step == 1:
            return
        yield first[at + step - 1], start.line, start.column + at
        at += step


def _block(lines: Sequence[str], line: int, *, folded: bool) -> Iterator[_Placed]:
    """The characters of a block below `|` or `>`; of a folded one up to the first empty line."""
    indent = 0
    for number in range(line, len(lines)):
        text = lines[number]
        if text.strip():
            here = len(text) - len(text.lstrip(" "))
            indent = indent or here
            if here < indent or not indent:
                return
        elif folded or not indent:
            return
        yield from ((sign, number + 1, indent + 1 + at) for at, sign in enumerate(text[indent:]))
        yield (" " if folded else "\n"), number + 1, len(text) + 1
