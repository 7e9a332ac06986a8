"""Tasks in one process: how many at a time, how each ends, and what a caller that leaves cancels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.fleet import local_pool
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.ports import TaskEnd
from reconciler.model.fleet import Task
from reconciler.operations.errors import OperationError
from reconciler.store.errors import StoreError
from tests.fleet.stub_tasks import make_task

CONTEXT: Any = object()


class Work:
    """Tasks that run until the test lets them end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *errors: Exception | None) -> None:
        self.taken, self.running, self.cancelled = list[str](), list[str](), list[str]()
        self.errors, self.go = dict(zip("abcdef", errors, strict=False)), asyncio.Event()
        monkeypatch.setattr(local_pool, "run_task", self.run_task)

    async def tasks(self) -> AsyncIterator[Task]:
        for name in "abcdef":
            self.taken.append(name)
            yield make_task(Path("/srv"), name)

    async def run_task(self, task: Task, context: object) -> None:
        assert context is CONTEXT
        self.running.append(task.member)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(task.member)
            raise
        if (error := self.errors.get(task.member)) is not None:
            raise error


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("at_once", [1, 2, 5, 6, 9])
async def test_as_many_tasks_run_at_a_time_as_have_room(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    errors = (None, OperationError("no store"), StoreError("it is away"), LookupError("canary"))
    work = Work(monkeypatch, *errors)
    ends: list[TaskEnd] = []

    async def collect() -> None:
        ends.extend([end async for end in LocalPool(CONTEXT, at_once=at_once).run(work.tasks())])

    collecting = asyncio.create_task(collect())
    await settle()
    assert work.taken == work.running == [*"abcdef"[:at_once]]
    work.go.set()
    await asyncio.wait_for(collecting, 5)
    line = Work.run_task.__code__.co_firstlineno + 9
    reasons = ["", "no store", "it is away", f"LookupError in {__file__}:{line}", "", ""]
    assert [(end.task.member, end.error) for end in ends] == list(zip("abcdef", reasons, strict=True))


async def test_a_caller_that_leaves_cancels_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    ends = LocalPool(CONTEXT, at_once=2).run(work.tasks())
    first = asyncio.ensure_future(anext(ends))
    await settle()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await ends.aclose()
    assert (work.taken, sorted(work.cancelled)) == (["a", "b"], ["a", "b"])


async def test_a_caller_that_stops_early_cancels_the_feeder_of_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    ends = LocalPool(CONTEXT, at_once=2).run(work.tasks())
    work.go.set()
    assert (await anext(ends)).task.member == "a"
    work.go.clear()
    await settle()
    running = len(work.running)
    await ends.aclose()
    assert "_feed" not in repr(asyncio.all_tasks())
    await settle()
    assert len(work.running) == running


async def test_an_error_of_the_caller_ends_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    async def tasks() -> AsyncIterator[Task]:
        yield make_task(Path("/srv"), "a")
        raise OperationError("the store is away")

    work = Work(monkeypatch)
    work.go.set()
    with pytest.raises(ExceptionGroup) as caught:
        async for _ in LocalPool(CONTEXT, at_once=2).run(tasks()):
            pass
    assert [str(error) for error in caught.value.exceptions] == ["the store is away"]
