"""Reads Git: the commit of a project, and the files of another commit, without a checkout."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

from msgspec import Struct

from reconciler.operations.errors import UnusableBase
from reconciler.operations.opening.base_files import BaseFiles
from reconciler.operations.opening.git import Git, GitError, Worktree, find_worktree, open_git
from reconciler.operations.opening.git_objects import MissingObject, open_objects
from reconciler.project.files import Unreadable

_TIMEOUT = 60.0  # seconds for reading a commit
_MAX_NAMED = 1000
_NAME = re.compile(r"[^~^:@]+(@(?!\{)[^~^:@]*)*")  # of a ref, at the beginning of an expression such as `main~2`
_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_PLACES = ("refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}", "refs/remotes/{}/HEAD")
"""Where Git looks for a name, in its order."""
_FETCH_ALL = "fetch them with `git fetch --refetch --no-filter origin`, or clone without --filter"
_UNSHALLOW = "fetch the history with `git fetch --unshallow`, or check out with `fetch-depth: 0` (GIT_DEPTH: 0)"


def read_commit(root: Path, environ: Mapping[str, str], timeout: float) -> str:
    """The commit that is checked out at `root`; empty if there is none, or Git takes more than `timeout` seconds.

    Git is not started where it would find no repository.
    """
    try:
        worktree = find_worktree(root, environ)
        if worktree is None:
            return ""
        with open_git(worktree, environ, timeout) as git:
            return git.run("rev-parse", "HEAD").decode().strip()
    except GitError:
        return ""


class Commit(Struct, frozen=True):
    """A commit as seen from the folder of a project, which may be any folder of a repository."""

    root: Path
    environ: Mapping[str, str]
    worktree: Worktree
    ref: str
    id: str

    @classmethod
    def resolve(cls, root: Path, environ: Mapping[str, str], ref: str) -> Commit:
        """The commit that a branch, tag or expression such as `HEAD^1` names. Raises UnusableBase."""
        if ref.startswith("-") or not ref:
            raise UnusableBase(f"--base {ref!r} is not a branch, tag or commit")
        fetch = f"fetch it first, for example `git fetch origin {shlex.quote(ref.removeprefix('origin/'))}`"
        try:
            worktree = find_worktree(root, environ)
            if worktree is None:
                raise GitError("not a git repository")
            with open_git(worktree, environ, _TIMEOUT) as git:
                found = git.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
                _check_unambiguous(git, ref)
        except GitError as error:
            reason = f": {error}" if str(error) else ""
            raise UnusableBase(
                f"--base {ref}: there is no such commit in the Git repository of {root}{reason}",
                remedy=error.remedy or fetch,
            ) from error
        return cls(root, environ, worktree, ref, found.decode().strip())

    def count_missing(self) -> int:
        """How many commits of this one the commit that is checked out does not contain. Raises UnusableBase."""
        with self._open() as git:
            count = int(git.run("rev-list", "--count", f"HEAD..{self.id}"))
            if count and _is_cut_off(git, self.worktree):
                raise GitError("the history of HEAD is incomplete (shallow clone)", _UNSHALLOW)
            return count

    @contextmanager
    def files(self) -> Iterator[BaseFiles]:
        """The project's files as of this commit, in a temporary folder. Raises UnusableBase, in the block too."""
        import tempfile

        with (
            tempfile.TemporaryDirectory(prefix="reconciler-base-") as folder,
            self._open() as git,
            open_objects(git) as objects,
        ):
            try:
                yield BaseFiles(Path(folder), objects, self.id, self._find_project())
            except MissingObject as error:
                raise GitError(f"the repository does not have all files ({error})", _FETCH_ALL) from error
            except Unreadable as error:
                raise GitError(str(error), error.remedy) from error

    def find_named(self, name: str) -> list[str]:
        """The paths of the files of that name in the repository, at most a thousand, sorted. Raises UnusableBase."""
        wanted = os.fsencode(name)
        listing = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", self.id)
        with self._open() as git, closing(git.stream(*listing)) as paths:
            named = (os.fsdecode(path) for path in paths if path.rpartition(b"/")[2] == wanted)
            return sorted(islice(named, _MAX_NAMED))

    def _find_project(self) -> str:
        root, top = os.path.realpath(self.root), os.path.realpath(self.worktree.root)
        if os.path.commonpath((root, top)) != top:
            raise GitError(f"{root} is not in the work tree {top}")
        return os.path.relpath(root, top)

    @contextmanager
    def _open(self) -> Iterator[Git]:
        try:
            with open_git(self.worktree, self.environ, _TIMEOUT) as git:
                yield git
        except GitError as error:
            raise UnusableBase(f"--base {self.ref}: {error}", remedy=error.remedy) from error


def _check_unambiguous(git: Git, ref: str) -> None:
    """Raises UnusableBase if several refs have the name: Git prefers a tag `origin/main`, which a user who can push can
    create, to the branch of that name.
    """
    if (name := _NAME.match(ref)) is None or _ID.fullmatch(ref):
        return
    places = [place.format(name[0]) for place in _PLACES]
    listed = git.run("for-each-ref", "--format=%(objectname) %(refname)", *places).decode(errors="replace")
    ids = dict(line.split(" ", 1)[::-1] for line in listed.splitlines())
    found = [place for place in places if place in ids]
    if len({ids[place] for place in found}) > 1:
        whole = shlex.quote(found[-1] + ref[name.end() :])
        raise UnusableBase(
            f"--base {ref} is ambiguous: {' and '.join(found)} differ",
            remedy=f"write the whole name, such as `--base {whole}`, or delete the other one",
        )


def _is_cut_off(git: Git, worktree: Worktree) -> bool:
    """Whether the history of HEAD ends where a shallow clone cut it off."""
    if not worktree.is_shallow():
        return False
    ends = git.run("rev-list", "--max-parents=0", "HEAD").split()
    boundary = (worktree.common / "shallow").read_bytes().split()
    return not set(ends).isdisjoint(boundary)
