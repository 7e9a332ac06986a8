"""Runs a fleet: submits tasks to a pool, wave by wave, until every task has ended or a gate is closed.

All state is in the store: `resume` continues the run of a coordinator that died, and no ended task is run again.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.engine.retry import sleep_until_stopped
from reconciler.fleet.board import Board, TaskKey
from reconciler.fleet.ports import Pool, TaskEnd
from reconciler.fleet.runs import FleetSource, Gate, check_waves, find_gate, run_lease
from reconciler.model import exit_codes
from reconciler.model.fleet import Run, RunState, RunVerb, Task, TaskRecord, TaskState, Wave
from reconciler.operations.runtime import Runtime
from reconciler.store.errors import Locked, StoreError
from reconciler.store.fleets.records import FleetRecords, task_lease

MAX_ATTEMPTS = 10  # workers that may die in one task, or errors one after another, before it counts as failed
_POLL = 1.0  # seconds between reads of the pause
_QUIET = 10.0  # seconds without an end of a task after which running ones are named
_SLOW = 3  # times the usual interval between ends
_BACKOFF = 1.0  # seconds before a task that could not run is resubmitted; doubled after each further error
_MAX_BACKOFF = 32  # times _BACKOFF


class FleetProgress(Struct, frozen=True):
    """The progress of a run.

    states   number of tasks by state
    wave     name of the running wave
    rate     tasks that ended per second since this coordinator started
    waiting  why the run waits; empty: it does not
    slow     if no task has ended for long: the members of running tasks, with their seconds so far, longest first
    """

    states: Mapping[TaskState, int]
    wave: str
    rate: float
    waiting: str = ""
    slow: tuple[tuple[str, float], ...] = ()

    @property
    def total(self) -> int:
        return sum(self.states.values())

    @property
    def ended_tasks(self) -> int:
        return sum(count for state, count in self.states.items() if state.is_final)

    @property
    def remaining_seconds(self) -> float | None:
        """The estimate for the tasks that have not ended; None: unknown."""
        return (self.total - self.ended_tasks) / self.rate if self.rate else None


OnProgress = Callable[[FleetProgress], None]
OnTask = Callable[[TaskRecord], None]
"""Called for each task that ended, on whatever worker."""


async def execute(
    source: FleetSource,
    run: Run,
    records: FleetRecords,
    pool: Pool,
    *,
    runtime: Runtime,
    on_progress: OnProgress,
    stop: asyncio.Event,
    on_task: OnTask | None = None,
    wait: bool = True,
    backoff: float = _BACKOFF,
) -> Run:
    """Runs the tasks that have not ended, until all have, until `stop` is set, or until a gate that needs approval.

    wait     wait for the end of pauses and for `min_success_time`; otherwise the run remains open
    backoff  seconds before a task that could not run is resubmitted; doubled after each further error

    Raises ChangedWaves, Locked if another coordinator executes this run, and StoreError, also if the lock was lost:
    then another coordinator may execute the run.
    """
    check_waves(source, run)
    lost: list[StoreError] = []
    async with records.lock(run_lease(run), on_loss=lost.append):
        board = Board(await records.tasks(run.id))
        executed = await _Execution(
            source, run, records, pool, runtime, on_progress, stop, lost, on_task, wait, backoff, board
        ).run_waves()
    if lost and executed.state is RunState.OPEN:
        raise lost[0]
    return executed


class _Execution(Struct):
    source: FleetSource
    run: Run
    records: FleetRecords
    pool: Pool
    runtime: Runtime
    on_progress: OnProgress
    stop: asyncio.Event
    lost: list[StoreError]  # why the lock was lost
    on_task: OnTask | None
    wait: bool
    backoff: float
    board: Board
    errors: Counter[TaskKey] = field(default_factory=Counter)  # of the pool, one after another
    ended_here: int = 0
    began: float = 0.0
    last_end: float = 0.0
    slow: tuple[tuple[str, float], ...] = ()
    paused: float = 0.0  # when the pause was last read from the store
    wave: int = 0

    @property
    def current_wave(self) -> Wave:
        return self.run.wave_at(self.wave)

    @property
    def is_stopped(self) -> bool:
        return self.stop.is_set() or bool(self.lost)

    @property
    def has_too_many_failures(self) -> bool:
        if self.run.verb is not RunVerb.APPLY:
            return False
        allowed = self.current_wave.max_failures.of(len(self.board.members[self.wave]))
        return len(self.board.failed[self.wave]) > allowed

    async def run_waves(self) -> Run:
        self.began = self.runtime.clock.now()
        for wave in sorted({task.wave for task in self.board.tasks.values()}):
            self.wave = wave
            while self.board.unfinished[self.wave] and not self.has_too_many_failures:
                if not await self._pass_gates():
                    return self.run
                await self._run_wave()
            if self.lost:
                return self.run  # another coordinator may execute it
            if reason := self._find_failure():
                return await self._fail(reason)
        return await self._end(RunState.SUCCEEDED, "")

    def _find_failure(self) -> str:
        """Why no later wave may start; empty: it may."""
        name, failed = self.current_wave.name, len(self.board.failed[self.wave])
        if self.has_too_many_failures:
            return f"{failed} {'member' if failed == 1 else 'members'} of wave {name} failed"
        own = [task for task in self.board.tasks.values() if task.wave == self.wave]
        states = {task.state for task in own if task.attempts} or {task.state for task in own}
        # A wave without approved shapes is skipped. One with members without a plan is not: these are skipped.
        is_skipped = not any(task.attempts for task in own) and TaskState.SKIPPED not in states
        has_succeeded = TaskState.SUCCEEDED in states or is_skipped
        is_followed = any(self.board.unfinished.values())
        return f"no member of wave {name} was applied" if is_followed and not has_succeeded else ""

    async def _fail(self, reason: str) -> Run:
        waiting = [key for key, task in self.board.tasks.items() if not task.state.is_final]
        await self.records.skip(self.run.id, waiting, reason)
        for task in await self.records.tasks(self.run.id):
            self.board.set(task)
        return await self._end(RunState.FAILED, reason)

    async def _end(self, state: RunState, reason: str) -> Run:
        run = await self.records.update_run(self.run.id, state=state, reason=reason)
        self._report("")
        return run

    # --- gates --------------------------------------------------------------------------------------------------------

    async def _pass_gates(self) -> bool:
        """Waits until the wave may continue; False if it may not."""
        while not self.is_stopped:
            gate = await self._find_gate()
            if gate is None:
                return True
            self._report(gate.reason)
            if gate.until is None or not self.wait:
                return False
            await self.sleep(min(gate.until - await self.records.now(), _POLL))
        return False

    async def _find_gate(self) -> Gate | None:
        pause = await self.records.pause_of(self.run.fleet)
        if pause is not None:
            return Gate(f"paused: {pause.reason}" if pause.reason else "paused", pause.until)
        tasks = list(self.board.tasks.values())
        return find_gate(self.run, tasks, self.wave, await self.records.now())

    async def sleep(self, seconds: float) -> None:
        """Sleeps, at most until `stop` is set."""
        await sleep_until_stopped(self.runtime.clock.sleep(max(seconds, 0.0)), self.stop)

    async def may_continue(self) -> bool:
        """Whether more tasks of the wave may start. Reads the pause from the store every `_POLL` seconds."""
        if self.is_stopped or self.has_too_many_failures:
            return False
        now = self.runtime.clock.now()
        if now - self.paused < _POLL:
            return True
        self.paused = now
        return await self.records.pause_of(self.run.fleet) is None

    # --- one wave -----------------------------------------------------------------------------------------------------

    async def _run_wave(self) -> None:
        feed = _Feed(self)
        self.last_end = self.runtime.clock.now()
        watch = asyncio.create_task(self._watch())
        try:
            async with aclosing(self.pool.run(feed.submit())) as ends:
                async for end in ends:
                    await self._settle(end)
                    await feed.settle((end.task.member, end.task.project))
                    self._report("")
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def _watch(self) -> None:
        """Reports the running tasks while none has ended for long: an estimate from earlier ends would be stale."""
        while True:
            await asyncio.sleep(_POLL)
            usual = 1 / self._rate if self._rate else 0.0
            if self.runtime.clock.now() - self.last_end < max(_QUIET, _SLOW * usual):
                continue
            with suppress(StoreError):  # the lock decides whether the run goes on
                now = await self.records.now()
                running = await self.records.list_running(self.run.id)
                seconds = {task.member: now - (task.started or now) for task in reversed(running)}
                self.slow = tuple(reversed(seconds.items()))
                self._report("")

    async def _settle(self, end: TaskEnd) -> None:
        """Reads the result of a task from the store."""
        record = await self.records.task(self.run.id, end.task.member, end.task.project)
        assert record is not None
        key = (record.member, record.project)
        self.errors[key] = self.errors[key] + 1 if end.error else 0
        attempts = record.attempts - self.board.earlier_attempts[key]
        if not record.state.is_final and max(attempts, self.errors[key]) >= MAX_ATTEMPTS:
            record = await self._fail_task(record, attempts, end.error)
        self.board.set(record)
        if record.state.is_final:
            self.ended_here += 1
            self.last_end, self.slow = self.runtime.clock.now(), ()
            if self.on_task is not None:
                self.on_task(record)

    async def _fail_task(self, record: TaskRecord, attempts: int, error: str) -> TaskRecord:
        """Fails a task that cannot be run, unless a worker is running it. Returns its record."""
        with suppress(Locked):
            async with self.records.lock(task_lease(record.key), on_loss=lambda _: None):
                record = await self.records.claim(record.run, record.member, record.project, "")
                if not record.state.is_final:
                    why = f"{attempts} workers started it, and none finished it" if attempts else ""
                    reason = ": ".join(filter(None, (why, error)))
                    code = exit_codes.PARTLY if record.changes else exit_codes.ERROR  # as a worker that died left it
                    failed = replace(record, state=TaskState.FAILED, exit_code=code, reason=reason)
                    await self.records.finish(failed)
        ended = await self.records.task(record.run, record.member, record.project)
        assert ended is not None
        return ended

    def delay(self, key: TaskKey) -> float:
        """The back-off of a task that could not run, in seconds."""
        return self.backoff * min(1 << max(self.errors[key] - 1, 0), _MAX_BACKOFF)

    async def skip_after(self, before: TaskKey, key: TaskKey) -> None:
        """Skips a task of a project that comes after one that did not succeed."""
        task = self.board.tasks[before]
        await self.records.skip(self.run.id, [key], f"project {task.project} {task.state}")
        skipped = await self.records.task(self.run.id, *key)
        assert skipped is not None
        self.board.set(skipped)

    def task_of(self, key: TaskKey) -> Task:
        fleet = self.source.fleet
        member = fleet.members.get(key[0])
        needs = fleet.resource_of(member) if member is not None else ""  # the worker reports a missing member
        run, source = self.run, self.source
        return Task(run.id, run.fleet, *key, run.verb, source.source, source.file, source.commit, needs, run.health)

    @property
    def _rate(self) -> float:
        seconds = self.runtime.clock.now() - self.began
        return self.ended_here / seconds if seconds > 0 else 0.0

    def _report(self, waiting: str) -> None:
        states, wave = dict(self.board.states), self.current_wave.name
        self.on_progress(FleetProgress(states, wave, self._rate, waiting, () if waiting else self.slow))


class _Feed:
    """Submits the tasks of a wave to a pool. A task waits until the projects before its project have succeeded."""

    def __init__(self, execution: _Execution) -> None:
        self._execution = execution
        self._ready: deque[TaskKey] = deque()
        self._needs: dict[TaskKey, set[TaskKey]] = {}  # tasks that must succeed before
        self._running: set[TaskKey] = set()
        self._delayed: set[TaskKey] = set()
        self._changed = asyncio.Event()
        self._started = 0

    async def submit(self) -> AsyncIterator[Task]:
        for key in self._execution.board.find_unfinished(self._execution.wave):
            await self._sort(key)
        while self._ready or self._running or self._delayed:
            if not await self._execution.may_continue():
                return
            if self._ready:
                await self._spread_start()
                key = self._ready.popleft()
                self._running.add(key)
                yield self._execution.task_of(key)
            else:
                self._changed.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), _POLL)

    async def _spread_start(self) -> None:
        """Waits a random time before each of the first starts of a wave."""
        fleet, execution = self._execution.source.fleet, self._execution
        if fleet.start_spread and self._started < fleet.members_at_once:
            most = 2 * fleet.start_spread / fleet.members_at_once
            await execution.sleep(most * execution.runtime.random.fraction())
        self._started += 1

    async def _sort(self, key: TaskKey) -> None:
        """Adds a task to the ready tasks, or to those that wait for others."""
        member, project = key
        tasks, projects = self._execution.board.tasks, self._execution.source.fleet.projects
        is_ordered = self._execution.run.verb is RunVerb.APPLY and project in projects
        after = projects[project].after if is_ordered else ()  # the worker reports a missing project
        before = [(member, name) for name in after if (member, name) in tasks]
        ended = [other for other in before if tasks[other].state.is_final]
        for other in ended:
            if tasks[other].state is not TaskState.SUCCEEDED:
                await self._execution.skip_after(other, key)
                return
        if waiting := set(before) - set(ended):
            self._needs[key] = waiting
        else:
            self._ready.append(key)

    async def settle(self, key: TaskKey) -> None:
        """Handles a task that the pool returned. If it has not ended, it is resubmitted after its back-off."""
        self._running.discard(key)
        state = self._execution.board.tasks[key].state
        if not state.is_final:
            self._delayed.add(key)
            asyncio.get_running_loop().call_later(self._execution.delay(key), self._resubmit, key)
        else:
            await self._release(key)
        self._changed.set()

    async def _release(self, key: TaskKey) -> None:
        for other in [other for other, needs in self._needs.items() if other[0] == key[0] and key in needs]:
            if self._execution.board.tasks[key].state is not TaskState.SUCCEEDED:
                del self._needs[other]
                await self._execution.skip_after(key, other)
                await self._release(other)
            else:
                self._needs[other].discard(key)
                if not self._needs[other]:
                    del self._needs[other]
                    self._ready.append(other)

    def _resubmit(self, key: TaskKey) -> None:
        self._delayed.discard(key)
        self._ready.append(key)
        self._changed.set()
