"""Reads the members of a fleet: a list in the fleet file, or a file with CSV, JSON or YAML.

The columns of CSV are `name`, `labels.NAME` and `variables.NAME`; the first line has their names. JSON and YAML have a
list of `{name, labels, variables}`. Every problem has a position: in CSV, the line of its member.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path as Folder
from pathlib import PurePosixPath
from typing import Any, Final

from msgspec import Struct, field

from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.errors import MAX_BYTES, bytes_problem
from reconciler.languages.yaml.positions import Places
from reconciler.languages.yaml.scalars import plain
from reconciler.model.fields.field import fields_of
from reconciler.model.fields.form import Form
from reconciler.model.fleet import Member
from reconciler.model.problem import Finding, Position, Problem, Severity, cut
from reconciler.model.suggestions import closest
from reconciler.model.value import Json
from reconciler.project import files
from reconciler.project.documents import phrases, validation
from reconciler.project.documents.resolve import SECRET_NAME
from reconciler.project.fleets.fleet_file import MemberEntry

MAX_MEMBERS: Final = 100_000
FORMATS: Final = (".csv", ".json", ".yaml", ".yml")
PATH_RULE: Final = "write the path of a file below the folder of the fleet file, relative to it"
_MAX_PROBLEMS: Final = 100
_COLUMNS: Final = ("name", "labels.", "variables.")
_COLUMN_RULE: Final = "name columns `name`, `labels.NAME` or `variables.NAME`"
_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"')  # in JSON
_ESCAPE: Final = re.compile(r"\\(?:(ud[89ab]..\\ud[c-f]..)|.)", re.IGNORECASE)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class MemberList(Form):
    """The members, as the fleet file has them under `members`."""

    members: list[MemberEntry]


class MemberReading(Struct):
    """Members as they are written, with what is wrong.

    locate     the position of a finding, whose path begins with `members` and the index of the member
    positions  of each member
    """

    entries: list[Any] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    locate: Callable[[Finding], Position] | None = None
    positions: Sequence[Position] = ()
    is_inline: bool = False


def read_inline(entries: Json, places: Places) -> MemberReading:
    """The list in the fleet file."""
    if not isinstance(entries, list):
        text = f"expected a list or the name of a file, found {phrases.describe_found(entries)}"
        remedy = "write a list, as in [{name: shop-1}], or the name of a file, as in members.csv"
        problem = Problem(text, remedy, "members", places.nearest(("members",)), code="wrong-type")
        return MemberReading(problems=[problem])
    positions = places.items_of(("members",))
    return MemberReading(
        entries, locate=lambda finding: _locate(places, finding, 0), positions=positions, is_inline=True
    )


def read_member_file(folder: Folder, file: str, where: Position) -> MemberReading:
    """A file with members; `where` is the position of its name. `file` is relative to `folder`."""
    suffix = PurePosixPath(file).suffix.lower()
    if suffix not in FORMATS:
        remedy = f"use a file whose name ends in {phrases.join_words(FORMATS)}"
        problem = Problem(f"{cut(file)} has an unknown format", remedy, "members", where, code="invalid-value")
        return MemberReading(problems=[problem])
    try:
        text = files.read(folder, files.path_inside(file), MAX_BYTES)
    except files.Unreadable as wrong:
        return MemberReading(problems=[Problem(str(wrong), PATH_RULE, "members", where, code=wrong.code)])
    if suffix in (".yaml", ".yml"):
        return _read_yaml(text, file)
    if (wrong_bytes := bytes_problem(text, file)) is not None:
        return MemberReading(problems=[wrong_bytes])
    decoded = text.decode("utf-8-sig")
    return _read_csv(decoded, file) if suffix == ".csv" else _read_json(decoded, file)


def build_members(reading: MemberReading) -> tuple[dict[str, Member], list[Problem]]:
    """The valid members by name, and every problem with them, including warnings."""
    problems = list(reading.problems)
    if reading.locate is None:
        return {}, problems
    if len(reading.entries) > MAX_MEMBERS:
        finding = Finding(("members", MAX_MEMBERS), f"more than {MAX_MEMBERS:,} members", code="limit-exceeded")
        return {}, [*problems, _problem(reading, finding, "split the fleet")]
    form, findings = _validate(reading.entries)
    members: dict[str, Member] = {}
    first: dict[str, int] = {}
    for index, entry in enumerate(form.members if form else ()):
        if entry.name in members:
            findings.append(_report_duplicate(reading, entry.name, first[entry.name], index))
            continue
        first[entry.name] = index
        members[entry.name] = Member(entry.name, entry.labels, entry.variables, reading.positions[index])
        if entry.variables:
            findings += _check_variables(entry.variables, ("members", index, "variables"))
    findings += _find_secrets(members.values(), first)
    problems += [_problem(reading, finding) for finding in findings[:_MAX_PROBLEMS]]
    if len(findings) > _MAX_PROBLEMS:
        position = reading.locate(findings[_MAX_PROBLEMS])
        text = f"more than {_MAX_PROBLEMS} problems with members"
        problems.append(Problem(text, "correct the others first", "", position, code="too-many-problems"))
    return members, problems


def _validate(entries: list[Any]) -> tuple[MemberList | None, list[Finding]]:
    written = {"members": entries}
    found = MemberList.model_try(written)
    if isinstance(found, MemberList):
        return found, []
    return None, validation.problems_of(found, written, fields_of(MemberList))


def _problem(reading: MemberReading, finding: Finding, remedy: str = "") -> Problem:
    assert reading.locate is not None
    subject = phrases.format_path(finding.path if reading.is_inline else finding.path[2:])
    return Problem(
        finding.text,
        remedy or finding.remedy,
        subject,
        reading.locate(finding),
        finding.severity,
        code=finding.code,
        values=finding.values,
    )


def _report_duplicate(reading: MemberReading, name: str, first: int, second: int) -> Finding:
    assert reading.locate is not None
    where = reading.locate(Finding(("members", first, "name"), "", code="duplicate-member"))
    text = f"duplicate member {name}, first at line {where.line}"
    return Finding(("members", second, "name"), text, "rename one of the two, or remove it", code="duplicate-member")


def _check_variables(variables: Mapping[str, Json], path: tuple[str | int, ...]) -> Iterator[Finding]:
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name):
            text = f"{cut(repr(name))} is not a valid variable name"
            remedy = "use letters, digits, '_' and '-', beginning with a letter"
            yield Finding((*path, name), text, remedy, code="invalid-name")
        elif value is None:
            remedy = "remove the line to keep the project's value"
            yield Finding((*path, name), "expected a value, found nothing", remedy, code="wrong-type")
        elif isinstance(value, dict) and len(value) == 1 and next(iter(value)) in phrases.EXPRESSIONS:
            text = f"expected a value, found {phrases.describe_found(value)}"
            remedy = "write the value, or read the secret in the project's manifests"
            yield Finding((*path, name), text, remedy, code="invalid-expression")


def _find_secrets(members: Any, first: Mapping[str, int]) -> Iterator[Finding]:
    """A warning for each variable that is named like a secret: the values of members are in plain text."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for member in members:
        counts.update(member.variables.keys())
        for name in member.variables:
            examples.setdefault(name, member.name)
    for name, count in counts.items():
        if SECRET_NAME.search(name):
            whom = "of 1 member" if count == 1 else f"of {count} members"
            text = f"{cut(name)} {whom} is named like a secret and is written here in plain text"
            remedy = "read secrets with {from_env: NAME} or {from_file: PATH} in the manifests, or rename the variable"
            path = ("members", first[examples[name]], "variables", name)
            yield Finding(path, text, remedy, Severity.WARNING, code="literal-secret")


def _locate(places: Places, finding: Finding, strip: int) -> Position:
    path = finding.path[strip:]
    return places.key(path) if finding.is_key and path in places else places.nearest(path)


# --- files ------------------------------------------------------------------------------------------------------------


def _read_yaml(text: bytes, file: str, dialect: yaml.Dialect = yaml.MANIFEST) -> MemberReading:
    reading = yaml.read(text, file, dialect)
    if reading.problems:
        return MemberReading(problems=reading.problems)
    if len(reading.documents) != 1:
        problem = f"expected one document, found {len(reading.documents)}"
        return _reject(problem, "write one list of members", Position(file, 1, 1), "several-documents")
    document = reading.documents[0]
    if not isinstance(document.value, list):
        return _report_not_a_list(document.value, Position(file, 1, 1))
    places = document.places
    positions = places.items_of(())
    return MemberReading(document.value, locate=lambda finding: _locate(places, finding, 1), positions=positions)


def _read_json(text: str, file: str) -> MemberReading:
    """Checks the syntax of JSON, and reads it as YAML, which reports all else with a position."""
    try:
        json.loads(text, parse_int=str)  # not as int, which may refuse to convert it
    except json.JSONDecodeError as error:
        where = Position(file, error.lineno, error.colno)
        return _reject(f"invalid JSON: {error.msg}", "correct the file at this position", where, "invalid-json")
    except RecursionError:
        pass  # the YAML reader refuses it, with a position
    if "\\ud" in text.lower():
        text = _TEXT.sub(_join_surrogates, text)
    return _read_yaml(text.encode(), file, _JSON)


def _join_surrogates(found: re.Match[str]) -> str:
    """A quoted text with each pair of surrogates as one character. Spaces keep the columns of what follows."""
    text = found[0]
    return _ESCAPE.sub(lambda pair: json.loads(f'"{pair[0]}"') if pair[1] else pair[0], text).ljust(len(text))


def _read_unquoted(text: str) -> Json:
    if (value := plain(text)) is text:
        raise ValueError(f"{text} is not a number of JSON")
    return value


_JSON: Final = yaml.Dialect(plain=_read_unquoted, values=MAX_BYTES)


def _read_csv(text: str, file: str) -> MemberReading:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    reading = MemberReading(locate=lambda finding: _line_of(finding, positions))
    positions: list[Position] = []
    columns: list[tuple[str, str]] | None = None
    try:
        start = 1
        for row in reader:
            here, start = Position(file, start, 1), reader.line_num + 1
            if not any(row):
                continue
            if columns is None:
                columns = _read_header(row, here, reading.problems)
                if reading.problems:
                    return MemberReading(problems=reading.problems)
            elif len(row) != len(columns):
                reading.problems.append(_report_length(len(row), len(columns), here))
            elif any(cell.strip() and not section for (section, _), cell in zip(columns, row, strict=True)):
                remedy = "name the column in the first line, or remove the cell"
                reading.problems.append(Problem("a column has no name", remedy, "", here, code="invalid-csv"))
            else:
                reading.entries.append(_read_row(row, columns))
                positions.append(here)
            if len(reading.problems) >= _MAX_PROBLEMS:
                break
    except csv.Error as error:
        remedy = "quote a cell that contains a comma, a line break or quotes, and double the quotes inside"
        return _reject(f"invalid CSV: {error}", remedy, Position(file, max(reader.line_num, 1), 1), "invalid-csv")
    if columns is None:
        return _reject("expected a header, found an empty file", _COLUMN_RULE, Position(file, 1, 1), "invalid-csv")
    reading.positions = positions
    return reading


def _read_header(row: list[str], where: Position, problems: list[Problem]) -> list[tuple[str, str]]:
    """The columns as pairs such as `("labels", "tier")`, two empty texts without a name. Adds to `problems`."""
    columns: list[tuple[str, str]] = []
    if len(row) == 1 and ";" in row[0]:
        problems.append(
            Problem("columns are separated with ';'", "save the file with commas", "", where, code="invalid-csv")
        )
        return columns
    for cell in (cell.strip() for cell in row):
        section, dot, name = cell.partition(".")
        if not cell:  # spreadsheets write empty columns at the end
            columns.append(("", ""))
            continue
        if cell != "name" and not (dot and name and f"{section}." in _COLUMNS):
            remedy = f"write labels.{cell} or variables.{cell}" if _VARIABLE.fullmatch(cell) else _COLUMN_RULE
            if (meant := closest(section, ("name", "labels", "variables"))) and (dot or meant == "name"):
                remedy = f"did you mean {meant}{dot}{name}?"
            text = f"unknown column {cut(repr(cell))}"
            problems.append(Problem(text, remedy, "", where, code="unknown-field", values={"field": cut(cell)}))
        elif (section, name) in columns:
            text = f"duplicate column {cut(repr(cell))}"
            problems.append(Problem(text, "remove one of the two", "", where, code="duplicate-key"))
        columns.append((section, name))
    if ("name", "") not in columns and not problems:
        problems.append(Problem("there is no column `name`", _COLUMN_RULE, "", where, code="missing-field"))
    return columns


def _read_row(row: list[str], columns: list[tuple[str, str]]) -> dict[str, Json]:
    """A member. Empty cells set nothing."""
    labels: dict[str, str] = {}
    variables: dict[str, str] = {}
    entry: dict[str, Any] = {"name": "", "labels": labels, "variables": variables}
    for (section, name), cell in zip(columns, row, strict=True):
        if section == "name":
            entry["name"] = cell.strip()
        elif text := cell.strip():
            (labels if section == "labels" else variables)[name] = text
    return entry


def _report_length(found: int, expected: int, where: Position) -> Problem:
    cells = "1 cell" if found == 1 else f"{found} cells"
    remedy = "write one cell for each column of the first line, and quote cells that contain a comma"
    return Problem(f"expected {expected} cells, found {cells}", remedy, "", where, code="invalid-csv")


def _line_of(finding: Finding, positions: Sequence[Position]) -> Position:
    _, index, *_ = finding.path
    assert isinstance(index, int), "the first part is `members`, and the second the place in the list"
    return positions[index]


def _report_not_a_list(value: Json, where: Position) -> MemberReading:
    text = f"expected a list of members, found {phrases.describe_found(value)}"
    return _reject(text, "write a list of {name, labels, variables}", where, "wrong-type")


def _reject(text: str, remedy: str, where: Position, code: str) -> MemberReading:
    return MemberReading(problems=[Problem(text, remedy, "", where, code=code)])
