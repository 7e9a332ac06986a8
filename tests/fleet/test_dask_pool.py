"""Tasks on Dask workers: killed workers, lost schedulers, resources, and the number of tasks at a time."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dask
import pytest
from distributed import Client, Future, Worker
from msgspec.structs import replace

import reconciler
from reconciler.fleet import dask_pool
from reconciler.fleet.dask_cluster import open_cluster_pool, open_local_pool
from reconciler.fleet.dask_pool import DaskPool, TaskError, WrongVersion, _Batch, run_on_worker
from reconciler.fleet.ports import TaskEnd
from reconciler.model.fleet import Task
from reconciler.operations.errors import OperationError, UnusableCluster, UnusableSource
from tests.fleet import stub_tasks
from tests.fleet.clusters import run_all, start_cluster, start_scheduler
from tests.fleet.stub_tasks import make_task
from tests.harness.tiers import full, only_if

MEMBERS = [f"member-{number}" for number in range(12)]


async def until(condition: object, seconds: float = 60.0) -> None:
    """Waits until `condition()` is true."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("allowed", only_if(lambda allowed: allowed == 0, [3, 0]))
async def test_every_task_ends_although_a_worker_is_killed(tmp_path: Path, allowed: int) -> None:
    """Dask resubmits the tasks of a killed worker, and beyond `allowed-failures` the caller does."""
    before = dict(os.environ)

    async def disturb() -> None:
        await until(lambda: len(stub_tasks.read_runs(tmp_path)) == 4)
        for process in {process for _, process in stub_tasks.read_runs(tmp_path)}:
            os.kill(process, signal.SIGINT)  # like Ctrl-C in the terminal
        await asyncio.sleep(0.1)
        os.kill(stub_tasks.read_runs(tmp_path)[0][1], signal.SIGKILL)
        await until(lambda: len(stub_tasks.read_runs(tmp_path)) > 4)
        (tmp_path / "go").touch()

    failures: list[str] = []
    with dask.config.set({"distributed.scheduler.allowed-failures": allowed}):
        async with open_local_pool(stub_tasks.wait, 2, threads=2) as pool:
            disturbing = asyncio.create_task(disturb())
            ends = await run_all(
                pool,
                [make_task(tmp_path, member) for member in MEMBERS],
                on_end=lambda end: failures.append(end.error) if end.error else None,
            )
            await disturbing
    assert sorted(end.task.member for end in ends) == sorted(MEMBERS)
    assert bool(failures) == (allowed == 0)
    assert all(failure.startswith("KilledWorker: ") for failure in failures)
    runs = Counter(member for member, _ in stub_tasks.read_runs(tmp_path))
    assert runs.keys() == set(MEMBERS)
    assert sum(runs.values()) <= len(MEMBERS) + 2 + len(failures)  # two ran in the killed worker
    assert dict(os.environ) == before
    for process in {process for _, process in stub_tasks.read_runs(tmp_path)}:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


async def test_tasks_are_submitted_only_as_they_can_start(tmp_path: Path) -> None:
    taken: list[str] = []

    async def submit() -> AsyncIterator[Task]:
        for member in MEMBERS:
            taken.append(member)
            yield make_task(tmp_path, member)

    async with start_cluster({}) as scheduler, open_cluster_pool(stub_tasks.wait, scheduler.address) as pool:
        ends = pool.run(submit())
        first = asyncio.create_task(anext(ends))
        await until(lambda: len(stub_tasks.read_runs(tmp_path)) == 2)
        await asyncio.sleep(0.2)
        assert len(taken) == 4  # two are running, and two are ready
        (tmp_path / "go").touch()
        assert (await first).error == ""
        assert [end.error async for end in ends] == [""] * 11


async def test_waiting_tasks_are_cancelled_with_their_caller(tmp_path: Path) -> None:
    async def submit() -> AsyncIterator[Task]:
        for member in MEMBERS:
            yield make_task(tmp_path, member)

    async with (
        start_cluster() as scheduler,
        Worker(scheduler.address, host="127.0.0.1", nthreads=2, memory_limit=0) as worker,
        open_cluster_pool(stub_tasks.wait, scheduler.address) as pool,
    ):
        ends = pool.run(submit())
        first = asyncio.create_task(anext(ends))
        await until(lambda: len(stub_tasks.read_runs(tmp_path)) == 2)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await ends.aclose()
        await until(lambda: not scheduler.tasks and len(worker.state.tasks) == 2)  # the two running tasks
        (tmp_path / "go").touch()
        await until(lambda: not worker.state.tasks)
    assert len(stub_tasks.read_runs(tmp_path)) == 2


async def test_a_task_with_a_resource_runs_on_workers_that_have_it(tmp_path: Path) -> None:
    """Tasks whose workers are missing are returned, and do not delay others."""
    workers = ({"name": "eu", "resources": {"keys-eu": 1}}, {"name": "us"})
    tasks = [make_task(tmp_path, f"asia-{number}", "keys-asia") for number in range(20)]
    tasks += [make_task(tmp_path, f"eu-{number}", "keys-eu") for number in range(20)]
    tasks += [make_task(tmp_path, f"any-{number}") for number in range(20)]
    async with (
        start_cluster(*workers) as scheduler,
        open_cluster_pool(stub_tasks.record_worker, scheduler.address, patience=0.5) as pool,
    ):
        ends = {end.task.member: end.error for end in await run_all(pool, tasks, resubmit=False)}
    assert {member for member, error in ends.items() if error} == {f"asia-{number}" for number in range(20)}
    assert {error for error in ends.values() if error} == {"no worker has the resource keys-asia"}
    assert {(tmp_path / f"eu-{number}").read_text() for number in range(20)} == {"eu"}
    assert {(tmp_path / f"any-{number}").read_text() for number in range(20)} <= {"eu", "us"}
    assert len(ends) == 60


async def test_tasks_are_resubmitted_after_a_restart_of_the_scheduler(tmp_path: Path) -> None:
    """Its tasks are returned, and resubmitted once it and its workers are connected again."""
    (tmp_path / "go").touch()
    ends: list[TaskEnd] = []
    async with start_cluster({}) as first:
        port = first.port
        async with open_cluster_pool(stub_tasks.work, first.address) as pool:
            running = asyncio.create_task(run_all(pool, [make_task(tmp_path, member) for member in MEMBERS]))
            await until(lambda: len(stub_tasks.read_runs(tmp_path)) >= 3)
            await first.close()
            async with (
                start_scheduler(port=port) as second,
                Worker(second.address, host="127.0.0.1", nthreads=2, memory_limit=0),
            ):
                ends = await running
    assert sorted(end.task.member for end in ends) == sorted(MEMBERS)


async def test_a_lost_scheduler_ends_the_command_and_not_the_run(tmp_path: Path) -> None:
    async with start_cluster({}) as scheduler:
        async with open_cluster_pool(stub_tasks.wait, scheduler.address, reconnect=0.5) as pool:
            running = asyncio.create_task(run_all(pool, [make_task(tmp_path, member) for member in MEMBERS]))
            await until(lambda: len(stub_tasks.read_runs(tmp_path)) == 2)
            await scheduler.close(timeout=0.1)
            with pytest.raises(UnusableCluster, match=r"lost the scheduler \(tcp://") as caught:
                await running
            assert "`reconciler fleet resume 20261123-101500-a1b2`" in caught.value.remedy
        (tmp_path / "go").touch()


async def test_a_cluster_without_workers_ends_the_command(tmp_path: Path) -> None:
    async with (
        start_scheduler() as scheduler,
        open_cluster_pool(stub_tasks.work, scheduler.address, patience=0.2) as pool,
    ):
        with pytest.raises(UnusableCluster, match=r"no worker was connected to the scheduler for 0\.2 s"):
            await run_all(pool, [make_task(tmp_path, "member")])


async def test_workers_of_another_version_end_the_command(tmp_path: Path) -> None:
    async with start_cluster({}) as scheduler, open_cluster_pool(stub_tasks.work, scheduler.address) as pool:
        pool.version = "0.0.1"
        with pytest.raises(UnusableCluster, match=r"a worker has version .*, and this command 0\.0\.1 \(tcp://"):
            await run_all(pool, [make_task(tmp_path, "member")])
    assert stub_tasks.read_runs(tmp_path) == []


async def test_an_error_of_the_caller_ends_the_run(tmp_path: Path) -> None:
    async def submit() -> AsyncIterator[Task]:
        yield make_task(tmp_path, "member")
        raise OperationError("the store is unreachable")

    async with start_cluster({}) as scheduler, open_cluster_pool(stub_tasks.work, scheduler.address) as pool:
        with pytest.raises(OperationError, match="the store is unreachable"):
            async for _ in pool.run(submit()):
                pass


def test_dask_is_imported_only_when_used() -> None:
    code = "import sys, reconciler.fleet.dask_cluster; print({'dask', 'distributed', 'tornado'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"


@full
def test_workers_end_after_a_kill_of_the_command(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from pathlib import Path; from tests.fleet import stub_tasks, test_dask_pool as test;"
        "asyncio.run(test.wait_in_workers(Path(sys.argv[1])))"
    )
    command = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=Path(__file__).parents[2])
    deadline = time.monotonic() + 60
    while len(stub_tasks.read_runs(tmp_path)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    command.kill()
    command.wait()
    for process in {process for _, process in stub_tasks.read_runs(tmp_path)}:
        while Path(f"/proc/{process}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)


async def wait_in_workers(folder: Path) -> None:
    """The command that the test above kills."""
    async with open_local_pool(stub_tasks.wait, 2, threads=1) as pool:
        await run_all(pool, [make_task(folder, member) for member in MEMBERS])


# --- with a client in memory


class Answer:
    """A submitted task, which ends as the test says."""

    def __init__(self, status: str, failure: Exception | None) -> None:
        self.status, self.failure, self.released = status, failure, 0

    async def exception(self) -> Exception | None:
        return self.failure

    def release(self) -> None:
        self.released += 1


class Cluster:
    """A client of a cluster with these threads: what it was asked to run, and how that ended."""

    status = "running"

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked, self.scheduler = list(answers), list[dict[str, Any]](), self
        self.workers = {"a": {"nthreads": 2, "resources": {"keys-eu": 1}}, "b": {"nthreads": 1, "resources": {}}}

    async def identity(self) -> dict[str, Any]:
        return {"workers": self.workers}

    def submit(self, *_: object, **options: Any) -> Answer:
        self.asked.append(options)
        return self.answers[len(self.asked) - 1]

    async def cancel(self, futures: object) -> None:
        raise AssertionError(futures)


ENDS = [
    ("finished", None, ""),
    ("cancelled", None, "the scheduler lost it"),
    ("error", TaskError("KeyError in a.py:1\nand more"), "KeyError in a.py:1"),
    ("error", TimeoutError("too late"), "TimeoutError: too late"),
]


async def test_each_end_of_a_task_has_its_error_and_frees_the_task(tmp_path: Path) -> None:
    answers = [Answer(status, failure) for status, failure, _ in ENDS]
    cluster = Cluster(*answers)
    pool = DaskPool(cast("Client", cluster), "tcp://x", stub_tasks.work)
    needs = ("", "keys-eu", "", "keys-eu")
    tasks = [make_task(tmp_path, str(place), need) for place, need in enumerate(needs)]
    ends = {end.task.member: end.error for end in await run_all(pool, tasks, resubmit=False)}
    assert [ends[str(place)].startswith(error) for place, (*_, error) in enumerate(ENDS)] == [True] * 4
    assert ends["0"] == ""
    assert [answer.released for answer in answers] == [1] * 4
    resources = {"keys-eu": 1 / 1024}
    assert [asked["resources"] for asked in cluster.asked] == [resources if need else None for need in needs]
    assert {(asked["pure"], asked["retries"]) for asked in cluster.asked} == {(False, 0)}
    assert len({asked["key"] for asked in cluster.asked}) == 4


def make_batch(**threads: int) -> _Batch:
    batch = _Batch(cast("Client", Cluster()), 300.0, "tcp://x")
    batch.threads.update({"": threads.pop("every", 0), **threads})
    return batch


@pytest.mark.parametrize(
    ("threads", "ago", "can_run"), [(1, 999.0, True), (0, None, False), (0, 299.9, True), (0, 300.0, False)]
)
async def test_a_resource_is_missing_only_after_the_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, ago: float | None, can_run: bool
) -> None:
    """`ago`: when a worker with it was seen."""
    batch = make_batch(eu=threads)
    monkeypatch.setattr(time, "monotonic", lambda: 300.5)
    if ago is not None:
        batch.seen["eu"] = 300.5 - ago
    assert batch._can_run(make_task(tmp_path, "a", "eu")) is can_run


async def test_tasks_are_submitted_up_to_twice_the_threads_and_a_thousand_that_are_stuck(tmp_path: Path) -> None:
    def has_room(batch: _Batch, **tasks: int) -> bool:
        names = [(name, place) for name, number in tasks.items() for place in range(number)]
        batch.tasks = {
            cast("Future", (name, place)): make_task(tmp_path, "a", "" if name == "every" else name)
            for name, place in names
        }
        return batch._has_room()

    batch = make_batch(every=3, eu=1)
    assert [has_room(batch, every=number) for number in (0, 5, 6, 7)] == [True, True, False, False]
    assert [has_room(batch, every=3, eu=number) for number in (0, 2, 3, 900)] == [True, True, True, True]
    assert [has_room(batch, every=4, eu=number) for number in (0, 1, 2, 900)] == [True, True, False, False]
    assert [has_room(batch, asia=number) for number in (1005, 1006, 1007)] == [True, False, False]
    batch.client.status = "connecting"
    assert not has_room(batch)


# --- the cluster as it changes


class Watched:
    """A batch with a watched cluster: each pause runs the next step, and the last step closes the client."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, patience: float = 10.0) -> None:
        self.moment, self.pauses, self.cancelled = 100.0, list[float](), list[list[str]]()
        self.cluster = Cluster()
        self.failure: Exception | None = None
        self.let_others_run = asyncio.sleep
        self.batch = _Batch(cast("Client", self.cluster), patience, "tcp://x")
        self.steps: list[tuple[float, Callable[[], object]]] = []
        monkeypatch.setattr(self.cluster, "identity", self.identify)
        monkeypatch.setattr(self.cluster, "cancel", self.cancel)
        monkeypatch.setattr(dask_pool, "time", SimpleNamespace(monotonic=lambda: self.moment))
        monkeypatch.setattr(asyncio, "sleep", self.pause)

    async def identify(self) -> dict[str, Any]:
        if self.failure is not None:
            raise self.failure
        return {"workers": self.cluster.workers}

    async def cancel(self, futures: list[Any]) -> None:
        self.cancelled.append(futures)

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self.let_others_run(0)
        if not self.steps:
            self.cluster.status = "closed"
            return
        self.moment, act = self.steps.pop(0)
        act()

    async def watch(self) -> str:
        """How the watch ended: text and remedy of the error."""
        await self.batch.watch_cluster()
        end = self.batch.ended.get_nowait()
        assert isinstance(end, UnusableCluster)
        assert self.batch.ended.empty()
        return f"{str(end).partition(chr(10))[0]}; {end.remedy}"


RESUME = "the run can go on from where it is: `reconciler fleet resume {}`"


async def test_threads_are_those_of_the_workers_that_are_connected_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, threads = Watched(monkeypatch), list[dict[str, int]]()
    batch, workers = watched.batch, watched.cluster.workers

    def note(and_then: Callable[[], object] = lambda: None) -> Callable[[], object]:
        def act() -> None:
            threads.append(dict(batch.threads))
            and_then()

        return act

    watched.steps = [
        (101.0, note(lambda: workers.pop("a"))),
        (102.0, note(partial(setattr, watched, "failure", OSError("it restarts")))),
        (103.0, note(partial(setattr, watched, "failure", AttributeError("it restarts")))),
        (104.0, note()),
    ]
    waiting = asyncio.create_task(batch.wait_for_room())
    await watched.let_others_run(0)
    batch.run = "r1"
    assert await watched.watch() == f"lost the scheduler (tcp://x); {RESUME.format('r1')}"
    assert threads == [{"": 3, "keys-eu": 2}, *[{"": 1}] * 3]
    assert batch.seen == {"": 101.0, "keys-eu": 100.0}
    assert watched.pauses == [2.0] * 5
    assert await asyncio.wait_for(waiting, 5)


async def test_a_run_ends_when_no_worker_was_connected_for_longer_than_the_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(monkeypatch, 0.5)
    watched.steps = [
        (100.25, lambda: watched.cluster.workers.clear()),
        (100.5, lambda: None),
        (100.51, lambda: None),
        (999.0, lambda: None),
    ]
    why = await watched.watch()
    assert why == f"no worker was connected to the scheduler for 0.5 s (tcp://x); {RESUME.format('')}"
    assert (watched.pauses, watched.cancelled) == ([0.5] * 3, [])


async def test_tasks_that_no_worker_can_run_are_cancelled_after_the_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    needs = {"one": "asia", "two": "keys-eu", "three": "asia", "four": "", "five": "mars"}
    tasks = {cast("Future", name): make_task(tmp_path, name, need) for name, need in needs.items()}
    later = {cast("Future", "five"): tasks.pop(cast("Future", "five"))}
    watched.batch.tasks = tasks
    watched.steps = [
        (105.0, lambda: watched.batch.tasks.update(later)),
        (110.0, lambda: None),
        (110.5, lambda: None),
        (115.5, lambda: watched.cluster.workers.update(c={"nthreads": 1, "resources": {"asia": 1}})),
    ]
    await watched.watch()
    assert watched.cancelled == [["one", "three"], ["five"]]


async def test_an_error_of_the_program_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    watched.failure = ValueError("of the program")
    with pytest.raises(ValueError, match="of the program"):
        await watched.batch.watch_cluster()
    watched.cluster.status = "closed"
    assert await watched.watch() == f"lost the scheduler (tcp://x); {RESUME.format('')}"


async def test_a_closed_batch_releases_what_is_submitted_and_watches_nothing(tmp_path: Path) -> None:
    class Endless(Answer):
        async def exception(self) -> Exception | None:
            await asyncio.Event().wait()
            return None

    answers = [Endless("pending", None), Endless("pending", None)]
    batch = make_batch()
    for answer in answers:
        batch.add(make_task(tmp_path, "a"), cast("Future", answer))
    assert batch.run == stub_tasks.RUN
    await asyncio.sleep(0)
    running = asyncio.create_task(asyncio.sleep(99))
    watchers = [*batch.watchers]
    await batch.close([running])
    assert [work.cancelled() for work in (running, *watchers)] == [True] * 3
    assert ([answer.released for answer in answers], batch.watchers) == ([1, 1], set())


@pytest.mark.parametrize(
    ("status", "failure", "needs", "ends"),
    [
        ("cancelled", None, "asia", ["no worker has the resource asia"]),
        ("error", WrongVersion("another\nversion"), "", ["another\nversion (tcp://x)", "another"]),
    ],
)
async def test_a_task_that_no_worker_can_run_is_reported(
    tmp_path: Path, status: str, failure: Exception | None, needs: str, ends: list[str]
) -> None:
    batch, answer = make_batch(every=1), Answer(status, failure)
    batch.add(make_task(tmp_path, "a", needs), cast("Future", answer))
    await asyncio.wait_for(batch.wait_for_all(), 5)
    found = [batch.ended.get_nowait() for _ in range(batch.ended.qsize())]
    assert [end.error if isinstance(end, TaskEnd) else str(end).partition("\nthe run")[0] for end in found] == ends
    assert (answer.released, batch.tasks) == (1, {})


# --- what is submitted, and what a worker does with it


async def test_a_task_is_submitted_with_its_function_and_version_under_a_new_key(tmp_path: Path) -> None:
    submitted: list[tuple[Any, ...]] = []

    class Noting(Cluster):
        def submit(self, *words: object, **options: Any) -> Answer:
            submitted.append(words)
            return super().submit(*words, **options)

    cluster = Noting(*(Answer("finished", None) for _ in range(2)))
    pool = DaskPool(cast("Client", cluster), "tcp://x", stub_tasks.work)
    task = make_task(tmp_path, "acme")
    assert [end.error for end in await run_all(pool, [task, task], resubmit=False)] == ["", ""]
    assert "watch_cluster" not in repr(asyncio.all_tasks())
    assert submitted == [(run_on_worker, stub_tasks.work, task, reconciler.__version__)] * 2
    names = [asked["key"] for asked in cluster.asked]
    assert {name[:2] for name in names} == {("fleet_plan", f"{stub_tasks.RUN}/acme/tunnels")}
    assert {len(name[2]) for name in names} == {8}
    assert (pool._patience, dask_pool.PATIENCE) == (300.0, 300.0)  # as documented


@pytest.mark.parametrize(("commit", "is_refused"), [("c0ffee", True), ("", False)])
async def test_the_source_of_a_commit_is_checked_before_it_is_sent(
    tmp_path: Path, commit: str, is_refused: bool
) -> None:
    cluster = Cluster(Answer("finished", None))
    pool = DaskPool(cast("Client", cluster), "tcp://x", stub_tasks.work)
    task = replace(make_task(tmp_path, "acme"), source="https://ci:canary@host/a", commit=commit)
    if is_refused:
        with pytest.raises(UnusableSource, match="contains a user or password"):
            await run_all(pool, [task])
    else:
        await run_all(pool, [task])
    assert len(cluster.asked) == (not is_refused)


def test_a_worker_runs_a_task_of_its_version_and_sends_no_cause(tmp_path: Path) -> None:
    task, own = make_task(tmp_path, "acme"), reconciler.__version__
    seen: list[Task] = []
    run_on_worker(seen.append, task, own)
    assert seen == [task]
    with pytest.raises(WrongVersion) as caught:
        run_on_worker(seen.append, task, "0.0.1")
    assert str(caught.value) == f"a worker has version {own} of reconciler, and this command 0.0.1"

    def fail(_: Task) -> None:
        raise LookupError("canary")

    with pytest.raises(TaskError) as failed:
        run_on_worker(fail, task, own)
    assert str(failed.value) == f"LookupError in {__file__}:{fail.__code__.co_firstlineno + 1}"
    assert (failed.value.__cause__, failed.value.__context__, seen) == (None, None, [task])

    def interrupt(_: Task) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_on_worker(interrupt, task, own)
