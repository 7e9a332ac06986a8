"""Writes files atomically: completely or not at all, with the final permissions from the start."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write(file: Path, text: str, mode: int = 0o600) -> None:
    """Replaces a file atomically, by a temporary file with a random name. Never follows a symlink. Raises OSError."""
    if other := describe_non_file(file):
        raise OSError(errno.EINVAL, f"{other}, not a regular file", str(file))
    draft = file.with_name(f".{file.name[:200]}.{secrets.token_hex(6)}")
    try:
        _write(draft, text, mode)
        draft.replace(file)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(file)) from error  # with the name that the user knows
        raise


def write_output(file: Path, text: str) -> None:
    """Writes output without secrets: replaces a file atomically, and writes into a device or pipe directly.

    Raises OSError with the file's name.
    """
    if not describe_non_file(file):
        write(file, text, 0o644)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:  # a write into an open pipe or device names no file
        raise OSError(error.errno, error.strerror, str(file)) from error


def describe_non_file(file: Path) -> str:
    """`a device`, `a pipe` or `a socket` for a path that must not be replaced by a file; otherwise empty."""
    try:
        is_link, mode = stat.S_ISLNK(file.lstat().st_mode), file.stat().st_mode
    except OSError:
        return ""  # does not exist, or is a dangling symlink
    # /dev/stdout is a symlink, perhaps to a file: replacing it would replace the symlink.
    folder = os.path.realpath(file.parent)
    if is_link and (folder == "/dev" or folder.startswith("/proc/")):
        return "a device"
    return next((name for kind, name in _ELSE.items() if stat.S_IFMT(mode) == kind), "")


_ELSE = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def _write(draft: Path, text: str, mode: int) -> None:
    descriptor = os.open(draft, _NEW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
        out.write(text)
        os.fchmod(out.fileno(), mode)
