"""Fetches the files of a commit from a Git repository, into a folder that the tasks of a machine share.

Each commit is one folder of the cache, which is renamed to its final name when it is complete. Processes lock a file
next to the folder; the kernel releases the lock when a process dies.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from reconciler.model.redaction import redact
from reconciler.operations.errors import UnusableSource
from reconciler.operations.opening.git import GitError, find_worktree, open_own_git, without_network

MAX_CHECKOUTS = 16
"""Maximum number of unused checkouts in a cache; the most recently requested ones remain."""

IN_USE = 6 * 3600.0
"""Seconds after the last request for a checkout, during which a task may use it."""

_TIMEOUT = 300.0  # seconds for a fetch
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_URL = re.compile(r"(https|ssh|file)://", re.IGNORECASE)
_SSH = re.compile(r"(?P<user>[A-Za-z0-9_.-]+@)?[A-Za-z0-9][A-Za-z0-9_.-]*:(?!:)[^-]")  # git@example.com:fleet.git
_CONTROL = re.compile(r"[\x00-\x20\x7f]")

_SECRETS = ("GIT_PASSWORD", "GIT_TOKEN", *(f"GIT_CONFIG_VALUE_{number}" for number in range(16)))
_NEEDED = (
    "PATH", "HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "TMPDIR",
    "SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND",
    "GIT_ASKPASS", "SSH_ASKPASS", "GIT_USERNAME", *_SECRETS,
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_COUNT", *(f"GIT_CONFIG_KEY_{number}" for number in range(16)),
    "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy",
    "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "GIT_ALLOW_PROTOCOL", "GIT_TERMINAL_PROMPT", "LC_ALL",
)  # fmt: skip
"""Variables that a fetch needs to authenticate (docs/fleet-cluster.md). All others may be keys of members."""

_PROTOCOLS = ("https", "ssh", "file")


def fetch_checkout(source: str, commit: str, cache: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder with the files of a commit; without a commit, the folder `source` as it is. Raises UnusableSource.

    The folder is not removed for at least `IN_USE` seconds after the call.

    source   folder of a Git repository, or URL (https, ssh, file)
    commit   full id
    cache    folder; created if it is missing
    environ  of the worker: what Git needs to authenticate
    """
    if not commit:
        if is_url(source):
            raise UnusableSource(f"{source}: the run has no commit, and files as they are exist only in a folder")
        return Path(source)
    check_source(source)
    if not _COMMIT.fullmatch(commit):
        raise UnusableSource(f"{commit!r} is not the full id of a commit")
    key = hashlib.sha256(f"{source}\0{commit}".encode()).hexdigest()[:32]
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = cache / key
    with _lock(cache, key):
        if is_new := not folder.exists():
            _fetch(source, commit, folder, environ)
        os.utime(folder)
    if is_new:
        _remove_old(cache)
    return folder


def is_url(source: str) -> bool:
    """Whether the source of a run is a URL, not a folder."""
    return bool(_URL.match(source) or _SSH.match(source) or "://" in source)


def check_source(source: str) -> None:
    """Raises UnusableSource if a source contains a password, is an option of Git, or needs an unsafe transport."""
    if not is_url(source):
        if "::" in source or not Path(source).is_absolute():
            raise UnusableSource(f"{source!r} is neither the absolute path of a folder nor an https, ssh or file URL")
        return
    if _SSH.match(source) and "://" not in source:
        if _CONTROL.search(source):
            raise UnusableSource("the address of the repository contains white space")
        return
    parts = urlsplit(source)
    if not _URL.match(source) or _CONTROL.search(source):
        scheme = f"{source.partition('://')[0]}://"
        raise UnusableSource(f"the address of the repository is not an https, ssh or file URL: {scheme!r}")
    if "@" in parts.netloc and (parts.scheme != "ssh" or ":" in parts.netloc.rpartition("@")[0]):
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        raise UnusableSource(
            "the address of the repository contains a user or password, which would reach the scheduler and the store",
            remedy=f"write {where}, and on the workers set a credential helper of Git or GIT_ASKPASS, or use ssh",
        )
    if (parts.hostname or "").startswith("-"):
        raise UnusableSource("the host of the repository starts with a hyphen")


def _fetch(source: str, commit: str, folder: Path, environ: Mapping[str, str]) -> None:
    """Fetches one commit into a new folder. The caller has locked it."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
    partial.mkdir(mode=0o700)
    try:
        git = open_own_git(partial, _variables(environ), _TIMEOUT, _PROTOCOLS)
        without_network(git).run("init", "--quiet", "--template=")
        git.run("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", _locate(source), commit)
        without_network(git).run("checkout", "--quiet", "--detach", commit, "--")
    except GitError as error:
        shutil.rmtree(partial, ignore_errors=True)
        secrets = [environ[name] for name in _SECRETS if environ.get(name)]
        reason = redact(" ".join(str(error).split()), secrets)
        raise UnusableSource(f"commit {commit[:12]} cannot be fetched from {source}: {reason}") from None
    os.sync()  # after a power failure the folder must not have empty files
    partial.rename(folder)


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a worker's environment that a fetch receives. Git does not prompt."""
    needed = {name: environ[name] for name in _NEEDED if name in environ}
    return needed if "GIT_SSH" in needed else {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes", **needed}


def _locate(source: str) -> str:
    """A URL unchanged; for a folder its repository, since Git would also use a folder with the files of one."""
    worktree = None if is_url(source) else find_worktree(Path(source), {})
    return source if worktree is None else str(worktree.own)


def _remove_old(cache: Path) -> None:
    """Removes old checkouts and the remains of killed processes. Never removes a checkout that a task may use."""
    folders = sorted(
        (entry for entry in cache.iterdir() if entry.is_dir() and not entry.suffix), key=_last_request, reverse=True
    )
    for folder in [*folders[MAX_CHECKOUTS:], *cache.glob("*.partial"), *cache.glob("*.old")]:
        with _lock(cache, folder.stem, wait=False) as is_locked:
            if not is_locked or time.time() - _last_request(folder) < IN_USE:
                continue
            old = folder.with_suffix(".old")
            if not folder.suffix:
                shutil.rmtree(old, ignore_errors=True)
                folder.rename(old)
            shutil.rmtree(folder if folder.suffix else old, ignore_errors=True)


def _last_request(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return time.time()


@contextmanager
def _lock(cache: Path, key: str, *, wait: bool = True) -> Iterator[bool]:
    """Locks one folder of the cache; with `wait=False`, yields False if another process has locked it."""
    path = cache / f"{key}.lock"
    while True:
        with path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            if not _is_at(path, file.fileno()):
                continue  # removed while this process waited
            yield True
            if not (cache / key).exists():
                path.unlink()
            return


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
