"""Reads files below the project's root, and nothing else.

A path that leads out of the root, by `..` or by a symlink, is refused; so is what is not a regular file. Between the
check and the reading nobody can slip a symlink in: each folder is opened from the one above, following none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from reconciler.model.problem import cut

MANIFESTS: Final = (".yaml", ".yml")


class Unreadable(Exception):
    """Why a file cannot be read, and what to do; `code` as of a Problem."""

    def __init__(self, text: str, remedy: str = "", code: str = "unreadable-file") -> None:
        super().__init__(text)
        self.remedy = remedy
        self.code = code


def path_inside(path: str) -> str:
    """The path in its shortest form, relative to the project's root. Unreadable if it leads out."""
    if "\0" in path or not path:
        raise Unreadable("not a path", "write a path below the project's root", code="path-outside-project")
    if PurePosixPath(path).is_absolute() or path.startswith("~"):
        raise Unreadable(
            f"{cut(path)} is not a relative path",
            "only paths below the project's root are allowed",
            code="path-outside-project",
        )
    if ".." in PurePosixPath(path).parts:
        raise Unreadable(
            f"{cut(path)} contains '..'", "only paths below the project's root are allowed", code="path-outside-project"
        )
    return os.path.normpath(path)


def read(root: Path, path: str, limit: int) -> bytes:
    """The bytes of a regular file below the root; Unreadable for anything else and for more than `limit` bytes."""
    home = os.path.realpath(root)
    try:
        real = os.path.realpath(os.path.join(home, path))  # noqa: PTH118 - unlike resolve(), it follows a ring to itself
        if os.path.commonpath((home, real)) != home:
            raise Unreadable(
                f"{cut(path)} is a symlink to a place outside the project",
                "copy the file into the project",
                code="path-outside-project",
            )
        if real == home:
            raise Unreadable(f"{cut(path)} is not a regular file", "name a file")
        handle = _open(home, os.path.relpath(real, home))
    except FileNotFoundError:
        raise Unreadable(f"there is no file {cut(path)}", "paths are relative to the project's root") from None
    except OSError as error:
        raise Unreadable(f"{cut(path)} cannot be read: {(error.strerror or 'unknown').lower()}", "") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Unreadable(f"{cut(path)} is not a regular file", "name a file")
    with os.fdopen(handle, "rb") as file:
        text = file.read(limit + 1)
    if len(text) > limit:
        raise Unreadable(f"{cut(path)} is larger than {_size(limit)}", "use a smaller file")
    return text


def _open(home: str, path: str) -> int:
    """A descriptor of the file, each folder on the way opened from the one above without following a symlink."""
    *folders, name = PurePosixPath(path).parts
    here = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        # Without O_NONBLOCK a FIFO that nobody writes to would hold us for ever.
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def refuse_symlink(root: Path, path: str) -> None:
    """Unreadable if a file written to the path would end up elsewhere, by a symlink on the way."""
    home = os.path.realpath(root)
    if os.path.realpath(root / path) != os.path.normpath(f"{home}/{path}"):
        raise Unreadable(
            f"{cut(path)} leads through a symlink", "use a folder that is not a symlink", code="path-outside-project"
        )


def find_manifests(root: Path, path: str) -> Iterator[str]:
    """The manifest files at or below a path, relative to the root; hidden files and folders are skipped.

    Unreadable if a folder cannot be looked into.
    """
    if not os.path.isdir(root / path):  # noqa: PTH112 - of a name that is too long the method of a path raises
        yield path
        return
    home = os.path.realpath(root)
    if os.path.commonpath((home, os.path.realpath(root / path))) != home:
        raise Unreadable(
            f"{cut(path)} is a symlink to a place outside the project",
            "copy the folder into the project",
            code="path-outside-project",
        )
    for folder, folders, names in os.walk(root / path, onerror=_raise_unlistable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = Path(folder).relative_to(root)
        for name in folders:
            if Path(folder, name).is_symlink():
                # What is passed over in silence counts as no longer declared, and is deleted.
                raise Unreadable(f"{here / name} is a symlink to a folder", "list its target under manifests: instead")
        for name in names:
            if name.endswith(MANIFESTS) and not name.startswith("."):
                yield os.path.normpath(here / name)


def _raise_unlistable(error: OSError) -> None:
    raise Unreadable(f"{error.filename} cannot be listed: {(error.strerror or 'unknown').lower()}", "make it readable")


def _size(limit: int) -> str:
    return f"{limit // 1024 // 1024} MiB" if limit >= 1024 * 1024 else f"{limit // 1024} KiB"
