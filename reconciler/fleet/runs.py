"""Creates and reopens runs of a fleet with their tasks, and finds the gate that a run waits for."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import fields, replace

from reconciler.model import exit_codes
from reconciler.model.fleet import (
    Fleet,
    Run,
    RunState,
    RunVerb,
    Selector,
    TaskRecord,
    TaskState,
    Wave,
)
from reconciler.operations.errors import ChangedWaves
from reconciler.project.fleets.waves import assign_waves
from reconciler.store.fleets.records import FleetRecords


class FleetSource(Struct, frozen=True):
    """The source of the files of a fleet.

    source  folder of the repository, or a Git URL
    file    the fleet file, relative to the source
    commit  that workers check out; empty: the files of the folder, without a commit
    """

    fleet: Fleet
    source: str
    file: str
    commit: str = ""


def new_run_id(now: float) -> str:
    """An id that sorts by time."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


async def start_run(
    source: FleetSource,
    verb: RunVerb,
    records: FleetRecords,
    *,
    selected: Selector | None = None,
    reviewed: Run | None = None,
    approved_shapes: Iterable[str] = (),
    actor: str = "",
    commit: str = "",
    health: bool = False,
    now: float,
) -> Run:
    """Creates a run with its tasks, without starting it.

    selected         the members; None: all
    reviewed         of an apply: the run of plans whose changes may be applied
    approved_shapes  of an apply
    commit           of the files, for reports, if workers do not check out a commit
    health           of a drift check: also judge whether the objects work
    """
    fleet = source.fleet
    run = Run(
        new_run_id(now),
        fleet.name,
        verb,
        source.source,
        source.file,
        source.commit or commit,
        now,
        reviewed=reviewed.id if reviewed else "",
        approved_shapes=tuple(approved_shapes),
        actor=actor,
        waves=fleet.waves if verb is RunVerb.APPLY else (),
        health=health,
    )
    members = [member for member in fleet.members.values() if member.matches(selected or {})]
    if reviewed is None:
        tasks = [
            TaskRecord(run.id, member.name, project.name)
            for member in members
            for project in fleet.projects.values()
            if member.matches(project.select)
        ]
    else:
        places = assign_waves(fleet, list(fleet.members.values()))
        wanted = {member.name for member in members}
        tasks = [
            _task_of_apply(run, plan, places.get(plan.member, 0))
            for plan in await records.tasks(reviewed.id)
            if plan.member in wanted
        ]
    await records.create_run(run, tasks)
    return run


def _task_of_apply(run: Run, plan: TaskRecord, wave: int) -> TaskRecord:
    """The task that applies a plan; ended if there is nothing to apply."""
    task = TaskRecord(run.id, plan.member, plan.project, wave)
    if plan.state is not TaskState.SUCCEEDED:
        return replace(task, state=TaskState.SKIPPED, reason=f"its plan {plan.state}: {plan.reason}")
    if not plan.changes:
        return replace(task, state=TaskState.SUCCEEDED, exit_code=exit_codes.DONE)
    if plan.shape not in run.approved_shapes:
        return replace(
            task,
            state=TaskState.BLOCKED,
            exit_code=exit_codes.BLOCKED,
            shape=plan.shape,
            reason=f"shape {plan.shape} is not approved",
        )
    return replace(task, shape=plan.shape)


async def reopen_run(
    run: Run,
    records: FleetRecords,
    states: Collection[TaskState],
    approved_shapes: Iterable[str] = (),
    *,
    keep: Collection[tuple[str, str]] = (),
) -> Run | None:
    """Resets the tasks in these final states to WAITING; None if there are none. `execute` continues the run.

    approved_shapes  added to the approved ones
    keep             tasks that are not reset, by member and project

    Raises Locked if a coordinator executes the run.
    """
    async with records.lock(run_lease(run), on_loss=lambda _: None):
        if not await records.reset(run.id, states, keep=keep):
            return None
        return await records.update_run(run.id, state=RunState.OPEN, approved_shapes=approved_shapes, reason="")


def check_waves(source: FleetSource, run: Run) -> None:
    """Raises ChangedWaves if the waves of the fleet file differ from those at the start of an apply, to which its
    approvals and tasks refer.
    """
    if run.verb is not RunVerb.APPLY or run.waves == source.fleet.waves:
        return
    raise ChangedWaves(
        f"{source.file}: waves changed since run {run.id} was started: "
        + ", ".join(_describe_changes(run.waves, source.fleet.waves)),
        remedy=f"to apply with the new waves: reconciler fleet apply; to continue run {run.id}, undo the change",
    )


def _describe_changes(old: Sequence[Wave], new: Sequence[Wave]) -> list[str]:
    """`early was added`, `approve of everyone changed`"""
    before, after = ({wave.name: wave for wave in waves} for waves in (old, new))
    changes = [f"{name} was removed" for name in before if name not in after]
    changes += [f"{name} was added" for name in after if name not in before]
    for name, wave in after.items():
        if (earlier := before.get(name, wave)) != wave:
            names = [field.name for field in fields(Wave) if getattr(wave, field.name) != getattr(earlier, field.name)]
            changes.append(f"{' and '.join(names)} of {name} changed")
    return changes or ["their order changed"]


def run_lease(run: Run) -> str:
    """The name of the lease of a run, which its coordinator holds."""
    return lease_of(run.id)


def lease_of(run: str) -> str:
    """The same for the id of a run. Of a plan, the process that applies it holds it too."""
    return f"fleet run {run}"


class Gate(Struct, frozen=True):
    """The reason why a run waits before a wave. `until`: seconds since 1970; None: until a user acts."""

    reason: str
    until: float | None = None


def find_gate(run: Run, tasks: Sequence[TaskRecord], wave: int, now: float) -> Gate | None:
    """The gate before a wave of an apply, without pauses; None if it may start. `now`: by the clock of the store."""
    if run.verb is not RunVerb.APPLY or all(task.state.is_final for task in tasks if task.wave == wave):
        return None
    if any(task.attempts for task in tasks if task.wave == wave):
        return None  # it has started
    # Of all earlier waves: the one before may have had no changes.
    ends = (
        (task.ended + run.wave_at(task.wave).min_success_time, task.wave)
        for task in tasks
        if task.wave < wave and task.ended is not None
    )
    until, before = max(ends, default=(0.0, 0))
    if until > now:
        return Gate(f"min_success_time of wave {run.wave_at(before).name}", until)
    current = run.wave_at(wave)
    if current.approve and current.name not in run.approved_waves:
        return Gate(f"approval of wave {current.name}")
    return None
