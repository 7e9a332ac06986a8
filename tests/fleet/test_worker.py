"""Tasks of a fleet: what a task reads, applies, delivers and records, and what members must not share."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.fleet import coordinator
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.worker import run_task
from reconciler.model import exit_codes
from reconciler.model.fleet import Run, RunState, RunVerb, Shape, Task, TaskState
from reconciler.store.fleets.records import FleetRecords
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
