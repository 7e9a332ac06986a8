"""Runs tasks in this process, many at a time in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from reconciler.fleet.ports import TaskEnd, describe_error
from reconciler.fleet.worker import WorkerContext, run_task
from reconciler.model.fleet import Task


class LocalPool:
    """A pool of one process.

    at_once  tasks at a time
    """

    def __init__(self, context: WorkerContext, *, at_once: int) -> None:
        self._context = context
        self._at_once = at_once

    async def run(self, tasks: AsyncIterator[Task]) -> AsyncGenerator[TaskEnd, None]:
        """See `Pool.run`."""
        ends: asyncio.Queue[TaskEnd | None] = asyncio.Queue()
        feeder = asyncio.create_task(self._feed(tasks, ends))
        try:
            while (end := await ends.get()) is not None:
                yield end
            await feeder
        finally:
            feeder.cancel()
            await asyncio.gather(feeder, return_exceptions=True)

    async def _feed(self, tasks: AsyncIterator[Task], ends: asyncio.Queue[TaskEnd | None]) -> None:
        room = asyncio.Semaphore(self._at_once)
        try:
            async with asyncio.TaskGroup() as group:
                await room.acquire()
                async for task in tasks:
                    group.create_task(self._run(task, room, ends))
                    await room.acquire()
        finally:
            ends.put_nowait(None)

    async def _run(self, task: Task, room: asyncio.Semaphore, ends: asyncio.Queue[TaskEnd | None]) -> None:
        error = ""
        try:
            await run_task(task, self._context)
        except Exception as failure:  # noqa: BLE001 - the coordinator resubmits the task, and reports the last error
            error = describe_error(failure)
        ends.put_nowait(TaskEnd(task, error))
        room.release()
