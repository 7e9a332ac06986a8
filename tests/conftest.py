"""What tests all over the tree share: a sandbox to talk to, and how laws are tried.

The profiles of hypothesis: `quick` (the default) and `full` (`make test-full`) try a law on the same examples in each
run, so that a failure is caused by the last change; `roam` (`make soak`) looks for new examples; `sketch` reports a
failing example as it was found, without the minutes that shrinking it takes, and so does `mutation` (`make mutation`).
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import re
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

import reconciler
from reconciler.cli.terminal import output
from reconciler.testing import Emulator, Sandbox, SandboxProcess
from tests.bench.measure import yardstick
from tests.harness.forked import forked_commands
from tests.harness.tiers import FULL_EXAMPLES, QUICK_EXAMPLES, is_quick

pytest_plugins = ["tests.harness.golden", "tests.harness.silence"]

# Tests of many seconds, most of which are waits. The first module has a costly fixture, and is not to be split.
WAITING = (
    "tests/security/test_silence.py",
    "tests/fleet/test_dask_fleet.py",
    "tests/examples",
    "tests/faults/kills",
    "tests/end_to_end/test_interrupted.py",
    "tests/end_to_end/test_late_effect.py",
)
# All but the variables that steer the tests themselves.
READ_BY_THE_PRODUCT = re.compile(
    r"(CI|GITHUB|GITLAB|VAULT|OTEL)(_|$)|(NO_COLOR|FORCE_COLOR|TRACEPARENT|PYTHONUNBUFFERED)$"
    r"|RECONCILER_(?!TEST_|YAML_SERVER$|SCREENSHOTS$)"
)
PACE_EVERY = 5.0  # seconds
_paces: list[float] = []  # seconds that the yardstick took during the run, in this process and in ended workers
_measure_at = 0.0

MEMORY, ENOUGH = Path("/dev/shm"), 1 << 30  # bytes  # noqa: S108 - pytest makes a folder of its own user there

settings.register_profile("quick", max_examples=QUICK_EXAMPLES, derandomize=True, deadline=None)
settings.register_profile("full", max_examples=FULL_EXAMPLES, derandomize=True, deadline=None)
settings.register_profile("roam", max_examples=FULL_EXAMPLES, deadline=None)
settings.register_profile(
    "sketch", max_examples=FULL_EXAMPLES, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
settings.register_profile(
    "mutation", max_examples=QUICK_EXAMPLES, derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("quick")


def pytest_configure() -> None:
    """Removes what the product would read of a pipeline's or a person's environment, and keeps folders in memory where
    there is enough: stores wait for the disk after each transaction."""
    gc.set_threshold(50_000, 20, 100)
    for name in [name for name in os.environ if READ_BY_THE_PRODUCT.match(name)]:
        del os.environ[name]
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # pytest's variable for the root of `tmp_path`


def pytest_runtest_logfinish() -> None:
    """Measures the pace of the machine now and then: other guests of its host may halve it within seconds."""
    global _measure_at
    if time.monotonic() >= _measure_at:
        _paces.append(yardstick())
        _measure_at = time.monotonic() + PACE_EVERY


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["paces"] = _paces


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _paces.extend(getattr(node, "workeroutput", {}).get("paces", ()))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the CPU time of the run, also as a multiple of a fixed piece of work, which tells machines apart."""
    taken = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in taken)
    yard = statistics.fmean([*_paces, yardstick()])
    told = f"{1000 * yard:.1f} ms on average: {seconds / yard:,.0f} yards"
    terminalreporter.write_line(f"CPU: {seconds:.0f} s, while the yardstick of tests.bench took {told}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs tests that wait for processes first: what is left at the end is short, and the workers end together."""
    places = {prefix: place for place, prefix in enumerate(WAITING)}
    items.sort(key=lambda item: next((places[prefix] for prefix in WAITING if item.nodeid.startswith(prefix)), 99))


def pytest_collection_finish() -> None:
    """Imports all of the product, and leaves what was imported and collected out of the garbage collection.

    Hypothesis draws some values from the constants of the modules that are loaded: with all of them loaded before the
    first test, the examples of a law do not depend on the tests that ran before it in the same process.
    """
    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _in_plain_words() -> Iterator[None]:
    """A command chooses for its process how it speaks, and here many commands share one."""
    yield
    output.set_log_format("")


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[SandboxProcess]:
    """One sandbox process per worker; what a test finds in it, an earlier one may have left."""
    with SandboxProcess() as running:
        yield running


@pytest.fixture(scope="session")
def commands() -> Iterator[Path]:
    """A folder for the PATH with the command `reconciler`: one that forks in `make test`, else the installed one."""
    if not is_quick():
        yield Path(sys.executable).parent
        return
    with tempfile.TemporaryDirectory() as folder, forked_commands(Path(folder)) as forking:
        yield forking


@pytest.fixture
def over_socket(sandbox_process: SandboxProcess) -> SandboxProcess:
    """Makes `sandbox` an empty sandbox process with a real socket, for tests that start commands as processes or are
    about the connection: `usefixtures("over_socket")`."""
    sandbox_process.reset()
    return sandbox_process


@pytest.fixture
def sandbox(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """An empty sandbox: in this process, unless the test uses `over_socket`."""
    if "over_socket" in request.fixturenames:
        yield request.getfixturevalue("over_socket")
        return
    with Sandbox(host="emulator") as in_process:  # no address holds the key, which tests search output for
        yield in_process


@pytest.fixture
def start_sandbox() -> Iterator[Callable[..., SandboxProcess]]:
    """`start_sandbox(db=…, seed=…, requests_per_minute=…)`: a process of the test's own, stopped after it."""
    running: list[SandboxProcess] = []

    def start(**options: Any) -> SandboxProcess:
        running.append(SandboxProcess(**options))
        return running[-1]

    yield start
    for sandbox_process in running:
        if sandbox_process.process.poll() is None:
            sandbox_process.stop()
