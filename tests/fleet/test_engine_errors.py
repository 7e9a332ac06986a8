"""Tasks that an engine loses, or cannot run: given again, and failed alone if that does not help."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.fleet import local_pool
from reconciler.fleet.coordinator import MOST_TRIES
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.ports import TaskEnd
from reconciler.model.fleet import RunState, RunVerb, Task, TaskState
from reconciler.store.fleet_records import task_lease
from tests.fleet.fleets import FleetWorld, member, play

MEMBERS = [member("acme"), member("globex"), member("initech")]


class Losing:
    """A pool that loses the tasks of a member some times."""

    def __init__(self, world: FleetWorld, name: str, times: int) -> None:
        self.pool, self.name, self.times = LocalPool(world.context(), at_once=1), name, times
        self.lost = 0

    async def run(self, tasks: AsyncIterator[Task]) -> AsyncGenerator[TaskEnd, None]:
        async for task in tasks:
            if task.member == self.name and self.lost < self.times:
                self.lost += 1
                yield TaskEnd(task, "no worker has the resource keys-eu")
                continue

            async def one(task: Task = task) -> AsyncIterator[Task]:
                yield task

            async for end in self.pool.run(one()):
                yield end


def test_a_task_that_no_worker_can_run_fails_alone(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        pool = Losing(world, "globex", 1000)
        run = await world.execute(await world.start(RunVerb.PLAN), pool=pool, again=0.001)
        assert run.state is RunState.SUCCEEDED
        assert await world.states(run) == {"acme": "succeeded", "globex": "failed", "initech": "succeeded"}
        (failed,) = [task for task in await world.tasks(run) if task.member == "globex"]
        assert failed.reason == "no worker has the resource keys-eu"
        assert pool.lost == MOST_TRIES

    play(tmp_path, MEMBERS, act)


def test_a_task_that_the_engine_loses_some_times_is_run_in_the_end(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        pool = Losing(world, "globex", MOST_TRIES - 1)
        run = await world.execute(await world.start(RunVerb.PLAN), pool=pool, again=0.001)
        assert set((await world.states(run)).values()) == {"succeeded"}
        assert {task.tries for task in await world.tasks(run)} == {1}

    play(tmp_path, MEMBERS, act)


def test_an_error_that_nobody_expected_is_reported_without_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise LookupError("header Authorization: Bearer key-of-globex")

    async def act(world: FleetWorld) -> None:
        monkeypatch.setattr(local_pool, "run_task", fail)
        run = await world.execute(await world.start(RunVerb.PLAN), again=0.001)
        assert set((await world.states(run)).values()) == {"failed"}
        for task in await world.tasks(run):
            assert re.fullmatch(r"LookupError in \S+test_engine_errors.py:\d+", task.reason)

    play(tmp_path, MEMBERS, act)


def test_a_task_that_a_worker_runs_is_not_given_up(tmp_path: Path) -> None:
    """Its result would be lost."""

    async def act(world: FleetWorld) -> None:
        run = await world.start(RunVerb.PLAN)
        async with world.records.lock(task_lease(f"{run.id}/globex/web"), on_loss=lambda _: None):
            claimed = await world.records.claim(run.id, "globex", "web", "elsewhere")
            pool = Losing(world, "globex", MOST_TRIES + 2)
            executing = asyncio.create_task(world.execute(run, pool=pool, again=0.001))
            while pool.lost < pool.times:  # noqa: ASYNC110 - the pool tells nobody
                await asyncio.sleep(0.01)
            assert await world.records.finish(replace(claimed, state=TaskState.SUCCEEDED, shape="0" * 12))
        assert set((await world.states(await executing)).values()) == {"succeeded"}

    play(tmp_path, MEMBERS, act)


def test_tries_before_a_retry_or_a_resume_do_not_count(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        run = await world.start(RunVerb.PLAN)
        for _ in range(MOST_TRIES):
            await world.records.claim(run.id, "globex", "web", "a worker that was interrupted")
        run = await world.execute(run, pool=Losing(world, "globex", 1), again=0.001)
        assert set((await world.states(run)).values()) == {"succeeded"}

    play(tmp_path, MEMBERS, act)
