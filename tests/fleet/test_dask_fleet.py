"""Whole fleets on Dask workers that are killed at random moments: every account is right once, and no token is lost."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.fleet.dask_cluster import open_local_pool
from reconciler.fleet.ports import Pool
from reconciler.fleet.worker_process import run_task_here
from reconciler.model.fleet import Run, RunVerb, TaskState
from reconciler.store.fleet_records import open_fleet_records
from reconciler.testing import SandboxProcess
from tests.fleet.fleets import FleetWorld, member, write_fleet
from tests.operations.projects import Document

KEEP = 'token=$(cat); printf "%s\\n" "$token" >>tokens'
CREDENTIAL: Document = {
    "kind": "TunnelCredential",
    "name": "agent",
    "spec": {"description": "${{ var.site }}"},
    "deliver": {"token": {"to_command": {"run": ["sh", "-c", KEEP], "check": ["test", "-w", "."]}}},
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


@dataclass
class DaskFleet:
    """A fleet, its accounts in a sandbox process, and Dask workers of this machine."""

    world: FleetWorld
    pool: Pool
    names: list[str]
    resources: int
    random: random.Random
    kills: int = 0

    async def run(self, run: Run, kills: int = 0) -> Run:
        """Executes a run while workers are killed."""
        killing = asyncio.create_task(self._kill(run, kills))
        try:
            return await self.world.execute(run, pool=self.pool)
        finally:
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)

    async def _kill(self, run: Run, times: int) -> None:
        """Kills workers that run tasks, after a random time each."""
        while times:
            await asyncio.sleep(self.random.uniform(0.1, 1.0))
            workers = {task.worker for task in await self.world.tasks(run) if task.state is TaskState.RUNNING}
            if workers:
                with suppress(ProcessLookupError):
                    os.kill(int(self.random.choice(sorted(workers)).rpartition(":")[2]), signal.SIGKILL)
                    self.kills, times = self.kills + 1, times - 1

    async def plan(self, kills: int = 0) -> Run:
        return await self.run(await self.world.start(RunVerb.PLAN), kills)

    async def apply(self, reviewed: Run, kills: int = 0) -> Run:
        shapes = {task.shape for task in await self.world.tasks(reviewed) if task.shape}
        return await self.run(await self.world.start(RunVerb.APPLY, reviewed=reviewed, approved_shapes=shapes), kills)

    async def states(self, run: Run) -> Counter[str]:
        """How many tasks are in which state, for which reason."""
        return Counter(f"{task.state} {task.reason}".strip() for task in await self.world.tasks(run))

    def check_accounts(self) -> None:
        """Each account has every object once, and the token of its credential is delivered. A token has the id of its
        credential, but for the prefix."""
        tokens = (self.world.root / "web" / "tokens").read_text().split()
        for name in self.names:
            account = self.world.sandbox.accounts[name]
            expected = sorted(f"s{number}-{name}.example.com" for number in range(self.resources - 1))
            assert self.world.domains(name) == expected, name
            (credential,) = account.collection("/credentials", "credentials")
            assert [token for token in tokens if token.startswith(credential["id"].removeprefix("cr_"))], name


@asynccontextmanager
async def dask_fleet(
    root: Path, members: int, resources: int, *, workers: int, seed: int, **settings: Any
) -> AsyncIterator[DaskFleet]:
    names = [f"m{number:04}" for number in range(members)]
    documents = [CREDENTIAL, *domains(resources - 1)]
    write_fleet(root, [member(name) for name in names], *documents, **settings)
    project = root / "web" / "reconciler.yaml"  # a budget would count the requests of a killed worker for a minute
    lines = project.read_text().splitlines(keepends=True)
    project.write_text("".join(line for line in lines if not line.startswith("limits:")))
    accounts = root / "accounts.json"
    accounts.write_text(json.dumps([{"name": name, "key": f"key-of-{name}"} for name in names]))
    environ = {f"KEY_{name.upper()}": f"key-of-{name}" for name in names}
    async with AsyncExitStack() as stack:
        sandbox = stack.enter_context(SandboxProcess(accounts=accounts))
        environ["RECONCILER_BASE_URL"] = sandbox.base_url
        records = await stack.enter_async_context(open_fleet_records(str(root / "state/fleet.db")))
        pool = await stack.enter_async_context(open_local_pool(run_task_here, workers, threads=4, environ=environ))
        yield DaskFleet(FleetWorld(root, sandbox, records), pool, names, resources, random.Random(seed))


async def test_twenty_accounts_are_right_once_though_workers_are_killed(tmp_path: Path) -> None:
    async with dask_fleet(tmp_path, 20, 3, workers=2, seed=19) as fleet:
        planned = await fleet.plan(kills=1)
        assert await fleet.states(planned) == {"succeeded": 20}
        applied = await fleet.apply(planned, kills=2)
        assert await fleet.states(applied) == {"succeeded": 20}
        fleet.check_accounts()
        fleet.world.sandbox.forget_log()
        again = await fleet.apply(await fleet.plan())
        assert await fleet.states(again) == {"succeeded": 20}
        assert fleet.world.sandbox.calls() == []
        assert fleet.kills
