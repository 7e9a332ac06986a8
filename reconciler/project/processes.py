"""Starts other programs: Git, and the commands that secrets are delivered to. Nothing else of the product starts any.

A program that is started gets the environment that it needs and runs in a session of its own. Before the first one
starts, the memory and the environment of this process are closed to programs of the same user.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

_PR_SET_DUMPABLE = 4  # <linux/prctl.h>


@cache
def close_memory() -> None:
    """Denies other programs of this user `/proc/PID/environ`, `/proc/PID/mem` and ptrace of this process, on Linux.

    No boundary for root. A crash of this process writes no core dump afterwards.
    """
    if sys.platform == "linux":
        import ctypes  # takes some milliseconds

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def start_program(
    command: Sequence[str], environ: Mapping[str, str], folder: Path, errors: IO[bytes] | int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Starts a program with exactly the environment `environ`. Raises OSError.

    folder  in which it runs
    errors  its standard error
    """
    close_memory()
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=dict(environ),
        cwd=folder,
        start_new_session=True,  # no terminal to ask at, and no Ctrl-C before its time
    )


async def start_command(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> asyncio.subprocess.Process:
    """Starts a command whose output is dropped, with exactly the environment `environ`. Raises OSError."""
    close_memory()
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=dict(environ),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,  # so that its child processes can be killed too
    )


def kill(process: subprocess.Popen[bytes] | asyncio.subprocess.Process) -> None:
    """Kills a program and its child processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
