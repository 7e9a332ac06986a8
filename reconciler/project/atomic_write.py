"""Writes files atomically: completely or not at all, also if power fails, with the final permissions from the start."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from pathlib import Path
from typing import Final, TextIO

GENERATED: Final = ".reconciler"  # folder of a project for plans, reports, snapshots and schemas, which Git ignores
SCHEMAS: Final = f"{GENERATED}/schemas"  # that `init` and `schema --all` write for editors
_PATIENCE = 5.0  # seconds until a program reads from a pipe that is an output
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write(file: Path, text: str, mode: int = 0o600) -> None:
    """Replaces a file atomically, by a temporary file with a random name. Never follows a symlink. Raises OSError."""
    if other := describe_non_file(file):
        raise OSError(errno.EINVAL, f"{other}, not a regular file", str(file))
    make_generated_folder(file.parent)
    draft = file.with_name(f".{file.name[:200]}.{secrets.token_hex(6)}")
    try:
        write_new(str(draft), text.encode(), mode)
        draft.replace(file)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(file)) from error  # with the name that the user knows
        raise
    with contextlib.suppress(OSError):  # some network file systems cannot; the file has its name
        _sync_folder(file.parent)


def write_output(file: Path, text: str) -> None:
    """Writes output without secrets: replaces a file atomically, and writes into a device or pipe directly.

    Raises OSError with the file's name.
    """
    if not describe_non_file(file):
        write(file, text, 0o644)
        return
    try:
        with _open_special_file(file) as out:
            out.write(text)
    except OSError as error:  # a write into an open pipe or device names no file
        raise OSError(error.errno, error.strerror, str(file)) from error


def open_output(file: Path) -> TextIO:
    """Opens a file for output that others may follow while it is written: empties it, and replaces a symlink by a file.

    Opens a device or pipe directly. Raises OSError with the file's name.
    """
    if describe_non_file(file):
        return _open_special_file(file)
    make_generated_folder(file.parent)
    if file.is_symlink():
        write(file, "", 0o644)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(file, flags, 0o644), "w", encoding="utf-8")


def make_generated_folder(folder: Path) -> None:
    """Creates a folder that is GENERATED or in it, and no other. Raises OSError if GENERATED is a symlink, which a
    branch may contain: what is written there would be at another place."""
    generated = next((place for place in (folder, *folder.parents) if place.name == GENERATED), None)
    if generated is None:
        return
    if generated.is_symlink():
        raise OSError(errno.ELOOP, "is a symlink; delete it, so that a folder is created", str(generated))
    folder.mkdir(parents=True, exist_ok=True)


def _open_special_file(file: Path) -> TextIO:
    """Opens a device or a pipe. Waits some seconds for the program that reads from a pipe, and no longer."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO or describe_non_file(file) != "a pipe":
                raise
            if time.monotonic() > end:
                raise OSError(errno.ENXIO, "no program reads from this pipe", str(file)) from None
            time.sleep(0.05)
            continue
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "w", encoding="utf-8")


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


def write_new(name: str, content: bytes, mode: int, folder: int | None = None) -> None:
    """Writes a new file, and syncs it: a file that is renamed without may be empty after a power failure.

    folder  descriptor of the folder that the name is relative to
    """
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as out:
        os.fchmod(descriptor, mode)
        out.write(content)
        out.flush()
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
