"""The repository and the commit of a fleet file, which workers of a cluster fetch."""

from __future__ import annotations

import os
import subprocess
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.fleet import sources
from reconciler.fleet.sources import find_repository
from reconciler.operations.errors import UnusableSource
from reconciler.operations.opening.git import GitError, Worktree
from tests.fleet.repositories import Repository


@pytest.fixture
def pushed(repository: Repository, tmp_path: Path) -> Path:
    """A clone whose commit is in a branch of its remote."""
    repository.commit("first")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", f"file://{repository.folder}", str(clone)], check=True)
    return clone


def test_workers_fetch_the_commit_of_a_clean_checkout(repository: Repository, pushed: Path, tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    found = find_repository(pushed / "fleet.yaml", "", environ)
    expected = repository.git("rev-parse", "HEAD")
    assert (found.url, found.file, found.commit) == (f"file://{repository.folder}", "fleet.yaml", expected)
    (pushed / "notes.swp").touch()
    with pytest.raises(UnusableSource, match="changes that are not committed"):
        find_repository(pushed / "fleet.yaml", "", environ)
    (tmp_path / "ignored").write_text("*.swp\n")
    (tmp_path / ".gitconfig").write_text(f"[core]\n\texcludesFile = ~/ignored\n\tfsmonitor = {tmp_path}/no-program\n")
    assert find_repository(pushed / "fleet.yaml", "", environ) == found
    (tmp_path / ".gitconfig").unlink()
    (tmp_path / ".config" / "git").mkdir(parents=True)
    (tmp_path / "ignored").rename(tmp_path / ".config" / "git" / "ignore")
    assert find_repository(pushed / "fleet.yaml", "", environ) == found
    (pushed / "fleet.yaml").write_text("changed")
    with pytest.raises(UnusableSource, match="changes that are not committed"):
        find_repository(pushed / "fleet.yaml", "", environ)


def test_a_fleet_file_outside_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableSource, match="is not in a Git repository with a commit"):
        find_repository(tmp_path / "fleet.yaml", "", os.environ)


# --- with a Git that answers


class FakeGit:
    """Git that answers each command, by its first word, or fails."""

    def __init__(self, **answers: str | None) -> None:
        usual = {"rev-parse": "c" * 40, "status": "", "branch": "origin/main", "remote": URL, "config": "/home/ignored"}
        self.answers = {**usual, **answers}
        self.commands: list[tuple[str, ...]] = []

    def run(self, *words: str) -> bytes:
        self.commands.append(words)
        answer = self.answers[words[2] if words[0] == "-c" else words[0]]
        if answer is None:
            raise GitError(f"{words[0]} failed", "try again")
        return f" {answer}\n".encode()


URL = "https://git.example.com/fleet.git"
COMMIT = "c" * 40
CHANGED = "{folder} has changes that are not committed, and the workers fetch a commit\ncommit and push them"
OUTCOMES: list[tuple[str, dict[str, str | None], str]] = [
    ("", {}, URL),
    ("", {"status": "M a"}, CHANGED),
    ("ssh://other/a.git", {"status": "M a", "branch": ""}, CHANGED),
    ("", {"branch": ""}, "commit cccccccccccc is in no branch of a remote\npush it"),
    ("ssh://other/a.git", {"branch": "", "remote": None}, "ssh://other/a.git"),
    (
        "",
        {"remote": None},
        "the repository has no remote `origin`\nname the repository that workers fetch with --repository",
    ),
    ("http://other/a.git", {}, "the address of the repository is not an https, ssh or file URL: 'http://'"),
    ("", {"remote": "http://other/a.git"}, "the address of the repository is not an https, ssh or file URL: 'http://'"),
    ("", {"rev-parse": None}, "{folder} is not in a Git repository with a commit: rev-parse failed\ntry again"),
    ("", {"status": None}, "{folder} is not in a Git repository with a commit: -c failed\ntry again"),
]


def open_fake(opened: list[tuple[Any, ...]], git: FakeGit, *words: Any) -> AbstractContextManager[FakeGit]:
    opened.append(words)
    return nullcontext(git)


def test_a_repository_is_found_or_refused_for_its_first_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "eu").mkdir()
    file, opened = tmp_path / "eu/fleet.yaml", list[tuple[Any, ...]]()
    monkeypatch.setattr(sources, "find_worktree", lambda folder, _: Worktree(tmp_path, folder, folder))
    monkeypatch.setattr(sources, "with_user", lambda git, _: git)
    for url, answers, expected in OUTCOMES:
        git = FakeGit(**answers)
        monkeypatch.setattr(sources, "open_git", partial(open_fake, opened, git))
        if "\n" in expected or " " in expected:
            with pytest.raises(UnusableSource) as refused:
                find_repository(file, url, {"A": "b"})
            assert str(refused.value) == expected.format(folder=file.parent), (url, answers)
            assert refused.value.__suppress_context__ or refused.value.__context__ is None
            continue
        found = find_repository(file, url, {"A": "b"})
        assert (found.url, found.file, found.commit) == (expected, "eu/fleet.yaml", COMMIT)
        assert git.commands[:4] == [
            ("rev-parse", "--verify", "HEAD^{commit}"),
            ("config", "--global", "--type=path", "--get", "core.excludesFile"),
            ("-c", "core.excludesFile=/home/ignored", "status", "--porcelain", "--ignore-submodules=all"),
            ("branch", "--remotes", "--contains", COMMIT),
        ]
    assert [words[1:] for words in opened] == [({"A": "b"}, 30.0)] * len(OUTCOMES)
    monkeypatch.setattr(sources, "find_worktree", lambda *_: None)
    with pytest.raises(UnusableSource) as caught:
        find_repository(file, "", {})
    assert str(caught.value) == f"{file.parent} is not in a Git repository with a commit: not a git repository"


def test_ignored_names_are_those_of_the_setting_or_of_the_usual_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "with_user", lambda git, _: git)
    files = {
        "/x/git/ignore": {"XDG_CONFIG_HOME": "/x", "HOME": "/h"},
        "/h/.config/git/ignore": {"XDG_CONFIG_HOME": "", "HOME": "/h"},
        "/.config/git/ignore": {},
    }
    for file, environ in files.items():
        assert sources._find_ignored(FakeGit(config=None), environ) == file  # type: ignore[arg-type]
        assert sources._find_ignored(FakeGit(), environ) == "/home/ignored"  # type: ignore[arg-type]
