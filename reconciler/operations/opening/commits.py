"""The Git commit of a project's manifests."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_PASSED = ("PATH", "HOME", "GIT_DIR")  # the environment is full of secrets, and Git needs none of them


def read_commit(root: Path, environ: Mapping[str, str], timeout: float) -> str:
    """The commit that is checked out at `root`; empty if Git does not answer within `timeout` seconds."""
    git = shutil.which("git", path=environ.get("PATH"))
    if git is None:
        return ""
    try:
        done = subprocess.run(
            [git, "-C", str(root), "rev-parse", "HEAD"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env={name: environ[name] for name in _PASSED if name in environ},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
