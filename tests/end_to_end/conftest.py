from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reconciler.api.clock import MachineClock
from tests.harness.platform import Sandbox
from tests.harness.project import Project


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Project:
    """The stack `prod`, which declares nothing yet and knows no platform."""
    root = tmp_path / "project"
    made = Project(root, capsys)
    made.write("reconciler.yaml", "version: 1\nstack: prod\nlimits: {requests_per_minute: 100000, settle_seconds: 0}\n")
    (root / "manifests").mkdir()
    return made


@pytest.fixture
def on_sandbox(project: Project, sandbox: Sandbox) -> Project:
    """The project, with the shared sandbox as its platform."""
    project.use(sandbox)
    return project


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come at once."""
    monkeypatch.setattr(MachineClock, "sleep", lambda _clock, _seconds: asyncio.sleep(0))
