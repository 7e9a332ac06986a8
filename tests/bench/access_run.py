"""Plans with the real client, and prints the CPU of the whole plan and of the analysis of access in it.

A process of its own, started by the benchmark: python -m tests.bench.access_run PROJECT URL
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.api.platform import open_platform
from reconciler.engine.observe import observe
from reconciler.model.value import Secret
from reconciler.planning import access, planner
from reconciler.planning.planner import PlanOptions
from tests.bench import worlds
from tests.bench.worlds import SizedProject


async def main(project: str, url: str) -> None:
    manifest = worlds.load(SizedProject(0, Path(project))).manifest
    async with open_platform(Account(url, Secret(worlds.KEY, "bench"))) as platform:
        snapshot = await observe(platform, kinds.every())
    analyzed, find_changes = 0.0, access.find_access_changes

    def measure(*states: Any) -> Any:
        nonlocal analyzed
        started = time.process_time()
        found = find_changes(*states)
        analyzed += time.process_time() - started
        return found

    vars(access)["find_access_changes"] = measure
    started = time.process_time()
    plan = planner.plan(manifest, snapshot, kinds.every(), PlanOptions())
    took = time.process_time() - started
    assert not plan.errors, plan.errors[0]
    print(json.dumps({"plan": took, "access": analyzed, "entry points": len(plan.access)}))


if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 100)  # as the command line has it
    asyncio.run(main(sys.argv[1], sys.argv[2]))
