"""Tasks of a fleet: what a task reads, applies, delivers and records, and what members must not share."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.clock import MachineClock
from reconciler.engine.ports import Failure, Refused
from reconciler.fleet import coordinator, worker
from reconciler.fleet.keys import KeyNotFound
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.worker import run_task
from reconciler.model import exit_codes
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.fleet import Run, RunState, RunVerb, Shape, Task, TaskRecord, TaskState, Wave
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.history import CheckedHealth
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Rejected, Severity
from reconciler.model.value import Secret
from reconciler.operations.errors import OperationError
from reconciler.store.errors import Locked, LockLost, StoreError, Unavailable
from reconciler.store.fleets.records import FleetRecords, task_lease
from reconciler.store.fleets.requests import HEARTBEAT_SECONDS, WINDOW
from reconciler.store.lock import LOCK_SECONDS
from reconciler.store.store import open_store
from tests.fleet.fleets import CANARY, DOMAIN, THREE, FleetWorld, commit_all, member, play, write_fleet
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


@pytest.mark.parametrize(("verb", "parts", "state", "code"), RESULTS)
def test_a_task_has_the_state_and_the_exit_code_of_its_plan(
    monkeypatch: pytest.MonkeyPatch, verb: RunVerb, parts: dict[str, Any], state: TaskState, code: int
) -> None:
    found = record_result(verb, Plan("prod", **parts), monkeypatch)
    assert (found.state, found.exit_code) == (state, code)


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


@pytest.mark.parametrize(("error", "code", "reason"), FAILURES, ids=lambda value: type(value).__name__)
def test_a_failure_of_the_member_is_the_result_of_its_task(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, reason: str
) -> None:
    async def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(worker._Attempt, "_load", fail)
    for record, begun in ((RUNNING, False), (RUNNING, True), (replace(RUNNING, changes={"A/b": "00"}), False)):
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
