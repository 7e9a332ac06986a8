"""The creates of `engine_run` by a client that remembers and retries nothing: what server and machine cost anybody.

A process of its own, started by the benchmark: python -m tests.bench.thin_run PROJECT URL AT_ONCE
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path

from reconciler import kinds
from reconciler.engine import requests
from reconciler.engine.requests import ResolvedValues
from reconciler.engine.schedule import Schedule
from reconciler.model.event import Outcome
from tests.bench import wire, worlds
from tests.bench.worlds import SizedProject


async def main(project: str, url: str, at_once: int) -> None:
    plan = worlds.all_creates(SizedProject(0, Path(project)))
    known, schedule, left = ResolvedValues(plan), Schedule(plan.calls), len(plan.calls)
    kind_of = {kind.name: kind for kind in kinds.every()}
    ended = asyncio.Event()

    async def connection() -> None:
        nonlocal left
        async with wire.connect(url) as exchange:
            while left:
                if (call := schedule.take()) is None:
                    ended.clear()
                    await ended.wait()
                    continue
                kind = kind_of[call.address.kind]
                body = requests.reveal_body(requests.make_body(call, known, kind, None))
                answer = json.loads(await exchange(wire.request("POST", known.path(call.path), worlds.KEY, body)))
                known.learn(call.address, kind, answer)
                schedule.end(call.id, Outcome.DONE)
                left -= 1
                ended.set()

    wall, cpu = time.monotonic(), time.process_time()
    await asyncio.gather(*(connection() for _ in range(at_once)))
    print(json.dumps({"wall": time.monotonic() - wall, "cpu": time.process_time() - cpu, "calls": len(plan.calls)}))


if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 100)  # as the command line has it
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
