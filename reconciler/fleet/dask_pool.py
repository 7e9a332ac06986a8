"""Runs the tasks of a fleet on the workers of a Dask scheduler (docs/decisions/0020).

Dask places tasks on workers and notices dead ones. What became of a task is in the store, so that nothing is fetched
from Dask: a task has ended when its function has returned anywhere, and a task that Dask lost is given back.
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
"""Seconds until a task is given back that no worker can run."""

_AHEAD = 2  # tasks with Dask, for each that runs
_MOST_STUCK = 1000  # tasks with Dask that wait for a resource
_SHARE = 1 / 1024  # of a worker's resource that a task takes: the amount is no limit, the resource only names workers
_REFRESH = 2.0  # seconds between looks at the cluster

RunTask = Callable[[Task], None]
"""Runs a task in a thread of a worker, where it is imported by name."""


class TaskError(Exception):
    """A task ended with an exception on its worker. The text travels through the scheduler and has no secrets."""


class WrongVersion(TaskError):
    """The worker has another version of reconciler than the command, and may understand tasks differently."""


def run_on_worker(run: RunTask, task: Task, version: str) -> None:
    """What Dask calls on a worker. Takes names and returns nothing."""
    if version != reconciler.__version__:
        raise WrongVersion(f"a worker has version {reconciler.__version__} of reconciler, and this command {version}")
    try:
        run(task)
    except Exception as error:  # noqa: BLE001 - its cause, which would travel too, may contain anything
        failure = describe_error(error)
    else:
        return
    raise TaskError(failure)


class DaskPool:
    """The port `Pool`, on the workers of a Dask scheduler.

    patience  seconds until a task is given back that no worker can run
    """

    version = reconciler.__version__  # that workers must have too

    def __init__(self, client: Client, where: str, run: RunTask, patience: float = PATIENCE) -> None:
        self._client, self._where, self._run, self._patience = client, where, run, patience

    async def run(self, tasks: AsyncIterator[Task]) -> AsyncGenerator[TaskEnd, None]:
        """See `Pool`. Raises UnusableCluster if the scheduler or all workers are lost."""
        batch = _Batch(self._client, self._patience, self._where)
        running = [asyncio.create_task(each) for each in (self._feed(tasks, batch), batch.watch_cluster())]
        try:
            while (end := await batch.ended.get()) is not None:
                if isinstance(end, UnusableCluster):
                    raise end
                yield end
            running[0].result()
        finally:
            await batch.close(running)

    async def _feed(self, tasks: AsyncIterator[Task], batch: _Batch) -> None:
        """Submits tasks as there is room, until there are no more and all have ended."""
        try:
            while await batch.wait_for_room():
                try:
                    task = await anext(tasks)
                except StopAsyncIteration:
                    break
                if task.commit:
                    check_source(task.source)
                # A new key for each try: Dask may still have the last, with its failure.
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
    """The tasks that are with Dask."""

    def __init__(self, client: Client, patience: float, where: str) -> None:
        self.client, self.patience, self.where = client, patience, where
        self.tasks: dict[Future, Task] = {}
        self.ended: asyncio.Queue[TaskEnd | UnusableCluster | None] = asyncio.Queue()
        self.threads: Counter[str] = Counter()  # of the workers that have a resource; "": of all
        self.seen: dict[str, float] = {}  # when there was a worker with a resource
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
        future.release()  # or the scheduler runs it again when this worker dies
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
        """Tasks for a resource count as far as its workers are busy with them, so that they do not hold up others."""
        waiting = Counter(task.needs for task in self.tasks.values())
        busy = sum(min(number, _AHEAD * self.threads[needs]) for needs, number in waiting.items())
        room = self.client.status == "running" and busy < _AHEAD * self.threads[""]
        return room and len(self.tasks) < _MOST_STUCK + _AHEAD * self.threads[""]

    async def wait_for_all(self) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: not self.tasks)

    async def watch_cluster(self) -> None:
        """Counts the threads of the workers from time to time, and ends the run if tasks cannot run any more."""
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
        """Gives up what is still with Dask: workers do not start it any more."""
        ending = [*running, *self.watchers]
        for each in ending:
            each.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        for future in self.tasks:
            future.release()
