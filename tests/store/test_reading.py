"""Reads a file without SQLAlchemy. `test_scope` and `test_damage` compare it with what an apply reads."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.model.address import Address
from reconciler.model.snapshot import Binding
from reconciler.store.errors import Damaged, Unavailable
from reconciler.store.reading import open_reader
from reconciler.store.store import open_store

BOT = Address("BotUser", "berlin")


async def write_binding(file: Path, id: str) -> None:
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        await journal.bind({BOT: Binding(id)})


async def test_a_reader_sees_what_a_running_apply_commits(tmp_path: Path) -> None:
    file = tmp_path / "prod.db"
    await write_binding(file, "bot_1")
    async with open_reader(str(file)) as reader, open_store(str(file)) as store:
        assert await reader.bindings("prod") == {BOT: Binding("bot_1")}
        async with store.journal("prod", command="apply") as journal:
            await journal.bind({BOT: Binding("bot_2")})
            assert await reader.bindings("prod") == {BOT: Binding("bot_2")}
            await journal.bind({BOT: Binding("bot_3")})  # the reader does not block it
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prod.db"], "the last one to close ends the log"


async def test_reading_changes_neither_content_nor_modes(tmp_path: Path) -> None:
    file = tmp_path / "prod.db"
    await write_binding(file, "bot_1")
    before = file.read_bytes(), stat.S_IMODE(file.stat().st_mode)
    async with open_reader(str(file)) as reader:
        await asyncio.gather(*(reader.bindings("prod") for _ in range(20)))  # on one connection
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == before
    assert before[1] == 0o600


async def test_a_reader_creates_no_file(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"prod.db cannot be used \(No such file or directory\)"):
        async with open_reader(str(tmp_path / "prod.db")):
            pass
    assert list(tmp_path.iterdir()) == []


async def test_a_log_without_its_file_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "prod.db-wal").write_bytes(b"")
    with pytest.raises(Damaged, match="its database file is missing"):
        async with open_reader(str(tmp_path / "prod.db")):
            pass


async def test_a_text_that_is_not_utf_8_is_reported(tmp_path: Path) -> None:
    import sqlite3

    file = tmp_path / "prod.db"
    await write_binding(file, "bot_1")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE bindings SET object = CAST(x'ff' AS TEXT)")
    connection.close()
    messages = []
    for opened in (open_reader(str(file)), open_store(str(file))):
        async with opened as reader:
            with pytest.raises(Unavailable) as refused:
                await reader.bindings("prod")
            messages.append(str(refused.value))
    assert messages[0] == messages[1]
    assert "Could not decode to UTF-8" in messages[0]


def test_a_reader_does_not_load_sqlalchemy() -> None:
    code = "import sys, reconciler.store.reading; print('sqlalchemy' in sys.modules, 'sqlite3' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False True\n"
