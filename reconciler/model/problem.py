"""What is wrong, where, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from reconciler.model.value import Json

LONGEST_QUOTE: Final = 120  # characters of the user's text that a message repeats
_LONGEST: Final = 2_000  # characters of a message, such as one that names the members of a long ring
_LONGEST_SUBJECT: Final = 300
_MOST_ITEMS: Final = 100  # of a list beside the text
_LONG: Final = re.compile(rf"(?<!\w)(['\"])(?:(?!\1)[^\\]|\\.){{{LONGEST_QUOTE},}}\1|\S{{{LONGEST_QUOTE},}}", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file below the project's root: line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"  # good to know: it has no say in how a command ends


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding, on one line: `file:line:column: Kind/name.field: what is wrong; what to do`.

    `rule` is the policy that is broken, where it is not the program itself that objects. `code` is a stable, readable
    name for this sort of problem (`literal-secret`), which scripts may rely on, and `values` are the names and numbers
    that the text tells, never a secret. `confined`: only the subject is left as it is, and the rest of the plan is
    applied.
    """

    text: str
    remedy: str = ""
    subject: str = ""
    position: Position | None = None
    severity: Severity = Severity.ERROR
    rule: str = ""
    code: str = field(kw_only=True)
    values: Mapping[str, Json] = field(default_factory=dict, hash=False, kw_only=True)
    confined: bool = False

    def __post_init__(self) -> None:
        if len(self.text) + len(self.remedy) + len(self.subject) > LONGEST_QUOTE:
            object.__setattr__(self, "text", shorten(self.text))
            object.__setattr__(self, "remedy", shorten(self.remedy))
            object.__setattr__(self, "subject", shorten(self.subject, _LONGEST_SUBJECT))
        if self.values:
            object.__setattr__(self, "values", {name: _cut_value(each) for name, each in self.values.items()})

    def __str__(self) -> str:
        where = f"{self.position}: " if self.position else ""
        mark = "" if self.severity is Severity.ERROR else f"{self.severity}: "
        subject = f"{self.subject}: " if self.subject else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{where}{mark}{subject}{self.text}{remedy}"

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


def cut(text: str) -> str:
    """The user's text as a message repeats it without quotation marks: on one line."""
    text = " ".join(text[: 10 * LONGEST_QUOTE].splitlines())
    return text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 1]}…"


def _cut_value(value: Json) -> Json:
    """Names and numbers, and short lists of them."""
    if isinstance(value, list):
        return [_cut_value(each) for each in value[:_MOST_ITEMS]]
    return cut(value) if isinstance(value, str) else value


def shorten(text: str, longest: int = _LONGEST) -> str:
    """The message with long quotations and words cut to `LONGEST_QUOTE`, and all of it to `longest` characters."""
    if len(text) <= LONGEST_QUOTE:
        return text
    text = _LONG.sub(lambda found: f"{found[0][: LONGEST_QUOTE - 2]}…{found[1] or ''}", text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule within a declaration; `path` leads to the value that is wrong.

    Where that value is a text that is a document itself, `within` leads on from there; `spot` is the line and column,
    from 1, within the text that is reached.
    """

    path: tuple[str | int, ...]
    text: str
    remedy: str = ""
    severity: Severity = Severity.ERROR
    code: str = field(kw_only=True)  # as of a Problem
    values: Mapping[str, Json] = field(default_factory=dict, hash=False, kw_only=True)
    within: tuple[str | int, ...] = ()
    spot: tuple[int, int] | None = None
    is_key: bool = False  # whether it is about the last key of the path, and not about its value


class Rejected(Exception):
    """Input that cannot be worked with, as all its problems at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
