"""The waves of a run with their states, and why an open run does not go on: a pause, an approval, a minimum time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from reconciler.model.fleet import Pause, Run, TaskRecord, TaskState
from reconciler.rendering.text_tools import format_time


class WaveState(StrEnum):
    """The state of a wave."""

    WAITING = "waiting"  # no task was started
    RUNNING = "running"  # tasks were started, and not all have ended
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # more members failed than the wave allows
    SKIPPED = "skipped"  # no task was started, and none will be


class WaitKind(StrEnum):
    """What an open run waits for."""

    PAUSE = "pause"  # the end of a pause of the fleet
    APPROVAL = "approval"  # the approval of a wave
    TIME = "min_success_time"  # the end of the time for which a wave must have been done


class WaveRow(Struct, frozen=True):
    """A wave, with its tasks.

    states        members by state: the worst of their tasks
    max_failures  failed members that it allows
    ended         of its last task; None: not ended
    """

    name: str
    state: WaveState
    members: int
    states: Mapping[str, int]
    failed: int
    max_failures: int
    approve: bool
    approved: bool
    ended: float | None


class Wait(Struct, frozen=True):
    """Why an open run does not go on.

    command  ends the wait; empty: it ends by itself
    until    seconds since 1970; None: until the command
    wave     that must be approved; empty: none
    """

    kind: WaitKind
    text: str
    command: str = ""
    until: float | None = None
    wave: str = ""


_WORST_FIRST = (
    TaskState.FAILED,
    TaskState.BLOCKED,
    TaskState.STALE,
    TaskState.RUNNING,
    TaskState.WAITING,
    TaskState.SKIPPED,
    TaskState.SUCCEEDED,
)


def states_of_members(tasks: Iterable[TaskRecord]) -> dict[str, TaskState]:
    """The state of each member: the worst of its tasks."""
    states: dict[str, TaskState] = {}
    for task in tasks:
        before = states.get(task.member, TaskState.SUCCEEDED)
        states[task.member] = min(before, task.state, key=_WORST_FIRST.index)
    return states


def count_states(states: Iterable[TaskState]) -> dict[str, int]:
    """By state, in the order of the enumeration, without zeros."""
    counts = Counter(states)
    return {str(state): counts[state] for state in TaskState if counts[state]}


def build_waves(run: Run, tasks: Sequence[TaskRecord]) -> tuple[WaveRow, ...]:
    """The waves of a run that have tasks."""
    by_wave: dict[int, list[TaskRecord]] = {}
    for task in tasks:
        by_wave.setdefault(task.wave, []).append(task)
    rows = []
    for number, own in sorted(by_wave.items()):
        wave = run.wave_at(number)
        states = states_of_members(own)
        failed = sum(state is TaskState.FAILED for state in states.values())
        allowed = wave.max_failures.of(len(states))
        rows.append(
            WaveRow(
                name=wave.name,
                state=_state(own, is_failed=failed > allowed),
                members=len(states),
                states=count_states(states.values()),
                failed=failed,
                max_failures=allowed,
                approve=wave.approve,
                approved=wave.name in run.approved_waves,
                ended=max((task.ended or 0.0 for task in own), default=0.0)
                if all(task.state.is_final for task in own)
                else None,
            )
        )
    return tuple(rows)


def _state(tasks: Sequence[TaskRecord], *, is_failed: bool) -> WaveState:
    found = {task.state for task in tasks}
    if is_failed:
        return WaveState.FAILED
    if found == {TaskState.SKIPPED}:
        return WaveState.SKIPPED
    if found & {TaskState.WAITING, TaskState.RUNNING}:
        # Some may have ended when the run was made: without changes, without a plan or not approved.
        return WaveState.RUNNING if any(task.attempts for task in tasks) else WaveState.WAITING
    return WaveState.SUCCEEDED


def describe_gate(run: Run, waves: Sequence[WaveRow], now: float, pause: Pause | None) -> Wait | None:
    """Why a run does not go on that has not ended; None: it can."""
    if pause is not None and (pause.until is None or pause.until > now):
        return _describe_pause(pause)
    until, after = 0.0, ""  # the latest end of a min_success_time, and its wave
    for row in waves:
        if row.state is WaveState.WAITING:
            return _gate_of(run, row, until, after, now)
        if row.ended is None:
            return None
        least = next((wave.min_success_time for wave in run.waves if wave.name == row.name), 0.0)
        until, after = max((until, after), (row.ended + least, row.name))
    return None


def _gate_of(run: Run, row: WaveRow, until: float, after: str, now: float) -> Wait | None:
    """What a wave waits for whose predecessors have ended. `until`: the end of the min_success_time of wave `after`."""
    if until > now:
        text = f"wave {row.name} starts at {format_time(until)}: min_success_time of wave {after}"
        return Wait(WaitKind.TIME, text, until=until)
    if row.approve and not row.approved:
        command = f"reconciler fleet resume {run.id} --approve-wave {row.name}"
        return Wait(WaitKind.APPROVAL, f"wave {row.name} needs approval", command, wave=row.name)
    return None


def _describe_pause(pause: Pause) -> Wait:
    actor = f" by {pause.actor}" if pause.actor else ""
    until = f", until {format_time(pause.until)}" if pause.until is not None else ""
    reason = f": {pause.reason}" if pause.reason else ""
    text = f"the fleet is paused since {format_time(pause.since)}{actor}{until}{reason}"
    return Wait(WaitKind.PAUSE, text, "reconciler fleet resume", pause.until)
