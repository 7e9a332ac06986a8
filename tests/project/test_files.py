"""Files below the root of a project: symlinks, limits and hidden files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.project import files
from reconciler.project.files import Unreadable


def problem_of(root: Path, path: str, limit: int = 100) -> str:
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


def test_a_symlink_to_a_file_outside_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "root/a").symlink_to("../secret")
    (tmp_path / "root/d").symlink_to("..")
    assert problem_of(tmp_path / "root", "a") == "a is a symlink to a place outside the project"
    assert problem_of(tmp_path / "root", "d/secret") == "d/secret is a symlink to a place outside the project"


def test_a_circular_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert problem_of(tmp_path, "a") == "a cannot be read: too many levels of symbolic links"


def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert problem_of(tmp_path, "pipe") == "pipe is not a regular file"


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert problem_of(tmp_path, "a") == "a is not a regular file"


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 2049)
    assert problem_of(tmp_path, "a", 2048) == "a is larger than 2 KiB"


def test_manifests_are_sorted_and_hidden_ones_are_skipped(tmp_path: Path) -> None:
    for name in ("b/z.yaml", "a.yml", "b/.hidden.yaml", ".git/c.yaml", "notes.txt", "b/a.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(files.find_manifests(tmp_path, ".")) == ["a.yml", "b/a.yaml", "b/z.yaml"]


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "~/x", "", "a\0b"])
def test_a_path_outside_the_root_is_refused_before_the_disk_is_read(path: str) -> None:
    with pytest.raises(Unreadable):
        files.path_inside(path)


@pytest.mark.parametrize(("path", "normal"), [("a", "a"), ("./a//b/", "a/b"), (".", "."), ("a/..b", "a/..b")])
def test_a_path_inside_is_normalized(path: str, normal: str) -> None:
    assert files.path_inside(path) == normal


@pytest.mark.parametrize(
    ("path", "problem", "remedy"),
    [
        ("", "not a path", "write a path below the project's root"),
        ("a\0b", "not a path", "write a path below the project's root"),
        ("/x", "/x is not a relative path", "only paths below the project's root are allowed"),
        ("~x", "~x is not a relative path", "only paths below the project's root are allowed"),
        ("a/..", "a/.. contains '..'", "only paths below the project's root are allowed"),
    ],
)
def test_a_path_outside_the_root_is_reported_with_a_remedy(path: str, problem: str, remedy: str) -> None:
    with pytest.raises(Unreadable) as refused:
        files.path_inside(path)
    assert (str(refused.value), refused.value.remedy, refused.value.code) == (problem, remedy, "path-outside-project")


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert files.read(tmp_path, "a", 10) == b"x" * 10
    assert problem_of(tmp_path, "a", 9) == "a is larger than 9 bytes"


@pytest.mark.parametrize(("limit", "size"), [(2**20 - 1, "1023 KiB"), (2**20, "1 MiB"), (3 * 2**20, "3 MiB")])
def test_the_limit_is_reported_in_its_largest_unit(tmp_path: Path, limit: int, size: str) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(limit + 1)
    assert problem_of(tmp_path, "a", limit) == f"a is larger than {size}"


def test_an_unreadable_file_is_reported_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "up").symlink_to("..")
    for path, text, remedy, code in (
        (".", ". is not a regular file", "name a file", "unreadable-file"),
        ("b", "there is no file b", "paths are relative to the project's root", "unreadable-file"),
        ("a/b", "a/b cannot be read: not a directory", "", "unreadable-file"),
        ("n" * 300, "nnn", "", "unreadable-file"),
        (
            "up",
            "up is a symlink to a place outside the project",
            "copy the file into the project",
            "path-outside-project",
        ),
    ):
        with pytest.raises(Unreadable) as refused:
            files.read(tmp_path, path, 100)
        assert str(refused.value).startswith(text)
        assert (refused.value.remedy, refused.value.code) == (remedy, code)


def test_reading_leaves_no_file_open(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_bytes(b"x")
    os.mkfifo(tmp_path / "a/pipe")
    before = set(Path("/dev/fd").iterdir())
    for _ in range(3):
        assert files.read(tmp_path, "a/b/c", 100) == b"x"
        for wrong in ("a/b", "a/b/d", "a/pipe", "a/x/c"):
            problem_of(tmp_path, wrong)
    assert set(Path("/dev/fd").iterdir()) == before


@pytest.mark.parametrize("swapped", ["a", "a/b", "a/b/c"])
def test_a_file_replaced_by_a_symlink_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, text in ((root, b"ours"), (outside, b"secret")):
        (folder / "a/b").mkdir(parents=True)
        (folder / "a/b/c").write_bytes(text)
    realpath = os.path.realpath

    def swap_afterwards(path: str) -> str:
        found = realpath(path)
        if str(path).endswith("a/b/c"):
            (root / swapped).rename(tmp_path / "away")
            (root / swapped).symlink_to(outside / swapped)
        return found

    assert files.read(root, "a/b/c", 100) == b"ours"
    monkeypatch.setattr(os.path, "realpath", swap_afterwards)
    assert problem_of(root, "a/b/c").startswith("a/b/c cannot be read: ")


def test_a_file_is_not_written_through_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    files.refuse_symlink(tmp_path, "real/new.yaml")
    files.refuse_symlink(tmp_path, "real/deep/./new.yaml")
    with pytest.raises(Unreadable, match=r"^link/new.yaml leads through a symlink$") as refused:
        files.refuse_symlink(tmp_path, "link/new.yaml")
    assert (refused.value.remedy, refused.value.code) == ("use a folder that is not a symlink", "path-outside-project")


def test_manifests_are_found_at_a_file_and_below_folders_in_order(tmp_path: Path) -> None:
    for name in ("m/b/y.yml", "m/a/x.yaml", "m/.h/z.yaml", "m/note.yaml.txt", "single.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert list(files.find_manifests(tmp_path, "single.txt")) == ["single.txt"]
    assert list(files.find_manifests(tmp_path, "absent")) == ["absent"]
    assert list(files.find_manifests(tmp_path, "m")) == ["m/a/x.yaml", "m/b/y.yml"]
    (tmp_path / "m/link").symlink_to("a")
    with pytest.raises(Unreadable, match=r"^m/link is a symlink to a folder$") as refused:
        list(files.find_manifests(tmp_path, "m"))
    assert refused.value.remedy == "list its target under manifests: instead"
    (tmp_path / "out").symlink_to("..")
    with pytest.raises(Unreadable, match=r"^out is a symlink to a place outside the project$") as refused:
        list(files.find_manifests(tmp_path, "out"))
    assert refused.value.code == "path-outside-project"
