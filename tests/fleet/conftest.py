from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.repositories import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
