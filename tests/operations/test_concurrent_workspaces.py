"""Many workspaces of different accounts in one event loop: each exactly right, and nothing process-wide is changed."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import ssl
import sys
import threading
import warnings
from contextlib import ExitStack
from pathlib import Path

import pytest

from reconciler import Status
from reconciler.testing import Sandbox
from reconciler.testing.emulator import Emulator
from tests.harness.platform import SandboxProcess
from tests.harness.tiers import only_if
from tests.harness.workspaces import domain, open_on, policy, write_project

ACCOUNTS, QUICK = 50, 10


async def play(number: int, sandbox: Emulator, folder: Path) -> None:
    """Apply, change by hand, find that, repair it, and leave only the account's own objects behind."""
    own = [policy(f"office{number}-{index}") for index in range(number % 4 + 1)]
    root = write_project(folder, *own, domain(f"d{number}"))
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    live = sandbox.collection("/ip_policies", "ip_policies")
    sandbox.patch(f"/ip_policies/{live[0]['id']}", {"description": f"by hand {number}"})
    drift = await open_on(sandbox, root).drift()
    assert [[(field.path, field.old) for field in change.fields] for change in drift.plan.changes] == [
        [("description", f"by hand {number}")]
    ]
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    assert (await open_on(sandbox, root).apply()).status is Status.UNCHANGED


@pytest.mark.parametrize("accounts", only_if(lambda accounts: accounts == QUICK, [ACCOUNTS, QUICK]))
async def test_concurrent_accounts_are_each_planned_correctly(accounts: int, tmp_path: Path) -> None:
    with ExitStack() as stack:
        sandboxes = [stack.enter_context(Sandbox(api_key=f"key{number}")) for number in range(accounts)]
        async with asyncio.TaskGroup() as group:
            for number, sandbox in enumerate(sandboxes):
                group.create_task(play(number, sandbox, tmp_path / str(number)))
        for number, sandbox in enumerate(sandboxes):
            names = {policy["description"] for policy in sandbox.collection("/ip_policies", "ip_policies")}
            assert names == {f"office{number}-{index}" for index in range(number % 4 + 1)}
            assert [domain["domain"] for domain in sandbox.get("/reserved_domains")["reserved_domains"]] == [
                f"d{number}.example.com"
            ]


def process_state() -> dict[str, object]:
    """What belongs to the whole process, and not to a library in it."""
    return {
        "gc": (gc.isenabled(), gc.get_threshold(), list(gc.callbacks)),
        "signals": {signals: signal.getsignal(signals) for signals in signal.valid_signals()},
        "environment": dict(os.environ),
        "folder": Path.cwd(),
        "umask": (mask := os.umask(0), os.umask(mask))[0],
        "ssl": {name: vars(ssl.SSLContext)[name] for name in sorted(vars(ssl.SSLContext))},
        "recursion": sys.getrecursionlimit(),
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook, sys.displayhook),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "warnings": list(warnings.filters),
        "hidden modules": {name for name in sys.modules if sys.modules.get(name) is None},
    }


def test_operations_change_no_state_of_the_process(tmp_path: Path) -> None:
    import sqlalchemy  # noqa: F401 - the library's own first import is none of ours

    before = process_state()
    during: list[dict[str, object]] = []

    async def run_watched() -> None:
        for number, sandbox in ((1, in_process), (2, process)):
            await play(number, sandbox, tmp_path / str(number))
            during.append(process_state())

    # The runner has a signal handler of its own, for as long as it runs.
    with Sandbox() as in_process, SandboxProcess() as process, asyncio.Runner() as runner:
        runner.run(run_watched())
    unconditional = {name for name in before if name != "signals"}
    for state in (*during, process_state()):
        assert {name: state[name] for name in unconditional} == {name: before[name] for name in unconditional}
    assert process_state()["signals"] == before["signals"]
