"""A project reads regular files below its root only, whatever symlinks, pipes and devices it contains."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.model.problem import Rejected
from reconciler.project import files
from reconciler.project.files import Unreadable
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config

SECRET = b"outside-canary-Zk81QpLw"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project, and a file outside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.yaml").write_bytes(SECRET)
    project = tmp_path / "project"
    (project / "manifests").mkdir(parents=True)
    (project / "reconciler.yaml").write_text("version: 1\nstack: prod\nmanifests: [manifests]\n", encoding="utf-8")
    return project


def problems_of_include(root: Path, path: str) -> list[str]:
    """The problems of a manifest with `{from_file: path}`."""
    text = f"kind: IPPolicy\nname: a\nspec: {{description: {{from_file: {path!r}}}}}\n"
    (root / "manifests/a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(Rejected) as rejected:
        load_manifests(load_config(root, {}), {})
    return [problem.text for problem in rejected.value.problems]


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.yaml",
        "manifests/../../outside/secret.yaml",
        "./../outside/secret.yaml",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/environ",
        "/dev/zero",
        "/dev/stdin",
        "~/.netrc",
        "~root/.netrc",
        "link",
        "folder/secret.yaml",
        "chain",
        "process/environ",
        "device",
        "pipe",
        "manifests",
        ".",
        "large",
        "no\0thing",
        "",
    ],
)
def test_anything_but_a_regular_file_inside_is_refused_at_once(root: Path, path: str) -> None:
    (root / "link").symlink_to("../outside/secret.yaml")
    (root / "folder").symlink_to(root.parent / "outside")
    (root / "chain").symlink_to("chain2")
    (root / "chain2").symlink_to("folder/secret.yaml")
    (root / "process").symlink_to("/proc/self")
    (root / "device").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe")
    with (root / "large").open("wb") as large:
        large.truncate(1 << 40)
    began = time.monotonic()
    with pytest.raises(Unreadable) as refused:
        files.read(root, files.path_inside(path), 1 << 20)
    assert time.monotonic() - began < 10
    assert SECRET.decode() not in str(refused.value)


def test_a_problem_with_an_include_names_the_file_without_its_content(root: Path) -> None:
    (root / "link").symlink_to("../outside/secret.yaml")
    assert problems_of_include(root, "link") == ["link is a symlink to a place outside the project"]
    (root / "binary").write_bytes(b"\xff" + SECRET)
    assert problems_of_include(root, "binary") == ["binary is not UTF-8: byte 0xff at offset 0"]


def _plain(path: Path) -> None:
    # Complete before it replaces the file at the path.
    path.write_bytes(b"inside")


def start_swapping(path: Path, one: Callable[[Path], None], other: Callable[[Path], None]) -> Callable[[], None]:
    """Alternates two files at one path in a thread, and never removes both. Returns a function that ends it."""
    stop = threading.Event()
    spare = path.with_name("spare")

    def run() -> None:
        while not stop.is_set():
            for make in (one, other):
                make(spare)
                spare.replace(path)

    thread = threading.Thread(target=run)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join()

    return end


def test_a_file_swapped_for_a_symlink_is_never_read_outside(root: Path) -> None:
    path = root / "swapped"
    path.write_bytes(b"inside")
    outside = root.parent / "outside/secret.yaml"
    end = start_swapping(path, lambda spare: spare.symlink_to(outside), _plain)
    seen: set[bytes | str] = set()
    try:
        for _ in range(4000):
            try:
                seen.add(files.read(root, "swapped", 100))
            except Unreadable as refused:
                seen.add(str(refused))
    finally:
        end()
    assert b"inside" in seen  # both outcomes occurred, or the test shows nothing
    assert "swapped is a symlink to a place outside the project" in seen
    assert {content for content in seen if isinstance(content, bytes)} == {b"inside"}


def test_a_folder_swapped_for_a_symlink_is_never_read_outside(root: Path) -> None:
    inside, outside, path = root / "real", root.parent / "outside", root / "swapped"
    inside.mkdir()
    (inside / "secret.yaml").write_bytes(b"inside")
    path.symlink_to(inside)
    end = start_swapping(path, lambda spare: spare.symlink_to(outside), lambda spare: spare.symlink_to(inside))
    seen: set[bytes | str] = set()
    try:
        for _ in range(4000):
            try:
                seen.add(files.read(root, "swapped/secret.yaml", 100))
            except Unreadable as refused:
                seen.add(str(refused))
    finally:
        end()
    assert b"inside" in seen
    assert "swapped/secret.yaml is a symlink to a place outside the project" in seen
    assert SECRET not in seen


# --- manifests ------------------------------------------------------------------------------------------------------


def problems_of_project(root: Path) -> list[str]:
    """The warnings or problems of the project."""
    try:
        return [problem.text for problem in load_manifests(load_config(root, {}), {}).warnings]
    except Rejected as rejected:
        return [problem.text for problem in rejected.problems]


@pytest.mark.parametrize("entry", ["..", "/etc", "../outside", "manifests/../..", "~", "/proc/self/environ"])
def test_manifests_outside_the_root_are_refused(root: Path, entry: str) -> None:
    (root / "reconciler.yaml").write_text(f"version: 1\nstack: prod\nmanifests: ['{entry}']\n", encoding="utf-8")
    with pytest.raises(Rejected):
        load_config(root, {})


def test_a_folder_of_manifests_that_is_a_symlink_out_is_not_listed(root: Path) -> None:
    (root / "manifests").rmdir()
    (root / "manifests").symlink_to("/")  # walking it would take minutes
    began = time.monotonic()
    assert problems_of_project(root) == ["manifests is a symlink to a place outside the project"]
    assert time.monotonic() - began < 10


def test_a_manifest_that_is_a_symlink_out_is_refused(root: Path) -> None:
    (root / "manifests/a.yaml").symlink_to("../../outside/secret.yaml")
    assert problems_of_project(root) == ["manifests/a.yaml is a symlink to a place outside the project"]


def test_a_symlink_to_a_folder_is_an_error(root: Path) -> None:
    """A skipped manifest would count as no longer declared, and its resources would be deleted."""
    (root / "manifests/more").symlink_to("../../outside")
    assert problems_of_project(root) == ["manifests/more is a symlink to a folder"]


def test_a_folder_that_cannot_be_listed_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "manifests/locked").mkdir()
    real = os.scandir

    def scandir(path: str) -> object:  # an administrator, as which tests may run, may list every folder
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [text.partition(" ")[2] for text in problems_of_project(root)] == ["cannot be listed: permission denied"]


def test_a_pipe_with_the_name_of_a_manifest_is_refused(root: Path) -> None:
    os.mkfifo(root / "manifests/a.yaml")
    assert problems_of_project(root) == ["manifests/a.yaml is not a regular file"]


def test_a_project_file_that_is_a_symlink_out_or_a_pipe_is_refused(root: Path) -> None:
    file = root / "reconciler.yaml"
    file.unlink()
    file.symlink_to("/proc/self/environ")
    with pytest.raises(Rejected, match="symlink to a place outside"):
        load_config(root, {})
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(Rejected, match="not a regular file"):
        load_config(root, {})
