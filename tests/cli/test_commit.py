"""The commit that a run records is asked of `git`, which may be slow, broken or absent."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from reconciler.cli import session
from reconciler.project.settings import config


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> config.Config:
    (tmp_path / "reconciler.yaml").write_text("stack: shop\nplatform: {base_url: http://127.0.0.1:9, api_key: x}\n")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return config.load(tmp_path, {})


def install(project: config.Config, script: str) -> None:
    git = project.root / "bin" / "git"
    git.write_text(f"#!/bin/sh\n{script}\n")
    git.chmod(0o755)


def test_a_git_that_never_answers_does_not_hold_up_the_run(
    project: config.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_GIT_TIMEOUT", 0.2)
    install(project, "exec sleep 30")
    began = time.monotonic()
    assert session._commit(project) == ""
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("script", "commit"), [("echo 0fabc", "0fabc"), ("exit 128", ""), ("read line && echo $line || echo none", "none")]
)
def test_the_commit_is_what_git_prints(project: config.Config, script: str, commit: str) -> None:
    install(project, script)
    assert session._commit(project) == commit


def test_a_git_that_cannot_be_started_tells_no_commit(project: config.Config) -> None:
    install(project, "")
    (project.root / "bin" / "git").write_text("#!/nowhere/at/all\n")
    assert session._commit(project) == ""
