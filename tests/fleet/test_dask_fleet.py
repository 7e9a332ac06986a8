"""Whole fleets on Dask workers that are killed at random moments: each object is created once, and no token is lost."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Nanny

from reconciler.fleet.dask_cluster import open_cluster_pool, open_local_pool
from reconciler.fleet.ports import Pool
from reconciler.fleet.worker_process import run_task_here
from reconciler.model import exit_codes
from reconciler.model.fleet import Run, RunVerb, TaskState
from reconciler.store.errors import Locked, StoreError, Unavailable
from reconciler.store.fleets.records import open_fleet_records
from tests.fleet.clusters import Authority, ProcessCluster, start_scheduler
from tests.fleet.fleets import FleetWorld, member, write_fleet
from tests.harness.git import GIT
from tests.harness.platform import SandboxProcess
from tests.harness.tiers import full
from tests.harness.workspaces import Document
from tests.store.stores import STORES, new_store

KEEP_TOKEN = {
    "run": ["sh", "-c", 'cat >"tokens/$FLEET_MEMBER"'],
    "check": ["test", "-w", "tokens"],
    "env": ["FLEET_MEMBER"],
}
CREDENTIAL: Document = {
    "kind": "TunnelCredential",
    "name": "agent",
    "spec": {"description": "${{ var.site }}"},
    "deliver": {"token": {"to_command": KEEP_TOKEN}},
}


def domains(count: int) -> list[Document]:
    return [
        {
            "kind": "ReservedDomain",
            "name": f"shop-{number}",
            "spec": {"domain": f"s{number}-${{{{ var.site }}}}.example.com", "description": "${{ var.text }}"},
        }
        for number in range(count)
    ]


Disturb = Callable[[Run], Coroutine[Any, Any, None]]


def restart_server() -> None:
    """Restarts the PostgreSQL server of `make test-postgres`, as after a power failure."""
    subprocess.run([os.environ["RECONCILER_TEST_POSTGRES_RESTART"]], check=True, capture_output=True)


@dataclass
class DaskFleet:
    """A fleet, its accounts in a sandbox process, and Dask workers of this machine."""

    world: FleetWorld
    pool: Pool
    names: list[str]
    resources: int
    random: random.Random = field(default_factory=lambda: random.Random(19))
    kills: int = 0

    async def run(self, run: Run, kills: int = 0, disturb: Disturb | None = None) -> Run:
        """Executes a run while workers are killed and `disturb` runs. Resumes it, as a user would, if the store was
        unreachable."""
        disturbing = [asyncio.create_task(self._kill(run, kills))]
        if disturb is not None:
            disturbing.append(asyncio.create_task(disturb(run)))
        try:
            for _ in range(120):  # longer than the duration of a lock that was not released
                try:
                    return await self.world.execute(run, pool=self.pool)
                except (Unavailable, Locked):
                    await asyncio.sleep(1.0)
            raise AssertionError("the store remained unreachable")
        finally:
            for task in disturbing:
                task.cancel()
            for failure in await asyncio.gather(*disturbing, return_exceptions=True):
                if isinstance(failure, Exception):
                    raise failure

    async def _kill(self, run: Run, times: int) -> None:
        """Kills workers that run tasks, after a random time each."""
        while times:
            await asyncio.sleep(self.random.uniform(0.1, 1.0))
            with suppress(ProcessLookupError, StoreError):
                workers = {task.worker for task in await self.world.tasks(run) if task.state is TaskState.RUNNING}
                if workers:
                    os.kill(int(self.random.choice(sorted(workers)).rpartition(":")[2]), signal.SIGKILL)
                    self.kills, times = self.kills + 1, times - 1

    async def plan(self, kills: int = 0) -> Run:
        return await self.run(await self.world.start(RunVerb.PLAN), kills)

    async def apply(self, reviewed: Run, **options: Any) -> Run:
        shapes = {task.shape for task in await self.world.tasks(reviewed) if task.shape}
        run = await self.world.start(RunVerb.APPLY, reviewed=reviewed, approved_shapes=shapes)
        return await self.run(run, **options)

    async def states(self, run: Run) -> Counter[str]:
        """The number of tasks by state and reason."""
        return Counter(f"{task.state} {task.reason}".strip() for task in await self.world.tasks(run))

    def check_accounts(self) -> None:
        """Each account has every object once, and the token of its credential was delivered.

        A token starts with the id of its credential without the prefix.
        """
        for name in self.names:
            account = self.world.sandbox.accounts[name]
            expected = sorted(f"s{number}-{name}.example.com" for number in range(self.resources - 1))
            assert self.world.domains(name) == expected, name
            (credential,) = account.collection("/credentials", "credentials")
            token = (self.world.root / "web" / "tokens" / name).read_text()
            assert token.startswith(credential["id"].removeprefix("cr_")), name


OpenPool = Callable[[dict[str, str]], AbstractAsyncContextManager[Pool]]


@asynccontextmanager
async def dask_fleet(
    root: Path, store: str, members: int, resources: int, open_pool: OpenPool, **settings: Any
) -> AsyncIterator[DaskFleet]:
    """A fleet whose members have a credential and domains, with a store at a path or URL. `open_pool` receives the
    environment variables of the workers."""
    names = [f"m{number:04}" for number in range(members)]
    documents = [CREDENTIAL, *domains(resources - 1)]
    write_fleet(root, [member(name) for name in names], *documents, **settings)
    (root / "web" / "tokens").mkdir()
    project = root / "web" / "reconciler.yaml"  # a budget would count the requests of a killed worker for a minute
    lines = project.read_text().splitlines(keepends=True)
    project.write_text("".join(line for line in lines if not line.startswith("limits:")))
    accounts = root / "accounts.json"
    accounts.write_text(json.dumps([{"name": name, "key": f"key-of-{name}"} for name in names]))
    environ = {f"KEY_{name.upper()}": f"key-of-{name}" for name in names}
    async with AsyncExitStack() as stack:
        sandbox = stack.enter_context(SandboxProcess(accounts=accounts))
        environ |= {"RECONCILER_BASE_URL": sandbox.base_url, "RECONCILER_STORE": store}
        records = await stack.enter_async_context(open_fleet_records(store))
        pool = await stack.enter_async_context(open_pool(environ))
        yield DaskFleet(FleetWorld(root, sandbox, records), pool, names, resources)


@full
async def test_twenty_accounts_are_in_sync_although_workers_are_killed(tmp_path: Path) -> None:
    def open_pool(environ: dict[str, str]) -> AbstractAsyncContextManager[Pool]:
        return open_local_pool(run_task_here, 2, threads=4, environ=environ)

    async with dask_fleet(tmp_path, str(tmp_path / "state/fleet.db"), 20, 3, open_pool) as fleet:
        planned = await fleet.plan(kills=1)
        assert await fleet.states(planned) == {"succeeded": 20}
        applied = await fleet.apply(planned, kills=1)
        assert await fleet.states(applied) == {"succeeded": 20}
        fleet.check_accounts()
        fleet.world.sandbox.forget_log()
        again = await fleet.apply(await fleet.plan())
        assert await fleet.states(again) == {"succeeded": 20}
        assert fleet.world.sandbox.calls() == []
        assert fleet.kills


@pytest.mark.parametrize("form", STORES)
@full
async def test_a_thousand_accounts_are_in_sync_although_parts_of_the_cluster_die(form: str, tmp_path: Path) -> None:
    """1,000 accounts with 20 resources: plan, apply in waves, drift. Two of four workers are killed in the plan, two in
    the apply, and in the apply the scheduler; a PostgreSQL server restarts in the apply."""
    members, resources = int(os.environ.get("RECONCILER_TEST_MEMBERS", "1000")), 20
    waves = [{"name": "canary", "percent": 5, "max_failures": 0}, {"name": "rest"}]
    authority = Authority(tmp_path, "fleet")
    clusters: list[ProcessCluster] = []

    @asynccontextmanager
    async def open_pool(environ: dict[str, str]) -> AsyncIterator[Pool]:
        async with ProcessCluster(authority, 4, 4, environ) as cluster:
            clusters.append(cluster)
            with dask.config.set(authority.settings()):
                async with open_cluster_pool(run_task_here, cluster.address) as pool:
                    yield pool

    async def disturb(run: Run) -> None:
        for share, disturbance in ((0.1, clusters[0].kill_scheduler), (0.4, restart_server)):
            ended = 0
            while ended < share * members:
                await asyncio.sleep(0.2)
                with suppress(StoreError):
                    ended = sum(task.state.is_final for task in await fleet.world.tasks(run))
            if disturbance is not restart_server or form == "server":
                await asyncio.to_thread(disturbance)

    async with dask_fleet(tmp_path, new_store(form, tmp_path), members, resources, open_pool, waves=waves) as fleet:
        planned = await fleet.plan(kills=2)
        assert await fleet.states(planned) == {"succeeded": members}
        assert len({task.shape for task in await fleet.world.tasks(planned)}) == 1
        applied = await fleet.apply(planned, kills=2, disturb=disturb)
        assert await fleet.states(applied) == {"succeeded": members}
        fleet.check_accounts()
        fleet.world.sandbox.forget_log()
        drift = await fleet.run(await fleet.world.start(RunVerb.DRIFT))
        assert {task.exit_code for task in await fleet.world.tasks(drift)} == {exit_codes.DONE}
        again = await fleet.apply(await fleet.plan())
        assert await fleet.states(again) == {"succeeded": members}
        assert fleet.world.sandbox.calls() == []
        assert fleet.kills == 4


async def test_workers_of_a_scheduler_fetch_the_commit(tmp_path: Path) -> None:
    """The worker has neither the folder of `fleet plan --scheduler` nor its environment."""
    root, cache = tmp_path / "repository", tmp_path / "cache"
    write_fleet(root, [member("acme"), member("globex")], *domains(2))
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=first"]):
        await asyncio.to_thread(subprocess.run, [*GIT, *arguments], cwd=root, check=True)
    keys = {"KEY_ACME": "sandbox-0001", "KEY_GLOBEX": "sandbox-0002"}
    store = {"RECONCILER_STORE": str(tmp_path / "fleet.db")}
    with SandboxProcess(accounts=2) as sandbox:
        own = {**keys, **store, "RECONCILER_BASE_URL": sandbox.base_url, "RECONCILER_CACHE": str(cache)}
        async with (
            start_scheduler() as scheduler,
            Nanny(scheduler.address, nthreads=2, memory_limit=0, env=own, local_directory=str(tmp_path)),
        ):
            words = ["fleet", "plan", "--scheduler", scheduler.address, "--repository", f"file://{root}", "--quiet"]
            command = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "reconciler", *words,
                cwd=root, env={**os.environ, **store}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            output, _ = await command.communicate()
    assert command.returncode == 0, output.decode()
    async with open_fleet_records(store["RECONCILER_STORE"]) as records:
        run = await records.find_run("shops")
        assert run is not None
        assert {task.state for task in await records.tasks(run.id)} == {TaskState.SUCCEEDED}
    (checkout,) = [entry for entry in cache.iterdir() if entry.is_dir()]
    assert (checkout / "fleet.yaml").read_text() == (root / "fleet.yaml").read_text()
    assert len(run.commit) == 40
