"""Where components are found, and what of a path may be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.project import component_files
from reconciler.project.files import Unreadable


@pytest.mark.parametrize(
    ("path", "normalized"), [("./a/", "a"), ("../common", "../common"), ("a/../../b", "../b"), ("a/../b", "b")]
)
def test_a_folder_may_be_beside_the_project(path: str, normalized: str) -> None:
    assert component_files.normalize(path) == normalized


@pytest.mark.parametrize("path", ["/etc", "/a/../b", "~/a", "", "../a\0b", "../" * 2000])
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(Unreadable):
        component_files.normalize(path)


def test_the_repository_is_the_nearest_folder_with_git(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    assert component_files.find_repository(inner) == inner
    (tmp_path / "outer" / ".git").write_text("gitdir: elsewhere\n")
    assert component_files.find_repository(inner) == tmp_path / "outer"


def test_components_of_a_folder_are_listed_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "project" / "components"
    folder.mkdir(parents=True)
    (tmp_path / "outside.yaml").touch()
    for name in ("b.yaml", "a.yml", ".hidden.yaml", "note.md", "no name.yaml"):
        (folder / name).touch()
    root = folder.parent
    assert [*component_files.list_all(root, ["components", "missing", ".."])] == [
        "components/a.yml",
        "components/b.yaml",
    ]
    assert component_files.find(root, ["components", "components"], "a") == ["components/a.yml"]
    assert component_files.name_of("../common/service.yaml") == "service"
    assert component_files.is_component("# text\ninputs: {}\n")
    assert not component_files.is_component("kind: A\nspec:\n  inputs: 1\n")
