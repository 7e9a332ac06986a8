"""Checkouts of commits from real Git repositories: their files, the runs of Git and its environment, and the cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reconciler.fleet import checkouts as checkouts_module
from reconciler.fleet.checkouts import IN_USE, MAX_CHECKOUTS, _is_at, check_source, fetch_checkout, is_url
from reconciler.operations.errors import UnusableSource
from reconciler.operations.opening.git import GitError
from tests.fleet.repositories import Repository

MISSING = "0123456789abcdef0123456789abcdef01234567"


def wrap_git(folder: Path, script: str) -> dict[str, str]:
    """An environment in which Git is a script; `$GIT` is the real one."""
    real = subprocess.run(["sh", "-c", "command -v git"], check=True, capture_output=True, text=True).stdout.strip()
    folder.mkdir(exist_ok=True)
    (folder / "git").write_text(f"#!/bin/sh\nGIT={real}\n{script}\n")
    (folder / "git").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def checkouts(cache: Path) -> set[Path]:
    return {entry for entry in cache.iterdir() if not entry.name.endswith(".lock")}


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_checkout_has_the_files_of_its_commit(repository: Repository, cache: Path, prefix: str) -> None:
    first, second = repository.commit("first"), repository.commit("second")
    source = f"{prefix}{repository.folder}"
    folders = [fetch_checkout(source, commit, cache) for commit in (first, second)]
    assert [(folder / "fleet.yaml").read_text() for folder in folders] == ["first", "second"]
    assert [
        subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True).stdout
        for folder in folders
    ] == [f"{first}\n", f"{second}\n"]


def test_a_commit_outside_all_branches_is_fetched(repository: Repository, cache: Path) -> None:
    repository.commit("first")
    removed = repository.commit("second")
    repository.git("reset", "--quiet", "--hard", "HEAD^")
    assert (fetch_checkout(str(repository.folder), removed, cache) / "fleet.yaml").read_text() == "second"


def test_a_commit_is_fetched_once(repository: Repository, cache: Path) -> None:
    commit = repository.commit("first")
    folder = fetch_checkout(str(repository.folder), commit, cache)
    assert fetch_checkout(str(repository.folder), commit, cache, {"PATH": "/nowhere"}) == folder


def test_concurrent_requests_for_a_commit_fetch_it_once(repository: Repository, cache: Path, tmp_path: Path) -> None:
    commit, log = repository.commit("first"), tmp_path / "log"
    environ = wrap_git(tmp_path / "bin", f'case "$*" in *fetch*) echo fetch >>{log};; esac; exec $GIT "$@"')
    with ThreadPoolExecutor(8) as threads:
        results = [threads.submit(fetch_checkout, str(repository.folder), commit, cache, environ) for _ in range(8)]
    assert {(result.result() / "fleet.yaml").read_text() for result in results} == {"first"}
    assert log.read_text() == "fetch\n"


def test_a_lock_file_that_was_removed_is_not_that_of_its_path(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as file:
        assert _is_at(path, file.fileno())
        path.unlink()
        assert not _is_at(path, file.fileno())
        path.touch()
        assert not _is_at(path, file.fileno())


def test_the_folder_itself_is_used_without_a_commit(tmp_path: Path, cache: Path) -> None:
    assert fetch_checkout(str(tmp_path), "", cache) == tmp_path
    assert not cache.exists()


def test_a_killed_fetch_leaves_no_usable_checkout(repository: Repository, cache: Path, tmp_path: Path) -> None:
    commit = repository.commit("first")
    environ = wrap_git(
        tmp_path / "bin", f'case "$*" in *checkout*) touch {tmp_path}/started; sleep 60;; esac; $GIT "$@"'
    )
    code = "import sys; from pathlib import Path; from reconciler.fleet.checkouts import fetch_checkout as f; "
    arguments = (str(repository.folder), commit, str(cache))
    process = subprocess.Popen(
        [sys.executable, "-c", code + "f(sys.argv[1], sys.argv[2], Path(sys.argv[3]))", *arguments], env=environ
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [entry.suffix for entry in checkouts(cache)] == [".partial"]
    assert (fetch_checkout(str(repository.folder), commit, cache) / "fleet.yaml").read_text() == "first"
    assert [entry.suffix for entry in checkouts(cache)] == [""]


def test_old_checkouts_are_deleted_except_the_last_and_those_in_use(repository: Repository, cache: Path) -> None:
    cache.mkdir()
    now = time.time()
    ages = {f"{number:032x}": 60.0 * number for number in range(MAX_CHECKOUTS)}
    ages |= {f"{number:032x}": IN_USE + number for number in range(100, 105)}
    ages["f" * 32 + ".partial"] = IN_USE + 100
    for name, age in ages.items():
        (cache / name).mkdir()
        os.utime(cache / name, (now - age, now - age))
    (cache / ("e" * 32 + ".partial")).mkdir()  # of a fetch of another process
    folder = fetch_checkout(str(repository.folder), repository.commit("first"), cache)
    recent = {cache / name for name, age in ages.items() if age < IN_USE}
    assert checkouts(cache) == recent | {folder, cache / ("e" * 32 + ".partial")}


@pytest.mark.parametrize("is_asked_again", [True, False])
@pytest.mark.parametrize("others", [MAX_CHECKOUTS - 2, MAX_CHECKOUTS - 1, MAX_CHECKOUTS])
def test_a_requested_checkout_remains_whether_or_not_it_was_fetched(
    cache: Path, monkeypatch: pytest.MonkeyPatch, others: int, is_asked_again: bool
) -> None:
    """Also if it is the oldest of too many, which the next fetch of any commit removes."""
    monkeypatch.setattr(checkouts_module, "_fetch", lambda _source, _commit, folder, _environ: folder.mkdir())
    source, long_ago = "https://git.example.com/fleet.git", time.time() - 2 * IN_USE
    folder = fetch_checkout(source, "0" * 40, cache)
    for number in range(others):
        (cache / f"{number:032x}").mkdir()
        os.utime(cache / f"{number:032x}", (long_ago + 60, long_ago + 60))
    os.utime(folder, (long_ago, long_ago))
    if is_asked_again:
        assert fetch_checkout(source, "0" * 40, cache) == folder
    assert fetch_checkout(source, "1" * 40, cache).exists()
    assert folder.exists() is (is_asked_again or others + 2 <= MAX_CHECKOUTS)


def test_git_receives_credentials_and_no_other_secret(repository: Repository, cache: Path, tmp_path: Path) -> None:
    commit = repository.commit("first")
    environ = wrap_git(tmp_path / "bin", f'env >>{tmp_path}/environment; exec $GIT "$@"')
    environ |= {"RECONCILER_API_KEY": "canary", "ACCOUNT_KEY": "canary", "GIT_DIR": "/nowhere", "GIT_TRACE": "1"}
    fetch_checkout(str(repository.folder), commit, cache, {**environ, "SSH_AUTH_SOCK": "/run/agent"})
    seen = (tmp_path / "environment").read_text()
    assert "SSH_AUTH_SOCK=/run/agent" in seen
    assert "GIT_TERMINAL_PROMPT=0" in seen
    assert not [word for word in ("canary", "GIT_DIR=", "GIT_TRACE=") if word in seen]


def test_hooks_of_the_machine_are_not_run(repository: Repository, cache: Path, tmp_path: Path) -> None:
    commit, hooks = repository.commit("first"), tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (hooks / "post-checkout").chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[core]\nhooksPath = {hooks}\n")
    fetch_checkout(str(repository.folder), commit, cache, {**os.environ, "HOME": str(tmp_path)})
    assert not (tmp_path / "ran").exists()


def test_an_error_of_git_is_reported_without_secrets(repository: Repository, cache: Path, tmp_path: Path) -> None:
    commit = repository.commit("first")
    environ = wrap_git(
        tmp_path / "bin", 'case "$*" in *fetch*) echo "refused: $GIT_CONFIG_VALUE_0" >&2; exit 1;; esac; exec $GIT "$@"'
    )
    environ["GIT_CONFIG_VALUE_0"] = "Authorization: Basic Y2FuYXJ5OmNhbmFyeQ=="
    with pytest.raises(UnusableSource) as caught:
        fetch_checkout(str(repository.folder), commit, cache, environ)
    assert "refused: (secret)" in str(caught.value)
    assert checkouts(cache) == set()


def test_a_missing_commit_is_an_error(repository: Repository, cache: Path) -> None:
    repository.commit("first")
    with pytest.raises(UnusableSource, match="commit 0123456789ab cannot be fetched from /"):
        fetch_checkout(str(repository.folder), MISSING, cache)
    assert checkouts(cache) == set()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("--upload-pack=touch /tmp/x", "neither the absolute path of a folder nor"),
        ("relative/folder", "neither the absolute path"),
        ("ext::sh -c true", "neither the absolute path"),
        ("http://example.com/fleet.git", "not an https, ssh or file URL"),
        ("git://example.com/fleet.git", "not an https, ssh or file URL"),
        ("https://ci:canary@example.com/fleet.git", "contains a user or password"),
        ("https://canary@example.com/fleet.git", "contains a user or password"),
        ("ssh://git:canary@example.com/fleet.git", "contains a user or password"),
        ("ssh://-oProxyCommand=x/fleet.git", "starts with a hyphen"),
        ("https://example.com/fleet.git\n", "not an https, ssh or file URL"),
    ],
)
def test_unsafe_sources_are_refused(source: str, reason: str, cache: Path) -> None:
    with pytest.raises(UnusableSource, match=reason) as caught:
        fetch_checkout(source, MISSING, cache)
    assert "canary" not in str(caught.value)
    assert not cache.exists()


@pytest.mark.parametrize("commit", ["--all", "main", "0123abcd", MISSING.upper()])
def test_only_full_ids_of_commits_are_fetched(commit: str, tmp_path: Path, cache: Path) -> None:
    with pytest.raises(UnusableSource, match="full id of a commit"):
        fetch_checkout(str(tmp_path), commit, cache)


def test_a_remote_repository_needs_a_commit(cache: Path) -> None:
    with pytest.raises(UnusableSource, match="no commit"):
        fetch_checkout("git@example.com:fleet.git", "", cache)


def test_a_folder_with_the_files_of_a_repository_is_not_fetched_from(
    repository: Repository, cache: Path, tmp_path: Path
) -> None:
    """A change can commit such a folder, whose configuration names programs."""
    commit = repository.commit("first")
    fleet = repository.folder / "fleet"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repository.folder), str(fleet)], check=True)
    other = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-m", "other", "HEAD^{tree}"],
        cwd=fleet,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    subprocess.run(["git", "update-ref", "refs/heads/other", other], cwd=fleet, check=True)
    assert (fetch_checkout(str(fleet), commit, cache) / "fleet.yaml").read_text() == "first"
    with pytest.raises(UnusableSource, match="cannot be fetched"):
        fetch_checkout(str(fleet), other, cache)


# --- without a repository

URL, NEW = "https://git.example.com/fleet.git", "0" * 40
SOURCES = {
    "/srv/fleet": "",
    "/srv/a b": "",
    "/srv/a::b": "'/srv/a::b' is neither the absolute path of a folder nor an https, ssh or file URL",
    "srv/fleet": "'srv/fleet' is neither the absolute path of a folder nor an https, ssh or file URL",
    "git@host:-x": "'git@host:-x' is neither the absolute path of a folder nor an https, ssh or file URL",
    "git@host:fleet.git": "",
    "host:fleet.git": "",
    "git@host:a b": "the address of the repository contains white space",
    "https://host/fleet.git": "",
    "HTTPS://host/fleet.git": "",
    "https://host/a@b:c": "",
    "file:///srv/fleet": "",
    "ssh://host/fleet.git": "",
    "ssh://git@host:22/fleet.git": "",
    "https://host/a b": "the address of the repository is not an https, ssh or file URL: 'https://'",
    "http://host/fleet.git": "the address of the repository is not an https, ssh or file URL: 'http://'",
    "host:a://b": "the address of the repository is not an https, ssh or file URL: 'host:a://'",
    "ssh://git@-host/fleet.git": "the host of the repository starts with a hyphen",
    "https://ci:canary@host:8443/a@b": "the address of the repository contains a user or password, which would reach "
    "the scheduler and the store; write https://host:8443/a@b, and on the workers set a credential helper of Git or "
    "GIT_ASKPASS, or use ssh",
    "ssh://ci:canary@host/a": "the address of the repository contains a user or password, which would reach "
    "the scheduler and the store; write ssh://host/a, and on the workers set a credential helper of Git or "
    "GIT_ASKPASS, or use ssh",
    "file://ci@host/a": "the address of the repository contains a user or password, which would reach "
    "the scheduler and the store; write file://host/a, and on the workers set a credential helper of Git or "
    "GIT_ASKPASS, or use ssh",
}


def test_each_form_of_a_source_is_accepted_or_refused_with_its_reason() -> None:
    found = {}
    for source in SOURCES:
        try:
            check_source(source)
        except UnusableSource as error:
            found[source] = str(error).replace("\n", "; ")
        else:
            found[source] = ""
    assert found == SOURCES
    assert [source for source in SOURCES if not is_url(source)] == [
        "/srv/fleet",
        "/srv/a b",
        "/srv/a::b",
        "srv/fleet",
        "git@host:-x",
    ]


class FakeGit:
    """Git that notes how it is run, and fails with the error, if there is one, at a command."""

    def __init__(self, fails: str = "") -> None:
        self.fails, self.opened, self.commands = fails, list[tuple[object, ...]](), list[tuple[str, ...]]()

    def open(self, *arguments: object) -> FakeGit:
        self.opened.append(arguments)
        return self

    def run(self, *words: str) -> bytes:
        self.commands.append(words)
        if words[0] == self.fails:
            raise GitError(f"fatal:\n  {words[0]} with canary-1  refused")
        return b""


@pytest.fixture
def git(monkeypatch: pytest.MonkeyPatch) -> FakeGit:
    fake = FakeGit()
    monkeypatch.setattr(checkouts_module, "open_own_git", fake.open)
    monkeypatch.setattr(checkouts_module, "without_network", lambda git: git)
    monkeypatch.setattr(os, "sync", lambda: fake.commands.append(("sync",)))
    return fake


NEEDED = {"PATH": "/bin", "GIT_PASSWORD": "canary-1", "GIT_CONFIG_KEY_0": "a", "GIT_CONFIG_VALUE_15": "canary-2"}
OTHERS = {"GIT_CONFIG_KEY_16": "a", "GIT_CONFIG_VALUE_16": "canary-3", "KEY_ACME": "canary-4", "GIT_DIR": "/x"}


@pytest.mark.parametrize("own", [{}, {"GIT_SSH": "/bin/ssh"}, {"GIT_SSH_COMMAND": "ssh -v"}])
def test_a_fetch_runs_git_with_what_it_needs_in_a_folder_of_its_own(
    cache: Path, git: FakeGit, own: dict[str, str]
) -> None:
    for commit in (NEW, "1" * 64):
        folder = fetch_checkout(URL, commit, cache / "below", {**NEEDED, **OTHERS, **own})
        assert folder.is_dir()
        assert (folder.parent, len(folder.name), folder.suffix) == (cache / "below", 32, "")
        assert [path.stat().st_mode & 0o777 for path in (folder.parent, folder)] == [0o700] * 2
        assert git.commands == [
            ("init", "--quiet", "--template="),
            ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", URL, commit),
            ("checkout", "--quiet", "--detach", commit, "--"),
            ("sync",),
        ]
        batch = {} if "GIT_SSH" in own else {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}
        partial = folder.with_suffix(".partial")
        assert git.opened == [(partial, {**batch, **NEEDED, **own}, 300.0, ("https", "ssh", "file"))]
        assert not partial.exists()
        git.commands.clear()
        git.opened.clear()


@pytest.mark.parametrize("command", ["init", "fetch", "checkout"])
def test_a_fetch_that_fails_is_reported_in_one_line_and_leaves_nothing(
    cache: Path, git: FakeGit, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    git.fails = command
    reason = f"commit 000000000000 cannot be fetched from {URL}: fatal: {command} with (secret) refused"
    for removes in (True, False):
        if not removes:
            monkeypatch.setattr(shutil, "rmtree", fail_to_remove)
        with pytest.raises(UnusableSource) as caught:
            fetch_checkout(URL, NEW, cache, NEEDED)
        assert str(caught.value) == reason
        assert caught.value.__suppress_context__
        assert bool(checkouts(cache)) is not removes


def fail_to_remove(path: Path, ignore_errors: bool = False) -> None:
    if not ignore_errors:
        raise PermissionError(path)


def age(folder: Path, seconds: float) -> Path:
    folder.mkdir(exist_ok=True)
    os.utime(folder, (NOW - seconds, NOW - seconds))
    return folder


NOW = 2_000_000_000


@pytest.mark.parametrize("can_remove", [True, False])
def test_old_checkouts_are_removed_around_what_is_locked_in_use_or_no_checkout(
    cache: Path, monkeypatch: pytest.MonkeyPatch, can_remove: bool
) -> None:
    assert (MAX_CHECKOUTS, IN_USE) == (16, 6 * 3600)  # as documented
    cache.mkdir()
    monkeypatch.setattr(time, "time", lambda: float(NOW))
    kept = [age(cache / f"{number:032x}", IN_USE) for number in range(15)]
    just_used = age(cache / "a", IN_USE - 1)
    locked, old, older = (age(cache / name, IN_USE + extra) for name, extra in (("b", 1), ("c", 2), ("d", 3)))
    exact, partial = age(cache / "e.partial", IN_USE), age(cache / "f.partial", IN_USE - 1)
    half, again = age(cache / "c.old", IN_USE - 1), age(cache / "g.old", IN_USE + 9)
    (half / "file").touch()
    (cache / "notes").touch()
    if not can_remove:
        monkeypatch.setattr(shutil, "rmtree", fail_to_remove)
        half.joinpath("file").unlink()
    with (cache / "b.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        checkouts_module._remove_old(cache)
    names = {path.name for path in checkouts(cache)}
    stuck = set() if can_remove else {exact, again, half, cache / "d.old"}
    assert names == {path.name for path in (*kept, just_used, locked, partial, cache / "notes", *stuck)}
    assert not old.exists()
    assert not older.exists()
    assert (cache / "b.lock").exists()


def test_a_checkout_that_another_process_removed_counts_as_just_requested(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: float(NOW))
    assert checkouts_module._last_request(cache / "gone") == NOW


def test_a_lock_is_acquired_again_if_its_file_was_removed_and_its_file_remains_with_the_folder(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags, places = list[int](), [False, True, True]
    cache.mkdir()
    monkeypatch.setattr(fcntl, "flock", lambda _file, flag: flags.append(flag))
    monkeypatch.setattr(checkouts_module, "_is_at", lambda *_: places.pop(0))
    with checkouts_module._lock(cache, "a") as is_locked:
        assert is_locked
        assert places == [True]
    assert [*cache.iterdir()] == []
    (cache / "a").mkdir()
    with checkouts_module._lock(cache, "a", wait=False) as is_locked:
        assert is_locked
    assert sorted(path.name for path in cache.iterdir()) == ["a", "a.lock"]
    assert flags == [fcntl.LOCK_EX, fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB]


def test_old_checkouts_are_searched_only_after_a_new_one(
    cache: Path, git: FakeGit, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[Path] = []
    monkeypatch.setattr(checkouts_module, "_remove_old", searched.append)
    for number, commit in ((1, NEW), (1, NEW), (2, "1" * 40), (2, NEW)):
        fetch_checkout(URL, commit, cache)
        assert searched == [cache] * number
