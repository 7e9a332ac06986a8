"""Plans and applies updates with the real engine, client and store, and prints what the apply alone took.

A process of its own, started by the benchmark: python -m tests.bench.update_run PROJECT URL STORE AT_ONCE [unchecked]
`unchecked` sends each update without its ownership check, to show what the checks cost.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.api.clock import MachineClock, MachineRandom
from reconciler.api.platform import open_platform
from reconciler.engine.apply import apply
from reconciler.engine.observe import observe
from reconciler.engine.ports import Check, Platform
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Verb
from reconciler.model.value import Json, Secret
from reconciler.planning import planner
from reconciler.planning.planner import PlanOptions
from reconciler.project.secrets.sinks import ProjectSinks
from reconciler.store import store
from tests.bench import worlds
from tests.bench.worlds import SizedProject


class _RequestCount:
    """An observer that counts requests."""

    def __init__(self) -> None:
        self.requests = 0

    def watch_request(self, method: str, path: str) -> AbstractContextManager[_RequestCount]:
        self.requests += 1
        return nullcontext(self)

    def watch_list(self, path: str) -> AbstractContextManager[None]:
        return nullcontext()

    def on_wait(self, seconds: float) -> None:
        pass

    def on_response(self, status: int) -> None:
        pass

    def on_failure(self, failure: Exception) -> None:
        pass


class _Unchecked:
    """A platform that leaves out the ownership checks."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def get(self, path: str) -> Json:
        return await self._platform.get(path)

    def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        return self._platform.pages(path, key)

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        return await self._platform.send(method, path, body)


async def main(project: str, url: str, where: str, at_once: int, *, checked: bool) -> None:
    manifest = worlds.load(SizedProject(0, Path(project))).manifest
    count = _RequestCount()
    account = Account(url, Secret(worlds.KEY, "bench"), connections=at_once, observer=count)
    async with store.open_store(where) as memory, open_platform(account) as platform:
        plan = planner.plan(manifest, await observe(platform, kinds.every()), kinds.every(), PlanOptions())
        assert not plan.errors, plan.errors[0]
        assert {call.verb for call in plan.calls} == {Verb.UPDATE}
        async with memory.journal(plan.stack, command="bench") as journal:
            before, wall, cpu, done = count.requests, time.monotonic(), time.process_time(), 0
            events = apply(
                plan,
                kinds=kinds.every(),
                platform=platform if checked else _Unchecked(platform),
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
    print(json.dumps({**took, "requests": count.requests - before}))


if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 100)  # as the command line has it
    checked = "unchecked" not in sys.argv[5:]
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), checked=checked))
