"""Runs of fleets and their tasks in a store, in a file and on a server. Each task is finished once."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import Engine, create_mock_engine

from reconciler.model.fleet import Amount, Pause, RunState, TaskRecord, TaskState, Wave
from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.history import CheckedHealth
from reconciler.store.clock import now_expression
from reconciler.store.errors import AlreadyExists, AmbiguousRun, Locked, StoreError, UnknownRun, UnknownTask
from reconciler.store.fleets.records import FleetRecords, open_fleet_records
from reconciler.store.fleets.rows import write_run
from tests.harness.tiers import examples
from tests.store.stores import PLACES, RUN, RUNS, SHAPE, STORES, Now, end_task, new_store, tasks

HEALTH = CheckedHealth(
    3,
    (
        HealthRow(
            'ReservedDomain/agents["ß"]',
            "rd_1",
            Health(State.DEGRADED, "it waits", "set it", Actor.YOU, due=9.5, retries_at=3.0),
        ),
        HealthRow("", "crt_1", Health(State.UNKNOWN)),
    ),
)


async def test_a_run_and_its_tasks_are_read_as_they_were_stored(records: FleetRecords) -> None:
    given = [
        TaskRecord(RUN.id, "b", "shop", wave=1),
        TaskRecord(RUN.id, "a", "shop", wave=1),
        TaskRecord(RUN.id, "B", "shop", wave=1),
        TaskRecord(RUN.id, "z", "shop", wave=0),
        TaskRecord(RUN.id, "a", "base", wave=1),
    ]
    await records.create_run(RUN, given)
    assert await records.find_run("edge", RUN.id) == RUN
    found = await records.tasks(RUN.id)
    assert [(task.wave, task.member, task.project) for task in found] == [
        (0, "z", "shop"),
        (1, "B", "shop"),
        (1, "a", "base"),
        (1, "a", "shop"),
        (1, "b", "shop"),
    ]
    assert set(map(str, found)) == set(map(str, given))
    assert await records.task(RUN.id, "z", "shop") == given[3]
    assert await records.task(RUN.id, "z", "base") is None


async def test_a_run_is_found_by_part_of_its_id(records: FleetRecords) -> None:
    later = replace(RUN, id="20261123-101501-ffff", created=2000.0)
    elsewhere = replace(RUN, id="20261123-101502-a1b2", fleet="core")
    for run in (later, RUN, elsewhere):
        await records.create_run(run, [])
    assert await records.list_runs("edge") == (later, RUN)
    assert await records.list_runs("edge", 1) == (later,)
    assert await records.find_run("edge") == later
    assert await records.find_run("nowhere") is None
    assert await records.find_run("edge", "20261123-101500") == RUN
    assert await records.find_run("edge", "a1b2") == RUN
    assert await records.find_run("edge", "202") is None
    assert await records.find_run("edge", "2026%") is None
    with pytest.raises(AmbiguousRun, match="20261123 may be any of the runs 20261123-101501-ffff, 20261123-101500-a1b"):
        await records.find_run("edge", "20261123")


async def test_a_run_with_an_existing_id_is_refused(records: FleetRecords) -> None:
    await records.create_run(RUN, tasks("a"))
    with pytest.raises(AlreadyExists, match="run 20261123-101500-a1b2 exists already"):
        await records.create_run(replace(RUN, actor="eve"), tasks("b"))
    assert [task.member for task in await records.tasks(RUN.id)] == ["a"]


async def test_approvals_are_added_and_the_end_of_a_run_is_stored(records: FleetRecords) -> None:
    await records.create_run(RUN, [])
    await records.update_run(RUN.id, approved_shapes=["a", "b"], approved_waves=["canary"])
    await records.update_run(RUN.id, approved_shapes=["b", "c"])
    failed = await records.update_run(RUN.id, state=RunState.FAILED, reason="2 members failed")
    assert failed == await records.find_run("edge", RUN.id)
    assert (failed.approved_shapes, failed.approved_waves) == (("a", "b", "c"), ("canary",))
    assert (failed.state, failed.reason) == (RunState.FAILED, "2 members failed")
    assert failed.ended == pytest.approx(await records.now(), abs=60)
    again = await records.update_run(RUN.id, state=RunState.OPEN, reason="")
    assert (again.ended, again.state, again.reason) == (None, RunState.OPEN, "")
    with pytest.raises(UnknownRun, match="has no run x"):
        await records.update_run("x", state=RunState.FAILED)


def at_rest(task: TaskRecord | None) -> TaskRecord:
    """Without the time of the last heartbeat, which the store sets."""
    assert task is not None
    return replace(task, alive=None)


async def test_a_task_that_ended_is_not_claimed_again(records: FleetRecords) -> None:
    await records.create_run(RUN, tasks("a"))
    claimed = await records.claim(RUN.id, "a", "shop", "host-1")
    assert (claimed.state, claimed.attempts, claimed.worker) == (TaskState.RUNNING, 1, "host-1")
    assert claimed.started == pytest.approx(await records.now(), abs=60)
    result = replace(
        claimed,
        state=TaskState.BLOCKED,
        exit_code=4,
        counts={"create": 2},
        changes={"BotUser/b": "0123456789ab"},
        shape="ba9876543210",
        reason="not approved",
        seconds=1.5,
        requests=7,
        health=HEALTH,
    )
    assert await records.finish(result)
    stored = await records.claim(RUN.id, "a", "shop", "host-2")
    assert at_rest(stored) == at_rest(replace(result, ended=stored.ended))
    assert stored.ended is not None
    assert stored.alive == pytest.approx(stored.ended, abs=60)
    with pytest.raises(UnknownTask, match=f"has no task {RUN.id}/b/shop"):
        await records.claim(RUN.id, "b", "shop", "host-2")


async def test_a_worker_that_lost_its_task_to_another_stores_nothing(records: FleetRecords) -> None:
    await records.create_run(RUN, tasks("a"))
    lost_task = await records.claim(RUN.id, "a", "shop", "host-1")
    assert await records.store_heartbeat(replace(lost_task, requests=5))
    next_task = await records.claim(RUN.id, "a", "shop", "host-2")
    assert (next_task.attempts, next_task.requests) == (2, 5)
    assert not await records.store_heartbeat(replace(lost_task, requests=9))
    assert not await records.finish(end_task(lost_task))
    assert at_rest(await records.task(RUN.id, "a", "shop")) == at_rest(next_task)
    assert await records.finish(end_task(next_task, sent=3))
    assert not await records.finish(end_task(next_task, TaskState.FAILED))
    final = await records.task(RUN.id, "a", "shop")
    assert final is not None
    assert (final.state, final.requests, final.worker) == (TaskState.SUCCEEDED, 8, "host-2")


async def test_waiting_tasks_are_skipped_and_final_tasks_are_reset(records: FleetRecords) -> None:
    await records.create_run(RUN, tasks("a", "b", "c"))
    running = await records.claim(RUN.id, "a", "shop", "w")
    done = await records.claim(RUN.id, "b", "shop", "w")
    await records.finish(replace(end_task(done, TaskState.FAILED), changes={"x": "1"}, shape="s", reason="why"))
    assert await records.skip(RUN.id, [(member, "shop") for member in "abcd"], "the run ended before") == 1
    skipped = await records.task(RUN.id, "c", "shop")
    assert skipped is not None
    assert (skipped.state, skipped.reason) == (TaskState.SKIPPED, "the run ended before")
    assert await records.reset(RUN.id, [TaskState.STALE]) == 0
    both = [TaskState.FAILED, TaskState.SKIPPED]
    before = await records.tasks(RUN.id)
    assert await records.reset(RUN.id, both, keep=[("b", "shop"), ("c", "shop")]) == 0
    assert await records.tasks(RUN.id) == before
    assert await records.reset(RUN.id, both, keep=[("b", "shop")]) == 1
    assert (await records.tasks(RUN.id))[1:] == (before[1], TaskRecord(RUN.id, "c", "shop"))
    assert await records.skip(RUN.id, [("c", "shop")], "again") == 1
    assert await records.reset(RUN.id, both) == 2
    assert tuple(map(at_rest, await records.tasks(RUN.id))) == (
        at_rest(running),
        TaskRecord(RUN.id, "b", "shop", attempts=1),
        TaskRecord(RUN.id, "c", "shop"),
    )
    again = await records.claim(RUN.id, "b", "shop", "w")
    assert again.attempts == 2
    assert not await records.finish(end_task(done))  # of the attempt before the reset
    for wrong in (records.reset(RUN.id, [TaskState.RUNNING]), records.finish(again)):
        with pytest.raises(ValueError, match="ended"):
            await wrong


async def test_a_shape_is_stored_with_its_first_example(records: FleetRecords) -> None:
    await records.save_shape("edge", SHAPE)
    await records.save_shape("edge", replace(SHAPE, member="paris"))
    await records.save_shape("core", replace(SHAPE, member="oslo"))
    many = [f"{number:012x}" for number in range(1200)]
    assert await records.shapes("edge", [*many, SHAPE.digest]) == {SHAPE.digest: SHAPE}
    assert (await records.shapes("core", [SHAPE.digest]))[SHAPE.digest].member == "oslo"
    assert await records.shapes("edge", []) == {}


async def test_a_pause_lasts_until_its_end(records: FleetRecords) -> None:
    moment = await records.now()
    assert await records.pause_of("edge") is None
    await records.pause(Pause("edge", moment, moment - 1))
    assert await records.pause_of("edge") is None
    for pause in (Pause("edge", moment, moment + 3600, "holiday", "mara"), Pause("edge", moment)):
        await records.pause(pause)
        assert await records.pause_of("edge") == pause
    assert await records.pause_of("core") is None
    assert await records.end_pause("edge")
    assert not await records.end_pause("edge")
    assert await records.pause_of("edge") is None


RESULTS: dict[str, Any] = {
    "exit_code": 4,
    "counts": {"create": 2},
    "changes": {"BotUser/b": "0123456789ab"},
    "shape": "ba9876543210",
    "reason": "not approved",
    "seconds": 1.5,
    "health": HEALTH,
}


async def test_an_update_of_a_run_changes_the_named_fields_only(timed: FleetRecords, now: Now) -> None:
    run = replace(RUN, reviewed="r0", approved_shapes=("a",), approved_waves=("canary",), reason="why")
    await timed.create_run(replace(run, id="other"), [])
    await timed.create_run(run, [])
    expected = run
    for change, becomes in (
        ({}, {}),
        ({"approved_shapes": ["b", "a"]}, {"approved_shapes": ("a", "b")}),
        ({"approved_waves": ["all"]}, {"approved_waves": ("canary", "all")}),
        ({"state": RunState.FAILED}, {"state": RunState.FAILED, "ended": now.time + 3}),
        ({"reason": "2 failed"}, {"reason": "2 failed"}),
        ({"state": RunState.SUCCEEDED}, {"state": RunState.SUCCEEDED, "ended": now.time + 5}),
        ({"approved_shapes": ["c"], "reason": ""}, {"approved_shapes": ("a", "b", "c"), "reason": ""}),
        ({"state": RunState.OPEN}, {"state": RunState.OPEN, "ended": None}),
    ):
        expected = replace(expected, **becomes)
        assert await timed.update_run(run.id, **change) == expected
        assert await timed.find_run("edge", run.id) == expected
        now.time += 1
    assert await timed.find_run("edge", "other") == replace(run, id="other")


async def test_a_run_is_stored_with_its_waves(records: FleetRecords) -> None:
    waves = (
        Wave("canary", {"ring": ("a", "b"), "$x": ("ß",)}, 5, Amount(2, is_percent=True), 600.0, 1800.0, approve=True),
        Wave("all"),
    )
    run = replace(RUN, waves=waves, health=True)
    await records.create_run(run, [])
    assert await records.find_run("edge") == run
    approved = await records.update_run(run.id, approved_waves=["canary"])
    assert approved == await records.find_run("edge") == replace(run, approved_waves=("canary",))


async def test_the_newest_run_that_judged_health_is_found(records: FleetRecords) -> None:
    assert await records.find_judged("edge") is None
    for number, judges in enumerate((True, True, False)):
        await records.create_run(replace(RUN, id=f"r{number}", created=1000.0 + number, health=judges), [])
    await records.create_run(replace(RUN, id="r4", fleet="core", created=2000.0, health=True), [])
    assert (await records.find_judged("edge") or RUN).id == "r1"


async def test_the_newest_twenty_runs_are_listed(timed: FleetRecords) -> None:
    for number in range(21):
        await timed.create_run(replace(RUN, id=f"r{number:02}", created=1000.0 + number // 2), [])
    newest = [f"r{number:02}" for number in reversed(range(21))]
    assert [run.id for run in await timed.list_runs("edge")] == newest[:20]
    assert [run.id for run in await timed.list_runs("edge", 3)] == newest[:3]
    assert await timed.find_run("edge", "r2") is None
    assert (await timed.find_run("edge", "r20") or RUN).id == "r20"
    await timed.create_run(replace(RUN, id="r200", created=0.0), [])
    assert (await timed.find_run("edge", "r200") or RUN).id == "r200"


async def test_a_complete_id_is_not_ambiguous(timed: FleetRecords) -> None:
    for name in ("2026", "2026-x", "x-2026", "20266"):
        await timed.create_run(replace(RUN, id=name), [])
    assert (await timed.find_run("edge", "2026") or RUN).id == "2026"
    assert (await timed.find_run("edge", "2026-") or RUN).id == "2026-x"
    await timed.create_run(replace(RUN, id="2026-y"), [])
    with pytest.raises(AmbiguousRun, match="2026- may be any of the runs 2026-y, 2026-x;"):
        await timed.find_run("edge", "2026-")


async def test_a_task_of_another_run_is_refused(records: FleetRecords) -> None:
    with pytest.raises(ValueError, match="a task is not of the run"):
        await records.create_run(RUN, [*tasks("a"), *tasks("b", run="another")])
    assert await records.list_runs("edge") == ()


async def test_changes_of_a_task_are_stored_before_they_are_applied(records: FleetRecords) -> None:
    """After a crash the next worker reads which changes may have been applied in part."""
    await records.create_run(RUN, tasks("a"))
    lost_task = await records.claim(RUN.id, "a", "shop", "w1")
    begun = replace(lost_task, changes={"BotUser/b": "0123456789ab"}, requests=4)
    assert await records.begin_apply(begun)
    assert at_rest(await records.task(RUN.id, "a", "shop")) == at_rest(begun)
    next_task = await records.claim(RUN.id, "a", "shop", "w2")
    assert (next_task.changes, next_task.requests, next_task.attempts) == (begun.changes, 4, 2)
    assert not await records.begin_apply(replace(begun, changes={}))
    assert at_rest(await records.task(RUN.id, "a", "shop")) == at_rest(next_task)


async def test_a_reset_clears_all_but_wave_attempts_and_requests_of_a_task(records: FleetRecords) -> None:
    given = [TaskRecord(RUN.id, "a", "shop", wave=2), TaskRecord(RUN.id, "a", "base"), *tasks("b", run="r2")]
    await records.create_run(RUN, given[:2])
    await records.create_run(replace(RUN, id="r2"), given[2:])
    for task in given:
        claimed = await records.claim(task.run, task.member, task.project, "w")
        await records.finish(replace(claimed, state=TaskState.FAILED, requests=7, **RESULTS))
    before = await records.tasks("r2")
    assert await records.reset(RUN.id, [TaskState.FAILED]) == 2
    assert set(map(str, map(at_rest, await records.tasks(RUN.id)))) == {
        str(replace(task, attempts=1, requests=7)) for task in given if task.run == RUN.id
    }
    assert await records.tasks("r2") == before
    assert await records.skip(RUN.id, [("a", "shop")], "why") == 1
    assert await records.skip(RUN.id, [], "why") == 0
    assert await records.skip("r2", [("a", "shop")], "why") == 0


async def test_a_write_to_one_task_or_run_does_not_change_others(timed: FleetRecords, now: Now) -> None:
    for run, fleet in RUNS.items():
        await timed.create_run(
            replace(RUN, id=run, fleet=fleet, created=now.time), [TaskRecord(run, *place) for place in PLACES]
        )
        await timed.pause(Pause(fleet, now.time, reason=fleet))
        await timed.save_shape(fleet, replace(SHAPE, plan=fleet))
        now.time += 1

    async def read_others() -> list[object]:
        tasks = [task for run in RUNS for task in await timed.tasks(run)]
        assert len(tasks) == len(RUNS) * len(PLACES)
        runs = [run for fleet in sorted({*RUNS.values()}) for run in await timed.list_runs(fleet)]
        assert sorted(run.id for run in runs) == sorted(RUNS)
        others = [await timed.pause_of(fleet) for fleet in ("core", "zone")]
        assert [pause and pause.reason for pause in others] == ["core", "zone"]
        assert [(await timed.shapes(fleet, [SHAPE.digest]))[SHAPE.digest].plan for fleet in ("core", "zone")] == [
            "core",
            "zone",
        ]
        return [
            *(run for run in runs if run.id != "r3"),
            *(task for task in tasks if (task.run, task.member, task.project) != ("r3", "b", "mid")),
        ]

    before = await read_others()
    claimed = await timed.claim("r3", "b", "mid", "w")
    assert (claimed.run, claimed.member, claimed.project) == ("r3", "b", "mid")
    await timed.store_heartbeat(claimed)
    await timed.begin_apply(claimed)
    await timed.finish(end_task(claimed, TaskState.FAILED))
    await timed.reset("r3", [TaskState.FAILED])
    await timed.skip("r3", [("b", "mid")], "why")
    assert (await timed.update_run("r3", approved_shapes=["a"], state=RunState.FAILED)).id == "r3"
    await timed.pause(Pause("edge", now.time, reason="another"))
    assert await timed.end_pause("edge")
    assert await read_others() == before
    assert [run.id for run in await timed.list_runs("edge")] == ["r4", "r3", "r2"]


async def test_a_thousand_shapes_are_read_in_several_queries(timed: FleetRecords) -> None:
    many = [f"{number:012x}" for number in range(1001)]
    stored = {digest: replace(SHAPE, digest=digest) for digest in (many[0], many[499], many[500], many[1000])}
    for shape in stored.values():
        await timed.save_shape("edge", shape)
    assert await timed.shapes("edge", [*many, *reversed(many)]) == stored


async def test_a_pause_ends_at_its_end_time(timed: FleetRecords, now: Now) -> None:
    pause = Pause("edge", now.time, now.time + 60)
    await timed.pause(Pause("core", now.time))
    await timed.pause(pause)
    now.time += 59.9
    assert await timed.pause_of("edge") == pause
    now.time += 0.1
    assert await timed.pause_of("edge") is None
    assert await timed.pause_of("core") is not None
    assert await timed.now() == now.time


async def test_a_write_of_another_process_is_not_overwritten(tmp_path: Path) -> None:
    """Each method waits for a transaction of another process before it reads the rows that it changes."""
    file = tmp_path / "fleet.db"
    async with open_fleet_records(str(file)) as records:
        await records.create_run(RUN, tasks("a", "b"))
        await records.finish(end_task(await records.claim(RUN.id, "b", "shop", "w")))
        with connect(file) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("UPDATE fleet_tasks SET tries = 5")
            claiming = asyncio.ensure_future(records.claim(RUN.id, "a", "shop", "w"))
            await asyncio.sleep(0.1)  # the claim waits for the lock of the file
            other.execute("COMMIT")
            assert (await claiming).attempts == 6
            approved = replace(RUN, approved_shapes=("a",))
            other.execute("BEGIN IMMEDIATE")
            for name, value in write_run(approved).items():
                other.execute(f'UPDATE fleet_runs SET "{name}" = ?', (value,))  # noqa: S608
            updating = asyncio.ensure_future(records.update_run(RUN.id, approved_shapes=["b"]))
            await asyncio.sleep(0.1)
            other.execute("COMMIT")
            assert (await updating).approved_shapes == ("a", "b")
            other.execute("BEGIN IMMEDIATE")
            other.execute("UPDATE fleet_tasks SET state = 'succeeded' WHERE member = 'a'")
            resetting = asyncio.ensure_future(records.reset(RUN.id, [TaskState.SUCCEEDED]))
            await asyncio.sleep(0.1)
            other.execute("COMMIT")
            assert await resetting == 2
        assert {task.state for task in await records.tasks(RUN.id)} == {TaskState.WAITING}


@contextmanager
def connect(file: Path) -> Iterator[sqlite3.Connection]:
    """Another connection, whose transactions begin only with BEGIN."""
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


@pytest.mark.parametrize("lease", ["fleet run 20261123-101500-a1b2", "fleet 20261123-101500-a1b2/a/shop"])
async def test_a_lease_is_named_after_its_run_or_task(timed: FleetRecords, lease: str) -> None:
    title = "run 20261123-101500-a1b2" if "run" in lease else "task 20261123-101500-a1b2/a/shop"
    async with timed.lock(lease, fail):
        with pytest.raises(Locked, match=f"^{title} is being run by process .* since 1970-01-12T13:46:40Z.* 60 s"):
            async with timed.lock(lease, fail):
                pass


def test_a_server_compares_times_by_its_own_clock() -> None:
    def read_clock() -> float:
        raise AssertionError

    server = cast("Engine", create_mock_engine("postgresql+psycopg://", print))
    moment = now_expression(server, read_clock).compile(dialect=server.dialect)
    assert str(moment) == "CAST(EXTRACT(epoch FROM clock_timestamp()) AS FLOAT)"


def fail(failure: StoreError) -> None:
    raise AssertionError(failure)


async def test_the_lease_of_a_task_has_one_holder(records: FleetRecords) -> None:
    async with records.lock("fleet r1/a/shop", fail), records.lock("fleet r1/b/shop", fail):
        with pytest.raises(Locked, match="task r1/a/shop is being run by process"):
            async with records.lock("fleet r1/a/shop", fail):
                pass


# --- claims ----------------------------------------------------------------------------------------------------------


WORKERS, MEMBERS = ("w1", "w2", "w3"), ("a", "b")

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["claim", "beat", "finish", "reset"]), st.sampled_from(WORKERS), st.sampled_from(MEMBERS)
    ),
    max_size=25,
)


async def check_steps(records: FleetRecords, steps: list[tuple[str, str, str]]) -> None:
    """Any order of claims, heartbeats, results and resets. A worker that died has no further step."""
    await records.create_run(RUN, [TaskRecord(RUN.id, member, "shop") for member in MEMBERS])
    claims: dict[tuple[str, str], TaskRecord] = {}  # the tasks that each worker claimed
    owner: dict[str, str] = {}  # the last worker that claimed each member
    attempts, finished = Counter[str](), Counter[str]()
    done: dict[str, TaskRecord] = {}
    for number, (step, worker, member) in enumerate(steps):
        is_owner = owner.get(member) == worker and (worker, member) in claims
        record = claims.get((worker, member))
        if step == "claim":
            claimed = await records.claim(RUN.id, member, "shop", worker)
            if member in done:
                assert at_rest(claimed) == at_rest(done[member])
                continue
            attempts[member] += 1
            assert (claimed.state, claimed.attempts, claimed.worker) == (TaskState.RUNNING, attempts[member], worker)
            claims[worker, member], owner[member] = claimed, worker
        elif step == "beat" and record is not None:
            assert await records.store_heartbeat(replace(record, requests=record.requests + number)) is is_owner
        elif step == "finish" and record is not None:
            result = replace(record, state=TaskState.FAILED, reason=f"step {number}", requests=record.requests + number)
            assert await records.finish(result) is is_owner
            if is_owner:
                finished[member] += 1
                stored = await records.task(RUN.id, member, "shop")
                assert stored is not None
                assert at_rest(stored) == at_rest(replace(result, ended=stored.ended))
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
        assert final.attempts == attempts[member]
        assert final.state.is_final is (member in done)


@settings(max_examples=examples(100), deadline=None)
@given(STEPS)
@example([("claim", "w1", "a"), ("finish", "w1", "a"), ("finish", "w1", "a")])
@example(
    [("claim", "w1", "a"), ("finish", "w1", "a"), ("reset", "w1", "a"), ("beat", "w1", "a"), ("finish", "w1", "a")]
)
@example([("claim", "w1", "a"), ("claim", "w2", "a"), ("finish", "w1", "a"), ("finish", "w2", "a")])
def test_a_task_is_finished_once_by_the_last_worker_that_claimed_it(
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
    from reconciler.store.fleets.records import open_fleet_records

    async def main(where, run, name, members):
        chance, ended = random.Random(name), []
        async with open_fleet_records(where) as records:
            print("ready", flush=True)
            sys.stdin.readline()
            for _ in range(3):
                for member in chance.sample(members, len(members)):
                    record = await records.claim(run, member, "shop", name)
                    if record.state.is_final or chance.random() < 0.2:  # the worker dies, and another claims the task
                        continue
                    await asyncio.sleep(chance.random() / 500)
                    if await records.finish(replace(record, state=TaskState.SUCCEEDED, requests=record.requests + 1)):
                        ended.append(member)
        print(json.dumps(ended))

    asyncio.run(main(*sys.argv[1:4], json.loads(sys.argv[4])))
    """
)


@pytest.mark.parametrize("form", STORES)
async def test_processes_that_claim_the_same_tasks_finish_each_task_once(form: str, tmp_path: Path) -> None:
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
