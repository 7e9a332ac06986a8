"""Reads Git: the commit of a project, and the files of another commit, without a checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from reconciler.operations.errors import UnusableBase
from reconciler.operations.opening.git import GitError, run_git

_TREE_TIMEOUT = 60.0  # seconds for reading a whole tree
_MAX_FILE = 8 * 1024 * 1024  # bytes; no larger file is read from a project
_SYMLINK = "120000"
_FILES = ("100644", "100755", _SYMLINK)


def read_commit(root: Path, environ: Mapping[str, str], timeout: float) -> str:
    """The commit that is checked out at `root`; empty if there is none, or Git takes more than `timeout` seconds.

    Git is not started where it would find no repository.
    """
    if "GIT_DIR" not in environ and not _is_in_repository(root):
        return ""
    try:
        return run_git(root, environ, timeout, "rev-parse", "HEAD").decode().strip()
    except GitError:
        return ""


def _is_in_repository(root: Path) -> bool:
    """Whether the folder or one above it has an entry `.git`, or may have one that cannot be seen."""
    folder = root.resolve()
    try:
        return any((parent / ".git").exists() for parent in (folder, *folder.parents))
    except OSError:
        return True


class Commit(Struct, frozen=True):
    """A commit as seen from the folder of a project, which may be any folder of a repository."""

    root: Path
    environ: Mapping[str, str]
    ref: str
    id: str

    @classmethod
    def resolve(cls, root: Path, environ: Mapping[str, str], ref: str) -> Commit:
        """The commit that a branch, tag or expression such as `HEAD^1` names. Raises UnusableBase."""
        if ref.startswith("-") or not ref:
            raise UnusableBase(f"--base {ref!r} is not a branch, tag or commit")
        try:
            found = run_git(root, environ, _TREE_TIMEOUT, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        except GitError as error:
            reason = f": {error}" if str(error) else ""
            raise UnusableBase(
                f"--base {ref}: there is no such commit in the Git repository of {root}{reason}",
                remedy=f"fetch it first, for example `git fetch origin {ref.removeprefix('origin/')}`",
            ) from error
        return cls(root, environ, ref, found.decode().strip())

    def count_missing(self) -> int:
        """How many commits of this one the commit that is checked out does not contain."""
        return int(self._run("rev-list", "--count", f"HEAD..{self.id}"))

    def write_files(self, folder: Path) -> None:
        """Writes the project's files as of this commit into an empty folder. Raises UnusableBase."""
        entries = list(self._list_files())
        contents = self._run("cat-file", "--batch", input="".join(f"{entry.blob}\n" for entry in entries).encode())
        offset = 0
        for entry in entries:
            header_end = contents.index(b"\n", offset)
            size = int(contents[offset:header_end].rsplit(b" ", 1)[1])
            content = contents[header_end + 1 : header_end + 1 + size]
            offset = header_end + size + 2
            file = folder / entry.path
            file.parent.mkdir(parents=True, exist_ok=True)
            if entry.mode == _SYMLINK:
                file.symlink_to(os.fsdecode(content))
            else:
                file.write_bytes(content)

    def _list_files(self) -> Iterator[_Entry]:
        for line in self._run("ls-tree", "-r", "-l", "-z", self.id).split(b"\0"):
            if line:
                attributes, _, path = line.partition(b"\t")
                mode, _, blob, size = attributes.decode().split()
                if mode in _FILES and int(size) <= _MAX_FILE:
                    yield _Entry(os.fsdecode(path), mode, blob)

    def _run(self, *arguments: str, input: bytes | None = None) -> bytes:
        try:
            return run_git(self.root, self.environ, _TREE_TIMEOUT, *arguments, input=input)
        except GitError as error:
            raise UnusableBase(f"--base {self.ref}: git {arguments[0]} failed: {error}") from error


class _Entry(Struct, frozen=True):
    path: str  # relative to the project's folder
    mode: str
    blob: str
