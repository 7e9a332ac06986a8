"""A plugin of pytest that records for each test which lines it runs, how much CPU time it takes and whether it passes.

It is loaded with `-p tests.mutation.recorder` where MUTATION_RECORD names a folder. Each process of the run writes a
coverage file `lines.*` with one context per test, and `tests-PID.jsonl`, to that folder.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

FOLDER = Path(os.environ["MUTATION_RECORD"])
SOURCE = os.environ["MUTATION_SOURCE"].split(os.pathsep)


# From here on, before the product is imported, so that what importing it runs is known too.
RUNNING = coverage.Coverage(
    data_file=str(FOLDER / "lines"), data_suffix=True, config_file=False, source=SOURCE, messages=False
)
RUNNING.set_option("run:relative_files", True)
RUNNING.set_option("run:disable_warnings", ["no-data-collected", "module-not-measured"])
RUNNING.start()


class Recorder:
    def __init__(self) -> None:
        self._passed: dict[str, bool] = {}
        self._file = (FOLDER / f"tests-{os.getpid()}.jsonl").open("a")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        RUNNING.switch_context(item.nodeid)
        began = time.process_time()
        result = yield
        seconds = time.process_time() - began
        RUNNING.switch_context("")
        passed = self._passed.pop(item.nodeid, False)
        self._file.write(json.dumps({"test": item.nodeid, "cpu": round(seconds, 4), "passed": passed}) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self._passed[report.nodeid] = report.passed

    def pytest_sessionfinish(self) -> None:
        RUNNING.stop()
        RUNNING.save()
        self._file.close()


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Recorder(), "mutation-recorder")
    else:
        RUNNING.stop()  # the tests run in other processes
