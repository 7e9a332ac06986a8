"""Laws of runs over the real store: waves, order of projects, failures, lost workers and back-off, by a naive model."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.fleet import coordinator
from reconciler.fleet.coordinator import MAX_ATTEMPTS
from reconciler.fleet.ports import TaskEnd
from reconciler.fleet.runs import FleetSource, find_gate, reopen_run
from reconciler.model.fleet import (
    Amount,
    Fleet,
    FleetProject,
    KeyMethod,
    KeySource,
    Member,
    Run,
    RunState,
    RunVerb,
    Task,
    TaskRecord,
    TaskState,
    Wave,
)
from reconciler.operations.runtime import Runtime
from reconciler.store.fleets.records import FleetRecords, open_fleet_records

DIE, LOSE = "die", "lose"  # a worker that claimed the task died; the engine found no worker
FAILED, SUCCEEDED = TaskState.FAILED, TaskState.SUCCEEDED
ENDS = (SUCCEEDED, SUCCEEDED, FAILED, TaskState.STALE, TaskState.BLOCKED)
Key = tuple[str, str]
Script = Mapping[Key, tuple[Sequence[str], TaskState]]  # trouble first, then the end


class ScriptedPool:
    """A pool of one worker, which does with each task as in a script."""

    def __init__(self, records: FleetRecords, script: Script) -> None:
        self.records, self.started = records, list[Key]()
        self._left = {key: [*trouble, end] for key, (trouble, end) in script.items()}

    async def run(self, tasks: AsyncIterator[Task]) -> AsyncGenerator[TaskEnd, None]:
        async for task in tasks:
            key = (task.member, task.project)
            self.started.append(key)
            event = self._left[key].pop(0)
            if event == LOSE:
                yield TaskEnd(task, "no worker")
                continue
            claimed = await self.records.claim(task.run, *key, "worker")
            if event == DIE:
                yield TaskEnd(task, "the worker died")
                continue
            reason = "" if event is SUCCEEDED else "as scripted"
            await self.records.finish(replace(claimed, state=event, exit_code=0, reason=reason))
            yield TaskEnd(task)


def make_fleet(tiers: Sequence[int], limits: Sequence[Amount], projects: Sequence[str]) -> Fleet:
    """Members of tiers, each of which is a wave with a limit of failures; each project comes after the one before."""
    members = {f"m{number}": Member(f"m{number}", {"tier": str(tier)}) for number, tier in enumerate(tiers)}
    waves = tuple(Wave(f"w{tier}", {"tier": (str(tier),)}, max_failures=limit) for tier, limit in enumerate(limits))
    named = {
        name: FleetProject(name, name, after=(projects[place - 1],) if place else ())
        for place, name in enumerate(projects)
    }
    return Fleet("shops", members, named, KeySource(KeyMethod.ENV, "KEY"), waves)


_numbers = itertools.count()


async def start(fleet: Fleet, records: FleetRecords) -> Run:
    run_id = f"20260101-000000-{next(_numbers):04x}"
    run = Run(run_id, "shops", RunVerb.APPLY, ".", "fleet.yaml", "", 0.0, waves=fleet.waves)
    tasks = [
        TaskRecord(run_id, member.name, project, int(member.labels["tier"]))
        for member in fleet.members.values()
        for project in fleet.projects
    ]
    await records.create_run(run, tasks)
    return run


async def execute(fleet: Fleet, run: Run, pool: Any, **options: Any) -> Run:
    options = {"backoff": 0.0, "stop": asyncio.Event(), "on_progress": lambda _: None, **options}
    source = FleetSource(fleet, ".", "fleet.yaml")
    return await coordinator.execute(source, run, pool.records, pool, runtime=Runtime(environ={}), **options)


def exceeds(failed: Collection[str], limit: Amount, members: Collection[str]) -> bool:
    """Whether more members of a wave failed than its limit allows."""
    return len(failed) * 100 > limit.number * (len(members) if limit.is_percent else 100)


def predict(fleet: Fleet, script: Script) -> tuple[dict[Key, TaskState], RunState, str]:
    """What becomes of each task and of the run, one task after another."""
    states: dict[Key, TaskState] = {}
    stopped = ""
    projects = list(fleet.projects)
    for tier, wave in enumerate(fleet.waves):
        members = [member.name for member in fleet.members.values() if member.labels["tier"] == str(tier)]
        failed: set[str] = set()
        queue = [(member, projects[0]) for member in members]
        while queue and not stopped and not exceeds(failed, wave.max_failures, members):
            member, project = queue.pop(0)
            end = script[member, project][1]
            states[member, project] = end
            if end is FAILED:
                failed.add(member)
            place = projects.index(project) + 1
            if end is SUCCEEDED and place < len(projects):
                queue.append((member, projects[place]))
            elif end is not SUCCEEDED:
                states |= {(member, later): TaskState.SKIPPED for later in projects[place:]}
        if not stopped and exceeds(failed, wave.max_failures, members):
            stopped = f"{len(failed)} {'member' if len(failed) == 1 else 'members'} of wave {wave.name} failed"
        ran = {states.get((member, project)) for member in members for project in projects} - {TaskState.SKIPPED, None}
        is_followed = any(int(member.labels["tier"]) > tier for member in fleet.members.values())
        if not stopped and members and is_followed and SUCCEEDED not in ran:
            stopped = f"no member of wave {wave.name} was applied"
    everywhere = {(member, project) for member in fleet.members for project in projects}
    states |= dict.fromkeys(everywhere - states.keys(), TaskState.SKIPPED)
    return states, RunState.FAILED if stopped else RunState.SUCCEEDED, stopped


@st.composite
def runs(draw: st.DrawFn) -> tuple[Fleet, Script]:
    tiers = draw(st.lists(st.integers(0, 2), min_size=1, max_size=5))
    amounts = st.builds(Amount, st.integers(0, 2)) | st.builds(
        Amount, st.sampled_from([0, 34, 50, 99, 100]), st.just(True)
    )
    limits = draw(st.tuples(*[amounts] * 3))
    projects = ("base", "shop")[: draw(st.integers(1, 2))]
    fleet = make_fleet(tiers, limits, projects)
    trouble = st.lists(st.sampled_from([DIE, LOSE]), max_size=2 if draw(st.booleans()) else 0)
    script = {
        (member, project): (draw(trouble), draw(st.sampled_from(ENDS)))
        for member in fleet.members
        for project in projects
    }
    return fleet, script


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One for all runs of a law."""
    return str(tmp_path_factory.mktemp("laws") / "fleet.db")


@given(drawn=runs())
def test_a_run_ends_as_the_model_of_waves_and_projects(store: str, drawn: tuple[Fleet, Script]) -> None:
    fleet, script = drawn
    tasks, run, pool = asyncio.run(play(store, fleet, script))
    if not any(trouble for trouble, _ in script.values()):  # a worker that dies changes the order of ends
        states = {key: task.state for key, task in tasks.items()}
        assert (states, run.state, run.reason) == predict(fleet, script)
    check_order(fleet, pool, tasks, run, script)


@pytest.mark.parametrize(
    ("sizes", "percent", "allowed"),
    [((1, 3), 50, (0, 1)), ((3, 1), 34, (1, 0)), ((2, 3), 100, (2, 3))],
)
def test_a_limit_in_percent_is_of_the_members_of_its_wave(
    store: str, sizes: tuple[int, int], percent: int, allowed: tuple[int, int]
) -> None:
    """Neither of all members of the run, nor of the tasks: a member has one for each project."""
    fleet = make_fleet([0] * sizes[0] + [1] * sizes[1], [Amount(percent, is_percent=True)] * 2, ("base", "shop"))
    for wave, size in enumerate(sizes):
        for failing in {allowed[wave], min(allowed[wave] + 1, size)}:
            failed = [name for name, member in fleet.members.items() if member.labels["tier"] == str(wave)][-failing:]
            script = {
                (name, project): ((), FAILED if failing and name in failed and project == "shop" else SUCCEEDED)
                for name, project in itertools.product(fleet.members, fleet.projects)
            }
            tasks, run, _ = asyncio.run(play(store, fleet, script))
            assert ({key: task.state for key, task in tasks.items()}, run.state, run.reason) == predict(fleet, script)
            assert run.state is (RunState.FAILED if failing > allowed[wave] else RunState.SUCCEEDED)


async def play(store: str, fleet: Fleet, script: Script) -> tuple[dict[Key, TaskRecord], Run, ScriptedPool]:
    async with open_fleet_records(store) as records:
        pool = ScriptedPool(records, script)
        run = await execute(fleet, await start(fleet, records), pool)
        tasks = await records.tasks(run.id)
        stored = await records.find_run("shops", run.id)
        assert stored is not None
        assert (stored.state, stored.reason, stored.ended) == (run.state, run.reason, run.ended)
    return {(task.member, task.project): task for task in tasks}, run, pool


def check_order(fleet: Fleet, pool: ScriptedPool, tasks: Mapping[Key, TaskRecord], run: Run, script: Script) -> None:
    """Laws that hold whatever dies: no wave before the one before, no project before the one before, none twice."""
    tiers = [int(fleet.members[member].labels["tier"]) for member, _ in pool.started]
    assert tiers == sorted(tiers)
    counts = Counter(pool.started)
    for key, task in tasks.items():
        trouble, end = script[key]
        before = [tasks[key[0], name] for name in fleet.projects[key[1]].after]
        assert counts[key] <= len(trouble) + 1
        if task.state is not TaskState.SKIPPED:
            assert (task.state, task.attempts) == (end, trouble.count(DIE) + 1)
            assert all(other.state is SUCCEEDED for other in before)
        elif counts[key]:  # the run ended while it waited for another worker
            assert (trouble != [], task.reason) == (True, run.reason)
        elif before and before[0].state is not SUCCEEDED and before[0].state is not TaskState.SKIPPED:
            assert task.reason in (f"project {before[0].project} {before[0].state}", run.reason)


# --- workers that die, engines that lose tasks ------------------------------------------------------------------------


def run_alone(tmp_path: Path, trouble: Sequence[str], **options: Any) -> tuple[TaskRecord, ScriptedPool]:
    async def act() -> tuple[TaskRecord, ScriptedPool]:
        async with open_fleet_records(str(tmp_path / "fleet.db")) as records:
            fleet = make_fleet([0], [Amount(0)], ["web"])
            pool = ScriptedPool(records, {("m0", "web"): (trouble, SUCCEEDED)})
            run = await execute(fleet, await start(fleet, records), pool, **options)
            (task,) = await records.tasks(run.id)
            return task, pool

    return asyncio.run(act())


@pytest.mark.parametrize("trouble", [DIE, LOSE])
def test_a_task_has_ten_attempts_and_no_more(tmp_path: Path, trouble: str) -> None:
    assert MAX_ATTEMPTS == 10  # as documented
    task, pool = run_alone(tmp_path, [trouble] * 9)
    assert (task.state, len(pool.started)) == (SUCCEEDED, 10)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [(DIE, "10 workers started it, and none finished it: the worker died"), (LOSE, "no worker")],
)
def test_a_task_without_a_worker_fails_with_the_last_error(tmp_path: Path, trouble: str, reason: str) -> None:
    task, pool = run_alone(tmp_path, [trouble] * 20)
    assert (task.state, task.exit_code, task.reason, len(pool.started)) == (FAILED, 1, reason, 10)


def test_errors_count_only_one_after_another(tmp_path: Path) -> None:
    """Nine errors, a worker that started and ended without an error, and nine more."""

    class Forgetful(ScriptedPool):
        async def run(self, tasks: AsyncIterator[Task]) -> AsyncGenerator[TaskEnd, None]:
            async for end in super().run(tasks):
                yield replace(end, error="") if len(self.started) == 10 else end

    async def act() -> None:
        async with open_fleet_records(str(tmp_path / "fleet.db")) as records:
            fleet = make_fleet([0], [Amount(0)], ["web"])
            pool = Forgetful(records, {("m0", "web"): ([LOSE] * 19, SUCCEEDED)})
            run = await execute(fleet, await start(fleet, records), pool)
            assert (run.state, len(pool.started)) == (RunState.SUCCEEDED, 20)

    asyncio.run(act())


def test_a_task_waits_longer_after_each_error_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []
    delay = coordinator._Execution.delay

    def observe(self: Any, key: Any) -> float:
        waited.append(delay(self, key))
        return 0.0

    monkeypatch.setattr(coordinator._Execution, "delay", observe)
    run_alone(tmp_path, [LOSE] * 9, backoff=1.0)
    assert waited == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0, 32.0]


def test_a_delayed_task_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async def act() -> list[Key]:
        async with open_fleet_records(str(tmp_path / "fleet.db")) as records:
            fleet = make_fleet([0, 0, 0], [Amount(0)], ["web"])
            script: Script = {(name, "web"): ([LOSE] if name == "m0" else [], SUCCEEDED) for name in fleet.members}
            pool = ScriptedPool(records, script)
            run = await execute(fleet, await start(fleet, records), pool, backoff=0.05)
            assert run.state is RunState.SUCCEEDED
            return pool.started

    assert asyncio.run(act()) == [("m0", "web"), ("m1", "web"), ("m2", "web"), ("m0", "web")]


# --- resumed and retried runs -----------------------------------------------------------------------------------------


@given(drawn=runs(), number=st.integers(0, 6))
def test_a_run_that_was_stopped_and_resumed_ends_as_if_it_was_not(
    store: str, drawn: tuple[Fleet, Script], number: int
) -> None:
    fleet, script = drawn
    script = {key: ([], end) for key, (_, end) in script.items()}

    async def act() -> None:
        async with open_fleet_records(store) as records:
            run, stop, ended = await start(fleet, records), asyncio.Event(), list[TaskRecord]()

            def count(task: TaskRecord) -> None:
                ended.append(task)
                if len(ended) == number:
                    stop.set()

            pool = ScriptedPool(records, script)
            first = await execute(fleet, run, pool, stop=stop, on_task=count)
            again = await execute(fleet, run, pool) if first.state is RunState.OPEN else first
            states = {(task.member, task.project): task.state for task in await records.tasks(run.id)}
            expected, state, _ = predict(fleet, script)
            assert (states, again.state) == (expected, state)
            assert max(Counter(pool.started).values(), default=0) <= 1

    asyncio.run(act())


def test_a_retry_runs_what_failed_and_what_waited_for_it(tmp_path: Path) -> None:
    async def act() -> None:
        async with open_fleet_records(str(tmp_path / "fleet.db")) as records:
            fleet = make_fleet([0, 0, 1], [Amount(0)] * 2, ["base", "shop"])
            script = dict.fromkeys(((m, p) for m in fleet.members for p in fleet.projects), ((), SUCCEEDED))
            pool = ScriptedPool(records, {**script, ("m1", "base"): ((), FAILED)})
            run = await execute(fleet, await start(fleet, records), pool)
            assert run.state is RunState.FAILED
            before = set(pool.started)
            reopened = await reopen_run(run, records, [FAILED, TaskState.SKIPPED])
            assert reopened is not None
            assert (reopened.state, reopened.ended, reopened.reason) == (RunState.OPEN, None, "")
            retried = ScriptedPool(records, script)
            assert (await execute(fleet, reopened, retried)).state is RunState.SUCCEEDED
            everything = {(m, p) for m in fleet.members for p in fleet.projects}
            assert set(retried.started) == everything - (before - {("m1", "base")})
            assert await reopen_run(run, records, [FAILED, TaskState.SKIPPED]) is None

    asyncio.run(act())


# --- gates ------------------------------------------------------------------------------------------------------------


def make_ended(member: str, wave: int, moment: float | None) -> TaskRecord:
    state = TaskState.WAITING if moment is None else SUCCEEDED
    return TaskRecord("r", member, "web", wave, state, attempts=int(moment is not None), ended=moment)


@pytest.mark.parametrize(
    ("now", "until"),
    [(100.0, 160.0), (159.9, 160.0), (160.0, None), (161.0, None)],
)
def test_a_wave_may_start_when_the_last_task_before_it_ended_long_enough_ago(now: float, until: float | None) -> None:
    waves = (Wave("a", min_success_time=60.0), Wave("b"))
    run = Run("r", "shops", RunVerb.APPLY, ".", "f", "", 0.0, waves=waves)
    tasks = [make_ended("x", 0, 90.0), make_ended("y", 0, 100.0), make_ended("z", 1, None)]
    gate = find_gate(run, tasks, 1, now)
    assert (gate and gate.until) == until
    assert gate is None or gate.reason == "min_success_time of wave a"


@pytest.mark.parametrize(
    ("approved", "reason"),
    [(("a",), "approval of wave b"), (("a", "b"), None), (("b",), None), ((), "approval of wave b")],
)
def test_a_wave_waits_for_its_own_approval(approved: tuple[str, ...], reason: str | None) -> None:
    waves = (Wave("a", approve=True), Wave("b", approve=True))
    tasks = [make_ended("x", 0, 5.0), make_ended("z", 1, None)]
    for approved, reason in (
        (("a",), "approval of wave b"),
        (("a", "b"), None),
        (("b",), None),
        ((), "approval of wave b"),
    ):
        run = Run("r", "shops", RunVerb.APPLY, ".", "f", "", 0.0, waves=waves, approved_waves=approved)
        gate = find_gate(run, tasks, 1, time.time())
        assert (gate and gate.reason) == reason
    for verb in (RunVerb.PLAN, RunVerb.DRIFT):
        assert find_gate(Run("r", "shops", verb, ".", "f", "", 0.0, waves=waves), tasks, 1, 0.0) is None


@pytest.mark.parametrize(
    ("amount", "total", "number"),
    [(Amount(0), 9, 0), (Amount(3), 9, 3), (Amount(50, is_percent=True), 3, 1), (Amount(34, is_percent=True), 3, 1),
     (Amount(33, is_percent=True), 3, 0), (Amount(100, is_percent=True), 7, 7)],
)  # fmt: skip
def test_a_share_of_members_is_rounded_down(amount: Amount, total: int, number: int) -> None:
    assert amount.of(total) == number
