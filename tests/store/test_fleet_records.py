"""The runs of fleets in a store, on a file and on a server."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, create_mock_engine

from reconciler.model.fleet import Amount, Pause, Run, RunState, RunVerb, Shape, TaskRecord, TaskState, Wave
from reconciler.store import fleet_rows
from reconciler.store.clock import now_expression
from reconciler.store.errors import AlreadyExists, AmbiguousRun, Damaged, Locked, StoreError, UnknownRun, UnknownTask
from reconciler.store.fleet_records import FleetRecords, open_fleet_records
from reconciler.store.fleet_requests import BEAT_SECONDS, WHOLE_BUDGET
from tests.store.fleet_stores import STORES, new_store

RUN = Run("20261123-101500-a1b2", "edge", RunVerb.APPLY, "/srv/fleet", "fleet.yaml", "c0ffee", 1000.0, actor="mara")
SHAPE = Shape("0123456789ab", "berlin", "shop", '{"plan": "…"}')


class Now:
    """A clock that stands still until moved."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture(params=STORES)
async def records(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[FleetRecords]:
    async with open_fleet_records(new_store(request.param, tmp_path)) as opened:
        yield opened


@pytest.fixture
async def timed(tmp_path: Path, now: Now) -> AsyncIterator[FleetRecords]:
    """Records in a file, by a clock that the test moves."""
    async with open_fleet_records(str(tmp_path / "fleet.db"), now=now) as opened:
        yield opened


def tasks(*members: str, run: str = RUN.id) -> list[TaskRecord]:
    return [TaskRecord(run, member, "shop") for member in members]


def ended(record: TaskRecord, state: TaskState = TaskState.SUCCEEDED, sent: int = 0) -> TaskRecord:
    return replace(record, state=state, exit_code=0, requests=record.requests + sent)


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


async def test_a_run_is_found_by_a_part_of_its_id(records: FleetRecords) -> None:
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


async def test_an_id_is_used_once(records: FleetRecords) -> None:
    await records.create_run(RUN, tasks("a"))
    with pytest.raises(AlreadyExists, match="run 20261123-101500-a1b2 exists already"):
        await records.create_run(replace(RUN, actor="eve"), tasks("b"))
    assert [task.member for task in await records.tasks(RUN.id)] == ["a"]


async def test_approvals_are_added_and_the_end_is_stored(records: FleetRecords) -> None:
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


async def test_a_task_that_ended_is_not_claimed_again(records: FleetRecords) -> None:
    await records.create_run(RUN, tasks("a"))
    claimed = await records.claim(RUN.id, "a", "shop", "host-1")
    assert (claimed.state, claimed.tries, claimed.worker) == (TaskState.RUNNING, 1, "host-1")
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
    )
    assert await records.finish(result)
    stored = await records.claim(RUN.id, "a", "shop", "host-2")
    assert stored == replace(result, ended=stored.ended)
    assert stored.ended is not None
    with pytest.raises(UnknownTask, match=f"has no task {RUN.id}/b/shop"):
        await records.claim(RUN.id, "b", "shop", "host-2")


async def test_a_worker_whose_task_was_claimed_by_another_stores_nothing(records: FleetRecords) -> None:
    await records.create_run(RUN, tasks("a"))
    dead = await records.claim(RUN.id, "a", "shop", "host-1")
    assert await records.beat(replace(dead, requests=5))
    heir = await records.claim(RUN.id, "a", "shop", "host-2")
    assert (heir.tries, heir.requests) == (2, 5)
    assert not await records.beat(replace(dead, requests=9))
    assert not await records.finish(ended(dead))
    assert await records.task(RUN.id, "a", "shop") == heir
    assert await records.finish(ended(heir, sent=3))
    assert not await records.finish(ended(heir, TaskState.FAILED))
    final = await records.task(RUN.id, "a", "shop")
    assert final is not None
    assert (final.state, final.requests, final.worker) == (TaskState.SUCCEEDED, 8, "host-2")


async def test_only_waiting_tasks_are_skipped_and_only_final_ones_reset(records: FleetRecords) -> None:
    await records.create_run(RUN, tasks("a", "b", "c"))
    running = await records.claim(RUN.id, "a", "shop", "w")
    done = await records.claim(RUN.id, "b", "shop", "w")
    await records.finish(replace(ended(done, TaskState.FAILED), changes={"x": "1"}, shape="s", reason="why"))
    assert await records.skip(RUN.id, [(each, "shop") for each in "abcd"], "the run ended before") == 1
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
    assert await records.tasks(RUN.id) == (
        running,
        TaskRecord(RUN.id, "b", "shop", tries=1),
        TaskRecord(RUN.id, "c", "shop"),
    )
    again = await records.claim(RUN.id, "b", "shop", "w")
    assert again.tries == 2
    assert not await records.finish(ended(done))  # of the try before the reset
    for wrong in (records.reset(RUN.id, [TaskState.RUNNING]), records.finish(again)):
        with pytest.raises(ValueError, match="ended"):
            await wrong


async def test_the_first_exemplar_of_a_shape_is_kept(records: FleetRecords) -> None:
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
}


async def test_an_update_changes_what_it_names_and_nothing_else(timed: FleetRecords, now: Now) -> None:
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
        ({"state": RunState.SUCCEEDED, "ended": 12.5}, {"state": RunState.SUCCEEDED, "ended": 12.5}),
        ({"approved_shapes": ["c"], "reason": ""}, {"approved_shapes": ("a", "b", "c"), "reason": ""}),
        ({"state": RunState.OPEN, "ended": 13.0}, {"state": RunState.OPEN, "ended": None}),
    ):
        expected = replace(expected, **becomes)
        assert await timed.update_run(run.id, **change) == expected
        assert await timed.find_run("edge", run.id) == expected
        now.time += 1
    assert await timed.find_run("edge", "other") == replace(run, id="other")


async def test_a_run_keeps_the_waves_that_it_was_started_with(records: FleetRecords) -> None:
    waves = (
        Wave("canary", {"ring": ("a", "b"), "$x": ("ß",)}, 5, Amount(2, is_percent=True), 600.0, 1800.0, approve=True),
        Wave("all"),
    )
    run = replace(RUN, waves=waves)
    await records.create_run(run, [])
    assert await records.find_run("edge") == run
    approved = await records.update_run(run.id, approved_waves=["canary"])
    assert approved == await records.find_run("edge") == replace(run, approved_waves=("canary",))


async def test_the_newest_runs_are_listed_twenty_at_most(timed: FleetRecords) -> None:
    for number in range(21):
        await timed.create_run(replace(RUN, id=f"r{number:02}", created=1000.0 + number // 2), [])
    newest = [f"r{number:02}" for number in reversed(range(21))]
    assert [run.id for run in await timed.list_runs("edge")] == newest[:20]
    assert [run.id for run in await timed.list_runs("edge", 3)] == newest[:3]
    assert await timed.find_run("edge", "r2") is None
    assert (await timed.find_run("edge", "r20") or RUN).id == "r20"
    await timed.create_run(replace(RUN, id="r200", created=0.0), [])
    assert (await timed.find_run("edge", "r200") or RUN).id == "r200"


async def test_a_whole_id_is_not_ambiguous(timed: FleetRecords) -> None:
    for name in ("2026", "2026-x", "x-2026", "20266"):
        await timed.create_run(replace(RUN, id=name), [])
    assert (await timed.find_run("edge", "2026") or RUN).id == "2026"
    assert (await timed.find_run("edge", "2026-") or RUN).id == "2026-x"
    await timed.create_run(replace(RUN, id="2026-y"), [])
    with pytest.raises(AmbiguousRun, match="2026- may be any of the runs 2026-y, 2026-x;"):
        await timed.find_run("edge", "2026-")


async def test_a_run_stores_only_tasks_of_its_own(records: FleetRecords) -> None:
    with pytest.raises(ValueError, match="a task is not of the run"):
        await records.create_run(RUN, [*tasks("a"), *tasks("b", run="another")])
    assert await records.list_runs("edge") == ()


async def test_changes_are_stored_before_they_are_applied(records: FleetRecords) -> None:
    """After a crash the next worker sees what may be partly done."""
    await records.create_run(RUN, tasks("a"))
    dead = await records.claim(RUN.id, "a", "shop", "w1")
    begun = replace(dead, changes={"BotUser/b": "0123456789ab"}, requests=4)
    assert await records.begin_apply(begun)
    assert await records.task(RUN.id, "a", "shop") == begun
    heir = await records.claim(RUN.id, "a", "shop", "w2")
    assert (heir.changes, heir.requests, heir.tries) == (begun.changes, 4, 2)
    assert not await records.begin_apply(replace(begun, changes={}))
    assert await records.task(RUN.id, "a", "shop") == heir


async def test_a_reset_task_keeps_its_place_tries_and_requests_alone(records: FleetRecords) -> None:
    given = [TaskRecord(RUN.id, "a", "shop", wave=2), TaskRecord(RUN.id, "a", "base"), *tasks("b", run="r2")]
    await records.create_run(RUN, given[:2])
    await records.create_run(replace(RUN, id="r2"), given[2:])
    for task in given:
        claimed = await records.claim(task.run, task.member, task.project, "w")
        await records.finish(replace(claimed, state=TaskState.FAILED, requests=7, **RESULTS))
    before = await records.tasks("r2")
    assert await records.reset(RUN.id, [TaskState.FAILED]) == 2
    assert set(map(str, await records.tasks(RUN.id))) == {
        str(replace(task, tries=1, requests=7)) for task in given if task.run == RUN.id
    }
    assert await records.tasks("r2") == before
    assert await records.skip(RUN.id, [("a", "shop")], "why") == 1
    assert await records.skip(RUN.id, [], "why") == 0
    assert await records.skip("r2", [("a", "shop")], "why") == 0


RUNS = {"r1": "core", "r2": "edge", "r3": "edge", "r4": "edge", "r5": "zone"}  # id → fleet
PLACES = [(member, project) for member in "abc" for project in ("base", "mid", "shop")]


async def test_what_is_done_to_one_task_or_run_leaves_all_others_as_they_are(timed: FleetRecords, now: Now) -> None:
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
    await timed.beat(claimed)
    await timed.begin_apply(claimed)
    await timed.finish(ended(claimed, TaskState.FAILED))
    await timed.reset("r3", [TaskState.FAILED])
    await timed.skip("r3", [("b", "mid")], "why")
    assert (await timed.update_run("r3", approved_shapes=["a"], state=RunState.FAILED)).id == "r3"
    await timed.pause(Pause("edge", now.time, reason="another"))
    assert await timed.end_pause("edge")
    assert await read_others() == before
    assert [run.id for run in await timed.list_runs("edge")] == ["r4", "r3", "r2"]


async def test_requests_of_other_members_and_fleets_do_not_count(timed: FleetRecords, now: Now) -> None:
    for run, fleet in RUNS.items():
        await timed.create_run(replace(RUN, id=run, fleet=fleet), [TaskRecord(run, *place) for place in PLACES])
        for number, (member, project) in enumerate(PLACES):
            if (run, member, project) != ("r3", "b", "mid"):
                claimed = await timed.claim(run, member, project, "w")
                await timed.finish(ended(claimed, sent=1000 * int(run[1]) + number))
    mine = await timed.claim("r3", "b", "mid", "w")
    now.time += 10
    sent = [2003, 2004, 2005, 3003, 3005, 4003, 4004, 4005]
    assert await timed.find_spent_requests(mine) == tuple((10.0, number) for number in sent)


async def test_many_shapes_are_read_in_several_queries(timed: FleetRecords) -> None:
    many = [f"{number:012x}" for number in range(1001)]
    stored = {digest: replace(SHAPE, digest=digest) for digest in (many[0], many[499], many[500], many[1000])}
    for shape in stored.values():
        await timed.save_shape("edge", shape)
    assert await timed.shapes("edge", [*many, *reversed(many)]) == stored


async def test_a_pause_is_over_at_its_end(timed: FleetRecords, now: Now) -> None:
    pause = Pause("edge", now.time, now.time + 60)
    await timed.pause(Pause("core", now.time))
    await timed.pause(pause)
    now.time += 59.9
    assert await timed.pause_of("edge") == pause
    now.time += 0.1
    assert await timed.pause_of("edge") is None
    assert await timed.pause_of("core") is not None
    assert await timed.now() == now.time


async def test_a_write_of_another_process_is_never_undone(tmp_path: Path) -> None:
    """Each method waits for the other's transaction before it reads what it changes."""
    file = tmp_path / "fleet.db"
    async with open_fleet_records(str(file)) as records:
        await records.create_run(RUN, tasks("a", "b"))
        await records.finish(ended(await records.claim(RUN.id, "b", "shop", "w")))
        with connect(file) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("UPDATE fleet_tasks SET tries = 5")
            claiming = asyncio.ensure_future(records.claim(RUN.id, "a", "shop", "w"))
            await asyncio.sleep(0.1)  # it waits for the lock of the file
            other.execute("COMMIT")
            assert (await claiming).tries == 6
            approved = replace(RUN, approved_shapes=("a",))
            other.execute("BEGIN IMMEDIATE")
            for name, value in fleet_rows.write_run(approved).items():
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
    """Another connection, whose transactions begin when it says so."""
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


@pytest.mark.parametrize("lease", ["fleet run 20261123-101500-a1b2", "fleet 20261123-101500-a1b2/a/shop"])
async def test_a_lease_is_named_by_what_it_is_for(timed: FleetRecords, lease: str) -> None:
    title = "run 20261123-101500-a1b2" if "run" in lease else "task 20261123-101500-a1b2/a/shop"
    async with timed.lock(lease, fail):
        with pytest.raises(Locked, match=f"^{title} is being run by process .* since 1970-01-12T13:46:40Z.* 60 s"):
            async with timed.lock(lease, fail):
                pass


def test_a_server_compares_times_by_its_own_clock() -> None:
    def ours() -> float:
        raise AssertionError

    server = cast("Engine", create_mock_engine("postgresql+psycopg://", print))
    moment = now_expression(server, ours).compile(dialect=server.dialect)
    assert str(moment) == "CAST(EXTRACT(epoch FROM clock_timestamp()) AS FLOAT)"


def fail(failure: StoreError) -> None:
    raise AssertionError(failure)


async def test_the_lease_of_a_task_has_one_holder(records: FleetRecords) -> None:
    async with records.lock("fleet r1/a/shop", fail), records.lock("fleet r1/b/shop", fail):
        with pytest.raises(Locked, match="task r1/a/shop is being run by process"):
            async with records.lock("fleet r1/a/shop", fail):
                pass


# --- requests of others -------------------------------------------------------------------------------------------


async def test_the_first_task_of_a_member_finds_nothing_spent(timed: FleetRecords) -> None:
    await timed.create_run(RUN, tasks("a", "b"))
    other = await timed.claim(RUN.id, "b", "shop", "w")
    await timed.finish(ended(other, sent=9))
    assert await timed.find_spent_requests(await timed.claim(RUN.id, "a", "shop", "w")) == ()


async def test_requests_of_a_task_count_for_a_minute_after_its_end(timed: FleetRecords, now: Now) -> None:
    await timed.create_run(RUN, [*tasks("a"), TaskRecord(RUN.id, "a", "base")])
    await timed.create_run(replace(RUN, id="r2"), tasks("a", run="r2"))
    await timed.create_run(replace(RUN, id="r3", fleet="core"), tasks("a", run="r3"))
    base = await timed.claim(RUN.id, "a", "base", "w")
    now.time += 300
    await timed.finish(ended(base, sent=40))
    now.time += 20
    shop = await timed.claim(RUN.id, "a", "shop", "w")
    assert await timed.find_spent_requests(shop) == ((20.0, 40),)
    await timed.finish(ended(shop, sent=7))
    now.time += 10
    assert await timed.find_spent_requests(await timed.claim("r2", "a", "shop", "w")) == ((10.0, 7), (30.0, 40))
    assert await timed.find_spent_requests(await timed.claim("r3", "a", "shop", "w")) == ()


async def test_a_killed_worker_counts_as_the_whole_budget_until_it_must_have_been_dead(
    timed: FleetRecords, now: Now
) -> None:
    await timed.create_run(RUN, [*tasks("a"), TaskRecord(RUN.id, "a", "base")])
    dead = await timed.claim(RUN.id, "a", "shop", "w")
    now.time += 100
    assert await timed.beat(replace(dead, requests=3))
    now.time += BEAT_SECONDS + 10
    heir = await timed.claim(RUN.id, "a", "shop", "w")
    assert await timed.find_spent_requests(heir) == ((10.0, WHOLE_BUDGET),)
    now.time += 5
    await timed.finish(ended(heir, sent=2))  # what was sent before it does not hide what its predecessor sent
    base = await timed.claim(RUN.id, "a", "base", "w")
    assert await timed.find_spent_requests(base) == ((0.0, 2), (15.0, WHOLE_BUDGET))
    now.time += 46
    assert await timed.find_spent_requests(base) == ((46.0, 2),)


async def test_a_task_that_runs_elsewhere_counts_what_it_has_sent_until_it_seems_dead(
    timed: FleetRecords, now: Now
) -> None:
    await timed.create_run(RUN, [*tasks("a"), TaskRecord(RUN.id, "a", "base")])
    base = await timed.claim(RUN.id, "a", "base", "w")
    shop = await timed.claim(RUN.id, "a", "shop", "w")
    assert await timed.find_spent_requests(shop) == ()
    now.time += 10
    await timed.beat(replace(base, requests=12))
    now.time += 2 * BEAT_SECONDS
    assert await timed.find_spent_requests(shop) == ((2 * BEAT_SECONDS, 12),)
    now.time += 1
    assert await timed.find_spent_requests(shop) == ((BEAT_SECONDS + 1, WHOLE_BUDGET),)


async def test_a_worker_that_was_killed_a_moment_ago_may_have_sent_until_now(timed: FleetRecords, now: Now) -> None:
    await timed.create_run(RUN, tasks("a"))
    await timed.claim(RUN.id, "a", "shop", "w")
    now.time += 3
    second = await timed.claim(RUN.id, "a", "shop", "w")
    assert await timed.find_spent_requests(second) == ((0.0, WHOLE_BUDGET),)
    now.time += 1
    third = await timed.claim(RUN.id, "a", "shop", "w")
    assert await timed.find_spent_requests(third) == ((0.0, WHOLE_BUDGET),)


async def test_a_retry_counts_the_requests_of_the_tries_before(timed: FleetRecords, now: Now) -> None:
    await timed.create_run(RUN, tasks("a"))
    for sent in (4, 5):
        await timed.finish(ended(await timed.claim(RUN.id, "a", "shop", "w"), TaskState.FAILED, sent))
        await timed.reset(RUN.id, [TaskState.FAILED])
        now.time += 10
    last = await timed.claim(RUN.id, "a", "shop", "w")
    assert last.requests == 9
    assert await timed.find_spent_requests(last) == ((10.0, 9),)
    now.time += 50
    assert await timed.find_spent_requests(last) == ()


async def test_requests_count_for_a_minute_to_the_moment(timed: FleetRecords, now: Now) -> None:
    """The earlier try's as well as those of another task."""
    await timed.create_run(RUN, [*tasks("a"), TaskRecord(RUN.id, "a", "base")])
    for project, sent in (("base", 40), ("shop", 2)):
        claimed = await timed.claim(RUN.id, "a", project, "w")
        await timed.finish(replace(claimed, state=TaskState.FAILED, requests=sent))
    assert await timed.reset(RUN.id, [TaskState.FAILED]) == 2
    shop = await timed.claim(RUN.id, "a", "shop", "w")
    now.time += 59.9
    spent = await timed.find_spent_requests(shop)
    assert [number for _, number in spent] == [2, 40]
    assert [ago for ago, _ in spent] == pytest.approx([59.9, 59.9])
    assert len(await timed.find_spent_requests(shop, window=59.0)) == 0
    now.time += 0.1
    assert await timed.find_spent_requests(shop) == ()
    assert len(await timed.find_spent_requests(shop, window=61.0)) == 2


async def test_a_try_of_more_than_a_minute_ago_is_not_added_to_the_last(timed: FleetRecords, now: Now) -> None:
    for number, (pause, counted) in enumerate(((59.9, 9), (60.0, 5))):
        await timed.create_run(replace(RUN, id=f"r{number}"), tasks(f"m{number}", run=f"r{number}"))
        for sent in (4, 5):
            claimed = await timed.claim(f"r{number}", f"m{number}", "shop", "w")
            await timed.finish(ended(claimed, TaskState.FAILED, sent))
            await timed.reset(f"r{number}", [TaskState.FAILED])
            now.time += pause if sent == 4 else 0
        last = await timed.claim(f"r{number}", f"m{number}", "shop", "w")
        assert await timed.find_spent_requests(last) == ((0.0, counted),)


async def test_a_killed_worker_may_have_sent_until_its_next_sign_of_life_was_due(timed: FleetRecords, now: Now) -> None:
    """15 seconds after the last one, whether or not another worker took the task over."""
    await timed.create_run(RUN, [*tasks("a"), TaskRecord(RUN.id, "a", "base")])
    await timed.claim(RUN.id, "a", "base", "w")
    now.time += 40
    shop = await timed.claim(RUN.id, "a", "shop", "w")
    ((ago, number),) = await timed.find_spent_requests(shop)
    assert (ago, number > 10**6) == (25.0, True)
    await timed.claim(RUN.id, "a", "base", "w")
    now.time += 34.9
    assert [ago for ago, _ in await timed.find_spent_requests(shop)] == pytest.approx([19.9, 59.9])
    now.time += 0.1
    assert [ago for ago, _ in await timed.find_spent_requests(shop)] == pytest.approx([20.0])


# --- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE fleet_runs SET state = 'opem'",
        "UPDATE fleet_runs SET verb = 'destroy'",
        """UPDATE fleet_runs SET approved_shapes = '["0123456789ab"]'""",
        """UPDATE fleet_runs SET approved_waves = '{"approved": ["all"], "waves": []}'""",
        "UPDATE fleet_tasks SET state = 'runninf'",
        "UPDATE fleet_tasks SET counts = '{'",
        """UPDATE fleet_tasks SET changes = '{"BotUser/b": "1"}'""",
        "UPDATE fleet_tasks SET shape = 'x'",
        "UPDATE fleet_shapes SET plan = ''",
    ],
)
async def test_a_row_that_is_not_valid_is_damage(tmp_path: Path, change: str) -> None:
    file = tmp_path / "fleet.db"
    async with open_fleet_records(str(file)) as records:
        await records.create_run(RUN, tasks("a"))
        await records.save_shape("edge", SHAPE)
        connection = sqlite3.connect(file)
        connection.execute(change)
        connection.commit()
        connection.close()

        async def read_all() -> None:
            await records.find_run("edge")
            await records.tasks(RUN.id)
            await records.shapes("edge", [SHAPE.digest])

        with pytest.raises(Damaged):
            await read_all()
