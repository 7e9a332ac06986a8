"""Programs that reconciler starts cannot read its keys, as an ordinary user: neither its environment nor its memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")

NOBODY = 65534
FILES = ("environ", "mem", "maps", "auxv", "fd/0")

SPY = """#!/bin/sh
for name in environ mem maps auxv fd/0; do
    # /proc/PID/mem starts with a page that is not mapped: opening it is what needs permission.
    if (exec 3</proc/$PPID/$name) 2>/dev/null; then echo $name; fi
done >"{folder}/$(basename "$0")-read"
{then}
"""

# Imports first: an ordinary user may not be able to read the interpreter of the tests.
START = """
import asyncio, ctypes, os, sys
from pathlib import Path
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.operations.opening.commits import read_commit
from reconciler.project import processes
from reconciler.project.atomic_write import write_output
from reconciler.project.secrets.sinks import ProjectSinks
from reconciler.store import lock

folder, what, user = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as in a process that this user started: a change of users closes it
if what == "git":
    assert read_commit(folder, os.environ, 60.0)
elif what == "command":
    sinks = ProjectSinks(folder, environ=os.environ)
    delivery = Delivery("to_command", "command", settings={"run": [str(folder / "command")]})
    asyncio.run(sinks.deliver(delivery, Secret("canary", "test")))
elif what == "unprotected":
    os.system(str(folder / "unprotected"))
else:
    before = lock._machine_id()
    reading, writing = os.pipe()  # of this user
    os.dup2(writing, 1)
    processes.close_memory()
    assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0  # PR_GET_DUMPABLE
    assert lock._machine_id() == before
    write_output(Path("/dev/stdout"), "written")
    assert os.read(reading, 100) == b"written"
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of an ordinary user, with programs that write which files of their parent they can open."""
    folder = Path(tempfile.mkdtemp())  # pytest's folders belong to the user who runs the tests
    git = shutil.which("git")
    for name, then in (("command", "cat >/dev/null"), ("git", f'exec {git} "$@"'), ("unprotected", "")):
        (folder / name).write_text(SPY.format(folder=folder, then=then))
        (folder / name).chmod(0o755)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run([str(git), "init", "--quiet"], cwd=folder, check=True)
    subprocess.run([str(git), *identity, "commit", "--quiet", "--allow-empty", "-m", "x"], cwd=folder, check=True)
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def run(folder: Path, what: str) -> None:
    environ = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "RECONCILER_API_KEY": "canary",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-c", START, str(folder), what, str(NOBODY)]
    subprocess.run(command, env=environ, cwd=folder, check=True, timeout=120)


def files_read_by(folder: Path, what: str) -> list[str]:
    """Starts a program of the folder as reconciler does. Returns the files of `/proc/PARENT` that it could open."""
    run(folder, what)
    return (folder / f"{what}-read").read_text().split()


def test_without_protection_a_child_reads_its_parent(folder: Path) -> None:
    """Otherwise the tests below would prove nothing."""
    found = files_read_by(folder, "unprotected")
    assert "environ" in found, "this machine hides processes of a user from that user; run the tests elsewhere"


@pytest.mark.parametrize("what", ["command", "git"])
def test_a_program_that_reconciler_starts_reads_nothing_of_it(folder: Path, what: str) -> None:
    assert files_read_by(folder, what) == []


def test_the_process_itself_still_reads_what_it_needs(folder: Path) -> None:
    """The store's lock recognizes processes of this machine by `/proc/self/ns/pid`; `/dev/stdout` leads to `/proc`."""
    run(folder, "itself")
