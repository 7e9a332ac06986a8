"""Files that hold secrets, below the project's root.

A file is complete or not there at all, never readable by others, and never written through a symbolic link: every
directory on the way is opened from the one above it, so that nothing can be swapped in between.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from reconciler.engine.ports import Undeliverable

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST = 1 << 20  # bytes of an existing file that an entry is added to


def prove(root: Path, target: str, content: Callable[[str], str]) -> None:
    """Goes through the motions of a write and undoes them; raises Undeliverable."""
    with _place(root, target, keep=False) as (directory, name):
        _sweep(directory, name)
        content(_present(directory, name))
        os.unlink(_temporary(directory, name, b"proof"), dir_fd=directory)


def write(root: Path, target: str, content: Callable[[str], str]) -> None:
    """Writes what `content` makes of the file's present text ("" if there is none); raises Undeliverable."""
    with _place(root, target, keep=True) as (directory, name):
        _sweep(directory, name)
        _replace(directory, name, content(_present(directory, name)).encode())


@contextmanager
def _place(root: Path, target: str, *, keep: bool) -> Iterator[tuple[int, str]]:
    """The open directory of the target, and its name there."""
    directories, name = _parts(target)
    try:
        with _opened(root, directories, keep=keep) as directory:
            _check_target(directory, name)
            yield directory, name
    except Undeliverable as why:
        raise Undeliverable(f"{target}: {why}") from None
    except OSError as failure:
        raise Undeliverable(f"{target}: {failure.strerror or failure}") from None


def _present(directory: int, name: str) -> str:
    try:
        descriptor = os.open(name, _OLD, dir_fd=directory)
    except FileNotFoundError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise Undeliverable("the file is larger than a mebibyte; choose another")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise Undeliverable("the file is not UTF-8; choose another") from None


def _parts(target: str) -> tuple[list[str], str]:
    path = PurePosixPath(target)
    if path.is_absolute() or ".." in path.parts or not path.name or "\0" in target:
        raise Undeliverable(f"{target!r} does not lie below the project's root; write a path inside the project")
    return list(path.parts[:-1]), path.name


@contextmanager
def _opened(root: Path, directories: list[str], *, keep: bool) -> Iterator[int]:
    """The directory of a target. What is missing on the way is made, and stays only if it is to be kept."""
    chain = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    made: list[tuple[int, str]] = []
    try:
        for name in directories:
            try:
                os.mkdir(name, 0o700, dir_fd=chain[-1])
                made.append((chain[-1], name))
                os.fsync(chain[-1])
            except FileExistsError:
                pass
            chain.append(_enter(chain[-1], name))
        yield chain[-1]
        keep_made = keep
    except BaseException:
        keep_made = False
        raise
    finally:
        for above, name in reversed([] if keep_made else made):
            with suppress(OSError):  # somebody has put something there meanwhile
                os.rmdir(name, dir_fd=above)
        for descriptor in reversed(chain):
            os.close(descriptor)


def _enter(above: int, name: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=above)
    except NotADirectoryError:
        raise Undeliverable(f"{name} is a symbolic link or no directory; deliver into a real one") from None


def _check_target(directory: int, name: str) -> None:
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise Undeliverable("there is something that is not a plain file; remove it or choose another path")


def _sweep(directory: int, name: str) -> None:
    """Remove what a process that was killed in the middle of a write left beside the file: it may hold a secret."""
    ours = re.compile(rf"\.{re.escape(name[:200])}\.[0-9a-f]{{12}}")
    for found in os.listdir(directory):
        if ours.fullmatch(found):
            with suppress(FileNotFoundError):
                os.unlink(found, dir_fd=directory)


def _temporary(directory: int, name: str, content: bytes) -> str:
    """The name of a new file beside the target that holds the content, on disk."""
    temporary = f".{name[:200]}.{secrets.token_hex(6)}"
    descriptor = os.open(temporary, _NEW, 0o600, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(temporary, dir_fd=directory)
        raise
    return temporary


def _replace(directory: int, name: str, content: bytes) -> None:
    temporary = _temporary(directory, name, content)
    try:
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)
