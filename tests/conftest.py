"""The settings of each test run: profiles of hypothesis, environment, order of the tests, garbage collection.

Fixtures are in `tests/harness`. The profiles of hypothesis: `quick` (the default) and `full` (`make test-full`) test
a property on the same examples in each run, so that a failure is caused by the last change; `roam` (`make soak`) draws
new examples; `sketch` reports a failing example without shrinking it, which takes minutes, and so does `mutation`
(`make mutation`).
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import re
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

import reconciler
from reconciler.cli.terminal import output
from tests.harness.tiers import FULL_EXAMPLES, QUICK_EXAMPLES, full, is_quick

PLUGINS = ("collector", "golden", "project", "sandboxes", "silence", "workers")
pytest_plugins = [f"tests.harness.{name}" for name in PLUGINS]

# Tests of many seconds, most of which are waits. The first module has an expensive fixture: one worker runs all of it.
WAITING = (
    "tests/security/test_silence.py",
    "tests/fleet/test_dask_fleet.py",
    "tests/examples",
    "tests/faults/kills",
    "tests/end_to_end/test_interrupted.py",
    "tests/end_to_end/test_late_effect.py",
)
# Without the variables that are options of the tests themselves.
READ_BY_THE_PRODUCT = re.compile(
    r"(CI|GITHUB|GITLAB|VAULT|OTEL)(_|$)|(NO_COLOR|FORCE_COLOR|TRACEPARENT|PYTHONUNBUFFERED)$"
    r"|RECONCILER_(?!TEST_|YAML_SERVER$|CLIENTS$|SCREENSHOTS$)"
)

ZONES = {
    "quick": "NST+3:30",
    "full": "LINT-14",
}  # 3:30 behind UTC and 14:00 before it, also without a database of zones

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
    """Removes the environment variables of a pipeline or a user that the product reads. Puts temporary folders in
    memory if there is enough: stores wait for the disk after each transaction. Sets a time zone other than UTC."""
    gc.set_threshold(50_000, 20, 100)
    for name in [name for name in os.environ if READ_BY_THE_PRODUCT.match(name)]:
        del os.environ[name]
    os.environ["TZ"] = ZONES["quick" if is_quick() else "full"]
    time.tzset()
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # pytest's variable for the root of `tmp_path`


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the CPU time of the run, of all its workers and the processes that tests started."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    terminalreporter.write_line(f"CPU: {seconds:.0f} s, user and system, with workers")


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes no items of the cases that `make test` leaves to `make test-full`: a third of all, in each worker.

    One stays where a test has no other, without which pytest would call the test without its parameters.
    """
    if f"not {full.name}" in metafunc.config.option.markexpr.split(" and "):
        calls = metafunc._calls
        metafunc._calls = [call for call in calls if full.mark not in call.marks] or calls[:1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs tests that wait for processes first: the last tests are short, and the workers end together."""
    places = {prefix: place for place, prefix in enumerate(WAITING)}
    items.sort(key=lambda item: next((places[prefix] for prefix in WAITING if item.nodeid.startswith(prefix)), 99))


def pytest_collection_finish() -> None:
    """Imports all of the product, and excludes all objects of imports and collection from garbage collection.

    Hypothesis draws some values from the constants of the loaded modules: if all are loaded before the first test, the
    examples of a property do not depend on the tests that ran before it in the same process.
    """
    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[Any]:
    """A command sets the log format of its process, which many commands share here."""
    try:
        return (yield)
    finally:
        output.set_log_format("")
