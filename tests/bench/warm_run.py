"""Plans one small project again and again in one process, as a scheduler does: CPU seconds of each plan, as JSON.

A process of its own, started by the benchmark: python -m tests.bench.warm_run PROJECT URL TIMES
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

from reconciler import Runtime, Workspace
from tests.bench import worlds


async def main(project: str, url: str, times: int) -> None:
    environ = {**os.environ, "RECONCILER_BASE_URL": url, "RECONCILER_API_KEY": worlds.KEY}
    taken = []
    for _ in range(times + 1):  # the first one imports what the others find
        before = time.process_time()
        result = await Workspace.open(project, runtime=Runtime(environ=environ, store="memory:")).plan()
        taken.append(time.process_time() - before)
        assert result.plan.is_empty, result.plan.changes
    print(json.dumps(taken[1:]))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
