"""The commit that a run records is asked of `git`, which may be slow, broken or absent."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from reconciler.operations.opening.commits import read_commit


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def install(project: Path, script: str) -> None:
    git = project / "bin" / "git"
    git.write_text(f"#!/bin/sh\n{script}\n")
    git.chmod(0o755)


def test_a_git_that_hangs_does_not_block_the_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(project, "exec sleep 30")
    began = time.monotonic()
    assert read_commit(project, os.environ, 0.2) == ""
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("script", "commit"), [("echo 0fabc", "0fabc"), ("exit 128", ""), ("read line && echo $line || echo none", "none")]
)
def test_the_commit_is_what_git_prints(project: Path, script: str, commit: str) -> None:
    install(project, script)
    assert read_commit(project, os.environ, 5.0) == commit


def test_git_is_not_started_without_a_repository(project: Path) -> None:
    install(project, f"touch {project / 'started'}; echo 0fabc")
    (project / "inner").mkdir()
    assert read_commit(project / "inner", os.environ, 5.0) == "0fabc"
    (project / ".git").rename(project / "elsewhere")
    (project / "started").unlink()
    assert read_commit(project / "inner", os.environ, 5.0) == ""
    assert not (project / "started").exists()
    for named in ("elsewhere", str(project / "elsewhere")):
        assert read_commit(project, {**os.environ, "GIT_DIR": named}, 5.0) == "0fabc"


def test_the_commit_is_unknown_if_git_cannot_be_started(project: Path) -> None:
    install(project, "")
    (project / "bin" / "git").write_text("#!/nowhere/at/all\n")
    assert read_commit(project, os.environ, 5.0) == ""
