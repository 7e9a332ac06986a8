"""Reads and writes files that contain secrets, below the project's root.

A file is written atomically, is never readable by other users, and is never written through a symbolic link: every
directory is opened from the one above it, so that none can be swapped in between.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from reconciler.engine.ports import Undeliverable
from reconciler.project import atomic_write
from reconciler.project.secrets.reserved_places import Reserved

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ATTEMPTS = 3  # to write a file that another program creates at the same time
_PROOF = "proof"  # name of a trial if the folder of the target is missing
_LARGEST = 1 << 20  # bytes of an existing file that an entry is added to


Content = Callable[[str | None], str]
"""Returns the new text of a file for its current text (None if there is none). Raises Undeliverable."""


def prove(root: Path, target: str, content: Content, reserved: Reserved | None = None) -> None:
    """Raises Undeliverable unless a write would succeed now. Leaves no file.

    Creates no folder, since another process could begin to use it. If folders are missing, the deepest existing one is
    tried instead.
    """
    with _open_place(root, target, reserved, create=False) as (directory, name):
        _lock(directory)
        _remove_leftovers(directory, name or _PROOF)
        content(None if name is None else _read_existing(directory, name))
        os.unlink(_write_temporary(directory, name or _PROOF, b"proof"), dir_fd=directory)


def write(root: Path, target: str, content: Content, reserved: Reserved | None = None) -> None:
    """Writes the file atomically, or raises Undeliverable.

    If another program creates the file at the same time, `content` is called again with its text.
    """
    with _open_place(root, target, reserved, create=True) as (directory, name):
        assert name is not None
        _lock(directory)
        _remove_leftovers(directory, name)
        for _ in range(_ATTEMPTS):
            present = _read_existing(directory, name)
            if _replace_file(directory, name, content(present).encode(), replaces=present is not None):
                return
        raise Undeliverable("another program keeps creating this file")


def read(root: Path, target: str) -> str | None:
    """The text of a file; None if there is none. Raises Undeliverable for a file that `write` would not replace."""
    with _open_place(root, target, None, create=False) as (directory, name):
        return None if name is None else _read_existing(directory, name)


@contextmanager
def _open_place(
    root: Path, target: str, reserved: Reserved | None, *, create: bool
) -> Iterator[tuple[int, str | None]]:
    """Opens the directory of the target. Yields its descriptor and the name of the file.

    If a directory is missing and not to be created: the deepest existing directory, and None.
    """
    directories, name = _split_target(target)
    try:
        if reserved is not None:
            _refuse(reserved.use(f"{os.path.realpath(root)}/{PurePosixPath(target)}"))
        with _open_directory(root, directories, reserved, create=create) as (directory, is_whole):
            if is_whole:
                _check_target(directory, name, reserved)
            else:
                _check_name(directory, name)
            yield directory, name if is_whole else None
    except Undeliverable as why:
        raise Undeliverable(f"{target}: {why}") from None
    except OSError as failure:
        raise Undeliverable(f"{target}: {failure.strerror or failure}") from None


def _lock(directory: int) -> None:
    """Locks the directory against other processes until it is closed."""
    with suppress(OSError):  # some network file systems have no locks
        fcntl.flock(directory, fcntl.LOCK_EX)


def _refuse(use: str | None) -> None:
    if use is not None:
        raise Undeliverable(f"reserved: {use}; use another file, as in secrets/token")


def _read_existing(directory: int, name: str) -> str | None:
    try:
        descriptor = os.open(name, _OLD, dir_fd=directory)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise Undeliverable("the file is larger than 1 MiB; use another file")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise Undeliverable("the file is not UTF-8; use another file") from None


def _split_target(target: str) -> tuple[list[str], str]:
    path = PurePosixPath(target)
    if path.is_absolute() or ".." in path.parts or not path.name or "\0" in target:
        raise Undeliverable(f"{target!r} is not below the project's root; use a path inside the project")
    return list(path.parts[:-1]), path.name


@contextmanager
def _open_directory(
    root: Path, directories: list[str], reserved: Reserved | None, *, create: bool
) -> Iterator[tuple[int, bool]]:
    """Opens the directory of a target. Yields its descriptor and True, or the deepest existing directory and False.

    Created directories are kept even if the write fails: another process may use them already.
    """
    chain = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    is_whole = True
    try:
        for name in directories:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=chain[-1])
                    os.fsync(chain[-1])
            try:
                chain.append(_enter(chain[-1], name))
            except FileNotFoundError:
                if create:
                    raise
                is_whole = False
                for missing in directories:
                    _check_name(chain[-1], missing)
                break
            if reserved is not None:
                _refuse(reserved.use_of(os.fstat(chain[-1])))
        yield chain[-1], is_whole
    finally:
        for descriptor in reversed(chain):
            os.close(descriptor)


def _check_name(directory: int, name: str) -> None:
    """Raises OSError if no file can have this name there."""
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=directory, follow_symlinks=False)


def _enter(above: int, name: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=above)
    except NotADirectoryError:
        raise Undeliverable(f"{name} is a symbolic link or not a directory; use a real directory") from None


def _check_target(directory: int, name: str, reserved: Reserved | None) -> None:
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    if reserved is not None:
        _refuse(reserved.use_of(found))
    if not stat.S_ISREG(found.st_mode):
        raise Undeliverable("it exists and is not a regular file; remove it or use another path")


def _remove_leftovers(directory: int, name: str) -> None:
    """Removes temporary files of a killed process: they may contain a secret."""
    pattern = re.compile(rf"{re.escape(_temporary_prefix(name))}[0-9a-f]{{12}}")
    for name_found in os.listdir(directory):
        if pattern.fullmatch(name_found):
            with suppress(FileNotFoundError):
                os.unlink(name_found, dir_fd=directory)


def _temporary_prefix(name: str) -> str:
    """The prefix of the temporary files of one target, which no other file has."""
    return f".reconciler-unfinished-{hashlib.blake2b(os.fsencode(name), digest_size=6).hexdigest()}-"


def _write_temporary(directory: int, name: str, content: bytes) -> str:
    """Writes the content to a new file beside the target and syncs it. Returns its name."""
    temporary = f"{_temporary_prefix(name)}{secrets.token_hex(6)}"
    try:
        atomic_write.write_new(temporary, content, 0o600, directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
    return temporary


def _replace_file(directory: int, name: str, content: bytes, *, replaces: bool) -> bool:
    """Replaces or creates the file. Returns False if it was to be created and exists by now."""
    temporary = _write_temporary(directory, name, content)
    try:
        if replaces:
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        elif not _link_if_absent(directory, temporary, name):
            return False
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
    os.fsync(directory)
    return True


def _link_if_absent(directory: int, temporary: str, name: str) -> bool:
    """Gives the temporary file its name unless the name exists: a link replaces nothing, unlike a rename."""
    try:
        os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            return True
        return False
    return True
