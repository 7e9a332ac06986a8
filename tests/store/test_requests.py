"""The requests that a task of a fleet, its earlier attempts and other tasks of its account may have sent."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.model.fleet import TaskRecord, TaskState
from reconciler.store.fleets.records import FleetRecords
from reconciler.store.fleets.requests import HEARTBEAT_SECONDS, WHOLE_BUDGET
from tests.store.stores import PLACES, RUN, RUNS, Now, end_task, tasks


async def test_no_requests_are_spent_before_the_first_task_of_a_member(timed: FleetRecords) -> None:
    await timed.create_run(RUN, tasks("a", "b"))
    other = await timed.claim(RUN.id, "b", "shop", "w")
    await timed.finish(end_task(other, sent=9))
    assert await timed.find_spent_requests(await timed.claim(RUN.id, "a", "shop", "w")) == ()


async def test_requests_of_a_task_count_for_a_minute_after_its_end(timed: FleetRecords, now: Now) -> None:
    await timed.create_run(RUN, [*tasks("a"), TaskRecord(RUN.id, "a", "base")])
    await timed.create_run(replace(RUN, id="r2"), tasks("a", run="r2"))
    await timed.create_run(replace(RUN, id="r3", fleet="core"), tasks("a", run="r3"))
    base = await timed.claim(RUN.id, "a", "base", "w")
    now.time += 300
    await timed.finish(end_task(base, sent=40))
    now.time += 20
    shop = await timed.claim(RUN.id, "a", "shop", "w")
    assert await timed.find_spent_requests(shop) == ((20.0, 40),)
    await timed.finish(end_task(shop, sent=7))
    now.time += 10
    assert await timed.find_spent_requests(await timed.claim("r2", "a", "shop", "w")) == ((10.0, 7), (30.0, 40))
    assert await timed.find_spent_requests(await timed.claim("r3", "a", "shop", "w")) == ()


async def test_a_killed_worker_counts_as_the_whole_budget_until_its_next_heartbeat_was_due(
    timed: FleetRecords, now: Now
) -> None:
    await timed.create_run(RUN, [*tasks("a"), TaskRecord(RUN.id, "a", "base")])
    lost_task = await timed.claim(RUN.id, "a", "shop", "w")
    now.time += 100
    assert await timed.store_heartbeat(replace(lost_task, requests=3))
    now.time += HEARTBEAT_SECONDS + 10
    next_task = await timed.claim(RUN.id, "a", "shop", "w")
    assert await timed.find_spent_requests(next_task) == ((10.0, WHOLE_BUDGET),)
    now.time += 5
    await timed.finish(end_task(next_task, sent=2))  # the requests of its predecessor still count
    base = await timed.claim(RUN.id, "a", "base", "w")
    assert await timed.find_spent_requests(base) == ((0.0, 2), (15.0, WHOLE_BUDGET))
    now.time += 46
    assert await timed.find_spent_requests(base) == ((46.0, 2),)


async def test_a_running_task_counts_its_sent_requests_until_its_heartbeat_is_overdue(
    timed: FleetRecords, now: Now
) -> None:
    await timed.create_run(RUN, [*tasks("a"), TaskRecord(RUN.id, "a", "base")])
    base = await timed.claim(RUN.id, "a", "base", "w")
    shop = await timed.claim(RUN.id, "a", "shop", "w")
    assert await timed.find_spent_requests(shop) == ()
    now.time += 10
    await timed.store_heartbeat(replace(base, requests=12))
    now.time += 2 * HEARTBEAT_SECONDS
    assert await timed.find_spent_requests(shop) == ((2 * HEARTBEAT_SECONDS, 12),)
    now.time += 1
    assert await timed.find_spent_requests(shop) == ((HEARTBEAT_SECONDS + 1, WHOLE_BUDGET),)


async def test_a_worker_killed_just_now_counts_as_the_whole_budget(timed: FleetRecords, now: Now) -> None:
    await timed.create_run(RUN, tasks("a"))
    await timed.claim(RUN.id, "a", "shop", "w")
    now.time += 3
    second = await timed.claim(RUN.id, "a", "shop", "w")
    assert await timed.find_spent_requests(second) == ((0.0, WHOLE_BUDGET),)
    now.time += 1
    third = await timed.claim(RUN.id, "a", "shop", "w")
    assert await timed.find_spent_requests(third) == ((0.0, WHOLE_BUDGET),)


async def test_a_retry_counts_the_requests_of_earlier_attempts(timed: FleetRecords, now: Now) -> None:
    await timed.create_run(RUN, tasks("a"))
    for sent in (4, 5):
        await timed.finish(end_task(await timed.claim(RUN.id, "a", "shop", "w"), TaskState.FAILED, sent))
        await timed.reset(RUN.id, [TaskState.FAILED])
        now.time += 10
    last = await timed.claim(RUN.id, "a", "shop", "w")
    assert last.requests == 9
    assert await timed.find_spent_requests(last) == ((10.0, 9),)
    now.time += 50
    assert await timed.find_spent_requests(last) == ()


async def test_requests_count_for_exactly_a_minute(timed: FleetRecords, now: Now) -> None:
    """Those of an earlier attempt as well as those of another task."""
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


async def test_an_attempt_of_more_than_a_minute_ago_is_not_added_to_the_last(timed: FleetRecords, now: Now) -> None:
    for number, (pause, counted) in enumerate(((59.9, 9), (60.0, 5))):
        await timed.create_run(replace(RUN, id=f"r{number}"), tasks(f"m{number}", run=f"r{number}"))
        for sent in (4, 5):
            claimed = await timed.claim(f"r{number}", f"m{number}", "shop", "w")
            await timed.finish(end_task(claimed, TaskState.FAILED, sent))
            await timed.reset(f"r{number}", [TaskState.FAILED])
            now.time += pause if sent == 4 else 0
        last = await timed.claim(f"r{number}", f"m{number}", "shop", "w")
        assert await timed.find_spent_requests(last) == ((0.0, counted),)


async def test_a_killed_worker_may_have_sent_until_its_next_heartbeat_was_due(timed: FleetRecords, now: Now) -> None:
    """15 seconds after the last heartbeat, whether or not another worker claimed the task."""
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


async def test_requests_of_other_members_and_fleets_do_not_count(timed: FleetRecords, now: Now) -> None:
    for run, fleet in RUNS.items():
        await timed.create_run(replace(RUN, id=run, fleet=fleet), [TaskRecord(run, *place) for place in PLACES])
        for number, (member, project) in enumerate(PLACES):
            if (run, member, project) != ("r3", "b", "mid"):
                claimed = await timed.claim(run, member, project, "w")
                await timed.finish(end_task(claimed, sent=1000 * int(run[1]) + number))
    own = await timed.claim("r3", "b", "mid", "w")
    now.time += 10
    sent = [2003, 2004, 2005, 3003, 3005, 4003, 4004, 4005]
    assert await timed.find_spent_requests(own) == tuple((10.0, number) for number in sent)
