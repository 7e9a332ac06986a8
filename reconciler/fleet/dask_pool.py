"""Runs the tasks of a fleet on the workers of a Dask scheduler (docs/decisions/0020).

Dask assigns tasks to workers and detects dead workers. The results of tasks are in the store, and nothing is fetched
from Dask: a task has ended when its function has returned, and a task that Dask lost is returned to the caller.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import reconciler
from reconciler.fleet.checkouts import check_source
from reconciler.fleet.ports import TaskEnd, describe_error
from reconciler.model.fleet import Task
from reconciler.operations.errors import UnusableCluster

if TYPE_CHECKING:
    from distributed import Client, Future

PATIENCE = 300.0
"""Seconds until a task that no worker can run is returned to the caller."""

_AHEAD = 2  # submitted tasks for each running task
_MAX_STUCK = 1000  # submitted tasks that wait for a resource
_SHARE = 1 / 1024  # of a worker's resource that a task uses: the amount is no limit, the resource only selects workers
_REFRESH = 2.0  # seconds between reads of the cluster's state

RunTask = Callable[[Task], None]
"""Runs a task in a thread of a worker, where it is imported by name."""


class TaskError(Exception):
    """A task ended with an exception on its worker. The text is sent through the scheduler and has no secrets."""


class WrongVersion(TaskError):
    """The worker has another version of reconciler than the command, and may interpret tasks differently."""


def run_on_worker(run: RunTask, task: Task, version: str) -> None:
    """Runs a task on a worker, called by Dask. Its arguments are names, and it returns nothing."""
    if version != reconciler.__version__:
        raise WrongVersion(f"a worker has version {reconciler.__version__} of reconciler, and this command {version}")
    try:
        run(task)
    except Exception as error:  # noqa: BLE001 - its cause, which would be sent too, may contain anything
        failure = describe_error(error)
    else:
        return
    raise TaskError(failure)


class DaskPool:
    """The port `Pool`, on the workers of a Dask scheduler.

    patience  seconds until a task that no worker can run is returned to the caller
    """

    version = reconciler.__version__  # workers must have the same

    def __init__(self, client: Client, where: str, run: RunTask, patience: float = PATIENCE) -> None:
        self._client, self._where, self._run, self._patience = client, where, run, patience

    async def run(self, tasks: AsyncIterator[Task]) -> AsyncGenerator[TaskEnd, None]:
        """See `Pool`. Raises UnusableCluster if the scheduler or all workers are lost."""
        batch = _Batch(self._client, self._patience, self._where)
        running = [asyncio.create_task(work) for work in (self._feed(tasks, batch), batch.watch_cluster())]
        try:
            while (end := await batch.ended.get()) is not None:
                if isinstance(end, UnusableCluster):
                    raise end
                yield end
            running[0].result()
        finally:
            await batch.close(running)

    async def _feed(self, tasks: AsyncIterator[Task], batch: _Batch) -> None:
        """Submits tasks while there is room, until there are no more and all have ended."""
        try:
            while await batch.wait_for_room():
                try:
                    task = await anext(tasks)
                except StopAsyncIteration:
                    break
                if task.commit:
                    check_source(task.source)
                # A new key for each attempt: Dask may still have the last one, with its failure.
                batch.add(
                    task,
                    self._client.submit(
                        run_on_worker, self._run, task, self.version,
                        key=(f"fleet_{task.verb}", task.key, secrets.token_hex(4)),
                        pure=False, retries=0, resources={task.needs: _SHARE} if task.needs else None,
                    ),
                )  # fmt: skip
            await batch.wait_for_all()
        finally:
            batch.ended.put_nowait(None)


class _Batch:
    """The tasks that were submitted to Dask and have not ended."""

    def __init__(self, client: Client, patience: float, where: str) -> None:
        self.client, self.patience, self.where = client, patience, where
        self.tasks: dict[Future, Task] = {}
        self.ended: asyncio.Queue[TaskEnd | UnusableCluster | None] = asyncio.Queue()
        self.threads: Counter[str] = Counter()  # threads of the workers with a resource; "": of all workers
        self.seen: dict[str, float] = {}  # when a worker with the resource was last connected
        self.changed = asyncio.Condition()
        self.watchers: set[asyncio.Task[None]] = set()
        self.run = ""

    def add(self, task: Task, future: Future) -> None:
        self.tasks[future], self.run = task, task.run
        watcher = asyncio.create_task(self._watch(task, future))
        self.watchers.add(watcher)
        watcher.add_done_callback(self.watchers.discard)

    async def _watch(self, task: Task, future: Future) -> None:
        failure = await future.exception()
        match future.status:
            case "finished":
                error = ""
            case "cancelled":
                error = "the scheduler lost it" if self._can_run(task) else f"no worker has the resource {task.needs}"
            case _:
                error = str(failure) if isinstance(failure, TaskError) else f"{type(failure).__name__}: {failure}"
        del self.tasks[future]
        future.release()  # otherwise the scheduler runs it again if this worker dies
        if isinstance(failure, WrongVersion):
            self._end(str(failure))
        self.ended.put_nowait(TaskEnd(task, error.partition("\n")[0]))
        async with self.changed:
            self.changed.notify_all()

    def _can_run(self, task: Task) -> bool:
        return bool(self.threads[task.needs]) or time.monotonic() - self.seen.get(task.needs, 0.0) < self.patience

    async def wait_for_room(self) -> bool:
        async with self.changed:
            return bool(await self.changed.wait_for(self._has_room))

    def _has_room(self) -> bool:
        """Counts tasks for a resource only up to the capacity of its workers, so that they do not delay others."""
        waiting = Counter(task.needs for task in self.tasks.values())
        busy = sum(min(number, _AHEAD * self.threads[needs]) for needs, number in waiting.items())
        room = self.client.status == "running" and busy < _AHEAD * self.threads[""]
        return room and len(self.tasks) < _MAX_STUCK + _AHEAD * self.threads[""]

    async def wait_for_all(self) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: not self.tasks)

    async def watch_cluster(self) -> None:
        """Counts the threads of the workers periodically, and ends the run if tasks can no longer run."""
        self.seen[""] = time.monotonic()
        lost = "lost the scheduler"
        while self.client.status != "closed":
            with suppress(OSError, AttributeError):  # the scheduler restarts
                self._count((await self.client.scheduler.identity())["workers"].values())
            now = time.monotonic()
            if now - self.seen[""] > self.patience:
                lost = f"no worker was connected to the scheduler for {self.patience:g} s"
                break
            waiting = {task.needs for task in self.tasks.values()}
            stuck = {needs for needs in waiting if now - self.seen.setdefault(needs, now) > self.patience}
            if stuck:
                await self.client.cancel([future for future, task in self.tasks.items() if task.needs in stuck])
            async with self.changed:
                self.changed.notify_all()
            await asyncio.sleep(min(_REFRESH, self.patience))
        self._end(lost)

    def _end(self, why: str) -> None:
        resume = f"the run can go on from where it is: `reconciler fleet resume {self.run}`"
        self.ended.put_nowait(UnusableCluster(f"{why} ({self.where})", remedy=resume))

    def _count(self, workers: Any) -> None:
        self.threads = Counter()
        for worker in workers:
            for name in ("", *worker["resources"]):
                self.threads[name] += worker["nthreads"]
                self.seen[name] = time.monotonic()

    async def close(self, running: Iterable[asyncio.Task[None]]) -> None:
        """Cancels the tasks that are still submitted: workers do not start them."""
        ending = [*running, *self.watchers]
        for work in ending:
            work.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        for future in self.tasks:
            future.release()
