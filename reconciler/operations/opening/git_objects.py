"""Reads objects of a repository one by one: only those that are asked for, and none that is larger than allowed.

A tree is not trusted: its author can have put any bytes into its names.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from msgspec import Struct

from reconciler.operations.opening.git import Git, GitError
from reconciler.project import processes

MAX_TREE: Final = 16 * 1024 * 1024  # bytes: a folder of 300,000 files
_SYMLINK = 0o120000
FOLDER: Final = 0o040000
_SUBMODULE = 0o160000
_TYPES = 0o170000


class Entry(Struct, frozen=True):
    """An entry of a folder in a commit."""

    mode: int
    id: str

    @property
    def is_folder(self) -> bool:
        return self.mode & _TYPES == FOLDER

    @property
    def is_symlink(self) -> bool:
        return self.mode & _TYPES == _SYMLINK

    @property
    def is_submodule(self) -> bool:
        return self.mode & _TYPES == _SUBMODULE


class MissingObject(GitError):
    """The repository does not have an object: it is a partial clone, or damaged."""


class Objects:
    """The objects of one repository. `open_objects` makes it."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, name: str, kind: str, limit: int) -> bytes | None:
        """The content of an object; None if it is larger than `limit` bytes.

        name  an id, or an id with `^{tree}`
        kind  `blob` or `tree`
        """
        process = self._process = self._process or self._git.start("cat-file", "--batch", errors=subprocess.DEVNULL)
        assert process.stdin is not None
        try:
            with self._git.limit(process):
                process.stdin.write(f"{name}\n".encode())
                process.stdin.flush()
                return self._parse(process, kind, limit)
        except OSError as error:
            raise GitError("git cat-file ended") from error

    def _parse(self, process: subprocess.Popen[bytes], kind: str, limit: int) -> bytes | None:
        assert process.stdout is not None
        words = process.stdout.readline(4096).decode(errors="replace").split()
        if words[-1:] == ["missing"]:
            raise MissingObject(f"the object {words[0]} is missing")
        if len(words) != 3:
            raise GitError(f"git cat-file did not finish within {self._git.timeout:g} seconds, or failed")
        if words[1] != kind:
            raise GitError(f"the object {words[0]} is a {words[1]}, not a {kind}")
        if (size := int(words[2])) > limit:
            self.close()  # instead of reading it to its end; the next call starts another process
            return None
        content = process.stdout.read(size + 1)
        if len(content) <= size:
            raise GitError("git cat-file ended")
        return content[:size]

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            processes.kill(self._process)
            with self._process, suppress(BrokenPipeError):
                pass
            self._process = None


@contextmanager
def open_objects(git: Git) -> Iterator[Objects]:
    objects = Objects(git)
    try:
        yield objects
    finally:
        objects.close()


def parse_tree(content: bytes, id_size: int) -> dict[bytes, Entry]:
    """The entries of a tree, by name. Raises GitError if it is damaged, or names an entry twice.

    id_size  20 or 32 bytes
    """
    entries: dict[bytes, Entry] = {}
    offset = 0
    while offset < len(content):
        name_start = content.find(b" ", offset) + 1
        name_end = content.find(b"\0", name_start)
        mode, name = content[offset : name_start - 1], content[name_start:name_end]
        offset = name_end + 1 + id_size
        if name_start == 0 or name_end < 0 or offset > len(content) or not mode.isdigit():
            raise GitError("a folder of the commit is damaged")
        if name in entries:
            raise GitError(f"a folder of the commit has two entries {name.decode(errors='replace')!r}")
        entries[name] = Entry(int(mode, 8), content[name_end + 1 : offset].hex())
    return entries
