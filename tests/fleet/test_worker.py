"""Tasks of a fleet: what a task reads, applies, delivers and records, and what members must not share."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from reconciler.api.clock import MachineClock
from reconciler.engine.ports import Failure, Refused
from reconciler.fleet import checkouts, coordinator, reviews, shapes, worker
from reconciler.fleet.assignments import Assignment, FileCache
from reconciler.fleet.keys import KeyNotFound
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.worker import run_task
from reconciler.model import exit_codes
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.event import Ended, Outcome
from reconciler.model.fleet import (
    Amount,
    Fleet,
    FleetGuards,
    FleetProject,
    KeyMethod,
    KeySource,
    Member,
    Run,
    RunState,
    RunVerb,
    Shape,
    Task,
    TaskRecord,
    TaskState,
    Wave,
)
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.history import CheckedHealth
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.problem import Problem, Rejected, Severity
from reconciler.model.value import Secret
from reconciler.operations.errors import OperationError
from reconciler.operations.results import ApplyResult, Status
from reconciler.operations.runtime import Runtime
from reconciler.operations.workspace import Workspace
from reconciler.planning.reviewed_changes import digest_changes
from reconciler.rendering.wire import plan_json
from reconciler.store.errors import Locked, LockLost, StoreError, Unavailable
from reconciler.store.fleets.records import FleetRecords, task_lease
from reconciler.store.fleets.requests import HEARTBEAT_SECONDS, WINDOW
from reconciler.store.lock import LOCK_SECONDS
from reconciler.store.store import open_store
from tests.fleet.fleets import CANARY, DOMAIN, THREE, FleetWorld, commit_all, member, play, write_fleet
from tests.harness.golden import compare_golden
from tests.harness.workspaces import bot, policy


def test_an_object_changed_since_the_plan_is_not_deleted(tmp_path: Path) -> None:
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


def test_a_project_with_loosened_rules_needs_another_approval(tmp_path: Path) -> None:
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


def test_a_missing_key_is_reported_with_its_source(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        tasks = await world.tasks(await world.plan())
        assert {task.reason for task in tasks} == {
            f"no API key: the file keys/{name} is missing on this worker" for name in ("acme", "globex", "initech")
        }

    play(tmp_path, THREE, act, api_key={"from_file": "keys/${{ member.name }}"})


def test_ended_tasks_are_read_from_the_store(tmp_path: Path) -> None:
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


def test_only_a_member_removed_from_the_fleet_fails(tmp_path: Path) -> None:
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


def test_a_task_waits_for_the_lock_of_another_run(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        folder = tmp_path / "state/members/acme"
        async with open_store(str(folder / "web.db")) as store, store.lock("web", on_loss=lambda _: None):
            applying = asyncio.create_task(world.apply(planned))
            while not world.domains("initech"):  # noqa: ASYNC110 - the sandbox has no event to wait for
                await asyncio.sleep(0.05)
        assert await world.states(await applying) == {
            "acme": "succeeded",
            "globex": "succeeded",
            "initech": "succeeded",
        }
        assert all(task.attempts == 1 for task in await world.tasks(await applying))

    play(tmp_path, THREE, act)


def test_a_member_beyond_its_progress_deadline_fails(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        world.sandbox.accounts["acme"].fault("POST /reserved_domains", times=0, then="status", status=503)
        applied = await world.apply(planned)
        task = (await world.tasks(applied))[0]
        assert (task.state, task.reason) == (TaskState.FAILED, "it did not finish within progress_deadline (1 s)")
        assert task.exit_code == exit_codes.PARTLY  # calls may have been sent

    play(tmp_path, THREE, act, waves=[{"name": "all", "max_failures": "100%", "progress_deadline": "1s"}])


def test_the_progress_deadline_is_that_of_the_wave_at_the_start_of_the_run(tmp_path: Path) -> None:
    """Also for a worker that reads a changed fleet file."""

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
    """Otherwise each would delete the objects of the other."""

    async def act(world: FleetWorld) -> None:
        settings_file = tmp_path / "base/reconciler.yaml"
        settings_file.write_text(settings_file.read_text().replace("stack: base", "stack: web"))
        tasks = await world.tasks(await world.plan())
        assert {task.reason.replace("base and web", "web and base") for task in tasks} == {
            "projects web and base have the same stack web; give each its own"
        }
        assert world.sandbox.log() == []

    play(tmp_path, CANARY, act, projects={"base": [policy("office")], "web": [DOMAIN]})


def test_a_delivery_to_a_file_of_a_checkout_is_refused(tmp_path: Path) -> None:
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
def test_a_key_that_is_invalid_in_a_header_fails_at_once(tmp_path: Path, key: str) -> None:
    async def act(world: FleetWorld) -> None:
        environ = {**world.runtime.environ, "KEY_ACME": key}
        world.runtime_options["environ"] = environ
        task = (await world.tasks(await world.plan()))[0]
        assert (task.state, task.attempts) == (TaskState.FAILED, 1)
        assert task.reason == (
            "no API key: the environment variable KEY_ACME contains a space, a line break or a character "
            "that is not ASCII"
        )

    play(tmp_path, THREE, act)


@pytest.mark.parametrize("method", ["from_env", "from_file"])
def test_members_with_the_same_key_are_refused(tmp_path: Path, method: str) -> None:
    """Otherwise both would have the same stack in one account."""
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
def test_members_that_deliver_to_the_same_place_are_refused(tmp_path: Path, deliver: dict[str, Any]) -> None:
    """Otherwise each member would replace the secret of the one before."""
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


def test_members_deliver_to_separate_places(tmp_path: Path) -> None:
    deliver = {"token": {"to_file": "secrets/${{ var.site }}"}}
    token = {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": deliver}

    async def act(world: FleetWorld) -> None:
        planned = await world.plan()
        assert len({task.shape for task in await world.tasks(planned)}) == 1
        applied = await world.apply(planned)
        assert set((await world.states(applied)).values()) == {"succeeded"}
        tokens = world.sandbox.deliveries
        assert tokens.keys() == {"secrets/acme", "secrets/globex", "secrets/initech"}
        assert len(set(tokens.values())) == 3

    play(tmp_path, THREE, act, projects={"web": [token]})


def test_one_member_delivers_to_one_place(tmp_path: Path) -> None:
    token = {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": {"token": {"to_file": "secrets/t"}}}

    async def act(world: FleetWorld) -> None:
        assert (await world.apply(await world.plan())).state is RunState.SUCCEEDED
        assert world.sandbox.deliveries.keys() == {"secrets/t"}

    play(tmp_path, [member("acme")], act, projects={"web": [token]})


def test_only_applied_changes_are_counted(tmp_path: Path) -> None:
    """Those of a member that fails during its apply, and of one that fails at its first call."""
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


def test_each_member_has_a_store_next_to_that_of_the_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_resumed_apply_is_stale_if_the_manifests_changed(tmp_path: Path) -> None:
    """Also if only reviewed addresses change: the new values were not reviewed."""
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
def test_a_plan_sends_at_most_eight_requests_at_a_time(tmp_path: Path, verb: str) -> None:
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


def test_a_shape_of_many_members_is_stored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    save = FleetRecords.save_shape

    async def count(records: FleetRecords, fleet: str, shape: Shape) -> None:
        written.append(shape)
        await save(records, fleet, shape)

    monkeypatch.setattr(FleetRecords, "save_shape", count)

    async def act(world: FleetWorld) -> None:
        await world.plan()

    async def pause(method: str, path: str) -> None:
        await asyncio.sleep(0.001)  # all members are then planned before the first shape is stored

    play(tmp_path, [member(name) for name in "abcde"], act, on_request=pause)
    assert len(written) == 1


# --- loss of the lease ------------------------------------------------------------------------------------------------

RULES: dict[str, Any] = {
    "web": [
        policy("office"),
        {
            "kind": "IPPolicyRule",
            "name": "lan",
            "spec": {"ip_policy_id": {"ref": "IPPolicy/office"}, "cidr": "10.0.0.0/8", "action": "allow"},
        },
    ]
}


async def start_apply(world: FleetWorld) -> Run:
    planned = await world.plan()
    shapes = {task.shape for task in await world.tasks(planned)}
    world.sandbox.forget_log()
    return await world.start(RunVerb.APPLY, reviewed=planned, approved_shapes=shapes)


def task_of(world: FleetWorld, run: Run, verb: RunVerb = RunVerb.APPLY) -> Task:
    return Task(run.id, "shops", "acme", "web", verb, str(world.root), "fleet.yaml")


@pytest.mark.parametrize("loss", ["the lock expired", "another worker claimed the task"])
def test_a_worker_that_lost_its_lease_sends_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    """The call that runs ends; the next worker does the rest, and each object is created once."""
    losses: list[Any] = []
    lock = FleetRecords.lock

    def keep(self: FleetRecords, name: str, on_loss: Any, **options: Any) -> Any:
        losses.append(on_loss)
        return lock(self, name, on_loss, **options)

    monkeypatch.setattr(FleetRecords, "lock", keep)
    monkeypatch.setattr(worker, "HEARTBEAT_SECONDS", 0.01)
    worlds: list[tuple[FleetWorld, Run]] = []

    async def lose(method: str, path: str) -> None:
        if (method, path) != ("POST", "/ip_policies") or not worlds:
            return
        world, run = worlds.pop()
        if loss == "the lock expired":
            losses[-1](LockLost("task"))
        else:
            await world.records.claim(run.id, "acme", "web", "another")
            await asyncio.sleep(0.2)  # some heartbeats

    async def act(world: FleetWorld) -> None:
        run = await start_apply(world)
        worlds.append((world, run))
        await run_task(task_of(world, run), world.context())
        account = world.sandbox.accounts["acme"]
        assert account.calls() == ["POST /ip_policies"]
        (record,) = await world.tasks(run)
        assert (record.state, record.exit_code) == (TaskState.RUNNING, None)
        assert record.worker == ("another" if "another" in loss else world.context().name)
        await run_task(task_of(world, run), world.context())
        (record,) = await world.tasks(run)
        assert (record.state, dict(record.counts)) == (TaskState.SUCCEEDED, {"create": 2})
        assert [len(account.collection(path, key)) for path, key in COLLECTIONS] == [1, 1]

    play(tmp_path, [member("acme")], act, lose, projects=RULES)


COLLECTIONS = (("/ip_policies", "ip_policies"), ("/ip_policy_rules", "ip_policy_rules"))


def test_a_worker_sends_nothing_if_another_claimed_the_task_before_its_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(world: FleetWorld) -> None:
        run = await start_apply(world)
        begin = FleetRecords.begin_apply

        async def claim_first(self: FleetRecords, record: Any) -> bool:
            await self.claim(run.id, "acme", "web", "another")
            return await begin(self, record)

        monkeypatch.setattr(FleetRecords, "begin_apply", claim_first)
        await run_task(task_of(world, run), world.context())
        assert world.sandbox.accounts["acme"].calls() == []
        (record,) = await world.tasks(run)
        assert (record.state, record.worker, record.reason) == (TaskState.RUNNING, "another", "")

    play(tmp_path, [member("acme")], act, projects=RULES)


def test_a_task_is_not_claimed_while_another_worker_has_its_lease(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        run = await start_apply(world)
        async with world.records.lock(task_lease(task_of(world, run).key), on_loss=lambda _: None):
            await run_task(task_of(world, run), world.context())
        (record,) = await world.tasks(run)
        assert (record.state, record.attempts, world.sandbox.log()) == (TaskState.WAITING, 0, [])

    play(tmp_path, [member("acme")], act, projects=RULES)


def test_a_heartbeat_that_the_store_refuses_does_not_stop_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[int] = []

    async def fail(_records: FleetRecords, record: Any) -> bool:
        beats.append(record.requests)
        raise Unavailable("the store", "it is full")

    async def slow(method: str, _path: str) -> None:
        await asyncio.sleep(0.03 if method == "POST" else 0)

    async def act(world: FleetWorld) -> None:
        run = await start_apply(world)
        monkeypatch.setattr(FleetRecords, "store_heartbeat", fail)
        monkeypatch.setattr(worker, "HEARTBEAT_SECONDS", 0.01)
        await run_task(task_of(world, run), world.context())
        (record,) = await world.tasks(run)
        assert record.state is TaskState.SUCCEEDED
        assert beats == sorted(beats)
        assert 0 < beats[-1] <= record.requests

    play(tmp_path, [member("acme")], act, slow, projects=RULES)


def test_heartbeats_store_the_requests_of_all_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    worlds: list[tuple[FleetWorld, Run]] = []

    async def watch(method: str, path: str) -> None:
        if method == "POST" and path == "/ip_policy_rules":
            await asyncio.sleep(0.1)
            world, run = worlds[0]
            (record,) = await world.tasks(run)
            seen.append((record.requests, 1000 + len(world.sandbox.accounts["acme"].log())))

    async def act(world: FleetWorld) -> None:
        run = await start_apply(world)
        worlds.append((world, run))
        claimed = await world.records.claim(run.id, "acme", "web", "a worker that dies")
        assert await world.records.store_heartbeat(replace(claimed, requests=1000))
        monkeypatch.setattr(worker, "HEARTBEAT_SECONDS", 0.01)
        await run_task(task_of(world, run), world.context())
        ((stored, expected),) = seen
        assert expected <= stored <= expected + 1  # the request that runs is logged when it ends
        (record,) = await world.tasks(run)
        assert (record.attempts, record.requests) == (2, 1000 + len(world.sandbox.accounts["acme"].log()))

    play(tmp_path, [member("acme")], act, watch, projects=RULES)


def test_heartbeats_come_before_a_lease_or_a_budget_expires() -> None:
    assert min(LOCK_SECONDS, WINDOW) >= HEARTBEAT_SECONDS * 2
    assert worker._LOCK_PATIENCE > LOCK_SECONDS  # a worker outlives the lease of one that died


def test_a_stack_that_remains_locked_fails_its_task_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(MachineClock):
        moment = 0.0

        def now(self) -> float:
            return self.moment

        async def sleep(self, seconds: float) -> None:
            self.moment += seconds

    async def act(world: FleetWorld) -> None:
        clock = Clock()
        run = await start_apply(world)
        monkeypatch.setattr(worker, "_LOCK_PAUSE", 20.0)
        world.runtime_options["clock"] = clock
        store = str(tmp_path / "state/members/acme/web.db")
        async with open_store(store) as held, held.lock("web", on_loss=lambda _: None):
            await run_task(task_of(world, run), world.context())
        (record,) = await world.tasks(run)
        assert (record.state, record.exit_code, "being applied" in record.reason) == (TaskState.FAILED, 1, True), record
        assert 90 < clock.moment <= 120
        assert world.sandbox.accounts["acme"].calls() == []

    play(tmp_path, [member("acme")], act, projects=RULES)


def test_a_stopped_worker_does_not_wait_for_a_locked_stack(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        run = await start_apply(world)
        context = world.context()
        store = str(tmp_path / "state/members/acme/web.db")
        async with open_store(store) as held, held.lock("web", on_loss=lambda _: None):
            working = asyncio.create_task(run_task(task_of(world, run), context))
            while not context.stops:  # noqa: ASYNC110 - the worker has no event to wait for
                await asyncio.sleep(0)
            context.stop()
            await asyncio.wait_for(working, 30)
        (record,) = await world.tasks(run)
        assert (record.state, context.stops) == (TaskState.RUNNING, set())

    play(tmp_path, [member("acme")], act, projects=RULES)


# --- what the project of a member sees --------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["state/fleet.db", "postgresql://host/fleet"])
def test_each_project_of_each_member_has_a_place_of_its_own_in_the_stores(store: str, tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        context = replace(world.context(), store=store)
        places = set()
        for name, project in PLACES:
            task = Task("r", "shops", name, project, RunVerb.APPLY, ".", "fleet.yaml")
            runtime = context.runtime_of(task, Secret("k", "s"), (), worker._RequestCounter())
            places.add((runtime.store, runtime.store_scope))
        assert len(places) == len(PLACES)
        scopes = {scope for _, scope in places}
        assert len(scopes) == (len(PLACES) if "://" in store else 1)

    play(tmp_path, [member("acme")], act)


PLACES = [
    ("acme", "web"),
    ("acme", "edge"),
    ("globex", "web"),
    ("globex", "edge"),
    ("web", "acme"),
    ("a-b", "c"),
    ("a", "b-c"),
]


def test_a_project_sees_the_environment_of_the_worker_without_what_is_its_own(tmp_path: Path) -> None:
    async def act(world: FleetWorld) -> None:
        own = {"RECONCILER_ENV": "x", "RECONCILER_STORE": "y", "RECONCILER_API_KEY": "z"}
        given = {"RECONCILER_BASE_URL": "https://u", "HTTPS_PROXY": "p", "VAULT_TOKEN": "t"}
        runtime = dataclasses.replace(world.runtime, environ={**own, **given, "FLEET_MEMBER": "another"})
        task = Task("r", "shops", "acme", "web", RunVerb.APPLY, ".", "fleet.yaml")
        context = replace(world.context(), runtime=runtime, commit="abc")
        seen = context.runtime_of(task, Secret("k", "s"), ((1.0, 2),), worker._RequestCounter())
        assert seen.environ == {**given, "RECONCILER_API_KEY": "k", "FLEET_MEMBER": "acme"}
        assert (seen.requests_spent, seen.commit) == (((1.0, 2),), "abc")
        checked_out = context.runtime_of(replace(task, commit="def"), Secret("k", "s"), (), worker._RequestCounter())
        assert checked_out.commit == "def"

    play(tmp_path, [member("acme")], act)


# --- the record of a result

PROBLEM = Problem("it is wrong", code="wrong-type")
VIOLATION = Problem("no edge without a policy", rule="edges", code="policy")
EDGE = Change(Address("TLSEdge", "a"), Action.UPDATE, Reason.FIELDS, fields=(FieldChange("description", "a", "b"),))
BY_HAND = replace(EDGE, fields=(FieldChange("description", "a", "b", ChangedBy.PLATFORM),))
ADDED = Change(Address("IPPolicyRule", "ipr_1"), Action.DELETE, Reason.ADDED, "ipr_1", parent=Address("IPPolicy", "a"))


def judge(state: State) -> HealthRow:
    return HealthRow("TLSEdge/a", "", Health(state, "it waits"))


def record_result(verb: RunVerb, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> TaskRecord:
    """The record of a task that found this plan, without its shape."""
    task = Task("run", "shops", "acme", "web", verb, "/srv", "fleet.yaml", "", "", False)
    running = TaskRecord("run", "acme", "web", state=TaskState.RUNNING)
    attempt = worker._Attempt(task, running, None, (), asyncio.Event())  # type: ignore[arg-type]

    async def store_shape(*_: object) -> TaskRecord:
        return replace(running, state=TaskState.SUCCEEDED)

    monkeypatch.setattr(worker._Attempt, "_store_shape", store_shape)
    record_plan = attempt._record_plan if verb is RunVerb.PLAN else attempt._record_drift
    return asyncio.run(record_plan(plan, None, None))  # type: ignore[arg-type]


RESULTS: list[tuple[RunVerb, dict[str, Any], TaskState, int]] = [
    (RunVerb.PLAN, {}, TaskState.SUCCEEDED, 0),
    (RunVerb.PLAN, {"changes": (EDGE,)}, TaskState.SUCCEEDED, 2),
    (RunVerb.PLAN, {"problems": (PROBLEM,)}, TaskState.FAILED, 1),
    (RunVerb.PLAN, {"problems": (VIOLATION,)}, TaskState.BLOCKED, 4),
    (RunVerb.PLAN, {"problems": (VIOLATION, PROBLEM)}, TaskState.FAILED, 1),
    (RunVerb.PLAN, {"problems": (replace(PROBLEM, severity=Severity.WARNING),)}, TaskState.SUCCEEDED, 0),
    (RunVerb.DRIFT, {}, TaskState.SUCCEEDED, 0),
    (RunVerb.DRIFT, {"changes": (BY_HAND,)}, TaskState.SUCCEEDED, 2),
    (RunVerb.DRIFT, {"changes": (replace(EDGE, is_pending=True),)}, TaskState.SUCCEEDED, 0),
    (RunVerb.DRIFT, {"additions": (ADDED,)}, TaskState.SUCCEEDED, 2),
    (RunVerb.DRIFT, {"problems": (VIOLATION,)}, TaskState.FAILED, 1),
    (RunVerb.DRIFT, {"health": (judge(State.DEGRADED),)}, TaskState.SUCCEEDED, 7),
    (RunVerb.DRIFT, {"health": (judge(State.UNKNOWN), judge(State.PROGRESSING))}, TaskState.SUCCEEDED, 0),
    (RunVerb.DRIFT, {"health": (judge(State.DEGRADED),), "changes": (BY_HAND,)}, TaskState.SUCCEEDED, 2),
]


def test_a_task_has_the_state_and_the_exit_code_of_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    for verb, parts, state, code in RESULTS:
        found = record_result(verb, Plan("prod", **parts), monkeypatch)
        assert (found.state, found.exit_code) == (state, code), (verb, parts)


def test_a_drift_check_records_every_object_that_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(map(judge, State))
    found = record_result(RunVerb.DRIFT, Plan("prod", health=rows), monkeypatch).health
    assert found is not None
    assert found.judged == len(State)
    assert {row.health.state for row in found.rows} == {*State} - {State.HEALTHY}
    assert record_result(RunVerb.DRIFT, Plan("prod", health=()), monkeypatch).health == CheckedHealth(0, ())
    assert record_result(RunVerb.DRIFT, Plan("prod"), monkeypatch).health is None


def test_changes_are_counted_by_action_and_additions_only_of_a_plan() -> None:
    plan = Plan("prod", changes=(EDGE, replace(EDGE, address=Address("TLSEdge", "b"))), additions=(ADDED,))
    assert worker._count(plan) == {"update": 2, "added": 1}
    assert worker._count(plan, ["TLSEdge/b"]) == {"update": 1}
    assert worker._count(plan, []) == {}


@pytest.mark.parametrize(("length", "cut"), [(1, 1), (499, 499), (500, 500), (501, 500), (9_999, 500)])
def test_a_reason_is_one_line_of_at_most_500_characters(length: int, cut: int) -> None:
    found = worker._one_line("x" * length)
    assert (len(found), found.endswith("…")) == (cut, length > 500)
    assert worker._one_line("a\n  b\x1b") == "a b\\x1b"


# --- what fails a task, and what is tried again

OLD = Problem("it is old", severity=Severity.WARNING, code="old")
FAILURES: list[tuple[Exception, int, str]] = [
    (Rejected((OLD, PROBLEM)), 1, "it is wrong"),
    (Rejected((PROBLEM, OLD, VIOLATION, PROBLEM)), 1, "it is wrong (and 2 more)"),
    (Rejected((OLD,)), 1, "invalid"),
    (OperationError("there is no such project"), 1, "there is no such project"),
    (KeyNotFound("no API key"), 1, "no API key"),
    (Refused("denied", status=403), exit_codes.AUTH, "denied"),
    (Refused("invalid", status=400), 1, "invalid"),
    (Failure("cannot reach it"), 1, "cannot reach it"),
    (StoreError("the store is damaged"), 1, "the store is damaged"),
    (OSError("no space left"), 1, "no space left"),
]


def attempt_of(record: TaskRecord, verb: RunVerb = RunVerb.PLAN, records: object = None) -> worker._Attempt:
    task = Task("run", "shops", "acme", "web", verb, "/srv", "fleet.yaml")
    context = worker.WorkerContext(records, "state/fleet.db", Path("cache"))  # type: ignore[arg-type]
    return worker._Attempt(task, record, context, (), asyncio.Event())


RUNNING = TaskRecord("run", "acme", "web", state=TaskState.RUNNING)


def test_a_failure_of_the_member_is_the_result_of_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Exception] = []

    async def fail(_: object) -> None:
        raise raised[-1]

    monkeypatch.setattr(worker._Attempt, "_load", fail)
    attempts = ((RUNNING, False), (RUNNING, True), (replace(RUNNING, changes={"A/b": "00"}), False))
    for (error, code, reason), (record, begun) in itertools.product(FAILURES, attempts):
        raised.append(error)
        attempt = attempt_of(record)
        if begun:
            attempt.begun.set()
        found = asyncio.run(attempt._run_once())
        expected = exit_codes.PARTLY if begun or record.changes else code
        assert found is not None
        assert (found.state, found.exit_code, found.reason) == (TaskState.FAILED, expected, reason)


LOCKED = Locked("stack web", "applied", "host", 1, "noon", 60.0)


@pytest.mark.parametrize("error", [LOCKED, Unavailable("the store", "it restarts")])
def test_a_temporary_failure_is_no_result(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(worker._Attempt, "_load", fail)
    with pytest.raises(type(error)):
        asyncio.run(attempt_of(RUNNING)._run_once())


def test_a_deadline_does_not_stop_what_has_ended_before(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run("run", "shops", RunVerb.APPLY, "/srv", "f", "", 0.0, waves=(Wave("a"), Wave("b", progress_deadline=0.01)))

    class Records:
        async def find_run(self, *_: str) -> Run:
            return run

    async def work(attempt: worker._Attempt, *_: object) -> TaskRecord | None:
        return WRONG

    async def act(attempt: worker._Attempt) -> TaskRecord | None:
        found = await attempt._run_until_deadline(None)  # type: ignore[arg-type]
        await asyncio.sleep(0.015)
        return found

    monkeypatch.setattr(worker._Attempt, "_run", work)
    for place in (0, 1):
        attempt = attempt_of(replace(RUNNING, wave=place), RunVerb.APPLY, Records())
        assert asyncio.run(act(attempt)) == WRONG
        assert not attempt.stop.is_set()
    assert (worker._GRACE, worker._LOCK_PATIENCE) == (60.0, 90.0)


LATE = "it did not finish within progress_deadline (0 s)"
DONE = replace(RUNNING, state=TaskState.SUCCEEDED)
WRONG = replace(RUNNING, state=TaskState.FAILED, exit_code=1, reason="wrong")


@pytest.mark.parametrize(
    ("seconds", "result", "reason"),
    [
        (0.0, DONE, ""),
        (0.0, WRONG, "wrong"),
        (0.0, None, None),
        (0.03, DONE, ""),
        (0.03, WRONG, LATE),
        (0.03, None, LATE),
        (9.0, DONE, LATE),
    ],
)
def test_a_deadline_fails_only_what_has_not_succeeded_when_it_passes(
    monkeypatch: pytest.MonkeyPatch, seconds: float, result: TaskRecord | None, reason: str | None
) -> None:
    """An attempt goes on for a while after the deadline, and is cancelled then."""
    wave = Wave("w", progress_deadline=0.02)
    found_run = Run("run", "shops", RunVerb.APPLY, "/srv", "fleet.yaml", "", 0.0, waves=(wave,))

    class Records:
        async def find_run(self, fleet: str, run: str) -> Run:
            assert (fleet, run) == ("shops", "run")
            return found_run

    async def work(attempt: worker._Attempt, _: object, run: Run) -> TaskRecord | None:
        assert run is found_run
        await asyncio.sleep(seconds)
        assert attempt.stop.is_set() is (seconds > 0.02)
        return result

    monkeypatch.setattr(worker, "_GRACE", 0.05)
    monkeypatch.setattr(worker._Attempt, "_run", work)
    attempt = attempt_of(RUNNING, RunVerb.APPLY, Records())
    found = asyncio.run(attempt._run_until_deadline(None))  # type: ignore[arg-type]
    assert (None if found is None else found.reason) == reason


# --- what becomes of an apply

SECOND = replace(EDGE, address=Address("TLSEdge", "b"))
CALLS = tuple(
    Call(f"{verb} {address}", address, verb, "/x")
    for address, verb in ((EDGE.address, Verb.UPDATE), (EDGE.address, Verb.PUT), (SECOND.address, Verb.UPDATE))
)
APPLIED = Plan("prod", changes=(EDGE, SECOND), additions=(ADDED,), calls=CALLS)
REVIEWED = replace(DONE, counts={"update": 9}, changes={"TLSEdge/z": "ff"}, shape="5" * 12)
STARTED = replace(RUNNING, changes={"TLSEdge/a": "00"})
ENDS: dict[str, tuple[Outcome, ...]] = {
    "all": (Outcome.DONE, Outcome.ALREADY, Outcome.DONE),
    "the second object": (Outcome.DONE, Outcome.FAILED, Outcome.ALREADY),
    "none": (Outcome.UNKNOWN, Outcome.SKIPPED, Outcome.FAILED),
    "no call": (),
}


def test_an_apply_is_recorded_with_its_state_its_changes_and_its_reason() -> None:
    """`applies.txt`: each status of an apply, for a first worker and for one that continues after a worker died."""
    lines = []
    for status in sorted(Status):
        for name, outcomes in ENDS.items():
            ended = tuple(Ended(call, outcome, 1.0) for call, outcome in zip(CALLS, outcomes, strict=False))
            result = ApplyResult(status, APPLIED, outcomes=ended, changed=("TLSEdge/a:\n  another\x07 hand",))
            for before in (RUNNING, STARTED):
                found = attempt_of(before, RunVerb.APPLY)._record_apply(result, REVIEWED)
                assert found.shape == REVIEWED.shape
                counts = ", ".join(f"{number} {what}" for what, number in found.counts.items()) or "nothing"
                who = "first " if before is RUNNING else "second"
                reason = f": {found.reason}" if found.reason else ""
                done = f"{counts} {sorted(found.changes)}{reason}"
                lines.append(f"{status} {name}, {who}: {found.state}, exit code {found.exit_code}, {done}")
    compare_golden(Path(__file__).with_name("applies.txt"), "\n".join(lines) + "\n")


class Reviews:
    """Records in memory of the plans of a run, and of the changes that an apply began."""

    def __init__(self, reviewed: TaskRecord | None, shapes: Mapping[str, Shape], begins: bool = True) -> None:
        self.reviewed, self.known, self.begins, self.begun = reviewed, shapes, begins, list[TaskRecord]()

    async def task(self, run: str, member: str, project: str) -> TaskRecord | None:
        assert (run, member, project) == ("plans", "acme", "web")
        return self.reviewed

    async def shapes(self, fleet: str, digests: list[str]) -> Mapping[str, Shape]:
        assert (fleet, digests) == ("shops", [self.reviewed.shape if self.reviewed else ""])
        return self.known

    async def begin_apply(self, record: TaskRecord) -> bool:
        self.begun.append(record)
        return self.begins


class Applying:
    """A workspace whose apply asks for approval of a plan, and ends as the test says."""

    def __init__(self, result: ApplyResult) -> None:
        self.result, self.allowed, self.approved = result, list[Any](), list[bool]()

    def select(self, *, allow: Any) -> Applying:
        self.allowed.append(allow)
        return self

    async def apply(self, *, approve: Any, stop: asyncio.Event) -> ApplyResult:
        assert not stop.is_set()
        self.approved.append(await approve(self.result.plan))
        return self.result


APPLY_RUN = Run("run", "shops", RunVerb.APPLY, "/srv", "f", "", 0.0, reviewed="plans", approved_shapes=("5" * 12,))
SHAPE = Shape("5" * 12, "acme", "web", "")


@pytest.mark.parametrize("begins", [True, False])
def test_an_apply_sends_only_what_was_reviewed_and_approved(monkeypatch: pytest.MonkeyPatch, begins: bool) -> None:
    monkeypatch.setattr(reviews, "approvals_of", lambda shape: {"of": shape.digest})
    changes = digest_changes(APPLIED)
    covering = replace(REVIEWED, changes=changes)
    done = ApplyResult(Status.APPLIED, APPLIED)

    def apply(
        reviewed: TaskRecord | None,
        result: ApplyResult = done,
        shapes: Mapping[str, Shape] | None = None,
        before: TaskRecord = RUNNING,
    ) -> tuple[TaskRecord | None, Applying, Reviews, bool]:
        records = Reviews(reviewed, {SHAPE.digest: SHAPE} if shapes is None else shapes, begins)
        attempt, workspace = attempt_of(before, RunVerb.APPLY, records), Applying(result)
        ended = asyncio.run(attempt._apply(workspace, APPLY_RUN))  # type: ignore[arg-type]
        return ended, workspace, records, attempt.begun.is_set()

    for reviewed, reason in (
        (None, "it was not planned"),
        (replace(WRONG, shape="5" * 12), "its plan failed: wrong"),
    ):
        ended, workspace, _, begun = apply(reviewed)
        assert ended == replace(RUNNING, state=TaskState.SKIPPED, reason=reason)
        assert (workspace.allowed, begun) == ([], False)
    ended, workspace, _, begun = apply(replace(covering, shape="6" * 12))
    reason = "shape 666666666666 is not approved"
    assert ended == replace(RUNNING, state=TaskState.BLOCKED, exit_code=exit_codes.BLOCKED, reason=reason)
    assert (workspace.allowed, begun) == ([], False)

    ended, workspace, records, begun = apply(covering)
    assert (workspace.allowed, workspace.approved, begun) == ([{"of": "5" * 12}], [begins], True)
    assert records.begun == [replace(RUNNING, changes=changes)]
    assert ended is not None
    assert ended.state is TaskState.SUCCEEDED
    for without in (replace(covering, shape=""), covering):
        _, workspace, _, _ = apply(without, shapes={})
        assert workspace.allowed == [{}]

    other = {address: f"0{digest}0" for address, digest in changes.items()}
    _, workspace, records, begun = apply(replace(covering, changes=other))
    assert (workspace.approved, records.begun, begun) == ([False], [], False)
    rest = {address: f"0{digest}" for address, digest in changes.items()}  # of the same manifests
    for before, approved in ((RUNNING, False), (STARTED, begins)):
        _, workspace, _, _ = apply(replace(covering, changes=rest), before=before)
        assert workspace.approved == [approved]

    for result in (
        ApplyResult(Status.INTERRUPTED, APPLIED),
        replace(done, failure="the disk is full"),
        replace(done, lost_store=True),
    ):
        assert apply(covering, result)[0] is None


# --- one task from its claim to its record


class Claims:
    """The records of one task."""

    def __init__(self, record: TaskRecord, trouble: str = "") -> None:
        self.record, self.trouble, self.calls = record, trouble, list[Any]()

    async def pause_of(self, fleet: str) -> object:
        assert fleet == "shops"
        return self if self.trouble == "paused" else None

    @asynccontextmanager
    async def lock(self, name: str, on_loss: Any) -> AsyncIterator[None]:
        self.calls.append(f"lock {name}")
        if self.trouble == "locked":
            raise LOCKED
        yield
        if self.trouble == "lost":
            on_loss(LockLost(name))

    async def claim(self, *words: str) -> TaskRecord:
        self.calls.append(f"claim {' '.join(words)}")
        return self.record

    async def find_spent_requests(self, record: TaskRecord) -> tuple[tuple[float, int], ...]:
        self.calls.append("find spent requests")
        return ((3.0, 4),)

    async def finish(self, record: TaskRecord) -> None:
        self.calls.append(record)


@pytest.mark.parametrize("store", ["state/fleet.db", "postgresql://host/fleet"])
@pytest.mark.parametrize("trouble", ["", "paused", "locked", "lost", "ended", "interrupted", "unavailable"])
async def test_a_task_is_claimed_run_and_recorded(monkeypatch: pytest.MonkeyPatch, store: str, trouble: str) -> None:
    seen: list[tuple[Any, ...]] = []
    moments = [10.0, 14.5]

    async def run(attempt: worker._Attempt) -> TaskRecord | None:
        assert context.stops == {attempt.stop}
        seen.append((attempt.task, attempt.record, attempt.context, attempt.spent, attempt.stop.is_set()))
        attempt.counter.count = 5
        if trouble == "unavailable":
            raise Unavailable("the store", "it restarts")
        return None if trouble == "interrupted" else DONE

    monkeypatch.setattr(worker._Attempt, "run", run)
    record = DONE if trouble == "ended" else replace(RUNNING, requests=7)
    records = Claims(record, trouble)
    runtime = Runtime(environ={}, clock=Mock(now=lambda: moments.pop(0)))
    context = worker.WorkerContext(records, store, Path("cache"), runtime, name="host:1")  # type: ignore[arg-type]
    task = Task("run", "shops", "acme", "web", RunVerb.PLAN, "/srv", "fleet.yaml")
    if trouble == "unavailable":
        with pytest.raises(Unavailable):
            await run_task(task, context)
    else:
        await run_task(task, context)
    assert context.stops == set()
    lock, claim = "lock fleet run/acme/web", "claim run acme web host:1"
    spent = ["find spent requests"] if "://" in store else []
    finished = [replace(DONE, seconds=4.5, requests=12)]
    assert (
        records.calls
        == {
            "": [lock, claim, *spent, *finished],
            "paused": [],
            "locked": [lock],
            "lost": [lock, claim, *spent, *finished],
            "ended": [lock, claim],
            "interrupted": [lock, claim, *spent],
            "unavailable": [lock, claim, *spent],
        }[trouble]
    )
    is_run = trouble not in ("paused", "locked", "ended")
    assert seen == ([(task, record, context, ((3.0, 4),) if spent else (), False)] if is_run else [])


async def test_a_heartbeat_counts_requests_and_stops_an_attempt_of_a_task_that_another_worker_claimed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored, pauses = list[TaskRecord](), list[float]()
    answers: list[bool | Exception] = [True, StoreError("away"), False, True]
    sleep, ended = asyncio.sleep, asyncio.Event()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if not answers:
            ended.set()
            await sleep(99)
        assert attempt.stop.is_set() is (len(stored) >= 3)

    class Records:
        async def store_heartbeat(self, record: TaskRecord) -> bool:
            stored.append(record)
            attempt.counter.count += 1
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    attempt = attempt_of(replace(RUNNING, requests=7), records=Records())
    monkeypatch.setattr(asyncio, "sleep", pause)
    async with attempt.send_heartbeats():
        await asyncio.wait_for(ended.wait(), 5)
    assert [record.requests for record in stored] == [7, 8, 9, 10]
    assert (set(pauses), len(pauses), attempt.requests) == ({HEARTBEAT_SECONDS}, 5, 11)
    assert "repeat" not in repr(asyncio.all_tasks())  # the heartbeats have ended


@pytest.mark.parametrize("stops_at", [0.0, 4.0, 999.0])
async def test_an_attempt_waits_for_a_locked_stack_for_ninety_seconds(
    monkeypatch: pytest.MonkeyPatch, stops_at: float
) -> None:
    moment, tries = 100.0, 0

    async def run_once(attempt: worker._Attempt) -> TaskRecord | None:
        nonlocal tries
        tries += 1
        assert tries < 100
        if moment - 100.0 >= stops_at:
            attempt.stop.set()
        raise LOCKED

    async def sleep(seconds: float) -> None:
        nonlocal moment
        assert seconds == 2.0
        moment += seconds

    monkeypatch.setattr(worker._Attempt, "_run_once", run_once)
    attempt = attempt_of(RUNNING)
    runtime = Runtime(environ={}, clock=Mock(now=lambda: moment, sleep=sleep))
    attempt = replace(attempt, context=replace(attempt.context, runtime=runtime))
    found = await attempt.run()
    if stops_at < 90:
        assert (found, moment) == (None, 100.0 + stops_at)
    else:
        assert found == replace(RUNNING, state=TaskState.FAILED, exit_code=1, reason=str(LOCKED))
        assert (moment, tries) == (192.0, 47)


async def test_a_task_needs_a_member_and_a_project_of_the_fleet_file(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet("shops", {"acme": ACME}, {"web": WEB}, KeySource(KeyMethod.ENV, "KEY"))
    read: list[tuple[Path, str]] = []

    def load(folder: Path, file: str) -> Fleet:
        read.append((folder, file))
        return fleet

    monkeypatch.setattr(worker, "load_fleet", load)
    attempt = attempt_of(RUNNING)
    for file, base in (("fleet.yaml", "/srv"), ("eu/fleet.yaml", "/srv/eu")):
        for _ in range(2):
            found = await replace(attempt, task=replace(attempt.task, file=file))._load()
            assert found == Assignment(Path(base), fleet, ACME, WEB)
    assert read == [(Path("/srv"), "fleet.yaml"), (Path("/srv"), "eu/fleet.yaml")]
    for member_name, project in (("acme", "gone"), ("gone", "web")):
        task = replace(attempt.task, member=member_name, project=project)
        with pytest.raises(OperationError) as caught:
            await replace(attempt, task=task)._load()
        assert str(caught.value) == f"fleet.yaml has no member {member_name} with project {project}"


ACME = Member("acme", {"tier": "gold"}, {"site": "a", "other": "b"})
WEB = FleetProject("web", "web", environment="live")


async def test_a_project_is_opened_with_its_own_variables_and_a_stack_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[tuple[Any, ...]] = []
    stacks = {"web": "web", "silver": "web", "gold": "gold"}
    selected = {"silver": "silver", "gold": "gold"}
    projects = {
        "web": WEB,
        **{name: FleetProject(name, name, select={"tier": (tier,)}) for name, tier in selected.items()},
    }
    fleet = Fleet("shops", {"acme": ACME}, projects, KeySource(KeyMethod.ENV, "KEY"))

    def read_settings(_: FileCache, base: Path, project: FleetProject, runtime: object) -> tuple[str, frozenset[str]]:
        assert base == Path("/srv")
        return stacks[project.name], frozenset({"site", "unset"})

    monkeypatch.setattr(FileCache, "read_settings", read_settings)
    monkeypatch.setattr(Workspace, "open", lambda *words, **more: opened.append((*words, more)))
    attempt, runtime = attempt_of(RUNNING), Runtime(environ={})
    assigned = Assignment(Path("/srv"), fleet, ACME, WEB)
    attempt._open(assigned, runtime)
    assert opened == [(Path("/srv/web"), {"environment": "live", "variables": {"site": "a"}, "runtime": runtime})]
    stacks["gold"] = "web"
    with pytest.raises(OperationError) as caught:
        attempt._open(assigned, runtime)
    assert str(caught.value) == "projects web and gold have the same stack web; give each its own"


class Reading:
    """A workspace that records how many requests it may send at once, and returns a given plan."""

    def __init__(self, plan: Plan, calls: list[Any]) -> None:
        self.found, self.calls = plan, calls

    async def plan(self) -> Any:
        self.calls.append("plan")
        return Mock(plan=self.found)

    async def drift(self, *, health: bool) -> Any:
        self.calls.append(f"drift{' with health' * health}")
        return Mock(plan=self.found)


@pytest.mark.parametrize("commit", ["", "c0ffee"])
@pytest.mark.parametrize(
    ("verb", "health", "expected"),
    [
        (RunVerb.PLAN, False, ["few", "plan", "record plan"]),
        (RunVerb.DRIFT, False, ["few", "drift", "record drift"]),
        (RunVerb.DRIFT, True, ["few", "drift with health", "record drift"]),
        (RunVerb.APPLY, False, ["apply run"]),
    ],
)
async def test_a_task_checks_what_members_must_not_share_before_it_reads(
    monkeypatch: pytest.MonkeyPatch, verb: RunVerb, health: bool, expected: list[str], commit: str
) -> None:
    calls: list[str] = []
    plan = Plan("prod")
    workspace = Reading(plan, calls)
    fleet = Fleet("shops", {"acme": ACME}, {"web": WEB}, KeySource(KeyMethod.ENV, "KEY"))

    def note(name: str) -> Any:
        return lambda *_: calls.append(name)

    async def find_key(source: KeySource, found: Member, base: Path, environ: object) -> Secret:
        assert (source, found, base) == (fleet.api_key, ACME, Path("/srv"))
        return Secret("k", "env:KEY")

    async def record(attempt: object, found: Plan, *_: object) -> TaskRecord:
        assert found is plan
        calls.append(f"record {verb}")
        return DONE

    async def apply(_: object, opened: object, run: Run) -> TaskRecord:
        assert opened is workspace
        calls.append(f"apply {run.id}")
        return DONE

    def take_few(found: object) -> object:
        calls.append("few")
        return found

    monkeypatch.setattr(worker, "find_key", find_key)
    for name in ("refuse_shared_key", "refuse_files", "refuse_shared_targets"):
        monkeypatch.setattr(worker, name, note(name))
    monkeypatch.setattr(worker, "_with_few_reads", take_few)
    monkeypatch.setattr(worker._Attempt, "_open", lambda *_: workspace)
    monkeypatch.setattr(worker._Attempt, f"_record_{'plan' if verb is RunVerb.PLAN else 'drift'}", record)
    monkeypatch.setattr(worker._Attempt, "_apply", apply)
    attempt = attempt_of(RUNNING, verb)
    attempt = replace(attempt, task=replace(attempt.task, commit=commit, health=health))
    assigned = Assignment(Path("/srv"), fleet, ACME, WEB)
    assert await attempt._run(assigned, APPLY_RUN if verb is RunVerb.APPLY else None) == DONE
    refused = ["refuse_shared_key", *["refuse_files"] * bool(commit), "refuse_shared_targets"]
    assert calls == [*refused, *expected]


async def test_a_shape_is_stored_once_with_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    saved, asked = list[tuple[str, Shape]](), list[tuple[Any, ...]]()

    class Saving:
        async def save_shape(self, fleet: str, shape: Shape) -> None:
            saved.append((fleet, shape))

    def name_shape(*words: Any) -> str:
        asked.append(words)
        return SHAPE.digest

    monkeypatch.setattr(shapes, "shape_of", name_shape)
    monkeypatch.setattr(worker, "_resolve_variables", lambda found, _: replace(found, name="resolved"))
    monkeypatch.setattr(FileCache, "read_literal_addresses", lambda _, root, folders: (root, folders))
    workspace: Any = Mock(config=Mock(root="root", manifests=("m",)), read_rules=lambda: "rules")
    guards = FleetGuards(Amount(5, is_percent=True), 3)
    fleet = Fleet("shops", {"acme": ACME}, {"web": WEB}, KeySource(KeyMethod.ENV, "KEY"), guards=guards)
    attempt = attempt_of(RUNNING, records=Saving())
    assigned = Assignment(Path("/srv"), fleet, ACME, WEB)
    additions = Plan("prod", additions=(ADDED,))
    assert await attempt._store_shape(Plan("prod"), assigned, workspace) == DONE
    assert (saved, asked) == ([], [])
    for plan, counts in (
        (APPLIED, {"update": 2, "added": 1}),
        (additions, {"added": 1}),
        (replace(APPLIED, additions=()), {"update": 2}),
    ):
        found = await attempt._store_shape(plan, assigned, workspace)
        assert found == replace(DONE, counts=counts, changes=digest_changes(plan), shape=SHAPE.digest)
        assert asked.pop() == (plan, "web", replace(ACME, name="resolved"), "rules", ["5%", 3], ("root", ("m",)))
    written = plan_json.write_plan(APPLIED)
    assert saved == [("shops", Shape(SHAPE.digest, "resolved", "web", written))]
    assert worker._describe_guards(replace(fleet, guards=FleetGuards())) == [None, None]


def test_the_health_that_a_fleet_shows_is_short() -> None:
    long = HealthRow("TLSEdge/a", "", Health(State.DEGRADED, "a\n b" * 200, advice="c\td"))
    found = worker._check_health((judge(State.HEALTHY), long, judge(State.UNKNOWN)))
    assert found.judged == 3
    assert [row.health.state for row in found.rows] == [State.DEGRADED, State.UNKNOWN]
    first = found.rows[0].health
    assert (len(first.reason), first.reason[:8], first.reason[-1], first.advice) == (500, "a ba ba ", "…", "c d")


def test_requests_are_counted_as_they_are_sent() -> None:
    counter = worker._RequestCounter()
    for number in range(3):
        assert counter.count == number
        with counter.watch_request("GET", "/a") as exchange:
            assert counter.count == number + 1
            exchange.on_response(200)
            exchange.on_failure(OSError())
        with counter.watch_list("/a"):
            pass
        counter.on_wait(1.0)
        counter.on_plan(APPLIED)
    assert counter.count == 3


def test_a_plan_reads_with_at_most_eight_requests_at_a_time() -> None:
    @dataclasses.dataclass
    class Some:
        parallelism: int

    found = [worker._with_few_reads(Some(number)).parallelism for number in (1, 7, 8, 9, 32)]  # type: ignore[arg-type]
    assert found == [1, 7, 8, 8, 8]


def test_a_stop_is_for_all_tasks_of_the_process() -> None:
    context = attempt_of(RUNNING).context
    stops = [asyncio.Event(), asyncio.Event()]
    context.stops.update(stops)
    context.stop()
    assert [stop.is_set() for stop in stops] == [True, True]
    assert re.fullmatch(rf"{re.escape(socket.gethostname())}:{os.getpid()}", context.name)


def test_the_files_of_a_task_are_those_of_its_commit_or_of_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []

    def fetch(*words: Any) -> Path:
        seen.append(words)
        return Path("/checkout")

    monkeypatch.setattr(checkouts, "fetch_checkout", fetch)
    attempt = attempt_of(RUNNING)
    assert worker._find_folder(attempt.task, attempt.context) == Path("/srv")
    assert seen == []
    assert worker._find_folder(replace(attempt.task, commit="c0ffee"), attempt.context) == Path("/checkout")
    assert seen == [("/srv", "c0ffee", Path("cache"))]
