"""`make bench-fleet`: plans a fleet in one warm process, beside the same work as a process for each member.

CPU of the sandbox is not counted. Prints each figure as it is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

from reconciler.model.fleet import Run
from reconciler.store.fleets.records import open_fleet_records
from reconciler.testing import SandboxProcess
from tests.bench import measure
from tests.fleet.fleets import FleetWorld, member, write_fleet
from tests.harness.workspaces import Document

_KEY = "key-of-{}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fleet")
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--resources", type=int, default=20, help="of each member")
    parser.add_argument("--applied", type=int, default=100, help="members that are applied too")
    parser.add_argument("--processes", type=int, default=10, help="members that are planned as a process each")
    asked = parser.parse_args()
    gc.set_threshold(1_000_000, 20, 100)  # as the command line does
    print(", ".join(measure.machine().values()), flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as folder:
        root = Path(folder)
        names = [f"m{number:05}" for number in range(asked.members)]
        write_fleet(root, [member(name) for name in names], projects={"web": _resources(asked.resources)})
        accounts = root / "accounts.json"
        accounts.write_text(json.dumps([{"name": name, "key": _KEY.format(name)} for name in names]))
        with SandboxProcess(accounts=accounts) as sandbox:
            per_process = _plan_in_processes(root, sandbox, names[: asked.processes])
            asyncio.run(_measure(root, sandbox, asked.applied, per_process))
    return 0


def _resources(count: int) -> list[Document]:
    return [
        {
            "kind": "ReservedDomain",
            "name": f"shop-{number}",
            "spec": {"domain": f"s{number}-${{{{ var.site }}}}.example.com", "description": "${{ var.text }}"},
        }
        for number in range(count)
    ]


def _plan_in_processes(root: Path, sandbox: SandboxProcess, names: list[str]) -> float:
    """The CPU seconds of a plan as a process, the median of some members."""
    taken = []
    for name in names:
        environment = {
            "RECONCILER_API_KEY": _KEY.format(name),
            "RECONCILER_BASE_URL": sandbox.base_url,
            "RECONCILER_STORE": "memory:",
        }
        command = measure.reconciler("plan", "--project", str(root / "web"), "--var", f"site={name}")
        taken.append(measure.run(command, environment).cpu)
    cpu = statistics.median(taken)
    print(f"plan as a process each: {1000 * cpu:.0f} ms of CPU a member (median of {len(names)})", flush=True)
    return cpu


async def _measure(root: Path, sandbox: SandboxProcess, applied: int, per_process: float) -> None:
    async with open_fleet_records(str(root / "state/fleet.db")) as records:
        world = FleetWorld(root, sandbox, records, at_once=16)
        planned = await _take("plan", world, world.plan(), per_process)
        some = {"name": tuple(task.member for task in (await world.tasks(planned))[:applied])}
        await _take("apply", world, world.apply(planned, selected=some), None)
        await _take("plan without changes", world, world.plan(some), per_process)


async def _take(what: str, world: FleetWorld, running: Awaitable[Run], per_process: float | None) -> Run:
    cpu, wall = time.process_time(), time.monotonic()
    run = await running
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    tasks = await world.tasks(run)
    assert {str(task.state) for task in tasks} == {"succeeded"}, {str(task.state) for task in tasks}
    shapes, requests = len({task.shape for task in tasks if task.shape}), sum(task.requests for task in tasks)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    beside = f", {per_process * len(tasks) / cpu:.1f} times less than as a process each" if per_process else ""
    print(
        f"{what}: {len(tasks):,} members in {wall:.0f} s, {cpu:.0f} s of CPU "
        f"({1000 * cpu / len(tasks):.1f} ms a member{beside}); peak {peak:.0f} MB; "
        f"{requests:,} requests ({requests / len(tasks):.1f} a member); shapes: {shapes}; "
        f"load {os.getloadavg()[0]:.1f}, yardstick {1000 * measure.yardstick():.1f} ms",
        flush=True,
    )
    return run


if __name__ == "__main__":
    raise SystemExit(main())
