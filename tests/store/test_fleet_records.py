"""The runs of fleets in a store, on a file and on a server."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.model.fleet import Pause, Run, RunState, RunVerb, Shape, TaskRecord, TaskState
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
    assert await records.reset(RUN.id, [TaskState.FAILED, TaskState.SKIPPED]) == 2
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


# --- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE fleet_runs SET state = 'opem'",
        "UPDATE fleet_runs SET verb = 'destroy'",
        """UPDATE fleet_runs SET approved_shapes = '["0123456789ab"]'""",
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
