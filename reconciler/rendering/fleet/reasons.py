"""Failure reasons without what differs between members, so that one error of 800 members is one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from reconciler.model.fleet import Member, TaskRecord, TaskState
from reconciler.rendering.terminal_text import ELLIPSIS, sanitize

NAMED = 3  # members that a line names
_SHORTEST = 3  # characters of a variable's value that is replaced: shorter ones occur by chance
# Ids of objects and operations, UUIDs, digests, times and numbers. Codes (`ERR_NGROK_413`) and statuses are kept.
_VARYING = re.compile(
    r"(?P<kept>\bstatus [0-9]{3}\b|\bERR_[A-Z0-9_]+|\$\{\{ [^}]* \}\})"
    r"|\b[a-z][a-z0-9]*_[A-Za-z0-9]{8,}\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b(?=[a-z]*[0-9])[0-9a-f]{8,}\b"
    r"|\b[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z| UTC)?"
    r"|(?<![A-Za-z_])[0-9]+(?:[.:][0-9]+)*"
    rf"|{ELLIPSIS}"
)


class Pattern(Struct, frozen=True):
    """A reason in which `…` stands for each of `parts`, in order."""

    text: str
    parts: tuple[str, ...] = ()


class ReasonRow(Struct, frozen=True):
    """A distinct reason why tasks did not succeed.

    state    of these tasks
    members  how many members have it
    first    the first of them
    tasks    how many tasks have it
    """

    state: TaskState
    text: str
    members: int
    first: tuple[str, ...]
    tasks: int


def abstract(reason: str, member: str, known: Member | None) -> Pattern:
    """The reason on one line. Names of members, values of their variables, ids and numbers are parts."""
    text = sanitize(reason)
    if not text:
        return Pattern("")
    pieces, parts, place = [], [], 0
    for start, end in sorted(_find_varying(text, member, known), key=lambda span: (span[0], -span[1])):
        if start >= place:
            pieces.append(text[place:start])
            parts.append(text[start:end])
            place = end
    return Pattern(ELLIPSIS.join([*pieces, text[place:]]), tuple(parts))


def abstract_numbers(text: str) -> str:
    """The text with `…` for ids, times and numbers. Names of variables (`${{ var.NAME }}`) are kept."""
    return _VARYING.sub(lambda match: match[0] if match["kept"] else ELLIPSIS, text)


def _find_varying(text: str, member: str, known: Member | None) -> Iterator[tuple[int, int]]:
    """Places in a text that differ between members; they may overlap."""
    for own in _texts(member, known):
        start = text.find(own)
        while start >= 0:
            end = start + len(own)
            if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
                yield start, end
            start = text.find(own, end)
    for match in _VARYING.finditer(text):
        if not match["kept"]:
            yield match.span()


def _texts(member: str, known: Member | None) -> Iterator[str]:
    """The name of a member, and the values of its variables that are texts."""
    yield sanitize(member)
    for value in known.variables.values() if known is not None else ():
        if isinstance(value, str) and len(value) >= _SHORTEST:
            yield sanitize(value)


class _Group(Struct):
    first: list[str] = field(default_factory=list)
    last: str = ""
    members: int = 0
    tasks: int = 0


_ORDER = (TaskState.FAILED, TaskState.BLOCKED, TaskState.STALE, TaskState.SKIPPED)


def group_reasons(tasks: Iterable[tuple[TaskRecord, Pattern]]) -> tuple[ReasonRow, ...]:
    """Each distinct reason once: failures first, then by number of members. `tasks` are in the order of members."""
    groups: dict[tuple[TaskState, str], _Group] = {}
    for task, pattern in tasks:
        if task.state not in _ORDER:
            continue
        group = groups.setdefault((task.state, pattern.text), _Group())
        group.tasks += 1
        if task.member != group.last or not group.members:
            group.last = task.member
            group.members += 1
            if len(group.first) < NAMED:
                group.first.append(task.member)
    rows = (
        ReasonRow(state, text, group.members, tuple(group.first), group.tasks)
        for (state, text), group in groups.items()
    )
    return tuple(sorted(rows, key=lambda row: (_ORDER.index(row.state), -row.members, row.text)))
