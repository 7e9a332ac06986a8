"""Files that receive one-time secrets."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.project.sinks import FileSinks

TOKEN = Secret("canary-token", "test")


def to(target: str) -> Delivery:
    return Delivery("to_file", target)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


async def test_the_file_holds_the_secret_and_only_its_owner_may_read_it(root: Path) -> None:
    os.umask(os.umask(0))
    await FileSinks(root).deliver(to("agent.token"), TOKEN)
    file = root / "agent.token"
    assert file.read_text() == "canary-token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in root.iterdir()] == ["agent.token"]


async def test_a_missing_directory_is_made_for_the_owner_only(root: Path) -> None:
    await FileSinks(root).deliver(to("secrets/berlin/agent.token"), TOKEN)
    assert stat.S_IMODE((root / "secrets").stat().st_mode) == 0o700
    assert (root / "secrets/berlin/agent.token").read_text() == "canary-token"


async def test_an_older_file_is_replaced_whole_and_loses_its_loose_mode(root: Path) -> None:
    file = root / "agent.token"
    file.write_text("a longer token from before")
    file.chmod(0o644)
    before = file.stat().st_ino
    await FileSinks(root).deliver(to("agent.token"), TOKEN)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("canary-token", 0o600)
    assert file.stat().st_ino != before


async def test_proving_leaves_nothing_behind(root: Path) -> None:
    (root / "kept.token").write_text("old")
    for target in ("agent.token", "secrets/berlin/agent.token", "kept.token"):
        await FileSinks(root).prove(to(target))
    assert [each.name for each in root.rglob("*")] == ["kept.token"]
    assert (root / "kept.token").read_text() == "old"


@pytest.mark.parametrize("target", ["../x", "a/../../x", "/etc/x", "", ".", "a/..", "/", "a\0b"])
async def test_a_path_out_of_the_project_is_refused(root: Path, target: str) -> None:
    for act in (FileSinks(root).prove(to(target)), FileSinks(root).deliver(to(target), TOKEN)):
        with pytest.raises(Undeliverable, match="does not lie below"):
            await act


async def test_a_symbolic_link_is_never_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    (root / "directory").symlink_to(outside)
    (root / "file").symlink_to(outside / "file")
    (root / "dangling").symlink_to(outside / "new")
    for target in ("directory/x", "file", "dangling"):
        for act in (FileSinks(root).prove(to(target)), FileSinks(root).deliver(to(target), TOKEN)):
            with pytest.raises(Undeliverable, match=target):
                await act
    assert [each.name for each in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "untouched"


async def test_a_directory_or_a_pipe_in_its_place_is_refused(root: Path) -> None:
    (root / "directory").mkdir()
    os.mkfifo(root / "pipe")
    for target in ("directory", "pipe"):
        with pytest.raises(Undeliverable, match="not a plain file"):
            await FileSinks(root).prove(to(target))


async def test_a_file_where_a_directory_should_be_is_refused(root: Path) -> None:
    (root / "file").write_text("x")
    with pytest.raises(Undeliverable, match="no directory"):
        await FileSinks(root).prove(to("file/agent.token"))


async def test_a_root_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Undeliverable, match="No such file"):
        await FileSinks(tmp_path / "nowhere").prove(to("agent.token"))


async def test_another_way_is_refused(root: Path) -> None:
    with pytest.raises(Undeliverable, match="to_pigeon"):
        await FileSinks(root).prove(Delivery("to_pigeon", "x"))


async def test_a_message_never_holds_the_secret(root: Path) -> None:
    (root / "directory").mkdir()
    with pytest.raises(Undeliverable) as failed:
        await FileSinks(root).deliver(to("directory"), TOKEN)
    assert "canary" not in str(failed.value)
