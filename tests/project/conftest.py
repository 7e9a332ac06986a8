"""The fixture of a project on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.texts import ProjectFolder


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    """A project with one manifest, `tests.project.texts.POLICY`."""
    return ProjectFolder(tmp_path)
