"""The project that a command finds: the nearest one above, within the repository and of the same user."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from reconciler.project import discovery
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


def test_the_nearest_file_within_the_repository_is_found(tmp_path: Path) -> None:
    for name in ("reconciler.yaml", "a/reconciler.yaml", "a/b/c/x", "r/.git/x", "r/s/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert discovery.find_project(tmp_path / "a/b/c") == Path("../..")
    assert discovery.find_project(tmp_path / "a") == Path()
    assert discovery.find_folder(tmp_path / "a/b/c", "x", "--file") == Path()
    assert discovery.find_project(tmp_path / "r/s") == Path()  # the start itself: there is none within the repository
    assert discovery.find_folder(tmp_path / "r/s", "reconciler.yaml", "--project") is None
    (tmp_path / "r/reconciler.yaml").symlink_to("nowhere")
    assert discovery.find_project(tmp_path / "r/s") == Path("..")


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the owner of a file")
def test_a_file_of_another_user_is_refused_with_the_option_that_uses_it(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name, option, place in (
        ("reconciler.yaml", "--project", tmp_path),
        ("fleet.yaml", "--file", tmp_path / "fleet.yaml"),
        ("shops.yaml", "--file", tmp_path / "shops.yaml"),
    ):
        (tmp_path / name).touch()
        os.chown(tmp_path / name, 12345, 12345)
        with pytest.raises(Unreadable, match=f"^{tmp_path / name} belongs to another user$") as refused:
            discovery.find_folder(tmp_path / "below", name, option)
        assert refused.value.remedy == f"pass {option} {place} to use it"


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the owner of a file")
def test_a_file_of_the_administrator_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reconciler.yaml").touch()
    (tmp_path / "below").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    for owner, is_used in ((0, True), (12345, True), (1, False), (12346, False)):
        os.chown(tmp_path / "reconciler.yaml", owner, owner)
        with nullcontext() if is_used else pytest.raises(Unreadable, match="belongs to another user"):
            assert discovery.find_project(tmp_path / "below") == Path("..")
