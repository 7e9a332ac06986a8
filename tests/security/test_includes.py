"""What a project may read lies below its root, whatever links, pipes and devices are laid out for it."""

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
    """A project, and beside it something that is none of its business."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.yaml").write_bytes(SECRET)
    project = tmp_path / "project"
    (project / "manifests").mkdir(parents=True)
    (project / "reconciler.yaml").write_text("version: 1\nstack: prod\nmanifests: [manifests]\n", encoding="utf-8")
    return project


def including(root: Path, path: str) -> list[str]:
    """What is said about a manifest with `{from_file: path}`."""
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
def test_what_is_not_a_plain_file_inside_is_refused_at_once(root: Path, path: str) -> None:
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


def test_the_problem_with_an_include_names_the_file_and_not_what_it_holds(root: Path) -> None:
    (root / "link").symlink_to("../outside/secret.yaml")
    assert including(root, "link") == ["link is a symlink to a place outside the project"]
    (root / "binary").write_bytes(b"\xff" + SECRET)
    assert including(root, "binary") == ["binary is not UTF-8: byte 0xff at offset 0"]


def _plain(path: Path) -> None:
    # Complete when it takes its place.
    path.write_bytes(b"inside")


def swapping(path: Path, one: Callable[[Path], None], other: Callable[[Path], None]) -> Callable[[], None]:
    """Puts the one and the other in the same place by turns until it is told to stop, never leaving it empty."""
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


def test_a_file_that_is_swapped_for_a_link_never_leads_out(root: Path) -> None:
    path = root / "swapped"
    path.write_bytes(b"inside")
    outside = root.parent / "outside/secret.yaml"
    end = swapping(path, lambda spare: spare.symlink_to(outside), _plain)
    seen: set[bytes | str] = set()
    try:
        for _ in range(4000):
            try:
                seen.add(files.read(root, "swapped", 100))
            except Unreadable as refused:
                seen.add(str(refused))
    finally:
        end()
    assert b"inside" in seen  # both were met, or nothing was tried
    assert "swapped is a symlink to a place outside the project" in seen
    assert {each for each in seen if isinstance(each, bytes)} == {b"inside"}


def test_a_folder_that_is_swapped_for_a_link_never_leads_out(root: Path) -> None:
    inside, outside, path = root / "real", root.parent / "outside", root / "swapped"
    inside.mkdir()
    (inside / "secret.yaml").write_bytes(b"inside")
    path.symlink_to(inside)
    end = swapping(path, lambda spare: spare.symlink_to(outside), lambda spare: spare.symlink_to(inside))
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


def loaded(root: Path) -> list[str]:
    """What is said about the project as it is."""
    try:
        return [problem.text for problem in load_manifests(load_config(root, {}), {}).warnings]
    except Rejected as rejected:
        return [problem.text for problem in rejected.problems]


@pytest.mark.parametrize("entry", ["..", "/etc", "../outside", "manifests/../..", "~", "/proc/self/environ"])
def test_manifests_lie_below_the_root(root: Path, entry: str) -> None:
    (root / "reconciler.yaml").write_text(f"version: 1\nstack: prod\nmanifests: ['{entry}']\n", encoding="utf-8")
    with pytest.raises(Rejected):
        load_config(root, {})


def test_a_folder_of_manifests_that_is_a_link_out_is_not_even_listed(root: Path) -> None:
    (root / "manifests").rmdir()
    (root / "manifests").symlink_to("/")  # walking it would take minutes
    began = time.monotonic()
    assert loaded(root) == ["manifests is a symlink to a place outside the project"]
    assert time.monotonic() - began < 10


def test_a_manifest_that_is_a_link_out_is_refused(root: Path) -> None:
    (root / "manifests/a.yaml").symlink_to("../../outside/secret.yaml")
    assert loaded(root) == ["manifests/a.yaml is a symlink to a place outside the project"]


def test_a_link_to_a_folder_is_not_passed_over_in_silence(root: Path) -> None:
    """What is passed over counts as no longer declared, and would be deleted."""
    (root / "manifests/more").symlink_to("../../outside")
    assert loaded(root) == ["manifests/more is a symlink to a folder"]


def test_a_folder_that_cannot_be_listed_is_not_passed_over_in_silence(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "manifests/locked").mkdir()
    real = os.scandir

    def scandir(path: str) -> object:  # an administrator, as which tests may run, may list every folder
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [text.partition(" ")[2] for text in loaded(root)] == ["cannot be listed: permission denied"]


def test_pipes_and_folders_that_are_called_like_manifests_are_refused(root: Path) -> None:
    os.mkfifo(root / "manifests/a.yaml")
    assert loaded(root) == ["manifests/a.yaml is not a regular file"]


def test_a_project_file_that_is_a_link_out_or_a_pipe_is_refused(root: Path) -> None:
    file = root / "reconciler.yaml"
    file.unlink()
    file.symlink_to("/proc/self/environ")
    with pytest.raises(Rejected, match="symlink to a place outside"):
        load_config(root, {})
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(Rejected, match="not a regular file"):
        load_config(root, {})
