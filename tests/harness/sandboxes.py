"""A pytest plugin: fixtures of the emulated platform, in this process or as one of its own, and of the command line."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.testing import Emulator, Sandbox
from tests.harness.forked import serve_commands
from tests.harness.platform import SandboxProcess
from tests.harness.tiers import is_quick


@pytest.fixture
def sandbox(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """An empty sandbox: in this process, unless the test uses `over_socket`."""
    if "over_socket" in request.fixturenames:
        yield request.getfixturevalue("over_socket")
        return
    with Sandbox(host="emulator") as in_process:  # no address contains the key, which tests search output for
        yield in_process


@pytest.fixture
def over_socket(sandbox_process: SandboxProcess) -> SandboxProcess:
    """Makes `sandbox` an empty sandbox process with a real socket, for tests that start commands as processes or are
    about the connection: `usefixtures("over_socket")`."""
    sandbox_process.reset()
    return sandbox_process


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[SandboxProcess]:
    """One sandbox process for each worker, not emptied between tests."""
    with SandboxProcess() as process:
        yield process


@pytest.fixture
def start_sandbox() -> Iterator[Callable[..., SandboxProcess]]:
    """`start_sandbox(db=…, seed=…, requests_per_minute=…)`: a process of the test's own, stopped after it."""
    processes: list[SandboxProcess] = []

    def start(**options: Any) -> SandboxProcess:
        processes.append(SandboxProcess(**options))
        return processes[-1]

    yield start
    for sandbox_process in processes:
        if sandbox_process.process.poll() is None:
            sandbox_process.stop()


@pytest.fixture(scope="session")
def commands() -> Iterator[Path]:
    """A folder for the PATH with the command `reconciler`: one that forks in `make test`, else the installed one."""
    if not is_quick():
        yield Path(sys.executable).parent
        return
    # No TemporaryDirectory: a command that forks from this process would remove it when it ends.
    folder = Path(tempfile.mkdtemp())
    with serve_commands(folder) as forking:
        yield forking
    shutil.rmtree(folder)
