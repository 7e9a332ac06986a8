"""Tasks on Dask workers: killed workers, lost schedulers, resources, and the number of tasks at a time."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import dask
import pytest
from distributed import Worker

from reconciler.fleet.dask_cluster import open_cluster_pool, open_local_pool
from reconciler.fleet.ports import TaskEnd
from reconciler.model.fleet import Task
from reconciler.operations.errors import OperationError, UnusableCluster
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
