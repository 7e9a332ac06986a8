"""A run over a fleet in one view: states, shapes, distinct failure reasons, waves, and what the run waits for.

Pure: everything comes from the records of the run. All formats render a `RollUp`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from reconciler.model import exit_codes
from reconciler.model.change import Action, Risk
from reconciler.model.fleet import Fleet, Pause, Run, RunState, RunVerb, Shape, TaskRecord, TaskState
from reconciler.model.history import CheckedHealth
from reconciler.model.plan import Plan
from reconciler.model.problem import Rejected
from reconciler.model.value import Secret
from reconciler.rendering.fleet.health import FleetHealth, roll_up_health
from reconciler.rendering.fleet.openings import OpeningRow, group_openings
from reconciler.rendering.fleet.reasons import NAMED, Pattern, ReasonRow, abstract, group_reasons
from reconciler.rendering.fleet.waits import Wait, WaveRow, build_waves, count_states, describe_gate, states_of_members
from reconciler.rendering.wire import plan_json

SILENT_SECONDS = 60.0  # without a heartbeat, of which a worker sends one every 15 s
ADDED = "added"  # among counts by action: children that were added on the platform, and are not declared


class Need(Struct, frozen=True):
    """An approval that the plan of a shape needs in each member."""

    flag: str
    why: str


class ShapeRow(Struct, frozen=True):
    """Plans that differ only in values of their members' variables.

    members   how many members have it
    first     the first of them
    exemplar  the member whose plan represents the shape
    actions   changes by action, in one member
    risks     changes by risk, in the exemplar
    approved  whether the run applies it
    states    tasks by state
    """

    digest: str
    project: str
    members: int
    first: tuple[str, ...]
    exemplar: str
    actions: Mapping[str, int]
    risks: Mapping[str, int]
    needs: tuple[Need, ...]
    approved: bool
    states: Mapping[str, int]


class TaskRow(Struct, frozen=True):
    """One task: a member and one of its projects. `wave`: empty, but of an apply."""

    member: str
    project: str
    wave: str
    state: TaskState
    exit_code: int | None
    shape: str
    actions: Mapping[str, int]
    reason: str
    attempts: int
    worker: str
    seconds: float
    requests: int
    started: float | None
    ended: float | None
    health: CheckedHealth | None


class RollUp(Struct, frozen=True):
    """What every format shows of a run.

    at          time of the view, seconds since 1970
    members     how many members take part
    states      members by state; a member with several projects has the worst state of them
    actions     changes by action, in all members
    changed     members with changes
    drifted     of a drift check: members with drift
    access      the entry points that the members change, each distinct change once; of an apply none: its plan has them
    health      of a drift check that judges it
    wait        why an open run does not go on; None: it can, or it has ended
    plans       exemplars by shape
    patterns    the reason of each task in which what differs between members is apart, in the order of `tasks`
    labels      labels of each member
    silent      members of an open run whose worker hangs or died, with the time of its last heartbeat, the oldest first
    """

    fleet: str
    run: Run
    at: float
    members: int
    states: Mapping[str, int]
    actions: Mapping[str, int]
    changed: int
    drifted: int
    shapes: tuple[ShapeRow, ...]
    access: tuple[OpeningRow, ...]
    reasons: tuple[ReasonRow, ...]
    waves: tuple[WaveRow, ...]
    wait: Wait | None
    pause: Pause | None
    tasks: tuple[TaskRow, ...]
    health: FleetHealth | None = None
    plans: Mapping[str, Plan] = field(default_factory=dict)
    exemplars: Mapping[str, Shape] = field(default_factory=dict)
    patterns: tuple[Pattern, ...] = ()
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    silent: tuple[tuple[str, float], ...] = ()

    @property
    def seconds(self) -> float:
        """From the start of the run to its end, or to the time of the view."""
        return max(0.0, (self.run.ended or self.at) - self.run.created)

    @property
    def requests(self) -> int:
        return sum(task.requests for task in self.tasks)

    @property
    def ended_members(self) -> int:
        """Members whose tasks have all ended."""
        return sum(number for state, number in self.states.items() if TaskState(state).is_final)

    @property
    def shapes_to_approve(self) -> tuple[ShapeRow, ...]:
        """Shapes that need an approval and do not have it."""
        return tuple(row for row in self.shapes if row.needs and not row.approved)

    @property
    def has_applied(self) -> bool:
        """Whether a task of an apply changed its account, or may have: a worker may have died meanwhile."""
        changed = any(task.actions or task.exit_code == exit_codes.PARTLY for task in self.tasks)
        return self.run.verb is RunVerb.APPLY and changed

    def exit_code(self, *, changes: int = exit_codes.DONE) -> int:
        """The exit code of a command that made this run. `changes`: the code of a plan with changes."""
        if code := self._failure_code():
            return code
        if self.run.state is RunState.OPEN and self.ended_members < self.members:
            return exit_codes.PARTLY
        if self.run.verb is RunVerb.DRIFT:
            is_degraded = self.health is not None and self.health.is_degraded
            return exit_codes.CHANGES if self.drifted else exit_codes.DEGRADED if is_degraded else exit_codes.DONE
        return changes if self.run.verb is RunVerb.PLAN and self.changed else exit_codes.DONE

    @property
    def health_exit_code(self) -> int:
        """The exit code of `fleet status --health`, as that of `status`: DEGRADED wins over CHANGES."""
        if self.health is not None and self.health.is_degraded:
            return exit_codes.DEGRADED
        is_settled = self.health is not None and self.health.is_settled and not self.drifted
        return exit_codes.DONE if is_settled else exit_codes.CHANGES

    def _failure_code(self) -> int:
        failed = [task for task in self.tasks if task.state is TaskState.FAILED]
        if failed:
            if self.has_applied:
                return exit_codes.PARTLY
            is_unauthorized = all(task.exit_code == exit_codes.AUTH for task in failed)
            return exit_codes.AUTH if is_unauthorized else exit_codes.ERROR
        if self.states.get(TaskState.BLOCKED) or (self.wait is not None and self.wait.wave):
            return exit_codes.BLOCKED
        if self.states.get(TaskState.STALE):
            return exit_codes.STALE
        if self.states.get(TaskState.SKIPPED):
            return exit_codes.PARTLY if self.has_applied else exit_codes.ERROR
        return exit_codes.DONE


def build_rollup(
    fleet: Fleet,
    run: Run,
    tasks: Sequence[TaskRecord],
    shapes: Mapping[str, Shape],
    now: float,
    pause: Pause | None = None,
) -> RollUp:
    """The view of a run. `tasks` are in the order of waves, members and projects."""
    patterns = tuple(abstract(task.reason, task.member, fleet.members.get(task.member)) for task in tasks)
    plans = {digest: plan for digest, shape in shapes.items() if (plan := _read_exemplar(shape)) is not None}
    waves = build_waves(run, tasks) if run.verb is RunVerb.APPLY else ()
    members = states_of_members(tasks)
    return RollUp(
        fleet=run.fleet,
        run=run,
        at=now,
        members=len(members),
        states=count_states(members.values()),
        actions=_sum(task.counts for task in tasks),
        changed=len({task.member for task in tasks if any(task.counts.values())}),
        drifted=len({task.member for task in tasks if task.exit_code == exit_codes.CHANGES})
        if run.verb is RunVerb.DRIFT
        else 0,
        shapes=_shapes(run, tasks, shapes, plans),
        access=_openings(fleet, tasks, shapes, plans) if run.verb is not RunVerb.APPLY else (),
        reasons=group_reasons(zip(tasks, patterns, strict=True)),
        waves=waves,
        wait=describe_gate(run, waves, now, pause) if _is_unfinished(run, tasks) else None,
        pause=pause,
        tasks=tuple(_task(run, task) for task in tasks),
        health=roll_up_health(fleet, tasks) if run.health else None,
        plans=plans,
        exemplars=dict(shapes),
        patterns=patterns,
        labels={member: fleet.members[member].labels for member in members if member in fleet.members},
        silent=_find_silent(tasks, now) if run.state is RunState.OPEN else (),
    )


def _find_silent(tasks: Iterable[TaskRecord], now: float) -> tuple[tuple[str, float], ...]:
    running = (task for task in tasks if task.state is TaskState.RUNNING)
    alive = {task.member: task.alive for task in running if task.alive is not None}
    silent = {member: seen for member, seen in alive.items() if now - seen > SILENT_SECONDS}
    return tuple(sorted(silent.items(), key=lambda item: (item[1], item[0])))


def _is_unfinished(run: Run, tasks: Iterable[TaskRecord]) -> bool:
    return run.state is RunState.OPEN and any(not task.state.is_final for task in tasks)


def _read_exemplar(shape: Shape) -> Plan | None:
    """The exemplar, without secrets; None if another release wrote it."""
    try:
        return plan_json.read_plan(shape.plan, lambda source, _digest: Secret("", source))
    except Rejected:
        return None


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Changes by action, in the order of actions, and additions; without zeros."""
    total: Counter[str] = Counter()
    for counted in counts:
        total.update(counted)
    return {action: total[action] for action in (*map(str, Action), ADDED) if total[action]}


# --- shapes -----------------------------------------------------------------------------------------------------------


def _openings(
    fleet: Fleet, tasks: Iterable[TaskRecord], shapes: Mapping[str, Shape], plans: Mapping[str, Plan]
) -> tuple[OpeningRow, ...]:
    exemplars = {digest: shapes[digest].member for digest in plans}
    return group_openings(tasks, plans, exemplars, fleet.members)


def _shapes(
    run: Run, tasks: Iterable[TaskRecord], shapes: Mapping[str, Shape], plans: Mapping[str, Plan]
) -> tuple[ShapeRow, ...]:
    """The shapes: the most severe risk first, then by number of members."""
    by_shape: Mapping[str, list[TaskRecord]] = defaultdict(list)
    for task in tasks:
        if task.shape:
            by_shape[task.shape].append(task)
    rows = [
        _shape(run, digest, own, shapes.get(digest), plans.get(digest, Plan(""))) for digest, own in by_shape.items()
    ]
    return tuple(sorted(rows, key=lambda row: (_severity(row), -row.members, row.digest)))


def _shape(run: Run, digest: str, tasks: Sequence[TaskRecord], shape: Shape | None, plan: Plan) -> ShapeRow:
    members = list(dict.fromkeys(task.member for task in tasks))
    planned = Counter(str(change.action) for change in plan.changes)  # a task that failed counts only what it did
    if plan.additions:
        planned[ADDED] = len(plan.additions)
    counted = next((task.counts for task in tasks if any(task.counts.values())), {})
    risks = Counter(risk for change in (*plan.changes, *plan.additions) for risk in change.risks)
    return ShapeRow(
        digest=digest,
        project=tasks[0].project,
        members=len(members),
        first=tuple(members[:NAMED]),
        exemplar=shape.member if shape is not None else "",
        actions=_sum([planned or counted]),
        risks={str(risk): risks[risk] for risk in Risk if risks[risk]},
        needs=tuple(Need(approval.flag, approval.why) for approval in plan.missing_approvals)
        if run.verb is not RunVerb.DRIFT
        else (),
        approved=digest in run.approved_shapes,
        states=count_states(task.state for task in tasks),
    )


def _severity(row: ShapeRow) -> int:
    order = [str(risk) for risk in Risk]
    return min(map(order.index, row.risks), default=len(order))


def _task(run: Run, task: TaskRecord) -> TaskRow:
    return TaskRow(
        member=task.member,
        project=task.project,
        wave=run.wave_at(task.wave).name if run.verb is RunVerb.APPLY else "",
        state=task.state,
        exit_code=task.exit_code,
        shape=task.shape,
        actions=_sum([task.counts]),
        reason=task.reason,
        attempts=task.attempts,
        worker=task.worker,
        seconds=task.seconds,
        requests=task.requests,
        started=task.started,
        ended=task.ended,
        health=task.health,
    )
