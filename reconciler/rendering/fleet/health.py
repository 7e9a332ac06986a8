"""The health of the members of a run: each distinct reason once, with the number of members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.fleet import Fleet, Member, TaskRecord
from reconciler.model.health import WORST_FIRST, Health, HealthRow, State
from reconciler.rendering.fleet.openings import name_variables
from reconciler.rendering.fleet.reasons import NAMED, abstract, abstract_numbers
from reconciler.rendering.terminal_text import sanitize


class IllRow(Struct, frozen=True):
    """An object that is not healthy for the same reason in many members.

    row       its health; `${{ var.NAME }}` stands for values of members' variables, `…` for what else differs in the
              reason. Without an address: the whole account is unknown
    members   how many members have it
    first     the first of them
    exemplar  the member whose advice it is; empty: the advice is the same for all
    """

    row: HealthRow
    project: str
    members: int
    first: tuple[str, ...]
    exemplar: str = ""


class FleetHealth(Struct, frozen=True):
    """The health of the members of a run.

    states    members by state; a member has the worst state of its objects
    rows      what is not healthy: the worst first, then by number of members
    left_out  members of the fleet that the run does not check
    """

    states: Mapping[str, int]
    rows: tuple[IllRow, ...]
    left_out: int

    @property
    def is_degraded(self) -> bool:
        return bool(self.states.get(State.DEGRADED))

    @property
    def is_settled(self) -> bool:
        """Whether every member of the fleet is healthy."""
        return self.states.keys() <= {State.HEALTHY} and not self.left_out


class _Group(Struct, frozen=True):
    row: HealthRow
    members: list[str] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)
    advice: set[str] = field(default_factory=set)
    example: str = ""  # the advice for the first member


def roll_up_health(fleet: Fleet, tasks: Sequence[TaskRecord]) -> FleetHealth:
    """The health of the members. `tasks`: of a run that judges health, in the order of members."""
    states: dict[str, State] = {}
    groups: dict[tuple[object, ...], _Group] = {}
    for task in tasks:
        states.setdefault(task.member, State.HEALTHY)
        name = name_variables(task.member, fleet.members.get(task.member), shortest=3)
        for row in _list_ill(task, fleet.members.get(task.member)):
            health = row.health
            states[task.member] = min(states[task.member], health.state, key=WORST_FIRST.index)
            address, reason, advice = (name(sanitize(text)) for text in (row.address, health.reason, health.advice))
            key = task.project, address, health.state, health.actor, abstract_numbers(reason)
            sample = HealthRow(address, "", Health(health.state, abstract_numbers(reason), "", health.actor))
            group = groups.setdefault(key, _Group(sample, example=sanitize(health.advice)))
            if group.members[-1:] != [task.member]:
                group.members.append(task.member)
            group.reasons.add(reason)
            group.advice.add(advice)
    rows = (_describe_group(key[0], group) for key, group in groups.items())
    counts = Counter(states.values())
    return FleetHealth(
        {str(state): counts[state] for state in WORST_FIRST if counts[state]},
        tuple(sorted(rows, key=_weigh)),
        sum(member.name not in states and _has_project(fleet, member) for member in fleet.members.values()),
    )


def _list_ill(task: TaskRecord, known: Member | None) -> Iterable[HealthRow]:
    """What is not healthy in a member. An account that was not read is unknown."""
    if task.health is not None:
        return task.health.rows
    why = abstract(task.reason, task.member, known).with_names if task.state.is_final else "its check has not ended"
    reason = f"the account was not checked{f': {why}' if why else ''}"
    return [HealthRow("", "", Health(State.UNKNOWN, reason))]


def _describe_group(project: object, group: _Group) -> IllRow:
    health = group.row.health
    if len(group.reasons) == 1:
        health = replace(health, reason=next(iter(group.reasons)))
    is_same = len(group.advice) == 1
    health = replace(health, advice=next(iter(group.advice)) if is_same else group.example)
    exemplar = "" if is_same else group.members[0]
    first = tuple(group.members[:NAMED])
    return IllRow(replace(group.row, health=health), str(project), len(group.members), first, exemplar)


def _weigh(ill: IllRow) -> tuple[object, ...]:
    health = ill.row.health
    return WORST_FIRST.index(health.state), -ill.members, ill.project, ill.row.address, health.reason, health.actor


def _has_project(fleet: Fleet, member: Member) -> bool:
    return any(member.matches(project.select) for project in fleet.projects.values())
