"""Reads and finds files below the project's root, and no others.

Refuses paths that leave the root by `..` or by a symlink, and everything but regular files. Each folder is opened from
the one above without following symlinks, so that a symlink cannot be swapped in between check and read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from reconciler.model.problem import ReconcilerError, cut

MANIFESTS: Final = (".yaml", ".yml")
_LONGEST: Final = 4096  # characters of a path: the limit of Linux


class Unreadable(ReconcilerError):
    """Why a file cannot be read, and what to do; `code` as of a Problem."""

    def __init__(self, text: str, remedy: str = "", code: str = "unreadable-file") -> None:
        super().__init__(text)
        self.remedy = remedy
        self.code = code


def path_inside(path: str) -> str:
    """Normalizes a path relative to the project's root. Raises Unreadable if it leaves the root."""
    if "\0" in path or not path:
        raise Unreadable("not a path", "write a path below the project's root", code="path-outside-project")
    if len(path) > _LONGEST:
        raise Unreadable(f"{cut(path)} is too long for a path", "use a shorter path")
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


def read(root: Path, path: str, limit: int, within: Path | None = None) -> bytes:
    """Reads a regular file below the root. Raises Unreadable for anything else, and for more than `limit` bytes.

    within  a folder above the root in which the file may be, too: the Git repository
    """
    start, home = os.path.realpath(root), os.path.realpath(within or root)
    try:
        real = os.path.realpath(os.path.join(start, path))  # noqa: PTH118 - unlike resolve(), it accepts a circular symlink
        if os.path.commonpath((home, real)) != home:
            place, what = ("project", "a symlink to a place") if within is None else ("Git repository", "")
            raise Unreadable(
                f"{cut(path)} is {what} outside the {place}".replace("  ", " "),
                f"copy the file into the {place.removeprefix('Git ')}",
                code="path-outside-project",
            )
        if real == home:
            raise Unreadable(f"{cut(path)} is not a regular file", "name a file")
        handle = _open(home, os.path.relpath(real, home))
    except FileNotFoundError:
        raise Unreadable(f"there is no file {cut(path)}", "paths are relative to the project's root") from None
    except OSError as error:
        raise Unreadable(f"{cut(path)} cannot be read: {str(error.strerror).lower()}", "") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Unreadable(f"{cut(path)} is not a regular file", "name a file")
    with os.fdopen(handle, "rb") as file:
        text = file.read(limit + 1)
    if len(text) > limit:
        raise Unreadable(f"{cut(path)} is larger than {format_size(limit)}", "use a smaller file")
    return text


def _open(home: str, path: str) -> int:
    """Opens the file, each folder on the way from the one above without following a symlink. Returns a descriptor."""
    *folders, name = PurePosixPath(path).parts
    here = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        # Without O_NONBLOCK a FIFO without a writer would block forever.
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def refuse_symlink(root: Path, path: str) -> None:
    """Raises Unreadable if a symlink on the way leads a file written to the path elsewhere."""
    home = os.path.realpath(root)
    if os.path.realpath(root / path) != os.path.normpath(f"{home}/{path}"):
        raise Unreadable(
            f"{cut(path)} leads through a symlink", "use a folder that is not a symlink", code="path-outside-project"
        )


def find_manifests(root: Path, path: str) -> Iterator[str]:
    """Finds manifest files at or below a path, relative to the root. Skips hidden files and folders.

    Raises Unreadable if a folder cannot be listed, or the name of a manifest is not UTF-8.
    """
    if not os.path.isdir(root / path):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        yield _check_encoding(path)
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
                # A skipped manifest would count as no longer declared, and its object would be deleted.
                raise Unreadable(f"{here / name} is a symlink to a folder", "list its target under manifests: instead")
        for name in names:
            if name.endswith(MANIFESTS) and not name.startswith("."):
                yield _check_encoding(os.path.normpath(here / name))


def _check_encoding(path: str) -> str:
    """The path. Raises Unreadable if it is not UTF-8: positions, plans and owner records are."""
    if path.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in path):
        return path
    text = os.fsencode(path).decode(errors="backslashreplace")
    raise Unreadable(f"the file name {cut(text)} is not UTF-8", "rename the file or folder", code="invalid-encoding")


def _raise_unlistable(error: OSError) -> None:
    raise Unreadable(f"{error.filename} cannot be listed: {str(error.strerror).lower()}", "make it readable")


def format_size(limit: int) -> str:
    """`5 MiB`"""
    for unit, name in ((2**20, "MiB"), (2**10, "KiB")):
        if limit >= unit:
            return f"{limit // unit} {name}"
    return f"{limit} bytes"
