"""What tests all over the tree share: a sandbox to talk to, and how laws are tried.

A law is tried on the same cases each time, so that a change is judged by what it did. `--hypothesis-profile=roam` looks
for new cases (`make soak` does), and `sketch` reports one as it was found, without the minutes that shrinking it takes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import Phase, settings

from reconciler.cli.terminal import output
from tests.platform import Sandbox

pytest_plugins = ["tests.silence"]

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("roam", deadline=None)
settings.register_profile("sketch", deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
settings.load_profile("steady")


def pytest_collection_finish() -> None:
    """What was imported and collected lives until the end: nobody need look for garbage in it, over and over."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(autouse=True)
def _in_plain_words() -> Iterator[None]:
    """A command chooses for its process how it speaks, and here many commands share one."""
    yield
    output.set_log_format("")


@pytest.fixture(scope="session")
def _platform() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.fixture
def sandbox(_platform: Sandbox) -> Sandbox:
    """An empty sandbox: one process for all tests, as new for each."""
    _platform.reset()
    return _platform


@pytest.fixture
def start_sandbox() -> Iterator[Callable[..., Sandbox]]:
    """`start_sandbox(db=…, seed=…, requests_per_minute=…)`: a process of the test's own, stopped after it."""
    running: list[Sandbox] = []

    def start(**options: Any) -> Sandbox:
        running.append(Sandbox(**options))
        return running[-1]

    yield start
    for each in running:
        if each.process.poll() is None:
            each.stop()
