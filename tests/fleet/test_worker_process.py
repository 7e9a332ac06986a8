"""A worker process: one event loop and one open store for the tasks of all its threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.fleet import worker_process
from reconciler.fleet.worker import WorkerContext
from reconciler.fleet.worker_process import run_task_here
from reconciler.model.fleet import Task
from reconciler.operations.errors import UnusableSetting
from tests.fleet.stub_tasks import make_task

Runs = list[tuple[Task, WorkerContext, str]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    """What the tasks of a new process run with."""
    found: Runs = []

    async def run_task(task: Task, context: WorkerContext) -> None:
        found.append((task, context, threading.current_thread().name))
        if task.member == "bad":
            raise LookupError("of the task")

    monkeypatch.setattr(worker_process, "run_task", run_task)
    worker_process._process.cache_clear()
    worker_process._files_of.cache_clear()
    yield found
    process = worker_process._process()
    asyncio.run_coroutine_threadsafe(process._stack.aclose(), process._loop).result()
    process._loop.call_soon_threadsafe(process._loop.stop)
    for thread in threading.enumerate():
        if thread.name == "fleet":
            thread.join(5)
    process._loop.close()
    worker_process._process.cache_clear()
    worker_process._files_of.cache_clear()


def test_the_tasks_of_all_threads_run_in_one_loop_with_one_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: Runs
) -> None:
    task, store = make_task(tmp_path, "acme"), str(tmp_path / "fleet.db")
    for name in ("RECONCILER_STORE", "RECONCILER_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for value in (None, ""):
        if value is not None:
            monkeypatch.setenv("RECONCILER_STORE", value)
        with pytest.raises(UnusableSetting) as caught:
            run_task_here(task)
        assert str(caught.value).partition("\n")[0] == "RECONCILER_STORE is not set on this worker"
        assert caught.value.remedy == "set it to the store of the fleet"
    assert runs == []
    monkeypatch.setenv("RECONCILER_STORE", store)
    monkeypatch.setenv("RECONCILER_CACHE", str(tmp_path / "cache"))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run_task_here, [task] * 8))
    monkeypatch.setenv("RECONCILER_STORE", "another")
    with pytest.raises(LookupError, match="of the task"):
        run_task_here(replace(task, member="bad"))
    assert [found for found, _, _ in runs] == [task] * 8 + [replace(task, member="bad")]
    assert {name for _, _, name in runs} == {"fleet"}
    assert len({id(context.records) for _, context, _ in runs}) == 1
    assert len({id(context.files) for _, context, _ in runs}) == 1
    first = runs[0][1]
    assert (first.store, first.cache) == (store, tmp_path / "cache")
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "fleet"].count(False) == 0


def test_files_are_cached_for_each_commit_or_run_of_the_last_four(tmp_path: Path) -> None:
    worker_process._files_of.cache_clear()
    first = [worker_process._files_of(name) for name in "abcd"]
    assert [worker_process._files_of(name) for name in "abcd"] == first
    assert [worker_process._files_of(name) is kept for name, kept in zip("abcd", first, strict=True)] == [True] * 4
    worker_process._files_of("e")
    assert worker_process._files_of("b") is first[1]
    assert worker_process._files_of("a") is not first[0]
    worker_process._files_of.cache_clear()


def test_the_files_of_a_task_are_those_of_its_commit_or_else_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: Runs
) -> None:
    monkeypatch.setenv("RECONCILER_STORE", str(tmp_path / "fleet.db"))
    task = make_task(tmp_path, "acme")
    for run, commit in (("r1", "c1"), ("r2", "c1"), ("r1", ""), ("r2", ""), ("r1", "c2")):
        run_task_here(replace(task, run=run, commit=commit))
    files = [id(context.files) for _, context, _ in runs]
    assert [files.index(one) for one in files] == [0, 0, 2, 3, 4]
