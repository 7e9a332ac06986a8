"""Whole runs of a fleet in memory: a scene scripts the store, the clock and the worker, and lists events as text."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from unittest.mock import Mock

from msgspec.structs import replace

from reconciler.fleet import coordinator, local_pool
from reconciler.fleet.coordinator import FleetProgress
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.ports import TaskEnd
from reconciler.fleet.runs import FleetSource
from reconciler.model.fleet import (
    Fleet,
    FleetProject,
    KeyMethod,
    KeySource,
    Member,
    Pause,
    Run,
    RunState,
    RunVerb,
    Task,
    TaskRecord,
    TaskState,
    Wave,
)
from reconciler.operations.errors import OperationError
from reconciler.store.errors import Locked, LockLost, StoreError

Key = tuple[str, str]
Act = Callable[["Scene"], object]
Event = TaskState | str | Act
"""The result of a task: a state; `die` or `die twice`: the worker dies after it claimed the task; `lose` or `forget`:
the worker fails before that, with or without an error; a function: called with the scene before the task succeeds."""

STORE = 1_000_000.0  # seconds by which the clock of the store is ahead of the clock of this process


@dataclass
class Scene:
    """A run and its events.

    members   by name: their tiers, which are waves
    after     by project: the projects before it
    script    by `member/project`: the events of its starts, then success
    before    by `member/project`: its record when the run starts
    pace      seconds between the starts of tasks
    """

    about: str
    members: Mapping[str, int]
    script: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    after: Mapping[str, Sequence[str]] = field(default_factory=lambda: {"web": ()})
    before: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    waves: Sequence[Wave] = (Wave("canary"), Wave("rest"))
    verb: RunVerb = RunVerb.APPLY
    pace: float = 2.0
    at_once: int = 1
    pause: Pause | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    held: Collection[str] = ()  # leases that a worker has
    loses_at_end: bool = False  # the lock, while the end of the run is written
    hidden: Collection[str] = ()  # members and projects that the fleet file does not have any more

    moment: float = 500.0
    lines: list[str] = field(default_factory=list, init=False)
    stop: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    on_loss: Callable[[StoreError], None] | None = field(default=None, init=False)

    # --- the clock and the random numbers of the process

    def now(self) -> float:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        assert len(self.lines) < 200, "the run does not end"
        self.lines.append(f"sleeps {seconds:g} s")
        self.moment += seconds
        await asyncio.sleep(0)

    def fraction(self) -> float:
        return 0.25

    # --- the worker

    async def work(self, task: Task, _: object) -> None:
        key = f"{task.member}/{task.project}"
        self.moment += self.pace
        event = self.left[key].pop(0) if self.left[key] else TaskState.SUCCEEDED
        self.lines.append(f"starts {key}")
        for _ in range(4 * (self.at_once > 1)):
            await asyncio.sleep(0)
        if event == "lose":
            raise OperationError("no worker has its key")
        if event == "forget":
            return
        for _ in range(event == "die twice"):
            self.records.claim_now(task.member, task.project, "worker")
        claimed = self.records.claim_now(task.member, task.project, "worker")
        if event in ("die", "die twice"):
            raise OperationError("its worker died")
        if callable(event):
            event(self)
            event = TaskState.SUCCEEDED
        assert isinstance(event, TaskState)
        reason = "" if event is TaskState.SUCCEEDED else "as scripted"
        self.records.end(replace(claimed, state=event, exit_code=0, reason=reason))

    # --- the run

    def make_fleet(self) -> Fleet:
        members = {name: Member(name) for name in self.members if name not in self.hidden}
        projects = {
            name: FleetProject(name, name, after=tuple(after))
            for name, after in self.after.items()
            if name not in self.hidden
        }
        return Fleet("shops", members, projects, KeySource(KeyMethod.ENV, "K"), tuple(self.waves), **self.limits)

    def play(self, patch: Callable[[object, str, object], None]) -> Iterator[str]:
        """What happened, in lines."""
        patch(local_pool, "run_task", self.work)
        patch(asyncio, "wait_for", wait_without_timeout)
        asyncio.run(self._execute())
        yield f"# {self.about}"
        yield from self.lines
        for task in self.records.all.values():
            reason = f": {task.reason}" if task.reason else ""
            code = "" if task.exit_code is None else f", exit code {task.exit_code}"
            yield f"  {task.member}/{task.project} {task.state}{code}, {task.attempts} attempts{reason}"

    async def _execute(self) -> None:
        fleet = self.make_fleet()
        waves = fleet.waves if self.verb is RunVerb.APPLY else ()
        run = Run("r1", "shops", self.verb, "/srv", "fleet.yaml", "", 0.0, waves=waves)
        tasks = [
            replace(TaskRecord("r1", name, project, wave if waves else 0), **self.before.get(f"{name}/{project}", {}))
            for name, wave in self.members.items()
            for project in self.after
        ]
        self.left = {
            f"{task.member}/{task.project}": [*self.script.get(f"{task.member}/{task.project}", ())] for task in tasks
        }
        self.records = MemoryRecords(self, run, tasks)
        pool = _Pool(Mock(), at_once=self.at_once)
        pool.lines = self.lines
        try:
            ended = await coordinator.execute(
                FleetSource(fleet, "/srv", "fleet.yaml"), run, cast("Any", self.records), pool,
                runtime=Mock(clock=self, random=self), on_progress=self.note, stop=self.stop, backoff=0.0,
                on_task=lambda task: self.lines.append(f"ended {task.member}/{task.project}"), **self.options,
            )  # fmt: skip
        except StoreError as error:
            self.lines.append(f"raises {type(error).__name__}: {error}")
        else:
            self.lines.append(": ".join(filter(None, (f"the run is {ended.state}", ended.reason))))
        assert "_watch" not in repr(asyncio.all_tasks())
        self.lines.append(f"locks {', '.join(f'{name} {number} times' for name, number in self.records.locks.items())}")

    def note(self, progress: FleetProgress) -> None:
        states = ", ".join(f"{number} {state}" for state, number in progress.states.items() if number)
        left = progress.remaining_seconds
        self.lines.append(
            f"{progress.wave}: {states}; {progress.ended_tasks} of {progress.total}, {progress.rate:.3f}/s"
            + (f", {left:.1f} s left" if left is not None else "")
            + (f"; waits: {progress.waiting}" if progress.waiting else "")
            + (f"; slow: {progress.slow}" if progress.slow else "")
        )

    # --- what may happen to a run

    def set_stop(self) -> None:
        self.stop.set()

    def lose_lock(self) -> None:
        assert self.on_loss is not None
        self.on_loss(LockLost("run r1"))

    def set_pause(self) -> None:
        self.pause = Pause("shops", 0.0, None, "for lunch")


_wait_for = asyncio.wait_for


async def wait_without_timeout(waiting: Awaitable[object], seconds: float) -> object:
    """Fails if the time passes: every wait ends with a change."""
    try:
        return await _wait_for(waiting, seconds)
    except TimeoutError:
        raise AssertionError("nothing ended the wait") from None


class _Pool(LocalPool):
    lines: list[str]

    async def run(self, tasks: AsyncIterator[Task]) -> Any:
        assert self.lines.count("the pool runs") < 9, "the run does not end"
        self.lines.append("the pool runs")
        async for end in super().run(tasks):
            yield TaskEnd(end.task, end.error)


class MemoryRecords:
    """The store of one run."""

    def __init__(self, scene: Scene, run: Run, tasks: Iterable[TaskRecord]) -> None:
        self.scene, self.run = scene, run
        self.all: dict[Key, TaskRecord] = {(task.member, task.project): task for task in tasks}
        self.locks: Counter[str] = Counter()

    async def now(self) -> float:
        return STORE + self.scene.moment

    async def pause_of(self, fleet: str) -> Pause | None:
        assert fleet == "shops"
        pause = self.scene.pause
        over = pause is not None and pause.until is not None and pause.until <= await self.now()
        return None if over else pause

    async def update_run(self, run: str, state: RunState, reason: str) -> Run:
        assert run == "r1"
        if self.scene.loses_at_end:
            self.scene.lose_lock()
        self.run = replace(self.run, state=state, reason=reason)
        return self.run

    async def tasks(self, run: str) -> tuple[TaskRecord, ...]:
        assert run == "r1"
        return tuple(self.all.values())

    async def task(self, run: str, member: str, project: str) -> TaskRecord | None:
        assert run == "r1"
        return self.all.get((member, project))

    async def claim(self, run: str, member: str, project: str, worker: str) -> TaskRecord:
        assert (run, worker) == ("r1", "")
        return self.claim_now(member, project, worker)

    def claim_now(self, member: str, project: str, worker: str) -> TaskRecord:
        task = self.all[member, project]
        if not task.state.is_final:
            task = replace(task, state=TaskState.RUNNING, attempts=task.attempts + 1, worker=worker)
        self.all[member, project] = task
        return task

    async def finish(self, task: TaskRecord) -> None:
        self.end(task)

    def end(self, task: TaskRecord) -> None:
        assert task.state.is_final
        self.all[task.member, task.project] = replace(task, ended=STORE + self.scene.moment)

    async def skip(self, run: str, keys: Iterable[Key], reason: str) -> None:
        assert run == "r1"
        for key in keys:
            self.scene.lines.append(f"skips {'/'.join(key)}")
            if self.all[key].state is TaskState.WAITING:
                self.all[key] = replace(self.all[key], state=TaskState.SKIPPED, reason=reason)

    @asynccontextmanager
    async def lock(self, name: str, on_loss: Callable[[StoreError], None]) -> AsyncIterator[None]:
        self.locks[name] += 1
        if name in self.scene.held:
            if self.locks[name] == 2:  # the worker ends the task
                _, member, project = name.split("/")
                self.end(replace(self.all[member, project], state=TaskState.SUCCEEDED, exit_code=0))
            raise Locked("task", "run", "host", 1, "noon", 60.0)
        if not self.scene.on_loss:
            self.scene.on_loss = on_loss
        yield
