"""Each task of a fleet is finished once, whoever claims it, dies, comes back late, or claims it at the same moment."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.fleet import Run, RunVerb, TaskRecord, TaskState
from reconciler.store.fleet_records import FleetRecords, open_fleet_records
from tests.harness.tiers import examples
from tests.store.fleet_stores import STORES, new_store

RUN = Run("20261123-101500-a1b2", "edge", RunVerb.PLAN, "/srv/fleet", "fleet.yaml", "", 1000.0)
WORKERS, MEMBERS = ("w1", "w2", "w3"), ("a", "b")

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["claim", "beat", "finish", "reset"]), st.sampled_from(WORKERS), st.sampled_from(MEMBERS)
    ),
    max_size=25,
)


async def check_steps(records: FleetRecords, steps: list[tuple[str, str, str]]) -> None:
    """Any order of claims, deaths (a worker does nothing any more), signs of life and ends."""
    await records.create_run(RUN, [TaskRecord(RUN.id, member, "shop") for member in MEMBERS])
    held: dict[tuple[str, str], TaskRecord] = {}  # what each worker believes to have
    owner: dict[str, str] = {}  # whose claim is the last
    tries, finished = Counter[str](), Counter[str]()
    done: dict[str, TaskRecord] = {}
    for number, (step, worker, member) in enumerate(steps):
        has_it = owner.get(member) == worker and (worker, member) in held
        record = held.get((worker, member))
        if step == "claim":
            claimed = await records.claim(RUN.id, member, "shop", worker)
            if member in done:
                assert claimed == done[member]
                continue
            tries[member] += 1
            assert (claimed.state, claimed.tries, claimed.worker) == (TaskState.RUNNING, tries[member], worker)
            held[worker, member], owner[member] = claimed, worker
        elif step == "beat" and record is not None:
            assert await records.beat(replace(record, requests=record.requests + number)) is has_it
        elif step == "finish" and record is not None:
            result = replace(record, state=TaskState.FAILED, reason=f"step {number}", requests=record.requests + number)
            assert await records.finish(result) is has_it
            if has_it:
                finished[member] += 1
                stored = await records.task(RUN.id, member, "shop")
                assert stored is not None
                assert stored == replace(result, ended=stored.ended)
                done[member] = stored
                del owner[member]
        elif step == "reset":
            assert await records.reset(RUN.id, [TaskState.FAILED]) == len(done)
            done.clear()
            finished.clear()
        assert all(count <= 1 for count in finished.values())
    for member in MEMBERS:
        final = await records.task(RUN.id, member, "shop")
        assert final is not None
        assert final.tries == tries[member]
        assert final.state.is_final is (member in done)


@settings(max_examples=examples(100), deadline=None)
@given(STEPS)
@example([("claim", "w1", "a"), ("finish", "w1", "a"), ("finish", "w1", "a")])
@example(
    [("claim", "w1", "a"), ("finish", "w1", "a"), ("reset", "w1", "a"), ("beat", "w1", "a"), ("finish", "w1", "a")]
)
@example([("claim", "w1", "a"), ("claim", "w2", "a"), ("finish", "w1", "a"), ("finish", "w2", "a")])
def test_a_task_is_finished_once_by_its_last_worker(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("claims")

    async def check() -> None:
        async with open_fleet_records(new_store("file", folder)) as records:
            await check_steps(records, steps)

    asyncio.run(check())
    shutil.rmtree(folder)


@pytest.mark.postgres
@settings(max_examples=10, deadline=None)
@given(STEPS)
def test_a_task_is_finished_once_on_a_server(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    async def check() -> None:
        async with open_fleet_records(new_store("server", tmp_path_factory.getbasetemp())) as records:
            await check_steps(records, steps)

    asyncio.run(check())


WORKER = textwrap.dedent(
    """
    import asyncio, json, random, sys
    from msgspec.structs import replace
    from reconciler.model.fleet import TaskState
    from reconciler.store.fleet_records import open_fleet_records

    async def main(where, run, name, members):
        chance, ended = random.Random(name), []
        async with open_fleet_records(where) as records:
            print("ready", flush=True)
            sys.stdin.readline()
            for _ in range(3):
                for member in chance.sample(members, len(members)):
                    record = await records.claim(run, member, "shop", name)
                    if record.state.is_final or chance.random() < 0.2:  # it dies, and another claims the task
                        continue
                    await asyncio.sleep(chance.random() / 500)
                    if await records.finish(replace(record, state=TaskState.SUCCEEDED, requests=record.requests + 1)):
                        ended.append(member)
        print(json.dumps(ended))

    asyncio.run(main(*sys.argv[1:4], json.loads(sys.argv[4])))
    """
)


@pytest.mark.parametrize("form", STORES)
async def test_processes_that_claim_the_same_tasks_finish_each_once(form: str, tmp_path: Path) -> None:
    where = new_store(form, tmp_path)
    members = [f"m{number}" for number in range(20)]

    def start(name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WORKER, where, RUN.id, name, json.dumps(members)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    async with open_fleet_records(where) as records:
        await records.create_run(RUN, [TaskRecord(RUN.id, member, "shop") for member in members])
        processes = [start(name) for name in WORKERS]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        ended = [member for process in processes for member in json.loads(process.communicate()[0])]
        assert [process.returncode for process in processes] == [0, 0, 0]
        tasks = await records.tasks(RUN.id)
    assert sorted(ended) == sorted(task.member for task in tasks if task.state is TaskState.SUCCEEDED)
    assert len(ended) > len(members) / 2
    assert all(task.requests == 1 for task in tasks if task.state is TaskState.SUCCEEDED)


@pytest.mark.parametrize("form", STORES)
def test_event_loops_of_several_threads_use_the_same_records(form: str, tmp_path: Path) -> None:
    where = new_store(form, tmp_path)
    members = [f"m{number}" for number in range(24)]

    async def create() -> FleetRecords:
        async with open_fleet_records(where) as records:
            await records.create_run(RUN, [TaskRecord(RUN.id, member, "shop") for member in members])
        return records

    async def finish(records: FleetRecords, member: str) -> bool:
        record = await records.claim(RUN.id, member, "shop", "w")
        return await records.finish(replace(record, state=TaskState.SUCCEEDED))

    async def use() -> tuple[TaskRecord, ...]:
        async with open_fleet_records(where) as records:
            with ThreadPoolExecutor(4) as threads:
                loops = [threads.submit(asyncio.run, finish(records, member)) for member in members]
                assert all(await asyncio.gather(*map(asyncio.wrap_future, loops)))
            return await records.tasks(RUN.id)

    asyncio.run(create())
    assert {task.state for task in asyncio.run(use())} == {TaskState.SUCCEEDED}


@pytest.mark.parametrize("form", STORES)
async def test_ten_thousand_tasks_are_stored_and_read_at_once(form: str, tmp_path: Path) -> None:
    """The measured times are about 0.5 s each; the limit is for a machine under load."""
    clock = asyncio.get_running_loop().time
    async with open_fleet_records(new_store(form, tmp_path)) as records:
        tasks = [TaskRecord(RUN.id, f"m{number:05}", "shop", wave=number % 3) for number in range(10_000)]
        began = clock()
        await records.create_run(RUN, tasks)
        found = await records.tasks(RUN.id)
        skipped = await records.skip(
            RUN.id, [(task.member, task.project) for task in tasks[5:]], "the run ended before"
        )
        assert await records.reset(RUN.id, [TaskState.SKIPPED]) == skipped == 9_995
        assert clock() - began < 30
    assert set(map(str, found)) == set(map(str, tasks))
