"""The entry points that the members of a run change, each distinct change once with the number of members."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.access_change import Verdict
from reconciler.model.fleet import Member, TaskRecord
from reconciler.model.plan import Plan
from reconciler.model.value import Json
from reconciler.rendering.fleet.reasons import NAMED
from reconciler.rendering.plan.outline import AccessRow, build_outline
from reconciler.rendering.terminal_text import sanitize


class OpeningRow(Struct, frozen=True):
    """One change of entry points, the same in many members apart from values of their variables.

    access    what changes; `${{ var.NAME }}` stands for these values, except in the example and the causes
    members   how many members have it
    first     the first of them
    exemplar  the member of the example
    shapes    the digests of the plans with it: approving them approves it
    """

    access: AccessRow
    members: int
    first: tuple[str, ...]
    exemplar: str
    shapes: tuple[str, ...]


def group_openings(
    tasks: Iterable[TaskRecord],
    plans: Mapping[str, Plan],
    exemplars: Mapping[str, str],
    members: Mapping[str, Member],
) -> tuple[OpeningRow, ...]:
    """Each distinct change of entry points: the gravest first, then by number of members.

    plans      by shape: the plan that represents it
    exemplars  by shape: the member of that plan
    """
    with_shape: dict[str, list[str]] = {}
    for task in tasks:
        if task.shape in plans:
            with_shape.setdefault(task.shape, []).append(task.member)
    groups: dict[object, list[tuple[str, AccessRow]]] = {}
    for digest in with_shape:
        name = name_variables(exemplars[digest], members.get(exemplars[digest]))
        for row in build_outline(plans[digest]).access:
            named = _name_values(row, name)
            key = named.entry_point, named.more, named.verdict, named.before, named.after, named.is_certain
            groups.setdefault((*key, named.depends_on), []).append((digest, named))
    rows = (_describe_group(found, with_shape, exemplars) for found in groups.values())
    return tuple(sorted(rows, key=_weigh))


def _describe_group(
    found: Sequence[tuple[str, AccessRow]], with_shape: Mapping[str, Sequence[str]], exemplars: Mapping[str, str]
) -> OpeningRow:
    shapes = tuple(dict.fromkeys(digest for digest, _ in found))
    names = [*dict.fromkeys(member for digest in shapes for member in with_shape[digest])]
    return OpeningRow(found[0][1], len(names), tuple(names[:NAMED]), exemplars[shapes[0]], shapes)


def _weigh(row: OpeningRow) -> tuple[object, ...]:
    access = row.access
    return tuple(Verdict).index(access.verdict), not access.is_certain, -row.members, access.entry_point


def _name_values(row: AccessRow, name: Callable[[str], str]) -> AccessRow:
    return replace(
        row,
        entry_point=name(row.entry_point),
        before=name(row.before),
        after=name(row.after),
        depends_on=tuple(map(name, row.depends_on)),
        more=tuple(map(name, row.more)),
    )


def name_variables(member: str, known: Member | None, *, shortest: int = 1) -> Callable[[str], str]:
    """Replaces the name of a member and the values of its variables, as whole words, by their names.

    shortest  characters of a value that is replaced: shorter ones occur by chance in sentences
    """
    texts = [(path, sanitize(text)) for path, text in _list_texts(member, known)]
    names = {text: f"${{{{ {path} }}}}" for path, text in texts if len(text) >= shortest or path == "member.name"}
    choices = "|".join(re.escape(text) for text in sorted(names, key=lambda text: (-len(text), text)))
    pattern = re.compile(f"(?<![A-Za-z0-9])(?:{choices})(?![A-Za-z0-9])")
    return lambda text: pattern.sub(lambda found: names[found[0]], text)


def _list_texts(member: str, known: Member | None) -> Iterator[tuple[str, str]]:
    """The texts that may differ between members, with their paths; a variable wins over the name."""
    yield "member.name", member
    stack: list[tuple[str, Json]] = [("var", dict(known.variables))] if known is not None else []
    while stack:
        path, value = stack.pop()
        if isinstance(value, Mapping):
            stack += [(f"{path}.{key}", item) for key, item in value.items()]
        elif isinstance(value, list):
            stack += [(f"{path}[{number}]", item) for number, item in enumerate(value)]
        elif isinstance(value, str):
            yield path, value
