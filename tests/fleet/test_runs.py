"""Whole runs over a fleet in one process: plan, review, apply, retry and drift."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.fleet import runs
from reconciler.fleet.runs import FleetSource, Gate, check_waves, find_gate, reopen_run
from reconciler.model import exit_codes
from reconciler.model.fleet import (
    Amount,
    Fleet,
    FleetProject,
    KeyMethod,
    KeySource,
    Member,
    Run,
    RunState,
    RunVerb,
    TaskRecord,
    TaskState,
    Wave,
)
from reconciler.operations.errors import ChangedWaves
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


# --- what a run is created with


class NewRuns:
    """A store in memory that lists the calls to it, and whose answers a test sets."""

    def __init__(self, plans: tuple[TaskRecord, ...] = (), resets: int = 1) -> None:
        self.plans, self.resets, self.created, self.calls = plans, resets, list[Any](), list[Any]()

    async def tasks(self, run: str) -> tuple[TaskRecord, ...]:
        assert run == "plans"
        return self.plans

    async def create_run(self, run: Run, tasks: list[TaskRecord]) -> None:
        self.created.append((run, tasks))

    @asynccontextmanager
    async def lock(self, name: str, on_loss: object) -> AsyncIterator[None]:
        self.calls.append(f"lock {name}")
        yield
        self.calls.append("unlock")

    async def reset(self, run: str, states: object, *, keep: object) -> int:
        self.calls.append(("reset", run, states, keep))
        return self.resets

    async def update_run(self, run: str, **values: Any) -> str:
        self.calls.append(("update", run, values))
        return "updated"


GOLD, SILVER = Member("acme", {"tier": "gold"}), Member("globex", {"tier": "silver"})
FLEET = Fleet(
    "shops",
    {"acme": GOLD, "globex": SILVER},
    {"web": FleetProject("web", "web"), "edge": FleetProject("edge", "edge", select={"tier": ("gold",)})},
    KeySource(KeyMethod.ENV, "KEY"),
    (Wave("first", {"tier": ("silver",)}), Wave("rest")),
)
SHAPE, OTHER = "5" * 12, "6" * 12
CHANGED: dict[str, Any] = {"state": TaskState.SUCCEEDED, "changes": {"A/b": "00"}, "exit_code": 2}
PLANNED = (
    TaskRecord("plans", "acme", "web", shape=SHAPE, **CHANGED),
    TaskRecord("plans", "acme", "edge", shape=OTHER, **CHANGED),
    TaskRecord("plans", "globex", "web", state=TaskState.SUCCEEDED, exit_code=0),
    TaskRecord("plans", "globex", "edge", state=TaskState.FAILED, reason="no key", shape=SHAPE, changes={"A/b": "00"}),
    TaskRecord("plans", "gone", "web", shape=SHAPE, **CHANGED),
)


async def start(
    verb: RunVerb, commit: str = "", other_commit: str = "", **options: Any
) -> tuple[Run, list[TaskRecord]]:
    records = NewRuns(PLANNED)
    source = FleetSource(FLEET, "/srv", "fleet.yaml", commit)
    options = {"commit": other_commit, "now": 1_700_000_000.0, **options}
    run = await runs.start_run(source, verb, records, **options)  # type: ignore[arg-type]
    ((created, tasks),) = records.created
    assert created is run
    assert re.fullmatch(r"20231114-221320-[0-9a-f]{4}", run.id)
    return replace(run, id="r"), [replace(task, run="r") for task in tasks if task.run == run.id]


async def test_a_run_of_plans_has_a_task_for_each_project_of_each_selected_member() -> None:
    whole = [TaskRecord("r", "acme", "web"), TaskRecord("r", "acme", "edge"), TaskRecord("r", "globex", "web")]
    bare = Run("r", "shops", RunVerb.PLAN, "/srv", "fleet.yaml", "", 1_700_000_000.0)
    assert await start(RunVerb.PLAN) == (bare, whole)
    assert await start(RunVerb.PLAN, selected={"tier": ("gold",)}) == (bare, whole[:2])
    run, _ = await start(RunVerb.DRIFT, "c0ffee", other_commit="other", actor="mara", health=True)
    assert run == replace(bare, verb=RunVerb.DRIFT, commit="c0ffee", actor="mara", health=True)
    run, _ = await start(RunVerb.PLAN, other_commit="other")
    assert run == replace(bare, commit="other")


async def test_an_apply_has_a_task_for_each_plan_which_has_ended_if_nothing_can_be_applied() -> None:
    plans = Run("plans", "shops", RunVerb.PLAN, "/srv", "fleet.yaml", "", 0.0)
    run, tasks = await start(RunVerb.APPLY, reviewed=plans, approved_shapes=iter([SHAPE]), actor="mara")
    assert run == Run(
        "r", "shops", RunVerb.APPLY, "/srv", "fleet.yaml", "", 1_700_000_000.0,
        reviewed="plans", approved_shapes=(SHAPE,), actor="mara", waves=FLEET.waves,
    )  # fmt: skip
    refused = f"shape {OTHER} is not approved"
    expected = [
        TaskRecord("r", "acme", "web", 1, shape=SHAPE),
        TaskRecord(
            "r", "acme", "edge", 1, TaskState.BLOCKED, exit_code=exit_codes.BLOCKED, shape=OTHER, reason=refused
        ),
        TaskRecord("r", "globex", "web", 0, TaskState.SUCCEEDED, exit_code=exit_codes.DONE),
        TaskRecord("r", "globex", "edge", 0, TaskState.SKIPPED, reason="its plan failed: no key"),
    ]
    assert tasks == expected
    _, tasks = await start(RunVerb.APPLY, reviewed=plans, approved_shapes=[SHAPE], selected={"name": ("g*",)})
    assert tasks == expected[2:]


async def test_a_run_is_reopened_under_its_lock_if_a_task_is_reset() -> None:
    run = Run("r", "shops", RunVerb.APPLY, "/srv", "fleet.yaml", "", 0.0)
    keep = [("acme", "web")]
    reset = ("reset", "r", {TaskState.FAILED}, keep)
    for number in (0, 1, 2):
        records = NewRuns(resets=number)
        found: Any = await reopen_run(run, records, {TaskState.FAILED}, [SHAPE], keep=keep)  # type: ignore[arg-type]
        updated = ("update", "r", {"state": RunState.OPEN, "approved_shapes": [SHAPE], "reason": ""})
        assert found == ("updated" if number else None)
        assert records.calls == ["lock fleet run r", reset, *[updated] * bool(number), "unlock"]


def test_changed_waves_are_reported_by_their_names_and_fields() -> None:
    a, b, c = Wave("a"), Wave("b", {"tier": ("gold",)}), Wave("c", approve=True)
    loosened = (a, replace(b, select={}), replace(c, approve=False, percent=5))
    mixed = (Wave("a", max_failures=Amount(1)), b, replace(c, name="d"))
    changes = {
        "c was removed": (a, b),
        "their order changed": (c, b, a),
        "d was added, e was added": (a, b, c, Wave("d"), Wave("e")),
        "a was removed, b was removed, z was added": (Wave("z"), c),
        "select of b changed, percent and approve of c changed": loosened,
        "c was removed, d was added, max_failures of a changed": mixed,
    }
    run = Run("r", "shops", RunVerb.APPLY, "/srv", "fleet.yaml", "", 0.0, waves=(a, b, c))
    for text, waves in changes.items():
        source = FleetSource(replace(FLEET, waves=waves), "/srv", "eu/fleet.yaml")
        with pytest.raises(ChangedWaves) as caught:
            check_waves(source, run)
        assert str(caught.value).partition("\n")[0] == f"eu/fleet.yaml: waves changed since run r was started: {text}"
        remedy = "to apply with the new waves: reconciler fleet apply; to continue run r, undo the change"
        assert caught.value.remedy == remedy
        check_waves(source, replace(run, verb=RunVerb.PLAN))
        check_waves(source, replace(run, waves=waves))


def test_a_gate_is_before_a_wave_that_has_not_begun() -> None:
    waves = (Wave("a", min_success_time=60.0), Wave("b", min_success_time=5.0, approve=True), Wave("c", approve=True))
    run = Run("r", "shops", RunVerb.APPLY, ".", "f", "", 0.0, waves=waves)
    done = TaskRecord("r", "x", "web", 0, TaskState.SUCCEEDED, attempts=1, ended=100.0)
    quick = TaskRecord("r", "y", "web", 1, TaskState.SUCCEEDED, attempts=1, ended=120.0)
    skipped = TaskRecord("r", "y", "edge", 1, TaskState.SKIPPED)
    last = TaskRecord("r", "z", "web", 2)
    slow, fast, approval = (
        Gate("min_success_time of wave a", 160.0),
        Gate("min_success_time of wave b", 125.0),
        Gate("approval of wave c"),
    )
    cases: list[tuple[list[TaskRecord], float, Gate | None]] = [
        ([done, quick, skipped, last], 159.9, slow),
        ([done, quick, skipped, last], 160.0, approval),
        ([quick, last], 124.9, fast),
        ([quick, last], 125.0, approval),
        ([skipped, last], 0.0, approval),
        ([last], 0.0, approval),
        ([done, replace(last, attempts=1)], 0.0, None),
        ([done, replace(last, attempts=1), replace(last, project="edge")], 0.0, None),
        ([done, replace(last, state=TaskState.BLOCKED)], 0.0, None),
        ([done, replace(last, state=TaskState.BLOCKED), replace(last, project="edge")], 0.0, slow),
        ([done], 0.0, None),
    ]
    for tasks, now, gate in cases:
        assert find_gate(run, tasks, 2, now) == gate
        assert find_gate(replace(run, verb=RunVerb.PLAN), tasks, 2, now) is None
        by_time = gate if gate is not None and gate.until is not None else None
        assert find_gate(replace(run, approved_waves=("c",)), tasks, 2, now) == by_time
