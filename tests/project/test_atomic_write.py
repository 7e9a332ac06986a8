"""A file is replaced as a whole or not at all, and no file but a regular one is replaced."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

import pytest

from reconciler.project import atomic_write


def test_an_error_names_the_file_and_not_its_draft(tmp_path: Path) -> None:
    (tmp_path / "plan.json").mkdir()
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the name is what matters
        atomic_write.write(tmp_path / "plan.json", "{}")
    assert caught.value.filename == str(tmp_path / "plan.json")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_a_missing_folder_is_an_error_with_the_name_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        atomic_write.write(tmp_path / "absent/plan.json", "{}")
    assert caught.value.filename == str(tmp_path / "absent/plan.json")


def test_pipes_devices_and_sockets_are_not_replaced(tmp_path: Path) -> None:
    """A replaced device would be missing for every program of the machine."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name, what in (("pipe", "a pipe"), ("null", "a device"), ("socket", "a socket")):
            before = os.lstat(tmp_path / name)
            with pytest.raises(OSError, match=f"{what}, not a regular file"):
                atomic_write.write(tmp_path / name, "{}")
            assert os.lstat(tmp_path / name) == before
    assert len(list(tmp_path.iterdir())) == 3


def test_standard_output_is_not_replaced_when_it_is_a_file(tmp_path: Path) -> None:
    """/dev/stdout is a link, here possibly to a file. A file in its place would break it for every program."""
    before = os.lstat("/dev/stdout")
    with (tmp_path / "out").open("w") as out:
        kept = os.dup(1)
        os.dup2(out.fileno(), 1)
        try:
            assert atomic_write.describe_non_file(Path("/dev/stdout")) == "a device"
        finally:
            os.dup2(kept, 1)
            os.close(kept)
    assert stat.S_ISLNK(before.st_mode)


def test_a_symbolic_link_is_replaced_and_its_target_is_not(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "plan.json").symlink_to("other")
    atomic_write.write(tmp_path / "plan.json", "{}")
    assert ((tmp_path / "plan.json").is_symlink(), (tmp_path / "plan.json").read_text()) == (False, "{}")
    assert (tmp_path / "other").read_text() == "kept"


@pytest.mark.parametrize("before", [None, "old"])
def test_the_text_is_on_the_disk_before_the_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    """Otherwise a manifest that a command rewrites may be empty after a power failure."""
    file = tmp_path / "a.yaml"
    if before is not None:
        file.write_text(before)
    synced: list[tuple[str, str | None]] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append(("folder" if place.is_dir() else place.read_text(), file.read_text() if file.exists() else None))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    atomic_write.write(file, "é\r\n")
    assert synced == [("é\n", before), ("folder", "é\n")]


def test_the_old_file_is_unchanged_after_a_failed_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    file = tmp_path / "a.yaml"
    file.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error") as caught:
        atomic_write.write(file, "new")
    assert caught.value.filename == str(file)
    assert ([path.name for path in tmp_path.iterdir()], file.read_text()) == (["a.yaml"], "old")


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.lstat().st_mode)


def test_a_file_is_replaced_with_the_requested_mode(tmp_path: Path) -> None:
    file = tmp_path / "out"
    for mode in (0o600, 0o644, 0o640):
        atomic_write.write(file, f"é\r\n{mode}", mode)
        assert (file.read_bytes(), mode_of(file)) == (f"é\r\n{mode}".encode(), mode)
    atomic_write.write(file, "")
    assert (file.read_bytes(), mode_of(file)) == (b"", 0o600)
    atomic_write.write_output(file, "text")
    assert (file.read_bytes(), mode_of(file)) == (b"text", 0o644)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_with_a_long_name_is_written(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 255)
    atomic_write.write(file, "text")
    assert file.read_text() == "text"


def test_a_failed_write_changes_no_file_and_adds_none(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        atomic_write.write(file, "\ud800")
    assert ([path.name for path in tmp_path.iterdir()], file.read_text()) == (["out"], "before")
    folder = tmp_path / "folder"
    folder.mkdir()
    for write in (atomic_write.write, atomic_write.write_output):
        with pytest.raises(IsADirectoryError) as failed:
            write(folder, "text")
        assert failed.value.filename == str(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "out"]


def test_a_device_pipe_or_socket_is_written_into_and_never_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("pipe")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for file, name in (
            (pipe, "a pipe"),
            (link, "a pipe"),
            (Path("/dev/null"), "a device"),
            (tmp_path / "socket", "a socket"),
        ):
            assert atomic_write.describe_non_file(file) == name
            with pytest.raises(OSError, match=f"{name}, not a regular file") as refused:
                atomic_write.write(file, "text")
            assert refused.value.filename == str(file)
        with pytest.raises(OSError, match="No such device") as failed:
            atomic_write.write_output(tmp_path / "socket", "text")
        assert failed.value.filename == str(tmp_path / "socket")
    atomic_write.write_output(link, "é")
    assert os.read(reader, 10) == "é".encode()
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_to_a_file_or_to_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("before")
    for name, target in (("link", "target"), ("dangling", "absent")):
        (tmp_path / name).symlink_to(target)
        assert atomic_write.describe_non_file(tmp_path / name) == ""
        atomic_write.write(tmp_path / name, "text")
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "target").read_text() == "before"
    assert not (tmp_path / "absent").exists()


def test_the_folder_for_generated_files_is_created_and_may_not_be_a_symlink(tmp_path: Path) -> None:
    atomic_write.write_output(tmp_path / ".reconciler/deep/plan.html", "page")
    assert (tmp_path / ".reconciler/deep/plan.html").read_text() == "page"
    (tmp_path / "other").mkdir()
    (tmp_path / "other/.reconciler").symlink_to(tmp_path)
    for write in (atomic_write.write, atomic_write.write_output, lambda file, text: atomic_write.open_output(file)):
        with pytest.raises(OSError, match=r"is a symlink; delete it") as caught:
            write(tmp_path / "other/.reconciler/plan.json", "{}")
        assert caught.value.filename == str(tmp_path / "other/.reconciler")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".reconciler", "other"]
