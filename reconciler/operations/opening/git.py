"""Runs Git: without questions, and without the secrets of the environment."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

NEEDED_TO_READ = ("PATH", "HOME", "GIT_DIR")
"""Variables that commands on a local repository need; all others may be secrets."""


class GitError(Exception):
    """What Git printed, or why it did not run."""


def run_git(
    root: Path,
    environ: Mapping[str, str],
    timeout: float,
    *arguments: str,
    input: bytes | None = None,
    needed: tuple[str, ...] = NEEDED_TO_READ,
) -> bytes:
    """What a command of Git prints. Raises GitError.

    root     the folder in which it runs
    environ  of which it gets the variables `needed`
    timeout  seconds
    """
    git = shutil.which("git", path=environ.get("PATH"))
    if git is None:
        raise GitError("git is not installed")
    try:
        done = subprocess.run(
            [git, "-C", str(root), *arguments],
            input=b"" if input is None else input,
            capture_output=True,
            check=False,
            timeout=timeout,
            env={name: environ[name] for name in needed if name in environ},
            start_new_session=True,  # no terminal to ask at, and no Ctrl-C before its time
        )
    except OSError as error:
        raise GitError(str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git did not finish within {timeout:g} seconds") from error
    if done.returncode != 0:
        raise GitError(done.stderr.decode(errors="replace").strip())
    return done.stdout
