"""Runs tasks in a Dask worker: in one event loop for all threads of the process, with the fleet's store open."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path

from reconciler.fleet.checkouts import fetch_checkout, is_url
from reconciler.fleet.places import find_cache, find_store
from reconciler.fleet.worker import WorkerContext, run_task
from reconciler.model.fleet import Task
from reconciler.operations.errors import UnusableSetting
from reconciler.operations.runtime import Runtime
from reconciler.project.fleets.load import load_fleet
from reconciler.store.fleet_records import open_fleet_records


def run_task_here(task: Task) -> None:
    """Runs a task, called in any thread, with the environment variables of this process. Raises what `run_task` raises,
    UnusableSource and UnusableSetting."""
    _process().run(task)


class _Process:
    """An event loop in a thread of its own. It ends with the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._runtime = Runtime()
        self._stack = AsyncExitStack()
        self._contexts: dict[str, WorkerContext] = {}
        self._stores: dict[tuple[str, str, str], str] = {}
        self._opening = asyncio.Lock()
        threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True).start()

    def run(self, task: Task) -> None:
        asyncio.run_coroutine_threadsafe(self._run(task), self._loop).result()

    async def _run(self, task: Task) -> None:
        await run_task(task, await self._open_context(task))

    async def _open_context(self, task: Task) -> WorkerContext:
        """The context for the store of the task's fleet."""
        async with self._opening:
            fleet = (task.source, task.commit, task.file)
            if fleet not in self._stores:
                self._stores[fleet] = await asyncio.to_thread(self._find_store, task)
            store = self._stores[fleet]
            if store not in self._contexts:
                records = await self._stack.enter_async_context(open_fleet_records(store, now=self._runtime.now))
                self._contexts[store] = WorkerContext(records, store, find_cache(self._runtime.environ), self._runtime)
            return self._contexts[store]

    def _find_store(self, task: Task) -> str:
        environ = self._runtime.environ
        folder = Path(task.source) / Path(task.file).parent
        if (chosen := environ.get("RECONCILER_STORE")) and ("://" in chosen or Path(chosen).is_absolute()):
            return chosen
        checkout = fetch_checkout(task.source, task.commit, find_cache(environ), environ)
        fleet = load_fleet(checkout, task.file)
        store = find_store(fleet, folder, environ)
        if is_url(task.source) and "://" not in store:
            raise UnusableSetting(
                f"the store of fleet {fleet.name} is a file, which other machines do not have",
                remedy="set RECONCILER_STORE=postgresql://… on every worker",
            )
        return store


@cache
def _process() -> _Process:
    return _Process()
