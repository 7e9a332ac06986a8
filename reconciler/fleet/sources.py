"""Finds the repository and the commit that workers of a cluster fetch, from the fleet file of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from reconciler.fleet.checkouts import check_source
from reconciler.operations.errors import UnusableSource
from reconciler.operations.opening.git import Git, GitError, find_worktree, open_git, with_user

_TIMEOUT = 30.0  # seconds
_STATUS = ("status", "--porcelain", "--ignore-submodules=all")  # workers fetch no submodules


class Repository(Struct, frozen=True):
    """A commit of a repository. `file`: the fleet file, relative to its root."""

    url: str
    file: str
    commit: str


def find_repository(file: Path, url: str, environ: Mapping[str, str]) -> Repository:
    """The checked-out commit of a fleet file's repository. Raises UnusableSource if workers could not fetch the same
    files: there are uncommitted changes, or the commit was not pushed.

    url  of the repository; empty: that of the remote `origin`
    """
    folder = file.resolve().parent
    try:
        worktree = find_worktree(folder, environ)
        if worktree is None:
            raise GitError("not a git repository")
        with open_git(worktree, environ, _TIMEOUT) as git:
            return _find_commit(git, worktree.root, file, url, environ)
    except GitError as error:
        raise UnusableSource(
            f"{folder} is not in a Git repository with a commit: {error}", remedy=error.remedy
        ) from None


def _find_commit(git: Git, root: Path, file: Path, url: str, environ: Mapping[str, str]) -> Repository:
    def read(*arguments: str) -> str:
        return git.run(*arguments).decode(errors="replace").strip()

    commit = read("rev-parse", "--verify", "HEAD^{commit}")
    ignored = f"core.excludesFile={_find_ignored(git, environ)}"
    changed, remote_branches = read("-c", ignored, *_STATUS), read("branch", "--remotes", "--contains", commit)
    if changed:
        raise UnusableSource(
            f"{file.parent} has changes that are not committed, and the workers fetch a commit",
            remedy="commit and push them",
        )
    if not url:
        url = _find_origin(git)
        if not remote_branches:
            raise UnusableSource(f"commit {commit[:12]} is in no branch of a remote", remedy="push it")
    check_source(url)
    return Repository(url, file.resolve().relative_to(root.resolve()).as_posix(), commit)


def _find_ignored(git: Git, environ: Mapping[str, str]) -> str:
    """The file of a user with names that Git ignores, for example those of an editor."""
    try:
        command = ("config", "--global", "--type=path", "--get", "core.excludesFile")
        return with_user(git, environ).run(*command).decode(errors="surrogateescape").strip()
    except GitError:
        folder = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config"
        return f"{folder}/git/ignore"


def _find_origin(git: Git) -> str:
    try:
        return git.run("remote", "get-url", "origin").decode(errors="replace").strip()
    except GitError:
        raise UnusableSource(
            "the repository has no remote `origin`", remedy="name the repository that workers fetch with --repository"
        ) from None
