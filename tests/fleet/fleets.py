"""Fleets on disk and on an emulated platform, for tests."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.fleet import coordinator, runs
from reconciler.fleet.coordinator import FleetProgress
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.ports import Pool
from reconciler.fleet.runs import FleetSource
from reconciler.fleet.worker import WorkerContext
from reconciler.model.fleet import Run, RunVerb, Selector, TaskRecord
from reconciler.operations.runtime import Runtime
from reconciler.project.fleets.load import load_fleet
from reconciler.store.fleets.records import FleetRecords, open_fleet_records
from reconciler.testing import Sandbox
from reconciler.testing.emulator import Emulator
from tests.harness.git import GIT
from tests.harness.workspaces import Document, write_project

DOMAIN: Document = {
    "kind": "ReservedDomain",
    "name": "shop",
    "spec": {"domain": "${{ var.site }}.example.com", "description": "${{ var.text }}"},
}
VARIABLES = "variables:\n  site: {type: string}\n  text: {type: string, default: shop}\n"


def write_fleet(
    root: Path,
    members: Sequence[Mapping[str, Any]],
    *documents: Document,
    projects: Mapping[str, Sequence[Document]] | None = None,
    after: Mapping[str, str] | None = None,
    **settings: Any,
) -> Path:
    """Writes a fleet whose members have the project `web`, or `projects` in their order. Returns the folder."""
    chosen = projects or {"web": documents or (DOMAIN,)}
    for name, declared in chosen.items():
        write_project(root / name, *declared, settings=VARIABLES)
        settings_file = root / name / "reconciler.yaml"
        settings_file.write_text(settings_file.read_text().replace("stack: prod", f"stack: {name}"))
    content = {
        "version": 1,
        "fleet": "shops",
        "members": list(members),
        "projects": [
            {"name": name, "path": name, "after": [after[name]] if after and name in after else []} for name in chosen
        ],
        "api_key": {"from_env": "KEY_${{ member.name }}"},
        **settings,
    }
    (root / "fleet.yaml").write_text(json.dumps(content))
    return root


def member(name: str, **more: Any) -> dict[str, Any]:
    variables = {"site": name, **more.pop("variables", {})}
    return {"name": name, "variables": variables, **more}


THREE = [member("acme"), member("globex"), member("initech")]
CANARY = [member("acme", labels={"tier": "canary"}), member("globex", labels={"tier": "gold"})]


def commit_all(folder: Path) -> str:
    """Creates a Git repository of the folder with one commit, and returns the id of the commit."""
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=all"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@dataclass
class FleetWorld:
    """A fleet on an emulated platform, with an account for each member, and its runs. `now`: the clock of the store."""

    root: Path
    sandbox: Emulator
    records: FleetRecords
    progress: list[FleetProgress] = field(default_factory=list)
    at_once: int = 8
    runtime_options: dict[str, Any] = field(default_factory=dict)
    now: Callable[[], float] = time.time

    @property
    def source(self) -> FleetSource:
        return FleetSource(load_fleet(self.root), str(self.root), "fleet.yaml")

    @property
    def runtime(self) -> Runtime:
        keys = {f"KEY_{name.upper()}": account.api_key for name, account in self.sandbox.accounts.items()}
        environ = {"RECONCILER_BASE_URL": self.sandbox.base_url, **keys}
        return Runtime(**{"environ": environ, "platform": self.sandbox, **self.runtime_options})

    def context(self) -> WorkerContext:
        return WorkerContext(self.records, str(self.root / "state/fleet.db"), self.root / "cache", self.runtime)

    async def plan(self, selected: Selector | None = None) -> Run:
        return await self.execute(await self.start(RunVerb.PLAN, selected))

    async def drift(self) -> Run:
        return await self.execute(await self.start(RunVerb.DRIFT))

    async def apply(self, reviewed: Run, *shapes: str, selected: Selector | None = None) -> Run:
        """Applies reviewed plans, with these shapes approved, or all if none are given."""
        approved = shapes or {task.shape for task in await self.tasks(reviewed) if task.shape}
        run = await self.start(RunVerb.APPLY, selected, reviewed=reviewed, approved_shapes=approved)
        return await self.execute(run)

    async def start(self, verb: RunVerb, selected: Selector | None = None, **options: Any) -> Run:
        now = await self.records.now()
        return await runs.start_run(self.source, verb, self.records, selected=selected, now=now, **options)

    async def execute(self, run: Run, *, pool: Pool | None = None, **options: Any) -> Run:
        options.setdefault("stop", asyncio.Event())
        return await coordinator.execute(
            self.source,
            run,
            self.records,
            pool or LocalPool(self.context(), at_once=self.at_once),
            runtime=self.runtime,
            on_progress=self.progress.append,
            **options,
        )

    async def tasks(self, run: Run) -> tuple[TaskRecord, ...]:
        return await self.records.tasks(run.id)

    async def states(self, run: Run) -> dict[str, str]:
        """The state of each task by member, or by `member/project` if members have several projects."""
        tasks = await self.tasks(run)
        one = len({task.project for task in tasks}) == 1
        return {task.member if one else f"{task.member}/{task.project}": str(task.state) for task in tasks}

    def domains(self, name: str) -> list[str]:
        found = self.sandbox.accounts[name].collection("/reserved_domains", "reserved_domains")
        return sorted(domain["domain"] for domain in found)


def play(
    root: Path,
    members: Sequence[Mapping[str, Any]],
    act: Callable[[FleetWorld], Awaitable[None]],
    on_request: Callable[[str, str], Awaitable[None]] | None = None,
    **settings: Any,
) -> None:
    """Writes a fleet, opens a platform with an account for each member, and calls `act`."""
    write_fleet(root, members, **settings)
    keys = {str(item["name"]): f"key-of-{item['name']}" for item in members}

    async def run() -> None:
        with Sandbox(accounts=keys, on_request=on_request) as sandbox:
            file = str(root / "state/fleet.db")
            async with open_fleet_records(file, now=lambda: world.now()) as records:
                world = FleetWorld(root, sandbox, records)
                await act(world)

    asyncio.run(run())
