"""Failure reasons without what differs between members, so that one error of 800 members is one line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct, field

from reconciler import kinds
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
    r"|(?<![A-Za-z0-9_])[0-9]+(?:[.:][0-9]+)*"
    rf"|{ELLIPSIS}"
)
_ADDRESS = re.compile(r"\b([A-Z][A-Za-z0-9]*)/([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?)")


class Pattern(Struct, frozen=True):
    """A reason in which `…` stands for each of `parts`, in order. `names`: which of these are names of resources."""

    text: str
    parts: tuple[str, ...] = ()
    names: frozenset[int] = frozenset()

    @property
    def with_names(self) -> str:
        """The reason with the names of resources."""
        return self.fill({place: self.parts[place] for place in self.names})

    def fill(self, texts: Mapping[int, str]) -> str:
        """The reason with these texts in place of parts."""
        first, *rest = self.text.split(ELLIPSIS)
        return first + "".join(f"{texts.get(place, ELLIPSIS)}{piece}" for place, piece in enumerate(rest))


class ReasonRow(Struct, frozen=True):
    """A distinct reason why tasks did not succeed.

    state    of these tasks
    text     with the names of resources that differ between the tasks: `TLSEdge/e10, e12: …`
    pattern  the text with `…` for each of these names too
    members  how many members have it
    first    the first of them
    tasks    how many tasks have it
    """

    state: TaskState
    text: str
    pattern: str
    members: int
    first: tuple[str, ...]
    tasks: int


def abstract(reason: str, member: str, known: Member | None) -> Pattern:
    """The reason on one line. Names of resources and members, values of variables, ids and numbers are parts."""
    text = sanitize(reason)
    if not text:
        return Pattern("")
    names = {found.span(2) for found in _ADDRESS.finditer(text) if kinds.find(found[1]) is not None}
    varying = [span for span in _find_varying(text, member, known) if not _is_inside(span, names)]
    pieces, spans, place = [], [], 0
    for start, end in sorted([*names, *varying], key=lambda span: (span[0], -span[1])):
        if start >= place:
            pieces.append(text[place:start])
            spans.append((start, end))
            place = end
    return Pattern(
        ELLIPSIS.join([*pieces, text[place:]]),
        tuple(text[start:end] for start, end in spans),
        frozenset(number for number, span in enumerate(spans) if span in names),
    )


def _is_inside(span: tuple[int, int], names: Collection[tuple[int, int]]) -> bool:
    """Whether a part belongs to the name of a resource, which is kept whole."""
    return any(start < span[1] and span[0] < end for start, end in names)


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
    names: dict[int, dict[str, None]] = field(default_factory=dict)  # of resources, by the number of the part

    def add(self, task: TaskRecord, pattern: Pattern) -> None:
        self.tasks += 1
        for number in pattern.names:
            self.names.setdefault(number, {})[pattern.parts[number]] = None
        if task.member != self.last or not self.members:
            self.last = task.member
            self.members += 1
            if len(self.first) < NAMED:
                self.first.append(task.member)


_ORDER = (TaskState.FAILED, TaskState.BLOCKED, TaskState.STALE, TaskState.SKIPPED)


def group_reasons(tasks: Iterable[tuple[TaskRecord, Pattern]]) -> tuple[ReasonRow, ...]:
    """Each distinct reason once: failures first, then by number of members. `tasks` are in the order of members."""
    groups: dict[tuple[TaskState, str], _Group] = {}
    for task, pattern in tasks:
        if task.state in _ORDER:
            groups.setdefault((task.state, pattern.text), _Group()).add(task, pattern)
    rows = (
        ReasonRow(
            state,
            Pattern(text).fill({number: _list_names(list(names)) for number, names in group.names.items()}),
            text,
            group.members,
            tuple(group.first),
            group.tasks,
        )
        for (state, text), group in groups.items()
    )
    return tuple(sorted(rows, key=lambda row: (_ORDER.index(row.state), -row.members, row.text)))


def _list_names(names: list[str]) -> str:
    """`e10, e12`; of many `e10, e12, e13 and 9 more`"""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
