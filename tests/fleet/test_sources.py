"""The repository and the commit of a fleet file, which workers of a cluster fetch."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reconciler.fleet.sources import find_repository
from reconciler.operations.errors import UnusableSource
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
