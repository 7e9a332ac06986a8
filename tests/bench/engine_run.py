"""Applies a project's creates with the real engine, client and store, and prints what the apply alone took.

A process of its own, started by the benchmark: python -m tests.bench.engine_run PROJECT URL STORE AT_ONCE
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.api.clock import MachineClock, MachineRandom
from reconciler.api.platform import open_platform
from reconciler.engine.apply import apply
from reconciler.model.event import Ended, Outcome
from reconciler.model.value import Secret
from reconciler.project.secrets.sinks import ProjectSinks
from reconciler.store import store
from tests.bench import worlds
from tests.bench.worlds import SizedProject


async def main(project: str, url: str, where: str, at_once: int) -> None:
    plan = worlds.all_creates(SizedProject(0, Path(project)))
    account = Account(url, Secret(worlds.KEY, "bench"), connections=at_once)
    async with (
        store.open_store(where) as memory,
        open_platform(account) as platform,
        memory.journal(plan.stack, command="bench") as journal,
    ):
        wall, cpu, done = time.monotonic(), time.process_time(), 0
        events = apply(
            plan,
            kinds=kinds.every(),
            platform=platform,
            journal=journal,
            clock=MachineClock(),
            random=MachineRandom(),
            sinks=ProjectSinks(Path(project)),
            stop=asyncio.Event(),
            concurrency=at_once,
        )
        async for event in events:
            if isinstance(event, Ended):
                assert event.outcome is Outcome.DONE, event
                done += 1
        took = {"wall": time.monotonic() - wall, "cpu": time.process_time() - cpu, "calls": done}
    print(json.dumps(took))


if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 100)  # as the command line has it
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
