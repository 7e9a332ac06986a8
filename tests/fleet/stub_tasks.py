"""Functions that run in Dask workers instead of the real task, and record their runs for the tests.

`Task.source` is a folder: each run of a task appends a line to a file there.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from reconciler.model.fleet import RunVerb, Task

RUN = "20261123-101500-a1b2"


def make_task(folder: Path, member: str, needs: str = "") -> Task:
    return Task(
        "20261123-101500-a1b2", "fleet", member, "tunnels", RunVerb.PLAN, str(folder), "fleet.yaml", needs=needs
    )


def record_run(task: Task) -> None:
    """Records that a task runs, with its process and thread."""
    descriptor = os.open(Path(task.source) / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{task.member} {os.getpid()} {threading.get_ident()}\n".encode())
    finally:
        os.close(descriptor)


def read_runs(folder: Path) -> list[tuple[str, int]]:
    """Member and process of each run."""
    log = folder / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [(line.split()[0], int(line.split()[1])) for line in lines]


def work(task: Task) -> None:
    """Ends after a moment."""
    record_run(task)
    time.sleep(0.1)


def wait(task: Task) -> None:
    """Ends when the test writes the file `go`, or kills the worker."""
    record_run(task)
    while not (Path(task.source) / "go").exists():
        time.sleep(0.02)


def fail(task: Task) -> None:
    """Fails with a secret of the worker's environment in the message and in the cause."""
    record_run(task)
    try:
        raise KeyError(os.environ["ACCOUNT_KEY"])
    except KeyError as error:
        raise ValueError(f"not a key: {os.environ['ACCOUNT_KEY']}") from error


def record_worker(task: Task) -> None:
    """Records the name of the Dask worker."""
    from distributed import get_worker

    with (Path(task.source) / task.member).open("w") as file:
        file.write(str(get_worker().name))
