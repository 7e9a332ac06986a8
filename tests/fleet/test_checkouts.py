"""Checkouts of commits from real Git repositories: their files, the runs of Git and its environment, and the cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reconciler.fleet import checkouts as checkouts_module
from reconciler.fleet.checkouts import IN_USE, MAX_CHECKOUTS, _is_at, fetch_checkout
from reconciler.operations.errors import UnusableSource
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
