"""Runs over a fleet in one process, on an emulated platform with an account for each member."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.clock import MachineClock
from reconciler.fleet import coordinator
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.runs import reopen_run
from reconciler.fleet.worker import run_task
from reconciler.model import exit_codes
from reconciler.model.fleet import Pause, Run, RunState, RunVerb, Shape, Task, TaskState
from reconciler.rendering.fleet.rollup import build_rollup
from reconciler.store.errors import Locked
from reconciler.store.fleet_records import FleetRecords
from reconciler.store.store import open_store
from tests.fleet.fleets import DOMAIN, FleetWorld, commit_all, member, play, write_fleet
from tests.harness.tiers import examples
from tests.harness.workspaces import bot, policy

THREE = [member("acme"), member("globex"), member("initech")]


def test_one_review_covers_members_that_differ_in_their_variables(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        tasks = await world.tasks(planned)
        assert planned.state is RunState.SUCCEEDED
        assert {task.exit_code for task in tasks} == {exit_codes.CHANGES}
        assert len({task.shape for task in tasks}) == 1
        assert all(task.requests > 0 and task.seconds > 0 and task.ended for task in tasks)

        applied = await world.apply(planned)
        assert applied.state is RunState.SUCCEEDED
        assert {name: world.domains(name) for name in ("acme", "globex", "initech")} == {
            "acme": ["acme.example.com"],
            "globex": ["globex.example.com"],
            "initech": ["initech.example.com"],
        }
        again = await world.tasks(await world.plan())
        assert {(task.exit_code, task.shape) for task in again} == {(exit_codes.DONE, "")}
        assert {task.exit_code for task in await world.tasks(await world.drift())} == {exit_codes.DONE}

    play(tmp_path, THREE, act)


def test_a_member_that_changed_since_its_plan_is_stale_alone(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        await world.apply(await world.plan())
        for name in ("acme", "globex"):
            found = world.sandbox.accounts[name].collection("/reserved_domains", "reserved_domains")[0]
            world.sandbox.accounts[name].patch(f"/reserved_domains/{found['id']}", {"description": "by hand"})
        drift = await world.tasks(await world.drift())
        assert [task.exit_code for task in drift] == [exit_codes.CHANGES, exit_codes.CHANGES, exit_codes.DONE]
        planned = await world.plan()
        assert len({task.shape for task in await world.tasks(planned)}) == 2  # changed, and unchanged

        found = world.sandbox.accounts["acme"].collection("/reserved_domains", "reserved_domains")[0]
        world.sandbox.accounts["acme"].patch(f"/reserved_domains/{found['id']}", {"description": "by another hand"})
        world.sandbox.forget_log()
        applied = await world.apply(planned)
        assert await world.states(applied) == {"acme": "stale", "globex": "succeeded", "initech": "succeeded"}
        assert world.sandbox.accounts["acme"].calls() == []
        assert len(world.sandbox.accounts["globex"].calls()) == 1
        assert applied.state is RunState.SUCCEEDED

    play(tmp_path, THREE, act)


def test_an_object_that_was_changed_by_hand_is_not_deleted(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        await world.apply(await world.plan())
        write_fleet(tmp_path, THREE, projects={"web": [policy("office")]})
        planned = await world.plan()
        assert {task.counts.get("delete") for task in await world.tasks(planned)} == {1}
        (found,) = world.sandbox.accounts["acme"].collection("/reserved_domains", "reserved_domains")
        world.sandbox.accounts["acme"].patch(f"/reserved_domains/{found['id']}", {"description": "by hand"})
        world.sandbox.forget_log()
        applied = await world.apply(planned)
        states = await world.states(applied)
        assert (states["acme"], states["initech"]) == ("stale", "succeeded")
        assert world.sandbox.accounts["acme"].calls() == []

    play(tmp_path, THREE, act)


def test_a_secret_is_delivered_only_as_it_was_reviewed(tmp_path: Path) -> None:
    def token(command: str) -> dict[str, Any]:
        target = {"to_command": {"run": ["sh", "-c", command]}}
        return {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": {"token": target}}

    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        write_fleet(tmp_path, THREE, projects={"web": [token("cat > /dev/null; true")]})
        world.sandbox.forget_log()
        assert set((await world.states(await world.apply(planned))).values()) == {"stale"}
        assert [world.sandbox.accounts[name].calls() for name in ("acme", "globex", "initech")] == [[], [], []]
        assert set((await world.states(await world.apply(await world.plan()))).values()) == {"succeeded"}

    play(tmp_path, THREE, act, projects={"web": [token("cat > /dev/null")]})


def test_only_approved_shapes_are_applied(tmp_path: Path) -> None:
    members = [*THREE, member("other", variables={"text": "a text that no other member has, with site"})]
    document = {**DOMAIN, "spec": {**DOMAIN["spec"], "metadata": "fixed"}}

    async def act(world: FleetWorld) -> None:
        await world.apply(await world.plan())
        for name in ("globex", "other"):
            account = world.sandbox.accounts[name]
            found = account.collection("/reserved_domains", "reserved_domains")[0]
            account.patch(f"/reserved_domains/{found['id']}", {"description": f"by hand {len(name)}"})
        planned = await world.plan()
        shapes = {task.member: task.shape for task in await world.tasks(planned)}
        assert shapes["globex"] != shapes["other"]
        applied = await world.apply(planned, shapes["globex"])
        assert (await world.states(applied))["globex"] == "succeeded"
        assert (await world.states(applied))["other"] == "blocked"

    play(tmp_path, members, act, projects={"web": [document]})


def test_a_project_with_loosened_rules_has_other_shapes_which_the_approved_ones_do_not_cover(tmp_path: Path) -> None:
    settings = tmp_path / "web" / "reconciler.yaml"

    async def plan_with(world: FleetWorld, text: str, rules: str) -> tuple[Run, set[str]]:
        settings.write_text(f"{text}{rules}")
        planned = await world.plan()
        return planned, {task.shape for task in await world.tasks(planned)}

    async def act(world: FleetWorld) -> None:
        text = settings.read_text()
        _, strict = await plan_with(world, text, "guards: {max_delete_percent: 10}\n")
        _, again = await plan_with(world, text, "guards: {max_delete_percent: 10} # the same\n")
        loosened, loose = await plan_with(world, text, "guards: {max_delete_percent: 90}\n")
        assert (strict, strict & loose) == (again, set())
        assert set((await world.states(await world.apply(loosened, *strict))).values()) == {"blocked"}

    play(tmp_path, THREE, act)


def test_the_failure_of_one_member_holds_no_other_back(tmp_path: Path) -> None:
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


def test_a_missing_key_says_where_it_was_looked_for(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        tasks = await world.tasks(await world.plan())
        assert {task.reason for task in tasks} == {
            f"no API key: the file keys/{name} is missing on this worker" for name in ("acme", "globex", "initech")
        }

    play(tmp_path, THREE, act, api_key={"from_file": "keys/${{ member.name }}"})


WAVES: dict[str, Any] = {
    "waves": [{"name": "canary", "select": {"tier": "canary"}}, {"name": "rest"}],
}
CANARY = [member("acme", labels={"tier": "canary"}), member("globex", labels={"tier": "gold"})]


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


def test_a_wave_whose_members_are_all_stale_proves_nothing(tmp_path: Path) -> None:
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


def test_a_wave_of_which_nothing_is_approved_is_passed_over(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        shapes = {task.member: task.shape for task in await world.tasks(planned)}
        applied = await world.apply(planned, shapes["globex"])
        assert applied.state is RunState.SUCCEEDED
        assert await world.states(applied) == {"acme": "blocked", "globex": "succeeded"}

    other = {**CANARY[1], "variables": {"site": "globex", "text": "nine to five, every other sunday"}}
    document = {**DOMAIN, "spec": {**DOMAIN["spec"], "metadata": "${{ lower(var.text) }} for everybody"}}
    members = [{**CANARY[0], "variables": {"site": "acme", "text": "Shop"}}, other]
    play(tmp_path, members, act, projects={"web": [document]}, **WAVES)


def test_a_wave_whose_members_have_no_plan_proves_nothing(tmp_path: Path) -> None:
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
def test_a_wave_in_which_one_member_has_no_plan_depends_on_the_others(tmp_path: Path, other: str) -> None:
    """Members without changes are right as they are; members without an approval prove nothing."""
    members = [
        *CANARY,
        member("initech", labels={"tier": "canary"}, variables={"text": "nine to five, every other sunday"}),
    ]
    document = {**DOMAIN, "spec": {**DOMAIN["spec"], "metadata": "${{ lower(var.text) }} for everybody"}}

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


def test_a_failed_run_can_be_retried(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        world.sandbox.accounts["acme"].fault("POST /reserved_domains", then="status", status=400)
        applied = await world.apply(planned)
        assert applied.state is RunState.FAILED
        again = await reopen_run(applied, world.records, {TaskState.FAILED, TaskState.SKIPPED})
        assert again is not None
        assert (await world.execute(again)).state is RunState.SUCCEEDED
        assert world.domains("globex") == ["globex.example.com"]

    play(tmp_path, CANARY, act, **WAVES)


def test_failures_within_the_limit_of_a_wave_do_not_stop_it(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        break_creates(world, "acme")
        applied = await world.apply(planned)
        assert applied.state is RunState.SUCCEEDED
        assert await world.states(applied) == {"acme": "failed", "globex": "succeeded", "initech": "succeeded"}

    play(tmp_path, THREE, act, waves=[{"name": "all", "max_failures": "34%"}])


def test_a_wave_waits_for_its_approval_and_the_run_goes_on_later(tmp_path: Path) -> None:
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
        assert world.sandbox.accounts["acme"].log() == []  # what has ended is not touched again
        assert world.domains("globex") == ["globex.example.com"]

    play(tmp_path, CANARY, act, waves=waves)


def test_a_wave_waits_until_the_one_before_has_succeeded_for_a_while(tmp_path: Path) -> None:
    waves = [{"name": "canary", "select": {"tier": "canary"}, "min_success_time": "1h"}, {"name": "rest"}]

    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        shapes = [task.shape for task in await world.tasks(planned)]
        run = await world.start(RunVerb.APPLY, reviewed=planned, approved_shapes=shapes)
        applied = await world.execute(run, wait=False)
        assert applied.state is RunState.OPEN
        assert world.progress[-1].waiting == "min_success_time of wave canary"
        later = world.runtime.now() + 3600
        world.runtime_options["now"] = lambda: later
        assert (await world.execute(run)).state is RunState.SUCCEEDED

    play(tmp_path, CANARY, act, waves=waves)


@pytest.mark.parametrize("between", ["unchanged", "not approved", "not selected"])
def test_a_wave_with_nothing_to_apply_does_not_shorten_the_time_of_the_one_before(tmp_path: Path, between: str) -> None:
    waves = [
        {"name": "canary", "select": {"tier": "canary"}, "min_success_time": "1h"},
        {"name": "early", "select": {"tier": "early"}},
        {"name": "rest"},
    ]
    other = {"text": "nine to five, every other sunday"} if between == "not approved" else {}
    members = [*CANARY, member("initech", labels={"tier": "early"}, variables=other)]
    document = {**DOMAIN, "spec": {**DOMAIN["spec"], "metadata": "${{ lower(var.text) }} for everybody"}}

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
        rollup = build_rollup(world.source.fleet, run, await world.tasks(run), {}, world.runtime.now())
        assert rollup.wait is not None
        assert rollup.wait.text.endswith("min_success_time of wave canary")
        later = world.runtime.now() + 3600
        world.runtime_options["now"] = lambda: later
        await world.execute(run)
        assert world.domains("globex") == ["globex.example.com"]

    play(tmp_path, members, act, projects={"web": [document]}, waves=waves)


def test_a_paused_fleet_starts_nothing(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        await world.records.pause(Pause("shops", world.runtime.now(), None, "incident 42"))
        run = await world.plan()
        assert run.state is RunState.OPEN
        assert world.progress[-1].waiting == "paused: incident 42"
        assert world.sandbox.log() == []
        await world.records.end_pause("shops")
        assert (await world.execute(run)).state is RunState.SUCCEEDED

    play(tmp_path, THREE, act)


def test_a_pause_in_the_middle_stops_the_next_tasks(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        world.at_once = 1
        run = await world.start(RunVerb.PLAN)
        stop = asyncio.Event()

        async def pause() -> None:
            while not world.sandbox.log():  # noqa: ASYNC110 - the sandbox tells nobody
                await asyncio.sleep(0.01)
            await world.records.pause(Pause("shops", world.runtime.now()))

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

    play(tmp_path, CANARY, act, projects=projects, after=after, waves=[{"name": "all", "max_failures": 1}])


def test_two_coordinators_do_no_work_twice(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        run = await world.start(RunVerb.PLAN)
        results = await asyncio.gather(world.execute(run), world.execute(run), return_exceptions=True)
        assert sum(isinstance(result, Locked) for result in results) == 1
        assert all(task.tries == 1 for task in await world.tasks(run))

    play(tmp_path, THREE, act)


def test_what_ended_is_answered_from_the_store(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        run = await world.plan()
        world.sandbox.forget_log()
        await world.execute(run)
        for task in await world.tasks(run):
            await run_task(
                Task(run.id, "shops", task.member, task.project, RunVerb.PLAN, str(world.root), "fleet.yaml"),
                world.context(),
            )
        assert world.sandbox.log() == []

    play(tmp_path, THREE, act)


@pytest.mark.parametrize("until", [None, 3600.0])
def test_an_ended_pause_counts_as_none(tmp_path: Path, until: float | None) -> None:
    async def act(world: FleetWorld) -> None:
        past = world.runtime.now() - 10
        await world.records.pause(Pause("shops", past, None if until is None else past + 1))
        if until is None:
            await world.records.end_pause("shops")
        assert (await world.plan()).state is RunState.SUCCEEDED

    play(tmp_path, THREE, act)


@given(st.integers(min_value=1, max_value=75))
@example(30)
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_apply_that_is_cut_anywhere_is_completed_by_the_next(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    """A run is cancelled at a request, as if its process died, and resumed: each account is right once."""
    requests = 0
    running: list[asyncio.Task[Any]] = []

    async def count(method: str, path: str) -> None:
        nonlocal requests
        requests += 1
        if requests == cut and running:
            running[0].cancel()

    async def act(world: FleetWorld) -> None:
        nonlocal requests
        planned = await world.plan()
        shapes = {task.shape for task in await world.tasks(planned)}
        run = await world.start(RunVerb.APPLY, reviewed=planned, approved_shapes=shapes)
        requests = 0
        running.append(asyncio.ensure_future(world.execute(run)))
        await asyncio.gather(*running, return_exceptions=True)
        running.clear()
        assert (await world.execute(run)).state is RunState.SUCCEEDED
        assert set((await world.states(run)).values()) == {"succeeded"}
        assert [dict(task.counts) for task in await world.tasks(run)] == [{"create": 2}] * 2  # by both workers
        for name in ("acme", "globex"):
            assert world.domains(name) == [f"{name}.example.com"]
            assert len(world.sandbox.accounts[name].collection("/bot_users", "bot_users")) == 1
        world.sandbox.forget_log()
        await world.apply(await world.plan())
        assert [world.sandbox.accounts[name].calls() for name in ("acme", "globex")] == [[], []]

    play(
        tmp_path_factory.mktemp("cut"),
        [member("acme"), member("globex")],
        act,
        count,
        projects={"web": [DOMAIN, bot("b")]},
    )


def test_a_member_that_left_the_fleet_fails_alone(tmp_path: Path) -> None:
    one_failure: dict[str, Any] = {"waves": [{"name": "all", "max_failures": 1}]}

    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        shapes = {task.shape for task in await world.tasks(planned)}
        run = await world.start(RunVerb.APPLY, reviewed=planned, approved_shapes=shapes)
        write_fleet(tmp_path, THREE[1:], **one_failure)
        await world.execute(run)
        assert await world.states(run) == {"acme": "failed", "globex": "succeeded", "initech": "succeeded"}
        assert (await world.tasks(run))[0].reason == "fleet.yaml has no member acme with project web"

    play(tmp_path, THREE, act, **one_failure)


def test_a_task_waits_for_the_lock_of_a_run_that_ends_soon(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        folder = tmp_path / "state/members/acme"
        async with open_store(str(folder / "web.db")) as store, store.lock("web", on_loss=lambda _: None):
            applying = asyncio.create_task(world.apply(planned))
            while not world.domains("initech"):  # noqa: ASYNC110 - the sandbox tells nobody
                await asyncio.sleep(0.05)
        assert await world.states(await applying) == {
            "acme": "succeeded",
            "globex": "succeeded",
            "initech": "succeeded",
        }
        assert all(task.tries == 1 for task in await world.tasks(await applying))

    play(tmp_path, THREE, act)


def test_a_member_that_takes_too_long_fails(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        world.sandbox.accounts["acme"].fault("POST /reserved_domains", times=0, then="status", status=503)
        applied = await world.apply(planned)
        task = (await world.tasks(applied))[0]
        assert (task.state, task.reason) == (TaskState.FAILED, "it did not finish within progress_deadline (1 s)")

    play(tmp_path, THREE, act, waves=[{"name": "all", "max_failures": "100%", "progress_deadline": "1s"}])


def test_the_deadline_of_a_member_is_that_of_its_wave_when_the_run_was_started(tmp_path: Path) -> None:
    """Also for a worker that reads the fleet file later."""

    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        world.sandbox.accounts["acme"].fault("POST /reserved_domains", times=0, then="status", status=503)
        shapes = {task.shape for task in await world.tasks(planned)}
        run = await world.start(RunVerb.APPLY, reviewed=planned, approved_shapes=shapes)
        source = world.source
        write_fleet(tmp_path, THREE)
        pool = LocalPool(world.context(), at_once=3)
        await coordinator.execute(
            source, run, world.records, pool, runtime=world.runtime, on_progress=print, stop=asyncio.Event()
        )
        assert (await world.tasks(run))[0].reason == "it did not finish within progress_deadline (1 s)"

    play(tmp_path, THREE, act, waves=[{"name": "all", "max_failures": "100%", "progress_deadline": "1s"}])


def test_projects_of_one_stack_are_refused(tmp_path: Path) -> None:
    """Each would delete the objects of the other."""

    async def act(world: FleetWorld) -> None:
        settings_file = tmp_path / "base/reconciler.yaml"
        settings_file.write_text(settings_file.read_text().replace("stack: base", "stack: web"))
        tasks = await world.tasks(await world.plan())
        assert {task.reason.replace("base and web", "web and base") for task in tasks} == {
            "projects web and base have the same stack web; give each its own"
        }
        assert world.sandbox.log() == []

    play(tmp_path, CANARY, act, projects={"base": [policy("office")], "web": [DOMAIN]})


def test_a_checkout_gets_no_secrets_in_files(tmp_path: Path) -> None:
    token = {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": {"token": {"to_file": "secrets/t"}}}

    async def act(world: FleetWorld) -> None:
        commit = commit_all(tmp_path)
        run = await world.start(RunVerb.PLAN)
        task = Task(run.id, "shops", "acme", "web", RunVerb.PLAN, str(tmp_path), "fleet.yaml", commit)
        await run_task(task, world.context())
        assert (await world.tasks(run))[0].reason == (
            "TunnelCredential/t.deliver.token: to_file writes to the checkout of the commit, which is removed later; "
            "deliver it with to_vault, to_github_secret or to_command"
        )

    play(tmp_path, THREE, act, projects={"web": [token]})


@pytest.mark.parametrize("key", ["two words", "two\nlines", "k\udcff", "schlüssel"])
def test_a_key_that_no_request_can_carry_fails_at_once(tmp_path: Path, key: str) -> None:
    async def act(world: FleetWorld) -> None:
        environ = {**world.runtime.environ, "KEY_ACME": key}
        world.runtime_options["environ"] = environ
        task = (await world.tasks(await world.plan()))[0]
        assert (task.state, task.tries) == (TaskState.FAILED, 1)
        assert task.reason == (
            "no API key: the environment variable KEY_ACME contains a space, a line break or a character "
            "that is not ASCII"
        )

    play(tmp_path, THREE, act)


@pytest.mark.parametrize("method", ["from_env", "from_file"])
def test_members_with_the_same_key_do_not_overwrite_each_other(tmp_path: Path, method: str) -> None:
    """Both would have the same stack in one account."""
    text = "KEY_${{ member.name }}"
    members = [member("acme"), member("globex")]

    async def act(world: FleetWorld) -> None:
        keys = {"KEY_ACME": "key-of-acme", "KEY_GLOBEX": "key-of-acme"}
        world.runtime_options["environ"] = {"RECONCILER_BASE_URL": world.sandbox.base_url, **keys}
        for name in ("acme", "globex"):
            (tmp_path / f"KEY_{name}").write_text("key-of-acme")
        planned = await world.plan()
        same = [task for task in await world.tasks(planned) if task.reason.startswith("members acme and globex have")]
        assert len(same) == (2 if method == "from_env" else 1)
        await world.apply(planned)
        assert len(world.sandbox.accounts["acme"].calls()) == 2 - len(same)

    play(tmp_path, members, act, api_key={method: text})


@pytest.mark.parametrize("deliver", [{"to_file": "secrets/t"}, {"to_vault": {"path": "agents/t"}}])
def test_members_do_not_deliver_to_one_place(tmp_path: Path, deliver: dict[str, Any]) -> None:
    """Each member would replace the secret of the one before."""
    token = {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": {"token": deliver}}

    async def act(world: FleetWorld) -> None:
        world.at_once = 1
        (way,) = deliver
        reasons = [task.reason for task in await world.tasks(await world.plan())]
        refused = (
            f"TunnelCredential/t.deliver.token: {way} would replace the secret of member acme; use a variable of the"
        )
        assert [reason.startswith(refused) for reason in reasons] == [False, True, True]

    play(tmp_path, THREE, act, projects={"web": [token]})


def test_each_member_delivers_to_a_place_of_its_own(tmp_path: Path) -> None:
    deliver = {"token": {"to_file": "secrets/${{ var.site }}"}}
    token = {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": deliver}

    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        assert len({task.shape for task in await world.tasks(planned)}) == 1
        applied = await world.apply(planned)
        assert set((await world.states(applied)).values()) == {"succeeded"}
        tokens = {file.name: file.read_text() for file in (tmp_path / "web/secrets").iterdir()}
        assert tokens.keys() == {"acme", "globex", "initech"}
        assert len(set(tokens.values())) == 3

    play(tmp_path, THREE, act, projects={"web": [token]})


def test_one_member_delivers_to_a_file(tmp_path: Path) -> None:
    token = {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": {"token": {"to_file": "secrets/t"}}}

    async def act(world: FleetWorld) -> None:
        assert (await world.apply(await world.plan())).state is RunState.SUCCEEDED
        assert (tmp_path / "web/secrets/t").read_text()

    play(tmp_path, [member("acme")], act, projects={"web": [token]})


def test_only_changes_that_were_applied_are_counted(tmp_path: Path) -> None:
    """Of a member that fails in the middle, and of one that is blocked after its plan."""
    one_failure: dict[str, Any] = {"waves": [{"name": "all", "max_failures": 3}]}

    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        world.sandbox.accounts["acme"].fault("POST /reserved_domains", times=0, then="status", status=400)
        world.sandbox.accounts["globex"].fault("POST /*", times=0, then="status", status=400)
        applied = await world.apply(planned)
        assert await world.states(applied) == {"acme": "failed", "globex": "failed", "initech": "succeeded"}
        tasks = await world.tasks(applied)
        assert [dict(task.counts) for task in tasks] == [{"create": 1}, {}, {"create": 2}]
        assert [sorted(task.changes) for task in tasks][:2] == [["IPPolicy/office"], []]
        assert len({task.shape for task in tasks}) == 1

    play(tmp_path, THREE, act, projects={"web": [DOMAIN, policy("office")]}, **one_failure)


def test_each_member_has_a_store_beside_that_of_the_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a relative path: the folder of a project may be a checkout, which is removed."""
    monkeypatch.chdir(tmp_path)

    async def act(world: FleetWorld) -> None:
        context = replace(world.context(), store="state/fleet.db")
        planned = await world.plan()
        shapes = {task.shape for task in await world.tasks(planned)}
        run = await world.start(RunVerb.APPLY, reviewed=planned, approved_shapes=shapes)
        await world.execute(run, pool=LocalPool(context, at_once=2))
        stores = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.db")}
        names = ("acme", "globex", "initech")
        assert stores - {f"state/members/{name}/requests.db" for name in names} == {
            "state/fleet.db",
            *(f"state/members/{name}/web.db" for name in names),
        }

    play(tmp_path, THREE, act)


def test_the_first_starts_are_spread(tmp_path: Path) -> None:
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


def test_the_rest_of_an_apply_is_stale_if_the_manifests_changed_before_it_was_resumed(tmp_path: Path) -> None:
    """Also where only reviewed addresses change: nobody reviewed the new values."""
    running: list[asyncio.Task[Any]] = []

    async def cut(method: str, path: str) -> None:
        if (method, path) == ("POST", "/bot_users") and running:
            running.pop().cancel()

    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        shapes = {task.shape for task in await world.tasks(planned)}
        run = await world.start(RunVerb.APPLY, reviewed=planned, approved_shapes=shapes)
        running.append(asyncio.ensure_future(world.execute(run)))
        await asyncio.gather(*running, return_exceptions=True)
        (manifest,) = (tmp_path / "web/manifests").iterdir()
        manifest.write_text(manifest.read_text().replace("${{ var.text }}", "edited"))
        world.sandbox.forget_log()
        await world.execute(run)
        assert await world.states(run) == {"acme": "stale"}
        assert world.sandbox.accounts["acme"].calls() == []

    projects: dict[str, Any] = {"web": [DOMAIN, bot("b")]}
    play(tmp_path, [member("acme")], act, cut, projects=projects)


@pytest.mark.parametrize("verb", ["plan", "drift"])
def test_a_member_that_is_only_read_has_few_requests_at_a_time(tmp_path: Path, verb: str) -> None:
    now, most = Counter[str](), 0

    async def watch(method: str, path: str) -> None:
        nonlocal most
        now["requests"] += 1
        most = max(most, now["requests"])
        await asyncio.sleep(0.001)
        now["requests"] -= 1

    async def act(world: FleetWorld) -> None:
        await getattr(world, verb)()

    play(tmp_path, [member("a")], act, on_request=watch)
    assert most == 8


def test_a_shape_of_many_members_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    save = FleetRecords.save_shape

    async def count(records: FleetRecords, fleet: str, shape: Shape) -> None:
        written.append(shape)
        await save(records, fleet, shape)

    monkeypatch.setattr(FleetRecords, "save_shape", count)

    async def act(world: FleetWorld) -> None:
        await world.plan()

    async def pause(method: str, path: str) -> None:
        await asyncio.sleep(0.001)  # so that all of them are planned before the first is stored

    play(tmp_path, [member(name) for name in "abcde"], act, on_request=pause)
    assert len(written) == 1
