"""The tables, and the refusal of stores with another schema version."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_mock_engine

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.snapshot import Binding, Place
from reconciler.store import encoding, schema
from reconciler.store.errors import Damaged, Unavailable, Unreleased
from reconciler.store.store import open_store

FIXTURES = Path(__file__).parent / "fixtures"
AGENT = Address.parse("TunnelCredential/agent")
PLACE = Place("to_file", "secrets/agent.token", "", "laptop", "a")

# Turns the tables of each version into those of the version before it.
TO_EARLIER = {
    8: "ALTER TABLE bindings DROP COLUMN adopted",
    7: "DROP TABLE fleet_runs; DROP TABLE fleet_tasks; DROP TABLE fleet_shapes; DROP TABLE fleet_pauses",
    6: "DROP TABLE run_origins",
    5: "DROP TABLE plan_calls",
    4: "ALTER TABLE intents DROP COLUMN place",
    3: "DROP INDEX ix_receipts_stack_place; ALTER TABLE receipts DROP COLUMN place",
    2: "DROP TABLE looks; DROP TABLE drifts",
}


async def write_store(file: Path) -> None:
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        await journal.bind({Address("BotUser", "ci"): Binding("bot_1")})
        await journal.record_receipt("i1")


def set_version(connection: sqlite3.Connection, version: int) -> None:
    for later, statements in TO_EARLIER.items():
        connection.executescript(statements if later > version else "")
    connection.execute("UPDATE store SET version = ?", (version,))
    connection.commit()


def read_files(folder: Path) -> dict[str, bytes]:
    """The content of each file, without the shared memory of SQLite, which has no data of the store."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "of an earlier version?"  # with characters that a URL quotes
    folder.mkdir()
    return folder


@pytest.mark.parametrize("version", range(1, encoding.VERSION))
@pytest.mark.parametrize("journal_mode", ["delete", "wal"])
async def test_a_store_of_an_unreleased_version_is_refused_and_not_changed(
    folder: Path, version: int, journal_mode: str
) -> None:
    file = folder / "prod.db"
    await write_store(file)
    with closing(sqlite3.connect(file)) as connection:
        set_version(connection, version)
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(Unreleased) as refusal:
        async with open_store(str(file)):
            pass
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert str(refusal.value) == (
        f"{file} has schema version {version}, written by an unreleased reconciler, and was not changed; releases read "
        "version 8 and later: keep it and use the reconciler that wrote it, or set RECONCILER_STORE to another path or "
        "URL and begin with a new store: objects with an owner record are recognized on the platform and nothing is "
        "created twice; lost are the history and the bindings of kinds without owner records (bot users, event "
        "sources), which are then adopted by name with your approval"
    )


@pytest.mark.parametrize(
    ("version", "error"), [(1, Unreleased), (encoding.VERSION - 1, Unreleased), (encoding.VERSION + 1, Unavailable)]
)
async def test_the_log_of_a_refused_store_is_unchanged_after_a_kill(
    tmp_path: Path, folder: Path, version: int, error: type[Exception]
) -> None:
    """The log has the version, which is not in the file yet."""
    file = tmp_path / "prod.db"
    await write_store(file)
    with closing(sqlite3.connect(file)) as connection:
        set_version(connection, version)
        for suffix in ("", "-wal"):
            shutil.copy(f"{file}{suffix}", folder)
    before = read_files(folder)
    assert len(before["prod.db-wal"]) > 0
    with pytest.raises(error):
        async with open_store(str(folder / "prod.db")):
            pass
    assert read_files(folder) == before


async def test_a_store_is_opened_if_the_log_has_the_present_version(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "prod.db"
    await write_store(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE store SET version = 7")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("UPDATE store SET version = ?", (encoding.VERSION,))
        connection.commit()
        for suffix in ("", "-wal"):
            shutil.copy(f"{file}{suffix}", folder)
    async with open_store(str(folder / "prod.db")) as store:
        assert await store.receipts("prod") == {"i1"}


async def test_a_changed_place_is_reported_as_damage(tmp_path: Path) -> None:
    file = tmp_path / "prod.db"
    async with open_store(str(file)) as store:
        async with store.journal("prod", command="apply") as journal:
            await journal.intend(Intent("i5", AGENT, "prod", "/credentials", place=PLACE))
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("UPDATE intents SET place = replace(place, 'agent', 'other') WHERE id = 'i5'")
            connection.commit()
        with pytest.raises(Damaged):
            await store.find_issued("prod", ("TunnelCredential", "APIKey"))


# --- the tables -------------------------------------------------------------------------------------------------------


Rows = set[tuple[Any, ...]]
Tables = dict[str, tuple[Rows, Rows]]


def describe(file: Path) -> Tables:
    """Columns (name, type, whether required, default, place in the primary key) and indexes (whether unique, origin,
    columns) of each table."""
    connection = sqlite3.connect(file)
    found: Tables = {}
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns: Rows = {
            (name, of_type, required, default and default.strip("'"), key)
            for _, name, of_type, required, default, key in connection.execute(f"PRAGMA table_info({table})")
        }
        indexes: Rows = {
            (unique, origin, *(column for *_, column in connection.execute(f"PRAGMA index_info({name})")))
            for _, name, unique, origin, _ in connection.execute(f"PRAGMA index_list({table})").fetchall()
        }
        found[table] = (columns, indexes)
    connection.close()
    return found


async def create(file: Path) -> Tables:
    async with open_store(str(file)):
        pass
    return describe(file)


async def test_tables_change_only_with_the_schema_version(tmp_path: Path) -> None:
    """Stores of this version exist: changed tables need a new version, an upgrade, and a dump of the new tables."""
    connection = sqlite3.connect(tmp_path / "dumped.db")
    connection.executescript((FIXTURES / f"version-{encoding.VERSION}.sql").read_text(encoding="utf-8"))
    connection.close()
    assert await create(tmp_path / "new.db") == describe(tmp_path / "dumped.db")


def compile_for_server(statement: Any) -> str:
    return str(statement.compile(dialect=create_mock_engine("postgresql+psycopg://", print).dialect)).strip()


def test_a_server_has_an_index_of_bindings_by_prefix() -> None:
    """The index of a server's primary key is sorted by language."""
    created = list[Any]()
    server = create_mock_engine("postgresql+psycopg://", lambda statement, *_, **__: created.append(statement))
    schema.metadata.create_all(server, checkfirst=False)
    (index,) = (text for text in map(compile_for_server, created) if "ix_bindings_scope" in text)
    assert index == "CREATE INDEX ix_bindings_scope ON bindings (stack varchar_pattern_ops)"
