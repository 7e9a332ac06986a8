"""Problems (errors, warnings and notes) and findings: what is wrong, where, and what to do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import Final

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from reconciler.model.value import Json

LONGEST_QUOTE: Final = 120  # characters of user text that a message quotes
_LONGEST: Final = 2_000  # characters of a message, such as one that lists a long circular reference
_LONGEST_SUBJECT: Final = 300
_MOST_ITEMS: Final = 100  # of a list in `values`
_MOST_NAMES: Final = 3  # of resources with the same problem
_LONG: Final = re.compile(rf"(?<!\w)(['\"])(?:(?!\1)[^\\]|\\.){{{LONGEST_QUOTE},}}\1|\S{{{LONGEST_QUOTE},}}", re.DOTALL)


class Position(Struct, frozen=True, order=True):
    """A place in a file below the project's root: line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"  # information that does not affect the exit code


class _Coded(Struct, frozen=True, kw_only=True):
    """The code of a problem or finding, and the values in its text. Both are passed as keyword arguments."""

    code: str
    values: Mapping[str, Json] = field(default_factory=dict)

    def __hash__(self) -> int:  # without `values`: a dict has no hash
        return hash(tuple(getattr(self, name) for name in self.__struct_fields__ if name != "values"))


class Problem(_Coded, frozen=True):
    """One error, warning or note. As text: `file:line:column: Kind/name.field: what is wrong; what to do`.

    rule       the policy that reported it; empty if the program did
    code       the stable name of the type of problem, such as `literal-secret`, for scripts
    values     the names and numbers in the text, never a secret
    confined   only the subject is not applied; the rest of the plan is
    """

    text: str
    remedy: str = ""
    subject: str = ""
    position: Position | None = None
    severity: Severity = Severity.ERROR
    rule: str = ""
    confined: bool = False

    def __post_init__(self) -> None:
        if len(self.text) + len(self.remedy) + len(self.subject) > LONGEST_QUOTE:
            force_setattr(self, "text", shorten(self.text))
            force_setattr(self, "remedy", shorten(self.remedy))
            force_setattr(self, "subject", shorten(self.subject, _LONGEST_SUBJECT))
        if self.values:
            force_setattr(self, "values", {name: _cut_value(value) for name, value in self.values.items()})

    def __str__(self) -> str:
        where = f"{self.position}: " if self.position else ""
        mark = "" if self.severity is Severity.ERROR else f"{self.severity}: "
        subject = f"{self.subject}: " if self.subject else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{where}{mark}{subject}{self.text}{remedy}"

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


def select_problems(problems: Sequence[Problem], most: int) -> Sequence[Problem]:
    """At most this many problems in their order, warnings and notes left out first."""
    if len(problems) <= most:
        return problems
    ranked = sorted(enumerate(problems), key=lambda item: list(Severity).index(item[1].severity))
    return [problem for _, problem in sorted(ranked[:most], key=lambda item: item[0])]


def merge_repeated(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, with one for all resources that one place in a file makes wrong, as the instances of a manifest."""
    problems = list(problems)
    counts = Counter(problem.position for problem in problems)
    groups: dict[object, list[Problem]] = {}
    for number, problem in enumerate(problems):
        kind, slash, name = problem.subject.partition("/")
        key: object = number
        if problem.position is not None and slash and counts[problem.position] > 1:
            own = re.escape(name.partition(".")[0])
            text = re.sub(rf"(?<![\w-]){own}(?![\w-])", "*", problem.text) if own else problem.text
            key = (problem.position, problem.severity, problem.code, problem.rule, kind, text)
        groups.setdefault(key, []).append(problem)
    return [problem for group in groups.values() for problem in _merge(group)]


def _merge(group: Sequence[Problem]) -> Iterator[Problem]:
    first, names = group[0], list(dict.fromkeys(problem.subject.partition("/")[2] for problem in group))
    if len(names) == 1:
        yield from group
        return
    ends = takewhile(
        lambda part: len(set(part)) == 1, zip(*(reversed(name.split(".")) for name in names), strict=False)
    )
    path = "".join(f".{part[0]}" for part in reversed(list(ends)))  # the same field in each resource
    listed = ", ".join(name.removesuffix(path) for name in names[:_MOST_NAMES]) + ", …" * (len(names) > _MOST_NAMES)
    for problem in group:
        if problem.subject == first.subject:
            yield replace(problem, text=f"{problem.text} ({len(names)} resources: {listed})")


def cut(text: str) -> str:
    """Text of the user for use in a message without quotation marks: on one line, up to `LONGEST_QUOTE` characters."""
    text = " ".join(text[: 10 * LONGEST_QUOTE].splitlines())
    return text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 1]}…"


def _cut_value(value: Json) -> Json:
    """A name, a number, or a list of these, with long texts and lists cut."""
    if isinstance(value, list):
        return [_cut_value(item) for item in value[:_MOST_ITEMS]]
    return cut(value) if isinstance(value, str) else value


def shorten(text: str, longest: int = _LONGEST) -> str:
    """A message with long quotations and words cut to `LONGEST_QUOTE`, and the whole to `longest` characters."""
    if len(text) <= LONGEST_QUOTE:
        return text
    text = _LONG.sub(lambda found: f"{found[0][: LONGEST_QUOTE - 2]}…{found[1] or ''}", text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


class Finding(_Coded, frozen=True):
    """A violated rule in a declaration. `path` is the path of the invalid value in the spec.

    If the value is a text that contains a document, `within` is the path inside that document. `spot` is the line and
    column in the text, counted from 1.
    """

    path: tuple[str | int, ...]
    text: str
    remedy: str = ""
    severity: Severity = Severity.ERROR
    within: tuple[str | int, ...] = ()
    spot: tuple[int, int] | None = None
    is_key: bool = False  # about the last key of the path, not about its value


class ReconcilerError(Exception):
    """The base class of every exception that the Python API raises."""


class Rejected(ReconcilerError):
    """Raised for invalid input, with all of its problems."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
