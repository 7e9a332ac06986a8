"""A store that an earlier version wrote, as it was dumped then: all that is in it is read, and new rows go beside."""

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
APPLICATION = 0x7263_6E63  # in the header of our files, which a dump leaves out
SECRETIVE = ("TunnelCredential", "APIKey")
AGENT, KEY, HALF = (Address.parse(each) for each in ("TunnelCredential/agent", "APIKey/ci", "TunnelCredential/half"))
EDGE = Address("TLSEdge", "shop")
DRIFTED_EDGE = DriftedResource(EDGE, Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM, ("description", "a.b"))
DRIFT_CHECK = DriftCheck(100.0, 12, "abc", (DRIFTED_EDGE,))
PLACE = Place("to_file", "secrets/agent.token", "", "laptop", "a")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    file = tmp_path / "prod.db"
    connection = sqlite3.connect(file)
    connection.executescript(DUMP.read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.commit()
    connection.close()
    return file


async def test_a_store_of_version_3_is_read_whole(written: Path) -> None:
    async with open_store(str(written)) as store:
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


async def test_new_creates_say_where_their_secret_goes_beside_those_that_do_not(written: Path) -> None:
    async with open_store(str(written)) as store:
        async with store.journal("prod", command="apply") as journal:
            await journal.intend(Intent("i5", AGENT, "prod", "/credentials", place=PLACE))
            await journal.record_receipt("i5")
        assert IssuedSecret("i5", AGENT, PLACE, True) in await store.find_issued("prod", SECRETIVE)
        assert IssuedSecret("i1", AGENT, None, True) in await store.find_issued("prod", SECRETIVE)
        (intent,) = (intent for intent in await store.find_open_intents("prod") if intent.id == "i5")
        assert intent.place == PLACE
        assert dict(await store.find_overwritten("prod")) == {"i1": AGENT}


async def test_a_place_that_was_changed_in_the_store_is_damage(written: Path) -> None:
    async with open_store(str(written)) as store:
        async with store.journal("prod", command="apply") as journal:
            await journal.intend(Intent("i5", AGENT, "prod", "/credentials", place=PLACE))
        connection = sqlite3.connect(written)
        connection.execute("UPDATE intents SET place = replace(place, 'agent', 'other') WHERE id = 'i5'")
        connection.commit()
        connection.close()
        with pytest.raises(Damaged):
            await store.find_issued("prod", SECRETIVE)


NOT_BEFORE = {
    2: "DROP TABLE looks; DROP TABLE drifts",
    3: "DROP INDEX ix_receipts_stack_place; ALTER TABLE receipts DROP COLUMN place",
    4: "ALTER TABLE intents DROP COLUMN place",
    5: "DROP TABLE plan_calls",
    6: "DROP TABLE run_origins",
    7: "DROP TABLE fleet_runs; DROP TABLE fleet_tasks; DROP TABLE fleet_shapes; DROP TABLE fleet_pauses",
    8: "ALTER TABLE bindings DROP COLUMN adopted",
}


@pytest.mark.parametrize("version", range(1, schema.VERSION))
async def test_a_store_of_before_is_brought_up_with_all_that_is_in_it(tmp_path: Path, version: int) -> None:
    file = tmp_path / "prod.db"
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        await journal.record_receipt("i1")
    connection = sqlite3.connect(file)
    for since, undo in NOT_BEFORE.items():
        connection.executescript(undo if since > version else "")
    connection.execute("UPDATE store SET version = ?", (version,))
    connection.commit()
    connection.close()
    many = 4  # processes that find it so at the same moment
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(open_store(str(file))) for _ in range(many)))
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
    """The columns of each table (name, type, whether it may be empty, its default, its place in the primary key), and
    its indexes (whether it is unique, how it came to be, its columns)."""
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


async def test_the_tables_change_with_the_version_only(tmp_path: Path) -> None:
    """Stores of this version exist: tables that change need a new version, an upgrade, and a dump of the new tables."""
    connection = sqlite3.connect(tmp_path / "written.db")
    connection.executescript((FIXTURES / f"version-{schema.VERSION}.sql").read_text(encoding="utf-8"))
    connection.close()
    assert await create(tmp_path / "new.db") == describe(tmp_path / "written.db")


async def test_an_upgraded_store_has_the_tables_of_a_new_one(written: Path, tmp_path: Path) -> None:
    async with open_store(str(written)):
        pass
    assert describe(written) == await create(tmp_path / "new.db")


def test_an_upgrade_leaves_tables_that_exist_already() -> None:
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


def test_a_server_finds_bindings_by_the_beginning_of_their_key() -> None:
    """A server's own index of the key is sorted by language. An upgrade adds the same index as a new store has."""
    created = list[Any]()
    server = create_mock_engine("postgresql+psycopg://", lambda statement, *_, **__: created.append(statement))
    schema.metadata.create_all(server, checkfirst=False)
    (index,) = (text for text in map(compile_for_server, created) if "ix_bindings_scope" in text)
    assert index == "CREATE INDEX ix_bindings_scope ON bindings (stack varchar_pattern_ops)"
    (added,) = schema.SERVER_UPGRADES[7]
    assert compile_for_server(added) == index.replace("INDEX", "INDEX IF NOT EXISTS")
