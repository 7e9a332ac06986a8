import os
from pathlib import Path

import pytest

from reconciler.project import files
from reconciler.project.files import Unreadable


def told(root: Path, path: str, limit: int = 100) -> str:
    with pytest.raises(Unreadable) as caught:
        files.read(root, path, limit)
    return str(caught.value)


def test_a_file_below_the_root_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.txt").write_bytes(b"x")
    assert files.read(tmp_path, "a/b.txt", 100) == b"x"


def test_a_symlink_within_the_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x")
    (tmp_path / "b.txt").symlink_to("a.txt")
    assert files.read(tmp_path, "b.txt", 100) == b"x"


def test_a_symlink_out_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "root/a").symlink_to("../secret")
    (tmp_path / "root/d").symlink_to("..")
    assert told(tmp_path / "root", "a") == "a is a symlink to a place outside the project"
    assert told(tmp_path / "root", "d/secret") == "d/secret is a symlink to a place outside the project"


def test_a_symlink_that_leads_round_in_a_ring_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert told(tmp_path, "a") == "a cannot be read: too many levels of symbolic links"


def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert told(tmp_path, "pipe") == "pipe is not a regular file"


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert told(tmp_path, "a") == "a is not a regular file"


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 2049)
    assert told(tmp_path, "a", 2048) == "a is larger than 2 KiB"


def test_manifests_come_sorted_and_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b/z.yaml", "a.yml", "b/.hidden.yaml", ".git/c.yaml", "notes.txt", "b/a.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(files.find_manifests(tmp_path, ".")) == ["a.yml", "b/a.yaml", "b/z.yaml"]


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "~/x", "", "a\0b"])
def test_a_path_that_leads_out_is_refused_before_anything_is_looked_up(path: str) -> None:
    with pytest.raises(Unreadable):
        files.path_inside(path)
