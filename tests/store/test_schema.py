"""The tables, and the upgrade of stores that earlier versions wrote.

The store of version 3 is a dump that this version wrote.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, create_mock_engine

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.history import DriftCheck, DriftedResource
from reconciler.model.snapshot import Binding, IssuedSecret, Place
from reconciler.store import schema
from reconciler.store.account import AccountMembership
from reconciler.store.errors import Damaged
from reconciler.store.store import open_store

FIXTURES = Path(__file__).parent / "fixtures"
DUMP = FIXTURES / "version-3.sql"
APPLICATION = 0x7263_6E63  # in the header of a store's file, which a dump does not have
SECRETIVE = ("TunnelCredential", "APIKey")
AGENT, KEY, HALF = (
    Address.parse(address) for address in ("TunnelCredential/agent", "APIKey/ci", "TunnelCredential/half")
)
EDGE = Address("TLSEdge", "shop")
DRIFTED_EDGE = DriftedResource(EDGE, Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM, ("description", "a.b"))
DRIFT_CHECK = DriftCheck(100.0, 12, "abc", (DRIFTED_EDGE,))
PLACE = Place("to_file", "secrets/agent.token", "", "laptop", "a")


@pytest.fixture
def written_store(tmp_path: Path) -> Path:
    file = tmp_path / "prod.db"
    connection = sqlite3.connect(file)
    connection.executescript(DUMP.read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.commit()
    connection.close()
    return file


async def test_a_store_of_version_3_is_read(written_store: Path) -> None:
    async with open_store(str(written_store)) as store:
        assert await store.receipts("prod") == {"i1", "i2"}
        assert await store.find_undelivered("prod", SECRETIVE) == {"i3", "i4"}
        assert await store.find_issued("prod", SECRETIVE) == (
            IssuedSecret("i1", AGENT, None, True),
            IssuedSecret("i2", KEY, None, True),
            IssuedSecret("i3", HALF, None, False),
        )
        assert [intent.id for intent in await store.find_open_intents("prod")] == ["i3"]
        assert await store.bindings("prod") == {
            Address.parse("IPPolicyRule/r"): Binding("ippr_1", {"cidr": "d"}, True, None)
        }
        assert await store.membership("prod") == AccountMembership("https://api.example.com", ("BotUser:bot_1",))
        assert [recorded_call.call for recorded_call in await store.history("prod")] == [
            "create TunnelCredential/agent"
        ]


async def test_in_an_upgraded_store_only_new_intents_have_a_place(written_store: Path) -> None:
    async with open_store(str(written_store)) as store:
        async with store.journal("prod", command="apply") as journal:
            await journal.intend(Intent("i5", AGENT, "prod", "/credentials", place=PLACE))
            await journal.record_receipt("i5")
        assert IssuedSecret("i5", AGENT, PLACE, True) in await store.find_issued("prod", SECRETIVE)
        assert IssuedSecret("i1", AGENT, None, True) in await store.find_issued("prod", SECRETIVE)
        (intent,) = (intent for intent in await store.find_open_intents("prod") if intent.id == "i5")
        assert intent.place == PLACE
        assert dict(await store.find_overwritten("prod")) == {"i1": AGENT}


async def test_a_changed_place_is_reported_as_damage(written_store: Path) -> None:
    async with open_store(str(written_store)) as store:
        async with store.journal("prod", command="apply") as journal:
            await journal.intend(Intent("i5", AGENT, "prod", "/credentials", place=PLACE))
        connection = sqlite3.connect(written_store)
        connection.execute("UPDATE intents SET place = replace(place, 'agent', 'other') WHERE id = 'i5'")
        connection.commit()
        connection.close()
        with pytest.raises(Damaged):
            await store.find_issued("prod", SECRETIVE)


# Undoes the upgrade to each version.
UNDO = {
    2: "DROP TABLE looks; DROP TABLE drifts",
    3: "DROP INDEX ix_receipts_stack_place; ALTER TABLE receipts DROP COLUMN place",
    4: "ALTER TABLE intents DROP COLUMN place",
    5: "DROP TABLE plan_calls",
    6: "DROP TABLE run_origins",
    7: "DROP TABLE fleet_runs; DROP TABLE fleet_tasks; DROP TABLE fleet_shapes; DROP TABLE fleet_pauses",
    8: "ALTER TABLE bindings DROP COLUMN adopted",
}


@pytest.mark.parametrize("version", range(1, schema.VERSION))
async def test_a_store_of_an_earlier_version_is_upgraded_with_its_content(tmp_path: Path, version: int) -> None:
    file = tmp_path / "prod.db"
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        await journal.record_receipt("i1")
    connection = sqlite3.connect(file)
    for later, undo in UNDO.items():
        connection.executescript(undo if later > version else "")
    connection.execute("UPDATE store SET version = ?", (version,))
    connection.commit()
    connection.close()
    async with AsyncExitStack() as stack:
        await asyncio.gather(
            *(stack.enter_async_context(open_store(str(file))) for _ in range(4))
        )  # at the same moment
    async with open_store(str(file)) as store:
        assert await store.receipts("prod") == frozenset({"i1"})
        await store.drift_history.record("prod", DRIFT_CHECK)
        assert await store.drift_history.list_drift_checks("prod") == (DRIFT_CHECK,)
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT version FROM store").fetchall() == [(schema.VERSION,)]
    connection.close()


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
    connection.executescript((FIXTURES / f"version-{schema.VERSION}.sql").read_text(encoding="utf-8"))
    connection.close()
    assert await create(tmp_path / "new.db") == describe(tmp_path / "dumped.db")


async def test_an_upgraded_store_has_the_tables_of_a_new_one(written_store: Path, tmp_path: Path) -> None:
    async with open_store(str(written_store)):
        pass
    assert describe(written_store) == await create(tmp_path / "new.db")


def test_an_upgrade_does_not_change_existing_tables() -> None:
    """On a server each opening creates the missing tables before it upgrades the others."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        schema.metadata.create_all(connection)
        for statements in schema.UPGRADES.values():
            for statement in statements:
                if "ADD COLUMN" not in str(statement) and "receipts" not in str(statement):
                    connection.execute(statement)
    engine.dispose()


def compile_for_server(statement: Any) -> str:
    return str(statement.compile(dialect=create_mock_engine("postgresql+psycopg://", print).dialect)).strip()


def test_a_server_has_an_index_of_bindings_by_prefix() -> None:
    """The index of a server's primary key is sorted by language. An upgrade adds the same index as a new store has."""
    created = list[Any]()
    server = create_mock_engine("postgresql+psycopg://", lambda statement, *_, **__: created.append(statement))
    schema.metadata.create_all(server, checkfirst=False)
    (index,) = (text for text in map(compile_for_server, created) if "ix_bindings_scope" in text)
    assert index == "CREATE INDEX ix_bindings_scope ON bindings (stack varchar_pattern_ops)"
    (added,) = schema.SERVER_UPGRADES[7]
    assert compile_for_server(added) == index.replace("INDEX", "INDEX IF NOT EXISTS")
