"""Waves, pauses and the order of projects; and tasks that an engine loses or cannot run."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from msgspec.structs import replace

from reconciler.api.clock import MachineClock
from reconciler.fleet import coordinator, local_pool, runs
from reconciler.fleet.board import Board
from reconciler.fleet.coordinator import MAX_ATTEMPTS, FleetProgress
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.ports import TaskEnd
from reconciler.fleet.runs import FleetSource, reopen_run
from reconciler.model import exit_codes
from reconciler.model.fleet import Amount, Pause, Run, RunState, RunVerb, Task, TaskRecord, TaskState, Wave
from reconciler.rendering.fleet.rollup import build_rollup
from reconciler.store.errors import Locked, LockLost, StoreError
from reconciler.store.fleets.records import FleetRecords, task_lease
from tests.fleet.fleets import CANARY, DOMAIN, THREE, FleetWorld, member, play
from tests.fleet.scenes import STORE, Scene
from tests.harness.golden import compare_golden
from tests.harness.workspaces import bot, policy

WAVES: dict[str, Any] = {
    "waves": [{"name": "canary", "select": {"tier": "canary"}}, {"name": "rest"}],
}


def test_the_failure_of_one_member_does_not_stop_others(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        world.sandbox.accounts["acme"].fault("GET /reserved_domains", times=0, then="status", status=401)
        planned = await world.plan()
        assert await world.states(planned) == {"acme": "failed", "globex": "succeeded", "initech": "succeeded"}
        failed = (await world.tasks(planned))[0]
        assert failed.exit_code == exit_codes.AUTH
        assert failed.reason
        applied = await world.apply(planned)
        assert await world.states(applied) == {"acme": "skipped", "globex": "succeeded", "initech": "succeeded"}

    play(tmp_path, THREE, act)


def break_creates(world: FleetWorld, name: str) -> None:
    world.sandbox.accounts[name].fault("POST /reserved_domains", times=0, then="status", status=400)


def test_a_failing_canary_stops_the_run(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        break_creates(world, "acme")
        applied = await world.apply(planned)
        assert (applied.state, applied.reason) == (RunState.FAILED, "1 member of wave canary failed")
        assert await world.states(applied) == {"acme": "failed", "globex": "skipped"}
        assert world.domains("globex") == []

    play(tmp_path, CANARY, act, **WAVES)


def test_a_wave_with_only_stale_members_fails(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        await world.apply(await world.plan())
        for name in ("acme", "globex"):
            account = world.sandbox.accounts[name]
            found = account.collection("/reserved_domains", "reserved_domains")[0]
            account.patch(f"/reserved_domains/{found['id']}", {"description": "by hand"})
        planned = await world.plan()
        found = world.sandbox.accounts["acme"].collection("/reserved_domains", "reserved_domains")[0]
        world.sandbox.accounts["acme"].patch(f"/reserved_domains/{found['id']}", {"description": "again"})
        applied = await world.apply(planned)
        assert (applied.state, applied.reason) == (RunState.FAILED, "no member of wave canary was applied")
        assert await world.states(applied) == {"acme": "stale", "globex": "skipped"}

    play(tmp_path, CANARY, act, **WAVES)


def test_a_wave_without_approved_shapes_is_skipped(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        shapes = {task.member: task.shape for task in await world.tasks(planned)}
        applied = await world.apply(planned, shapes["globex"])
        assert applied.state is RunState.SUCCEEDED
        assert await world.states(applied) == {"acme": "blocked", "globex": "succeeded"}

    other = {**CANARY[1], "variables": {"site": "globex", "text": "nine to five, every other sunday"}}
    document = {**DOMAIN, "spec": {**DOMAIN["spec"], "metadata": "${{ lower(var.text) }} for everyone"}}
    members = [{**CANARY[0], "variables": {"site": "acme", "text": "Shop"}}, other]
    play(tmp_path, members, act, projects={"web": [document]}, **WAVES)


def test_a_wave_with_only_members_without_a_plan_fails(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        world.sandbox.accounts["acme"].fault("GET /reserved_domains", then="status", status=401)
        planned = await world.plan()
        applied = await world.apply(planned)
        assert (applied.state, applied.reason) == (RunState.FAILED, "no member of wave canary was applied")
        tasks = {task.member: (task.state, task.reason) for task in await world.tasks(applied)}
        assert tasks["acme"][1].startswith("its plan failed: ")
        assert tasks["globex"] == (TaskState.SKIPPED, applied.reason)
        assert world.domains("globex") == []

        again = await reopen_run(planned, world.records, {TaskState.FAILED})
        assert again is not None
        shapes = {task.shape for task in await world.tasks(await world.execute(again))}
        again = await reopen_run(applied, world.records, {TaskState.SKIPPED}, shapes)
        assert again is not None
        assert (await world.execute(again)).state is RunState.SUCCEEDED
        assert world.domains("globex") == ["globex.example.com"]

    play(tmp_path, CANARY, act, **WAVES)


@pytest.mark.parametrize("other", ["unchanged", "not approved"])
def test_a_wave_with_a_member_without_a_plan_depends_on_the_others(tmp_path: Path, other: str) -> None:
    """Members without changes count as succeeded; members without an approval do not."""
    members = [
        *CANARY,
        member("initech", labels={"tier": "canary"}, variables={"text": "Nine to five, every other Sunday"}),
    ]
    document = {**DOMAIN, "spec": {**DOMAIN["spec"], "metadata": "${{ lower(var.text) }} for everyone"}}

    async def act(world: FleetWorld) -> None:
        if other == "unchanged":
            await world.apply(await world.plan({"name": ("initech",)}))
        world.sandbox.accounts["acme"].fault("GET /reserved_domains", then="status", status=401)
        planned = await world.plan()
        shapes = {task.member: task.shape for task in await world.tasks(planned)}
        applied = await world.apply(planned, shapes["globex"])
        states = await world.states(applied)
        if other == "unchanged":
            assert applied.state is RunState.SUCCEEDED
            assert states == {"acme": "skipped", "initech": "succeeded", "globex": "succeeded"}
        else:
            assert (applied.state, applied.reason) == (RunState.FAILED, "no member of wave canary was applied")
            assert states == {"acme": "skipped", "initech": "blocked", "globex": "skipped"}

    play(tmp_path, members, act, projects={"web": [document]}, **WAVES)


def test_failures_within_the_limit_of_a_wave_do_not_stop_it(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        break_creates(world, "acme")
        applied = await world.apply(planned)
        assert applied.state is RunState.SUCCEEDED
        assert await world.states(applied) == {"acme": "failed", "globex": "succeeded", "initech": "succeeded"}

    play(tmp_path, THREE, act, waves=[{"name": "all", "max_failures": "34%"}])


def test_a_wave_waits_for_approval_and_the_run_is_resumed(tmp_path: Path) -> None:
    waves = [{"name": "canary", "select": {"tier": "canary"}}, {"name": "rest", "approve": True}]

    async def act(world: FleetWorld) -> None:
        applied = await world.apply(await world.plan())
        assert applied.state is RunState.OPEN
        assert world.progress[-1].waiting == "approval of wave rest"
        assert world.domains("globex") == []
        await world.records.update_run(applied.id, approved_waves=("rest",))
        again = await world.records.find_run("shops", applied.id)
        assert again is not None
        world.sandbox.forget_log()
        assert (await world.execute(again)).state is RunState.SUCCEEDED
        assert world.sandbox.accounts["acme"].log() == []  # ended tasks are not run again
        assert world.domains("globex") == ["globex.example.com"]

    play(tmp_path, CANARY, act, waves=waves)


def test_a_wave_waits_for_the_min_success_time_of_the_wave_before(tmp_path: Path) -> None:
    waves = [{"name": "canary", "select": {"tier": "canary"}, "min_success_time": "1h"}, {"name": "rest"}]

    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        shapes = [task.shape for task in await world.tasks(planned)]
        run = await world.start(RunVerb.APPLY, reviewed=planned, approved_shapes=shapes)
        applied = await world.execute(run, wait=False)
        assert applied.state is RunState.OPEN
        assert world.progress[-1].waiting == "min_success_time of wave canary"
        later = world.now() + 3600
        world.runtime_options["now"] = lambda: later  # a machine whose clock is fast
        assert (await world.execute(run, wait=False)).state is RunState.OPEN
        world.runtime_options.clear()
        world.now = lambda: later
        ended = await world.execute(run)
        assert (ended.state, ended.ended) == (RunState.SUCCEEDED, later)

    play(tmp_path, CANARY, act, waves=waves)


@pytest.mark.parametrize("between", ["unchanged", "not approved", "not selected"])
def test_a_wave_without_changes_does_not_shorten_the_min_success_time(tmp_path: Path, between: str) -> None:
    waves = [
        {"name": "canary", "select": {"tier": "canary"}, "min_success_time": "1h"},
        {"name": "early", "select": {"tier": "early"}},
        {"name": "rest"},
    ]
    other = {"text": "nine to five, every other sunday"} if between == "not approved" else {}
    members = [*CANARY, member("initech", labels={"tier": "early"}, variables=other)]
    document = {**DOMAIN, "spec": {**DOMAIN["spec"], "metadata": "${{ lower(var.text) }} for everyone"}}

    async def act(world: FleetWorld) -> None:
        selected = {"name": ("acme", "globex")} if between == "not selected" else None
        if between == "unchanged":
            await world.apply(await world.plan({"name": ("initech",)}))
        planned = await world.plan()
        shapes = [task.shape for task in await world.tasks(planned) if task.member != "initech"]
        run = await world.start(RunVerb.APPLY, selected, reviewed=planned, approved_shapes=shapes)
        await world.execute(run, wait=False)
        assert world.progress[-1].waiting == "min_success_time of wave canary"
        assert world.domains("globex") == []
        rollup = build_rollup(world.source.fleet, run, await world.tasks(run), {}, world.now())
        assert rollup.wait is not None
        assert rollup.wait.text.endswith("min_success_time of wave canary")
        later = world.now() + 3600
        world.now = lambda: later
        await world.execute(run)
        assert world.domains("globex") == ["globex.example.com"]

    play(tmp_path, members, act, projects={"web": [document]}, waves=waves)


def test_a_paused_fleet_starts_no_tasks(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        await world.records.pause(Pause("shops", world.now(), None, "incident 42"))
        run = await world.plan()
        assert run.state is RunState.OPEN
        assert world.progress[-1].waiting == "paused: incident 42"
        assert world.sandbox.log() == []
        await world.records.end_pause("shops")
        assert (await world.execute(run)).state is RunState.SUCCEEDED

    play(tmp_path, THREE, act)


def test_a_pause_during_a_run_stops_the_next_tasks(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        world.at_once = 1
        run = await world.start(RunVerb.PLAN)
        stop = asyncio.Event()

        async def pause() -> None:
            while not world.sandbox.log():  # noqa: ASYNC110 - the sandbox has no event to wait for
                await asyncio.sleep(0.01)
            await world.records.pause(Pause("shops", world.now()))

        pausing = asyncio.create_task(pause())
        run = await world.execute(run, stop=stop)
        await pausing
        assert run.state is RunState.OPEN
        assert "waiting" in (await world.states(run)).values()

    play(tmp_path, [member(f"m{number}") for number in range(12)], act)


def test_only_an_apply_follows_the_order_of_projects(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        world.sandbox.accounts["acme"].fault("GET /ip_policies", then="status", status=401)
        states = await world.states(await world.plan())
        assert sorted(states.values()) == ["failed", "succeeded", "succeeded", "succeeded"]

    projects: dict[str, Any] = {"base": [policy("office")], "web": [DOMAIN]}
    play(tmp_path, CANARY, act, projects=projects, after={"web": "base"})


def test_projects_of_a_member_follow_their_order(tmp_path: Path) -> None:
    projects: dict[str, Any] = {"base": [policy("office")], "web": [DOMAIN], "last": [bot("watcher")]}
    after = {"web": "base", "last": "web"}

    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        assert len(await world.tasks(planned)) == 6
        break_creates(world, "acme")
        world.sandbox.forget_log()
        applied = await world.apply(planned)
        assert await world.states(applied) == {
            "acme/base": "succeeded",
            "acme/web": "failed",
            "acme/last": "skipped",
            "globex/base": "succeeded",
            "globex/web": "succeeded",
            "globex/last": "succeeded",
        }
        created = [call for call in world.sandbox.accounts["globex"].calls() if call.startswith("POST")]
        assert created == ["POST /ip_policies", "POST /reserved_domains", "POST /bot_users"]
        of_acme = [task for task in await world.tasks(applied) if task.member == "acme"]  # its project base was applied
        rollup = build_rollup(world.source.fleet, applied, of_acme, {}, world.now())
        assert (rollup.states, rollup.exit_code()) == ({"failed": 1}, exit_codes.PARTLY)

    play(tmp_path, CANARY, act, projects=projects, after=after, waves=[{"name": "all", "max_failures": 1}])


def test_two_coordinators_run_each_task_once(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        run = await world.start(RunVerb.PLAN)
        results = await asyncio.gather(world.execute(run), world.execute(run), return_exceptions=True)
        assert sum(isinstance(result, Locked) for result in results) == 1
        assert all(task.attempts == 1 for task in await world.tasks(run))

    play(tmp_path, THREE, act)


@pytest.mark.parametrize("until", [None, 3600.0])
def test_an_ended_pause_does_not_stop_a_run(tmp_path: Path, until: float | None) -> None:
    async def act(world: FleetWorld) -> None:
        past = world.now() - 10
        await world.records.pause(Pause("shops", past, None if until is None else past + 1))
        if until is None:
            await world.records.end_pause("shops")
        assert (await world.plan()).state is RunState.SUCCEEDED

    play(tmp_path, THREE, act)


def test_the_first_tasks_are_started_at_random_times(tmp_path: Path) -> None:
    pauses: list[float] = []

    class Clock(MachineClock):
        async def sleep(self, seconds: float) -> None:
            pauses.append(seconds)

    async def act(world: FleetWorld) -> None:
        world.runtime_options["clock"] = Clock()
        await world.plan()
        first = [seconds for seconds in pauses if 0 < seconds <= 15]
        assert len(first) == len(set(first)) == 4  # 2 × 30 s / 4 at most, before each of the first four

    members = [member(f"m{number}") for number in range(6)]
    play(tmp_path, members, act, limits={"members_at_once": 4, "start_spread": "30s"})


def test_a_member_that_hangs_is_named_until_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "_POLL", 0.05)
    monkeypatch.setattr(coordinator, "_QUIET", 0.1)
    is_named = asyncio.Event()

    async def hang(_method: str, _path: str) -> None:
        await is_named.wait()

    class Seen(list[FleetProgress]):
        def append(self, progress: FleetProgress) -> None:
            super().append(progress)
            if progress.slow:
                is_named.set()

    async def act(world: FleetWorld) -> None:
        world.progress = Seen()
        async with asyncio.timeout(20):
            await world.plan()
        assert [member for member, _ in next(seen.slow for seen in world.progress if seen.slow)] == ["acme"]
        assert world.progress[-1].slow == ()

    play(tmp_path, THREE[:1], act, on_request=hang)


def test_a_coordinator_that_lost_its_lock_stops_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses: list[Callable[[StoreError], None]] = []
    lock = FleetRecords.lock

    def keep(self: FleetRecords, name: str, on_loss: Callable[[StoreError], None], **options: Any) -> Any:
        losses.extend([on_loss] if name.startswith("fleet run") else [])
        return lock(self, name, on_loss, **options)

    async def lose(_method: str, _path: str) -> None:
        losses[0](LockLost("run x"))

    async def act(world: FleetWorld) -> None:
        world.at_once = 1
        run = await world.start(RunVerb.PLAN)
        with pytest.raises(LockLost):
            await world.execute(run)
        assert await world.states(run) == {"acme": "succeeded", "globex": "waiting", "initech": "waiting"}

    monkeypatch.setattr(FleetRecords, "lock", keep)
    play(tmp_path, THREE, act, on_request=lose)


# --- tasks that an engine loses ---------------------------------------------------------------------------------------


class LosingPool:
    """A pool that loses the tasks of a member a number of times."""

    def __init__(self, world: FleetWorld, name: str, times: int) -> None:
        self.pool, self.name, self.times = LocalPool(world.context(), at_once=1), name, times
        self.lost = 0

    async def run(self, tasks: AsyncIterator[Task]) -> AsyncGenerator[TaskEnd, None]:
        async for task in tasks:
            if task.member == self.name and self.lost < self.times:
                self.lost += 1
                yield TaskEnd(task, "no worker has the resource keys-eu")
                continue

            async def one(task: Task = task) -> AsyncIterator[Task]:
                yield task

            async for end in self.pool.run(one()):
                yield end


def test_a_task_that_no_worker_can_run_fails_and_others_succeed(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        pool = LosingPool(world, "globex", 1000)
        run = await world.execute(await world.start(RunVerb.PLAN), pool=pool, backoff=0.001)
        assert run.state is RunState.SUCCEEDED
        assert await world.states(run) == {"acme": "succeeded", "globex": "failed", "initech": "succeeded"}
        (failed,) = [task for task in await world.tasks(run) if task.member == "globex"]
        assert failed.reason == "no worker has the resource keys-eu"
        assert pool.lost == MAX_ATTEMPTS

    play(tmp_path, THREE, act)


def test_a_failed_apply_exits_5_if_a_worker_died_after_it_began_to_apply(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        shapes = {task.shape for task in await world.tasks(planned)}
        run = await world.start(RunVerb.APPLY, reviewed=planned, approved_shapes=shapes)
        claimed = await world.records.claim(run.id, "globex", "web", "a worker that died")
        assert await world.records.begin_apply(replace(claimed, changes={"ReservedDomain/shop": "00"}))
        await world.execute(run, pool=LosingPool(world, "globex", 1000), backoff=0.001)
        (failed,) = [task for task in await world.tasks(run) if task.member == "globex"]
        assert (failed.state, failed.exit_code) == (TaskState.FAILED, exit_codes.PARTLY)

    play(tmp_path, THREE, act)


def test_a_task_that_the_engine_lost_is_resubmitted(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        pool = LosingPool(world, "globex", MAX_ATTEMPTS - 1)
        run = await world.execute(await world.start(RunVerb.PLAN), pool=pool, backoff=0.001)
        assert set((await world.states(run)).values()) == {"succeeded"}
        assert {task.attempts for task in await world.tasks(run)} == {1}

    play(tmp_path, THREE, act)


def test_an_unexpected_error_is_reported_without_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise LookupError("header Authorization: Bearer key-of-globex")

    async def act(world: FleetWorld) -> None:
        monkeypatch.setattr(local_pool, "run_task", fail)
        run = await world.execute(await world.start(RunVerb.PLAN), backoff=0.001)
        assert set((await world.states(run)).values()) == {"failed"}
        for task in await world.tasks(run):
            assert re.fullmatch(r"LookupError in \S+test_coordinator.py:\d+", task.reason)

    play(tmp_path, THREE, act)


def test_a_running_task_is_not_failed_although_the_engine_lost_it(tmp_path: Path) -> None:
    """Otherwise its result would be lost."""

    async def act(world: FleetWorld) -> None:
        run = await world.start(RunVerb.PLAN)
        async with world.records.lock(task_lease(f"{run.id}/globex/web"), on_loss=lambda _: None):
            claimed = await world.records.claim(run.id, "globex", "web", "elsewhere")
            pool = LosingPool(world, "globex", MAX_ATTEMPTS + 2)
            executing = asyncio.create_task(world.execute(run, pool=pool, backoff=0.001))
            while pool.lost < pool.times:  # noqa: ASYNC110 - the pool has no event to wait for
                await asyncio.sleep(0.01)
            assert await world.records.finish(replace(claimed, state=TaskState.SUCCEEDED, shape="0" * 12))
        assert set((await world.states(await executing)).values()) == {"succeeded"}

    play(tmp_path, THREE, act)


def test_attempts_before_a_retry_or_resume_do_not_count(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        run = await world.start(RunVerb.PLAN)
        for _ in range(MAX_ATTEMPTS):
            await world.records.claim(run.id, "globex", "web", "a worker that was interrupted")
        run = await world.execute(run, pool=LosingPool(world, "globex", 1), backoff=0.001)
        assert set((await world.states(run)).values()) == {"succeeded"}

    play(tmp_path, THREE, act)


class EmptyPool:
    """A pool that finds no worker for any task."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    async def run(self, tasks: AsyncIterator[Task]) -> AsyncGenerator[TaskEnd, None]:
        async for task in tasks:
            self.tasks.append(task)
            yield TaskEnd(task, "no worker")


@pytest.mark.parametrize("health", [False, True])
def test_a_worker_gets_the_whole_task_of_its_member(tmp_path: Path, health: bool) -> None:
    async def act(world: FleetWorld) -> None:
        pool = EmptyPool()
        source = FleetSource(world.source.fleet, "https://git.example.com/a.git", "fleet.yaml", "c0ffee")
        run = await runs.start_run(source, RunVerb.DRIFT, world.records, health=health, now=1.0, commit="other")
        ended = await coordinator.execute(
            source, run, world.records, pool, runtime=world.runtime, on_progress=world.progress.append,
            stop=asyncio.Event(), backoff=0.0,
        )  # fmt: skip
        assert {*pool.tasks} == {
            Task(run.id, "shops", name, "web", RunVerb.DRIFT, source.source, "fleet.yaml", "c0ffee", needs, health)
            for name, needs in (("acme", ""), ("globex", "keys-eu"))
        }
        assert Counter(task.member for task in pool.tasks) == {"acme": 10, "globex": 10}
        assert (ended.commit, ended.health) == ("c0ffee", health)
        assert world.progress[-1].states[TaskState.FAILED] == 2

    play(tmp_path, CANARY, act, workers=[{"select": {"tier": "gold"}, "needs": "keys-eu"}])


@pytest.mark.parametrize(("rate", "is_named"), [(0.0, True), (100.0, True), (0.01, False)])
def test_a_task_is_slow_after_three_usual_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate: float, is_named: bool
) -> None:
    """With one end in 100 seconds, a task of a fraction of a second is not slow."""
    monkeypatch.setattr(coordinator, "_POLL", 0.02)
    monkeypatch.setattr(coordinator, "_QUIET", 0.05)
    monkeypatch.setattr(coordinator._Execution, "_rate", property(lambda _: rate))

    async def hang(_method: str, path: str) -> None:
        if path.startswith("/reserved_domains"):
            await asyncio.sleep(0.3)

    async def act(world: FleetWorld) -> None:
        await world.plan()
        assert any(seen.slow for seen in world.progress) is is_named

    play(tmp_path, THREE[:1], act, on_request=hang)


@pytest.mark.parametrize(("rate", "limit"), [(0.0, 10.0), (1.0, 10.0), (0.3, 10.0), (0.1, 30.0)])
def test_running_tasks_are_named_after_ten_seconds_and_three_usual_intervals(
    monkeypatch: pytest.MonkeyPatch, rate: float, limit: float
) -> None:
    seen: list[FleetProgress] = []
    moments = [limit - 0.1, limit]

    def now() -> float:
        if not moments:
            raise asyncio.CancelledError
        assert not seen
        return 500 + moments.pop(0)

    records = Mock(now=AsyncMock(return_value=100.0))
    started = [TaskRecord("r", name, "web", started=at) for name, at in (("a", 40.0), ("b", 70.0), ("c", None))]
    records.list_running = AsyncMock(return_value=started)
    execution = coordinator._Execution(
        Mock(), Mock(), records, Mock(), Mock(clock=Mock(now=now)), seen.append, asyncio.Event(), [],
        None, True, 1.0, Mock(states={}), last_end=500.0,
    )  # fmt: skip
    monkeypatch.setattr(coordinator, "_POLL", 0)
    monkeypatch.setattr(coordinator._Execution, "_rate", property(lambda _: rate))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(execution._watch())
    assert [progress.slow for progress in seen] == [(("a", 60.0), ("b", 30.0), ("c", 0.0))]


# --- runs in memory, second by second

DONE, FAILED, STALE = TaskState.SUCCEEDED, TaskState.FAILED, TaskState.STALE
TWO, LAST = {"acme": 0, "globex": 1}, {"base": (), "web": ("base",), "api": ("base",), "last": ("web", "api")}
MANY = (Wave("canary", max_failures=Amount(9)), Wave("rest"))
TEN = ["lose"] * MAX_ATTEMPTS


def not_approved(name: str, **more: Any) -> dict[str, Any]:
    return {"state": TaskState.BLOCKED, "exit_code": 4, "reason": f"{name} is not approved", **more}


SCENES = [
    Scene("a plan goes on after failures", {"acme": 0, "globex": 0, "initech": 0}, verb=RunVerb.PLAN,
          script={"acme/web": [FAILED], "globex/web": [FAILED]}),
    Scene("a plan follows no order", {"acme": 0}, {"acme/base": [FAILED]}, LAST, verb=RunVerb.PLAN),
    Scene("two waves", TWO),
    Scene("a failed canary", {**TWO, "initech": 1}, {"acme/web": [FAILED]}),
    Scene("two failed canaries of a limit of one", {"a": 0, "b": 0, "c": 0, "d": 1},
          {"a/web": [FAILED], "b/web": [FAILED]}, waves=(Wave("canary", max_failures=Amount(1)), Wave("rest"))),
    Scene("one failed canary of a limit of one", {"a": 0, "b": 0, "c": 1}, {"a/web": [FAILED]},
          waves=(Wave("canary", max_failures=Amount(1)), Wave("rest"))),
    Scene("a limit of a third", {"a": 0, "b": 0, "c": 0, "d": 1}, {"a/web": [FAILED], "b/web": [FAILED]},
          waves=(Wave("canary", max_failures=Amount(34, is_percent=True)), Wave("rest"))),
    Scene("a member that fails twice counts once", {"a": 0, "b": 1}, {"a/web": [FAILED], "a/api": [FAILED]},
          {"web": (), "api": ()}, waves=(Wave("canary", max_failures=Amount(1)), Wave("rest"))),
    Scene("stale canaries", TWO, {"acme/web": [STALE]}),
    Scene("a stale last wave", {"acme": 0, "globex": 1}, {"globex/web": [STALE]}),
    Scene("a wave without approvals", TWO, before={"acme/web": not_approved("it")}),
    Scene("a wave without plans", TWO, before={"acme/web": {"state": TaskState.SKIPPED, "reason": "its plan failed"}}),
    Scene("a wave without plans and with an approval", {**TWO, "initech": 0},
          before={"acme/web": {"state": TaskState.SKIPPED}, "initech/web": {"state": DONE}}),
    Scene("a wave in which one was applied and others are not approved", {**TWO, "initech": 0},
          before={"initech/web": not_approved("it")}),
    Scene("a wave whose only attempt is stale although another has no changes", {**TWO, "initech": 0},
          {"acme/web": [STALE]}, before={"initech/web": {"state": DONE}}),
    Scene("an ended run", {"acme": 0}, before={"acme/web": {"state": DONE, "attempts": 1}}),
    Scene("waves without tasks between", {"acme": 0, "globex": 2}, waves=(Wave("a"), Wave("b"), Wave("c"))),
    Scene("projects in order, and what comes after a failure", {"acme": 0, "globex": 0, "initech": 0},
          {"acme/web": [FAILED], "globex/base": [STALE]}, LAST, waves=MANY),
    Scene("a project after two that fail, and one after it", {"acme": 0}, {"acme/web": [FAILED], "acme/api": [STALE]},
          {**LAST, "more": ("last",)}, waves=MANY),
    Scene("two tasks at a time", {"acme": 0, "globex": 0}, {"globex/api": [FAILED]}, LAST, at_once=2, waves=MANY),
    Scene("three tasks at a time", {"acme": 0, "globex": 0}, after=LAST, at_once=3),
    Scene("a project that waits is delayed with the one before", {"acme": 0}, {"acme/base": ["lose", "die"]}, LAST),
    Scene("a resumed run", {"acme": 0, "globex": 0}, after=LAST, before={
        "acme/base": {"state": FAILED, "attempts": 1}, "globex/base": {"state": DONE, "attempts": 1},
        "globex/web": {"state": TaskState.RUNNING, "attempts": 9}}, waves=MANY),
    Scene("projects in another order than written", {"acme": 0},
          after={"last": ("web",), "web": ("base",), "base": ()}),
    Scene("a member and a project that are gone", {"acme": 0, "globex": 0}, {"acme/web": [FAILED]}, LAST, waves=MANY,
          hidden=("globex", "web")),
    Scene("a task that no worker can run", {"acme": 0, "globex": 0}, {"acme/web": TEN}, waves=MANY),
    Scene("a task whose workers die", {"acme": 0}, {"acme/web": ["die"] * MAX_ATTEMPTS}),
    Scene("a task that dies once more than counted", {"acme": 0}, {"acme/web": [*["die"] * 9, "die twice"]}),
    Scene("a task that is claimed twice at the limit of one error", {"acme": 0}, {"acme/web": ["die twice"] * 6}),
    Scene("a failure beside a task whose worker died", {"a": 0, "b": 0, "c": 0}, {"b/web": ["die"], "c/web": [FAILED]},
          before={"a/web": {"state": DONE}}),
    Scene("an error after the last start that was tolerated", {"acme": 0},
          {"acme/web": [*["lose"] * 9, "forget", *["lose"] * 9]}),
    Scene("a task that is lost and applied in part", {"acme": 0}, {"acme/web": TEN},
          before={"acme/web": {"changes": {"A/b": "00"}, "attempts": 3}}),
    Scene("a lost task that a worker has and ends", {"acme": 0}, {"acme/web": TEN}, held=("fleet r1/acme/web",)),
    Scene("a pause with an end", {"acme": 0}, pause=Pause("shops", 0.0, STORE + 502.5, "for lunch")),
    Scene("a pause with an end, without waiting", {"acme": 0},
          pause=Pause("shops", 0.0, STORE + 502.5), options={"wait": False}),
    Scene("a pause without an end", {"acme": 0}, pause=Pause("shops", 0.0)),
    Scene("a pause during the run", {"a": 0, "b": 0, "c": 0, "d": 0, "e": 0}, {"a/web": [Scene.set_pause]}, pace=0.4),
    Scene("a pause soon after the start of the machine", {"a": 0, "b": 0, "c": 0, "d": 0}, {"a/web": [Scene.set_pause]},
          moment=0.5, pace=0.4),
    Scene("a pause at a second", {"a": 0, "b": 0, "c": 0}, {"a/web": [Scene.set_pause]}, pace=1.0),
    Scene("a wave that needs an approval", TWO, waves=(Wave("canary"), Wave("rest", approve=True))),
    Scene("a wave that waits for the one before", TWO, waves=(Wave("canary", min_success_time=2.5), Wave("rest"))),
    Scene("a stop", {"a": 0, "b": 0, "c": 0}, {"a/web": [Scene.set_stop]}),
    Scene("a stop at the end of a wave", TWO, {"acme/web": [Scene.set_stop]}),
    Scene("a stop at the end", {"acme": 0}, {"acme/web": [Scene.set_stop]}),
    Scene("a lost lock", {"a": 0, "b": 0, "c": 0}, {"a/web": [Scene.lose_lock]}),
    Scene("a lost lock at the end of a wave", TWO, {"acme/web": [Scene.lose_lock]}),
    Scene("a lost lock at the last task", {"acme": 0}, {"acme/web": [Scene.lose_lock]}),
    Scene("a lost lock while the end is written", {"acme": 0}, loses_at_end=True),
    Scene("starts at random times", {"a": 0, "b": 0, "c": 0, "d": 1},
          limits={"members_at_once": 2, "start_spread": 8.0}),
]  # fmt: skip


def test_runs_go_second_by_second_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """`scenes.txt` has what happens in each scene: starts, ends, progress, gates, sleeps, and the records at last."""
    text = "\n\n".join("\n".join(scene.play(monkeypatch.setattr)) for scene in SCENES)
    compare_golden(Path(__file__).with_name("scenes.txt"), f"{text}\n")


@pytest.mark.parametrize("status", ["stopped", "lost", "failed", "none"])
async def test_each_reason_by_itself_decides_whether_more_tasks_may_start(status: str) -> None:
    """The pause is read from the store when a second has passed since the last time, and not before."""
    moment, pauses = 10.0, AsyncMock(return_value=None)
    stop, lost = asyncio.Event(), list[StoreError]()
    run = Run("r", "shops", RunVerb.APPLY, ".", "fleet.yaml", "", 0.0, waves=(Wave("all"),))
    board = Board([TaskRecord("r", "acme", "web")])
    execution = coordinator._Execution(
        Mock(), run, Mock(pause_of=pauses), Mock(), Mock(clock=Mock(now=lambda: moment)), Mock(), stop, lost,
        None, True, 1.0, board,
    )  # fmt: skip
    assert await execution.may_continue()
    read = [10.0]
    for moment in (10.0, 10.99, 11.0, 11.5, 12.0, 12.5):
        calls = pauses.await_count
        assert await execution.may_continue()
        read += [moment] if pauses.await_count > calls else []
    assert read == [10.0, 11.0, 12.0]
    moment = 20.0
    pauses.return_value = Pause("shops", 0.0)
    assert not await execution.may_continue()
    assert await execution.may_continue()  # it is read again in a second
    match status:
        case "stopped":
            stop.set()
        case "lost":
            lost.append(LockLost("run r"))
        case "failed":
            board.set(TaskRecord("r", "acme", "web", state=FAILED))
    assert await execution.may_continue() is (status == "none")
    assert (execution.is_stopped, execution.has_too_many_failures) == (
        status in ("stopped", "lost"),
        status == "failed",
    )


@pytest.mark.parametrize(("error", "is_raised"), [(StoreError("it restarts"), False), (ValueError("wrong"), True)])
async def test_a_store_that_is_away_does_not_end_the_watch(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_raised: bool
) -> None:
    seen, moments = list[float](), [100.0, 101.0]

    def now() -> float:
        if not moments:
            raise LookupError
        seen.append(moments.pop(0))
        return seen[-1]

    records = Mock(now=AsyncMock(side_effect=error))
    execution = coordinator._Execution(
        Mock(), Mock(), records, Mock(), Mock(clock=Mock(now=now)), Mock(), asyncio.Event(), [],
        None, True, 1.0, Mock(states={}),
    )  # fmt: skip
    monkeypatch.setattr(coordinator, "_POLL", 0)
    monkeypatch.setattr(coordinator._Execution, "_rate", property(lambda _: 0.0))
    with pytest.raises(type(error) if is_raised else LookupError):
        await execution._watch()
    assert len(seen) == (1 if is_raised else 2)


def test_progress_estimates_the_rest_from_the_rate() -> None:
    states = {TaskState.WAITING: 3, TaskState.RUNNING: 2, DONE: 4, FAILED: 1}
    for rate, seconds in ((0.5, 10.0), (2.0, 2.5), (0.0, None)):
        progress = FleetProgress(states, "all", rate)
        assert (progress.total, progress.ended_tasks, progress.remaining_seconds) == (10, 5, seconds)
    backoff = inspect.signature(coordinator.execute).parameters["backoff"].default
    assert (coordinator.MAX_ATTEMPTS, backoff) == (10, 1.0)  # as documented


async def test_a_time_that_has_passed_is_not_waited_for() -> None:
    clock = Mock(sleep=AsyncMock())
    execution = coordinator._Execution(
        Mock(), Mock(), Mock(), Mock(), Mock(clock=clock), Mock(), asyncio.Event(), [], None, True, 1.0, Mock(),
    )  # fmt: skip
    for seconds in (-5.0, 0.0, 0.25, 2.0):
        await execution.sleep(seconds)
    assert [call.args for call in clock.sleep.await_args_list] == [(0.0,), (0.0,), (0.25,), (2.0,)]


def test_a_run_that_waits_names_no_slow_members() -> None:
    seen: list[FleetProgress] = []
    run = Run("r", "shops", RunVerb.PLAN, ".", "fleet.yaml", "", 0.0)
    execution = coordinator._Execution(
        Mock(), run, Mock(), Mock(), Mock(clock=Mock(now=lambda: 1.0)), seen.append, asyncio.Event(), [], None, True, 1,
        Board([]), slow=(("acme", 60.0),),
    )  # fmt: skip
    for waiting in ("paused", ""):
        execution._report(waiting)
    assert [(progress.waiting, progress.slow) for progress in seen] == [("paused", ()), ("", (("acme", 60.0),))]
