"""The project that a command finds: the nearest one above, within the repository and of the same user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.project.discovery import find_project
from reconciler.project.files import Unreadable


def test_a_project_at_the_root_of_the_repository_is_found(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "reconciler.yaml").touch()
    (tmp_path / "a/b").mkdir(parents=True)
    assert find_project(tmp_path / "a/b") == Path("../..")
    assert find_project(tmp_path) == Path()


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the owner of a file")
def test_a_project_of_another_user_is_used_only_if_named(tmp_path: Path) -> None:
    (tmp_path / "reconciler.yaml").touch()
    os.chown(tmp_path / "reconciler.yaml", 12345, 12345)
    (tmp_path / "a").mkdir()
    with pytest.raises(Unreadable, match="belongs to another user"):
        find_project(tmp_path / "a")
    assert find_project(tmp_path) == Path()
