"""A file is replaced as a whole or not at all, and no file but a regular one is replaced."""

from __future__ import annotations

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
    """A device would be lost to the whole machine."""
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
    """It is a link, and here perhaps one to a file: replaced, nobody would have it any more."""
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
