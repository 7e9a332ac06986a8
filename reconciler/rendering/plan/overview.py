"""Several plans seen together: a row for each environment, and each change once with the environments that it is for.

The rows of all plans are one `Outline`, which the formats print like that of a single plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.change import Action, Cause, Risk
from reconciler.model.plan import Forecast, Plan
from reconciler.model.problem import merge_repeated
from reconciler.rendering.plan import phrases
from reconciler.rendering.plan.outline import (
    AccessRow,
    ApprovalRow,
    BaseRow,
    ChangeRow,
    FieldRow,
    Named,
    Outline,
    ProblemRow,
    RuleRow,
    SharedAccessRow,
    Variant,
    attribute,
    build_outline,
)
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.text_tools import count

UNKNOWN = "unknown"
NONE = "none"


class Status(StrEnum):
    """What keeps an environment from being applied, the most urgent first."""

    NOT_PLANNED = "not planned"
    BLOCKED = "blocked"
    WAITING = "approval required"
    READY = "ready to apply"
    QUIET = "no changes"


class EnvironmentRow(Struct, frozen=True):
    """An environment in a line. What is not known is `unknown`, never `none`.

    name       the environment; the stack if there is none, or several plans are for it
    state      the status in words, with the number of errors
    changes    of the reviewed branch if the plan was compared with a base, else all of them
    drift      what the branch does not cause: drift, and what is pending before it
    rows       None: there is no plan
    """

    name: str
    status: Status
    state: str
    changes: str = UNKNOWN
    access: str = UNKNOWN
    approvals: str = UNKNOWN
    drift: str = UNKNOWN
    rows: Outline | None = None


class Overview(Struct, frozen=True):
    """Several plans seen together.

    rows   of all plans. A row without environments is for all environments of the overview
    bases  why the changes of some environments are not attributed
    """

    environments: tuple[EnvironmentRow, ...]
    rows: Outline
    bases: tuple[tuple[BaseRow, tuple[str, ...]], ...] = ()

    @property
    def is_of_one(self) -> bool:
        """Whether there is nothing but one plan."""
        return len(self.environments) == 1 and self.environments[0].rows is not None


def build_overview(plans: Sequence[Plan], unplanned: Sequence[str] = ()) -> Overview:
    """The plans together. `unplanned`: names of environments that could not be planned."""
    names = _name_environments(plans)
    missing = [
        EnvironmentRow(f"{name} (2)" if name in names else name, Status.NOT_PLANNED, str(Status.NOT_PLANNED))
        for name in dict.fromkeys(map(sanitize, unplanned))
    ]
    is_of_one = len(plans) == 1 and not missing
    outlines = [build_outline(plan, has_ids=is_of_one) for plan in plans]
    environments = [*map(_describe, names, plans, outlines), *missing]
    if is_of_one:
        return Overview(tuple(environments), outlines[0])
    return Overview(
        tuple(environments),
        _join(dict(zip(names, outlines, strict=True)), [row.name for row in environments]),
        tuple(_list_bases(zip(names, outlines, strict=True))),
    )


# --- environments


def _name_environments(plans: Sequence[Plan]) -> list[str]:
    """A name of each plan that no other has."""
    candidates = (
        [plan.environment or plan.stack for plan in plans],
        [plan.stack for plan in plans],
        [f"{plan.stack}, {plan.account}" for plan in plans],
        [f"{plan.stack} #{number}" for number, plan in enumerate(plans, 1)],
    )
    texts = (list(map(sanitize, names)) for names in candidates)
    return next(names for names in texts if len(set(names)) == len(names))


def _describe(name: str, plan: Plan, rows: Outline) -> EnvironmentRow:
    status, state = judge(plan, rows)
    if plan.blocking_errors and not rows.changes:
        return EnvironmentRow(name, status, state, rows=rows)
    return EnvironmentRow(
        name,
        status,
        state,
        _count_changes(rows),
        phrases.count_access(rows).removeprefix(f"{phrases.ACCESS}: ").removesuffix(".") or NONE,
        _count_approvals(rows),
        _count_drift(rows),
        rows,
    )


def judge(plan: Plan, rows: Outline) -> tuple[Status, str]:
    """What keeps the plan from being applied, and this in words."""
    if errors := merge_repeated(plan.blocking_errors):
        return Status.BLOCKED, f"blocked by {count(len(errors), 'error')}"
    if plan.missing_approvals:
        return Status.WAITING, str(Status.WAITING)
    if errors := merge_repeated(plan.confined_errors):
        return Status.BLOCKED, f"{count(len(errors), 'error')}; the rest can be applied"
    if plan.is_empty:
        return Status.QUIET, str(Status.QUIET)
    if rows.is_attributed and not any(phrases.list_groups(rows)[0].changes):
        return Status.QUIET, "no changes by this branch"
    return Status.READY, str(Status.READY)


def _count_changes(rows: Outline) -> str:
    if rows.is_attributed:
        return phrases.count_group(phrases.list_groups(rows)[0]) or NONE
    counts = Counter(row.action for row in rows.changes)
    return ", ".join(f"{counts[action]} to {action}" for action in Action if counts[action]) or NONE


def _count_approvals(rows: Outline) -> str:
    missing, granted = ([row for row in rows.approvals if row.granted is is_granted] for is_granted in (False, True))
    required = [row for row in missing if not row.is_optional]
    parts = [
        (sum(max(len(row.subjects), 1) for row in some), words)
        for some, words in ((required, "required"), (granted, "approved"))
    ]
    return ", ".join(f"{number} {words}" for number, words in parts if number) or NONE


def _count_drift(rows: Outline) -> str:
    if not rows.is_attributed:
        return UNKNOWN
    words = {Cause.DRIFT: "{}", Cause.PENDING: "pending: {}"}
    groups = phrases.list_groups(rows)[1:]
    return ", ".join(words[group.cause].format(phrases.count_group(group)) for group in reversed(groups)) or NONE


def _list_bases(
    outlines: Iterable[tuple[str, Outline]],
) -> Iterator[tuple[BaseRow, tuple[str, ...]]]:
    """The bases that no change could be attributed with, each with its environments."""
    found: dict[Hashable, tuple[BaseRow, list[str]]] = {}
    for name, rows in outlines:
        if rows.base is not None and not rows.base.is_comparable:
            key = rows.base.ref, rows.base.commit, rows.base.behind, rows.base.problems
            found.setdefault(key, (rows.base, []))[1].append(name)
    for base, names in found.values():
        yield base, tuple(names)


# --- the rows of all plans

Row = TypeVar("Row", ChangeRow, AccessRow, ApprovalRow, RuleRow, ProblemRow)
_Parts = tuple[tuple[FieldRow, ...], tuple[str, ...], tuple[str, ...], tuple[Risk, ...], tuple[Risk, ...]]
Members = list[tuple[str, Row]]
"""Rows that are shown as one, each with its environment."""


def _join(outlines: Mapping[str, Outline], names: Sequence[str]) -> Outline:
    """The rows of all plans as one outline. `names`: all environments, with those that have no plan."""
    attributed = [rows.base for rows in outlines.values() if rows.is_attributed]
    known = {name: attribute(rows) if attributed else rows for name, rows in outlines.items()}
    scope = _Scope(known, names)
    base = attributed[0] if attributed else None
    if base is not None:
        withdrawn = scope.join_changes(lambda rows: rows.base.withdrawn if rows.base is not None else ())
        base = replace(base, withdrawn=withdrawn)
    changes = scope.join_changes(lambda rows: rows.changes)
    return Outline(
        stack="",
        rule_changes=scope.join_equal(lambda rows: rows.rule_changes),
        changes=changes,
        calls=(),
        problems=scope.join_equal(lambda rows: rows.problems),
        approvals=scope.join_approvals(),
        counts=Counter(row.action for row in changes),
        additions=scope.join_changes(lambda rows: rows.additions),
        unmanaged={},
        forecast=Forecast(sum(rows.forecast.calls for rows in known.values()), 0.0),
        account=_find_common(rows.account for rows in known.values()),
        commit=_find_common(rows.commit for rows in known.values()),
        base=base,
        access=scope.join_access(),
    )


def _find_common(texts: Iterable[str]) -> str:
    """The text if all are equal, else an empty one."""
    found = set(texts)
    return found.pop() if len(found) == 1 else ""


class _Scope:
    """The outlines by environment, and how their rows become one."""

    def __init__(self, outlines: Mapping[str, Outline], names: Sequence[str]) -> None:
        self._outlines = outlines
        self._names = names

    def limit(self, environments: Iterable[str]) -> tuple[str, ...]:
        """The environments in their order; empty if they are all."""
        found = set(environments)
        return () if found.issuperset(self._names) else tuple(name for name in self._names if name in found)

    def group(self, rows_of: Callable[[Outline], Sequence[Row]], key: Callable[[Row], Hashable]) -> list[Members[Row]]:
        """The rows with the same key, of each environment one: two of one environment stay two."""
        groups: dict[Hashable, Members[Row]] = {}
        for name, rows in self._outlines.items():
            seen = Counter[Hashable]()
            for row in rows_of(rows):
                same = key(row)
                groups.setdefault((same, seen[same]), []).append((name, row))
                seen[same] += 1
        return list(groups.values())

    def join_equal(self, rows_of: Callable[[Outline], Sequence[Row]]) -> tuple[Row, ...]:
        """Equal rows as one."""
        groups = self.group(rows_of, lambda row: row)
        return tuple(replace(members[0][1], environments=self.limit(name for name, _ in members)) for members in groups)

    # --- changes

    def join_changes(self, rows_of: Callable[[Outline], Sequence[ChangeRow]]) -> tuple[ChangeRow, ...]:
        """The changes, those of the same address, action and cause as one: what is common, and what differs."""
        return tuple(map(self._join_change, self.group(rows_of, _identify)))

    def _join_change(self, members: Members[ChangeRow]) -> ChangeRow:
        rows = [row for _, row in members]
        most_used = max(rows, key=lambda row: row.user_count)
        fields, other_fields = _split([[replace(field, position="") for field in row.fields] for row in rows])
        deliveries, other_deliveries = _split([row.deliveries for row in rows])
        records, other_records = _split([row.records for row in rows])
        risks, other_risks = _split([row.risks for row in rows])
        of_access = [tuple(risk for risk in row.access_risks if risk not in risks) for row in rows]
        parts = zip(other_fields, other_deliveries, other_records, other_risks, of_access, strict=True)
        differences: dict[_Parts, list[str]] = {}
        for (name, _), part in zip(members, parts, strict=True):
            if any(part):
                differences.setdefault(part, []).append(name)
        return replace(
            rows[0],
            id=_find_common(row.id for row in rows),
            position=_find_common(row.position for row in rows),
            fields=fields,
            deliveries=deliveries,
            records=records,
            risks=risks,
            access_risks=tuple(risk for risk in risks if all(risk in row.access_risks for row in rows)),
            environments=self.limit(name for name, _ in members),
            variants=tuple(Variant(tuple(names), *part) for part, names in differences.items()),
            users=most_used.users,
            user_count=most_used.user_count,
        )

    # --- approvals

    def join_approvals(self) -> tuple[ApprovalRow, ...]:
        """The approvals, those of one rule for one reason as one, with all that they are about."""
        groups = self.group(lambda rows: rows.approvals, _identify_approval)
        return tuple(map(self._join_approval, groups))

    def _join_approval(self, members: Members[ApprovalRow]) -> ApprovalRow:
        subjects: dict[str, list[str]] = {}
        for name, row in members:
            for subject in row.subjects:
                subjects.setdefault(subject.name, []).append(name)
        names = tuple(Named(subject, self.limit(places)) for subject, places in subjects.items())
        environments = self.limit(name for name, _ in members)
        return replace(members[0][1], flag="", subjects=names, environments=environments)

    # --- access

    def join_access(self) -> tuple[SharedAccessRow, ...]:
        """The entry points that change in the same way; what causes it in some environments only is named apart."""
        groups: dict[Hashable, Members[AccessRow]] = {}
        for name, rows in self._outlines.items():
            own = {row.address for row in rows.changes if row.cause in (None, Cause.THIS_CHANGE)}
            for row in rows.access:
                causes = own.intersection(row.causes) or row.causes
                groups.setdefault((_identify_access(row), frozenset(causes)), []).append((name, row))
        order = [*Cause, None]
        return tuple(sorted(map(self._join_entry_points, groups.values()), key=lambda row: order.index(row.cause)))

    def _join_entry_points(self, members: Members[AccessRow]) -> SharedAccessRow:
        first = members[0][1]
        places: dict[str, list[str]] = {}
        causes: dict[str, list[str]] = {}
        for name, row in members:
            for place in (row.entry_point, *row.more):
                places.setdefault(place, []).append(name)
            for cause in row.causes:
                causes.setdefault(cause, []).append(name)
        entry_point, *more = places
        common = tuple(cause for cause, names in causes.items() if len(names) == len(members))
        return SharedAccessRow(
            entry_point,
            first.verdict,
            first.before,
            first.after,
            first.witness,
            first.is_certain,
            first.depends_on,
            common,
            first.cause,
            tuple(more),
            tuple(Named(place, self.limit(names)) for place, names in places.items()),
            tuple(Named(cause, tuple(names)) for cause, names in causes.items() if cause not in common),
            self.limit(name for name, _ in members),
        )


Part = TypeVar("Part", bound=Hashable)


def _split(parts: Sequence[Sequence[Part]]) -> tuple[tuple[Part, ...], list[tuple[Part, ...]]]:
    """What is in all sequences, in the order of the first, and what each of them has beside it."""
    common = Counter(parts[0])
    for others in parts[1:]:
        common &= Counter(others)
    taken = [_take(own, common) for own in parts]
    return taken[0][0], [rest for _, rest in taken]


def _take(parts: Sequence[Part], common: Mapping[Part, int]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """The parts that are common, each as often as it is, and the others."""
    left = Counter(common)
    taken, rest = list[Part](), list[Part]()
    for part in parts:
        (taken if left[part] else rest).append(part)
        left[part] -= left[part] > 0
    return tuple(taken), tuple(rest)


def _identify(row: ChangeRow) -> Hashable:
    """What is the same of changes that are shown as one."""
    own = {"fields": (), "deliveries": (), "records": (), "risks": (), "access_risks": (), "users": (), "user_count": 0}
    return replace(row, id="", position="", **own)


def _identify_approval(row: ApprovalRow) -> Hashable:
    is_counted = not row.subjects or row.subjects[0].name == "*"
    return (
        row.what,
        row.why,
        row.granted,
        row.is_optional,
        row.is_pending,
        row.count if is_counted else bool(row.subjects),
    )


def _identify_access(row: AccessRow) -> Hashable:
    return row.verdict, row.before, row.after, row.is_certain, row.depends_on, row.cause
