"""The repository and the commit that workers of a cluster fetch, found from the fleet file of this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from reconciler.fleet.checkouts import check_source
from reconciler.operations.errors import UnusableSource
from reconciler.operations.opening.git import GitError, run_git

_TIMEOUT = 30.0  # seconds


class Repository(Struct, frozen=True):
    """A commit of a repository. `file`: the fleet file, relative to its root."""

    url: str
    file: str
    commit: str


def find_repository(file: Path, url: str, environ: Mapping[str, str]) -> Repository:
    """The commit that is checked out where a fleet file is. Raises UnusableSource if workers could not fetch the same
    files: there are changes that are not committed, or the commit was not pushed.

    url  of the repository; empty: that of the remote `origin`
    """
    folder = file.resolve().parent

    def git(*arguments: str) -> str:
        return run_git(folder, environ, _TIMEOUT, *arguments).decode().strip()

    try:
        root, commit = Path(git("rev-parse", "--show-toplevel")), git("rev-parse", "HEAD")
        changed, remote_branches = git("status", "--porcelain"), git("branch", "--remotes", "--contains", commit)
    except GitError as error:
        raise UnusableSource(f"{folder} is not in a Git repository with a commit: {error}") from None
    if changed:
        raise UnusableSource(
            f"{folder} has changes that are not committed, and the workers fetch a commit",
            remedy="commit and push them",
        )
    if not url:
        url = _find_origin(git)
        if not remote_branches:
            raise UnusableSource(f"commit {commit[:12]} is in no branch of a remote", remedy="push it")
    check_source(url)
    return Repository(url, file.resolve().relative_to(root.resolve()).as_posix(), commit)


def _find_origin(git: Callable[..., str]) -> str:
    try:
        return git("remote", "get-url", "origin")
    except GitError:
        raise UnusableSource(
            "the repository has no remote `origin`", remedy="name the repository that workers fetch with --repository"
        ) from None
