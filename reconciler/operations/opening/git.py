"""Runs Git on a repository that this program found, and on no other.

Git itself would take a committed folder with `HEAD`, `config`, `objects` and `refs` for a repository and obey its
`config`, which can name programs. Here Git gets a folder of its own as the repository: a *view*, whose configuration
has only settings that start no program, and which leads to the refs and objects of the repository that was found.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from reconciler.project import named_files
from reconciler.project.files import Unreadable
from reconciler.project.processes import kill, start_program

_SAFE = (
    "safe.bareRepository=explicit",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.pager=cat",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
"""Settings of every call. They take precedence over those of a repository and of a user."""

_OFFLINE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ALLOW_PROTOCOL": "",  # none
}
_ALWAYS = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}

_KEPT = re.compile(
    r"extensions\.(objectformat|refstorage)"
    r"|core\.(repositoryformatversion|filemode|ignorecase|symlinks|precomposeunicode|autocrlf|eol)"
    r"|remote\.(?P<remote>.+)\.(url|fetch)|branch\.(?P<branch>.+)\.(remote|merge)",
    re.DOTALL,
)
"""Settings of a repository that its view has too. None of them names a program or a file."""

_COPIED = ("HEAD", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD")
_LINKED = ("refs", "packed-refs", "reftable", "shallow")
_CHUNK = 64 * 1024  # bytes
_MAX_SMALL = 1024 * 1024  # bytes of `HEAD`, `FETCH_HEAD`, or a file `.git`
_kept: dict[tuple[str, bytes], bytes] = {}
"""The settings in `_KEPT`, by program and digest of the text of a `config`: a command opens its repository several
times, and asks Git for the settings once. A few hundred bytes for each repository."""


class GitError(Exception):
    """What Git printed, or why it did not run; `remedy`: what to do."""

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.remedy = remedy


class Worktree(Struct, frozen=True):
    """A work tree and its repository.

    root    the folder with the entry `.git`
    own     the repository's folder for this work tree: `HEAD` and the index
    common  the folder with refs and objects
    """

    root: Path
    own: Path
    common: Path

    def is_shallow(self) -> bool:
        return (self.common / "shallow").exists()


def find_worktree(folder: Path, environ: Mapping[str, str]) -> Worktree | None:
    """The work tree that contains a folder; None if there is none. Raises GitError if it cannot be used.

    Only an entry `.git` of the folder or one above it counts, which Git never checks out of a commit, and the variable
    GIT_DIR.
    """
    start = Path(os.path.realpath(folder))
    top = next((above for above in (start, *start.parents) if os.path.lexists(above / ".git")), None)
    named = environ.get("GIT_DIR")
    if named and _is_repository(start / named):
        own = start / named
        root = Path(environ.get("GIT_WORK_TREE") or top or start)
        return Worktree(root, own, _find_common(own))
    if top is None:
        return None
    own = _follow_file(top / ".git")
    _check_owner(start, top / ".git", own)
    if not _is_repository(own):
        raise GitError(f"{top / '.git'} is not a Git repository")
    return Worktree(top, own, _find_common(own))


def _follow_file(entry: Path) -> Path:
    """The folder that `.git` is, or that a file `.git` names: of a linked work tree, or of a submodule."""
    if entry.is_dir():
        return entry
    text = _read_small(entry).decode(errors="surrogateescape")
    if not text.startswith("gitdir:"):
        raise GitError(f"{entry} is neither a folder nor a file that begins with `gitdir:`")
    return entry.parent / text.removeprefix("gitdir:").strip()


def _check_owner(start: Path, *entries: Path) -> None:
    """Refuses the repository of another user, for example `/tmp/.git`. One in a folder of the same owner is trusted."""
    try:
        trusted = {0, os.geteuid(), start.stat().st_uid}
        strange = next((entry for entry in entries if entry.lstat().st_uid not in trusted), None)
    except OSError as error:
        raise GitError(f"{error.filename}: {str(error.strerror).lower()}") from error
    if strange is not None:
        raise GitError(
            f"the repository {strange} belongs to another user than {start}",
            f"give both to one user with chown, or set GIT_DIR={shlex.quote(str(strange))} to use it",
        )


def _is_repository(own: Path) -> bool:
    return os.path.lexists(own / "HEAD")


def _find_common(own: Path) -> Path:
    try:
        named = _read_small(own / "commondir").decode(errors="surrogateescape").strip()
    except GitError:
        return own
    return Path(os.path.realpath(own / named))


def _read_small(file: Path) -> bytes:
    try:
        return named_files.read_bytes(file, _MAX_SMALL)
    except Unreadable as error:
        raise GitError(str(error)) from error
    except OSError as error:
        raise GitError(f"{file}: {str(error.strerror).lower()}") from error


class Git(Struct, frozen=True):
    """Git with the repository that it works on.

    git_dir   the repository
    folder    in which commands run
    environ   the whole environment of Git
    deadline  as of `time.monotonic`
    timeout   the same as seconds since the start, for messages
    """

    git_dir: Path
    folder: Path
    environ: Mapping[str, str]
    deadline: float
    timeout: float

    def run(self, *arguments: str, input: bytes = b"") -> bytes:
        """What a command prints. Raises GitError."""
        with self.start(*arguments) as process:
            try:
                printed, errors = process.communicate(input, timeout=max(0.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired as error:
                kill(process)
                raise GitError(f"git did not finish within {self.timeout:g} seconds") from error
        if process.returncode != 0:
            raise GitError(errors.decode(errors="replace").strip())
        return printed

    def stream(self, *arguments: str) -> Generator[bytes, None, None]:
        """What a command prints between NULs, one after the other: it may be more than fits in memory.

        Raises GitError.
        """
        with self.start(*arguments, errors=subprocess.DEVNULL) as process, self.limit(process):
            assert process.stdout is not None
            try:
                rest = b""
                while chunk := process.stdout.read(_CHUNK):
                    *parts, rest = (rest + chunk).split(b"\0")
                    yield from parts
            except GeneratorExit:
                kill(process)
                raise
        if process.returncode != 0:
            raise GitError(f"git {arguments[0]} did not finish within {self.timeout:g} seconds, or failed")

    @contextmanager
    def limit(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Kills a process if the block takes longer than until the deadline."""
        timer = threading.Timer(max(0.0, self.deadline - time.monotonic()), kill, (process,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def start(self, *arguments: str, errors: IO[bytes] | int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        """Starts a command. The only place that starts Git. Raises GitError."""
        settings = [part for setting in _SAFE for part in ("-c", setting)]
        command = [_find_git(self.environ), f"--git-dir={self.git_dir}", "--no-pager", *settings, *arguments]
        try:
            return start_program(command, self.environ, self.folder, errors)
        except OSError as error:
            raise GitError(str(error)) from error


def _find_git(environ: Mapping[str, str]) -> str:
    """The program. A relative entry of PATH does not count: it could be a folder of the project."""
    folders = [entry for entry in environ.get("PATH", os.defpath).split(os.pathsep) if entry.startswith("/")]
    git = shutil.which("git", path=os.pathsep.join(folders))
    if git is None:
        raise GitError("git is not installed")
    return git


@contextmanager
def open_git(worktree: Worktree, environ: Mapping[str, str], timeout: float) -> Iterator[Git]:
    """Git on a view of a repository: without network, programs, and the user's settings. Raises GitError.

    timeout  seconds until commands are killed
    """
    deadline = time.monotonic() + timeout
    with tempfile.TemporaryDirectory(prefix="reconciler-git-") as folder:
        view = Path(folder)
        git = Git(view, view, _offline_environment(worktree, environ), deadline, timeout)
        _write_view(view, worktree, git)
        yield git


def open_own_git(folder: Path, environ: Mapping[str, str], timeout: float, protocols: Sequence[str]) -> Git:
    """Git on the repository `folder/.git` of this program's own, with a network.

    environ    all variables that Git may know
    protocols  for transfers
    """
    allowed = {**environ, **_ALWAYS, "GIT_ALLOW_PROTOCOL": ":".join(protocols), "GIT_WORK_TREE": str(folder)}
    return Git(folder / ".git", folder, allowed, time.monotonic() + timeout, timeout)


def with_user(git: Git, environ: Mapping[str, str]) -> Git:
    """The same repository with the settings of the user, for reading these only: they can name programs."""
    names = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")
    offline = {name: value for name, value in git.environ.items() if name != "GIT_CONFIG_GLOBAL"}
    return replace(git, environ={**offline, **{name: environ[name] for name in names if name in environ}})


def without_network(git: Git) -> Git:
    """The same repository without network, and without settings of the user, which can name programs."""
    kept = {"GIT_WORK_TREE": git.environ["GIT_WORK_TREE"]}
    return replace(git, environ={**_path_of(git.environ), **_ALWAYS, **_OFFLINE, **kept})


def _path_of(environ: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": environ["PATH"]} if "PATH" in environ else {}


def _offline_environment(worktree: Worktree, environ: Mapping[str, str]) -> dict[str, str]:
    return {
        **_path_of(environ),
        **_ALWAYS,
        **_OFFLINE,
        "GIT_OBJECT_DIRECTORY": str(worktree.common / "objects"),
        "GIT_INDEX_FILE": str(worktree.own / "index"),
        "GIT_WORK_TREE": str(worktree.root),
    }


def _write_view(view: Path, worktree: Worktree, git: Git) -> None:
    try:
        (view / "config").write_bytes(b"[core]\n\trepositoryformatversion = 0\n")
        for name in _COPIED:
            _copy_reference(worktree.own / name, view / name)
        for name in _LINKED:
            if (target := worktree.common / name).exists():
                (view / name).symlink_to(target)
        (view / "refs").mkdir(exist_ok=True)
        _link_beside_index(view, worktree)
    except OSError as error:
        raise GitError(f"{error.filename}: {str(error.strerror).lower()}") from error
    (view / "config").write_bytes(_read_settings(git, worktree))


def _copy_reference(source: Path, copy: Path) -> None:
    if source.is_symlink():
        copy.write_bytes(b"ref: " + os.fsencode(source.readlink()) + b"\n")  # as old versions of Git wrote HEAD
    elif source.exists():
        copy.write_bytes(_read_small(source))


def _link_beside_index(view: Path, worktree: Worktree) -> None:
    for shared in worktree.own.glob("sharedindex.*"):
        (view / shared.name).symlink_to(shared)
    if (exclude := worktree.common / "info" / "exclude").exists():
        (view / "info").mkdir()
        (view / "info" / "exclude").symlink_to(exclude)


def _read_settings(git: Git, worktree: Worktree) -> bytes:
    """The text of a configuration with those settings of the repository that are in `_KEPT`. Files that it includes are
    not read."""
    config = worktree.common / "config"
    if not config.exists():
        return b""
    text = _read_small(config)
    key = _find_git(git.environ), hashlib.sha256(text).digest()  # the text may have a token
    kept = _kept.get(key)
    if kept is None:
        listed = git.run("config", "--file=-", "--no-includes", "--null", "--list", input=text)
        _kept[key] = kept = _keep_settings(listed)
    return kept


def _keep_settings(listed: bytes) -> bytes:
    """The text of a configuration with the settings in `_KEPT`."""
    lines = []
    for entry in listed.decode(errors="surrogateescape").split("\0"):
        key, has_value, value = entry.partition("\n")
        if not has_value or not _KEPT.fullmatch(key):
            continue
        section, _, name = key.rpartition(".")
        section, _, part = section.partition(".")
        lines.append(f"[{section} {_quote(part)}]" if part else f"[{section}]")
        lines.append(f"\t{name} = {_quote(value)}")
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")


def _quote(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
