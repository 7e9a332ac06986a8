"""Whole runs over a fleet in one process: plan, review, apply, retry and drift."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reconciler.fleet.runs import reopen_run
from reconciler.model import exit_codes
from reconciler.model.fleet import RunState, RunVerb, TaskState
from tests.fleet.fleets import CANARY, DOMAIN, THREE, FleetWorld, member, play
from tests.harness.tiers import examples
from tests.harness.workspaces import bot

WAVES: dict[str, Any] = {
    "waves": [{"name": "canary", "select": {"tier": "canary"}}, {"name": "rest"}],
}


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


def test_shapes_compare_resolved_values_and_not_where_they_come_from(tmp_path: Path) -> None:
    policy = {"kind": "IPPolicy", "name": "p", "spec": {"description": "${{ lower(var.text) }}"}}

    async def act(world: FleetWorld) -> None:
        tasks = await world.tasks(await world.plan())
        assert {task.reason for task in tasks} == {""}
        shapes = {(task.project, task.member): task.shape for task in tasks}
        web, net = (
            {name: shapes[project, name] for name in ("default", "same", "other")} for project in ("web", "net")
        )
        assert web["default"] == web["same"] == web["other"]  # only the value of `text` differs, set or by default
        assert net["default"] == net["same"]
        assert net["default"] != net["other"]  # what a function returns is no value of a variable

    members = [
        member("default"),
        member("same", variables={"text": "shop"}),
        member("other", variables={"text": "MALL"}),
    ]
    play(tmp_path, members, act, projects={"web": (DOMAIN,), "net": (policy,)})


def test_only_a_member_that_changed_since_its_plan_is_stale(tmp_path: Path) -> None:
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


@given(st.integers(min_value=1, max_value=75))
@example(30)
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_apply_interrupted_anywhere_is_completed_by_a_resume(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    """A run is cancelled at a request, as if its process died, and resumed: each object is created once."""
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
