"""Runs tasks in a Dask worker: in one event loop for all threads of the process, with the fleet's store open."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from functools import cache, lru_cache

from msgspec.structs import replace

from reconciler.fleet.assignments import FileCache
from reconciler.fleet.places import find_cache
from reconciler.fleet.worker import WorkerContext, run_task
from reconciler.model.fleet import Task
from reconciler.operations.errors import UnusableSetting
from reconciler.operations.runtime import Runtime
from reconciler.store.fleets.records import open_fleet_records

_STARTING = threading.Lock()


def run_task_here(task: Task) -> None:
    """Runs a task in a worker process of an engine, in any thread.

    The environment names the fleet store (RECONCILER_STORE) and the folder of checkouts (RECONCILER_CACHE; by default
    `~/.cache/reconciler`). Raises StoreError or UnusableSetting.
    """
    with _STARTING:
        process = _process()
    process.run(task)


class _Process:
    """An event loop in a separate thread, which ends with the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._runtime = Runtime()
        self._stack = AsyncExitStack()
        self._context: WorkerContext | None = None
        self._opening = asyncio.Lock()
        threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True).start()

    def run(self, task: Task) -> None:
        asyncio.run_coroutine_threadsafe(self._run(task), self._loop).result()

    async def _run(self, task: Task) -> None:
        context = await self._open_context()
        await run_task(task, replace(context, files=_files_of(task.commit or task.run)))

    async def _open_context(self) -> WorkerContext:
        """The context of all tasks, opened by the first one, or by a later one if the store was unreachable."""
        async with self._opening:
            if self._context is None:
                environ = self._runtime.environ
                if not (store := environ.get("RECONCILER_STORE")):
                    missing = "RECONCILER_STORE is not set on this worker"
                    raise UnusableSetting(missing, remedy="set it to the store of the fleet")
                records = await self._stack.enter_async_context(open_fleet_records(store))
                self._context = WorkerContext(records, store, find_cache(environ), self._runtime)
            return self._context


@cache
def _process() -> _Process:
    return _Process()


@lru_cache(maxsize=4)
def _files_of(version: str) -> FileCache:
    """The cache of this process for the files of a commit, or of a run without a commit."""
    return FileCache()
