"""Opens databases: files and stores in memory, and the messages of their errors."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import exc

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.snapshot import Binding
from reconciler.store import database
from reconciler.store.account import AccountMembership
from reconciler.store.database import Timeouts
from reconciler.store.errors import MEMORY, Damaged, StoreError, Unavailable
from reconciler.store.store import open_store

BOT = Address("BotUser", "berlin")
FILE, SERVER = "state/prod.db", "postgresql://h/x"


def wrap(kind: type[exc.DBAPIError], message: str) -> exc.DBAPIError:
    """An error of a driver, as SQLAlchemy raises it."""
    return kind("SELECT 1", {}, Exception(message))


@pytest.mark.parametrize(
    ("place", "error", "kind", "message"),
    [
        (FILE, wrap(exc.OperationalError, "no such table: bindings"), Damaged, "(no such table: bindings); move"),
        (FILE, wrap(exc.OperationalError, "database disk image is malformed"), Damaged, "malformed); move it"),
        (FILE, wrap(exc.OperationalError, "database is locked"), Unavailable, "wait until it has ended"),
        (FILE, wrap(exc.OperationalError, "disk I/O error"), Unavailable, "check the disk and its free space"),
        (FILE, wrap(exc.OperationalError, "database or disk is full"), Unavailable, "; free disk space"),
        (FILE, wrap(exc.DatabaseError, "file is not a database"), Damaged, "(file is not a database); move it"),
        (FILE, sqlite3.OperationalError("unable to open database file"), Unavailable, "its folder writable"),
        (FILE, sqlite3.DatabaseError("file is not a database"), Damaged, "(file is not a database); move it away"),
        (FILE, UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), Damaged, "(a text in it is not UTF-8); move it"),
        (FILE, exc.TimeoutError("QueuePool limit"), Unavailable, "(QueuePool limit); make it readable and writable"),
        (FILE, OSError(28, "No space left on device"), Unavailable, "(No space left on device); free disk space"),
        (FILE, OSError("odd"), Unavailable, "(odd); make it readable and writable"),
        (
            SERVER,
            wrap(exc.ProgrammingError, "permission denied for schema reconciler\nLINE 1: SELECT"),
            Unavailable,
            "(permission denied for schema reconciler); grant the role USAGE and CREATE on the schema reconciler, or",
        ),
        (
            SERVER,
            wrap(exc.ProgrammingError, "permission denied for table locks"),
            Unavailable,
            "; grant the role SELECT, INSERT, UPDATE and DELETE on all tables in the schema reconciler, or",
        ),
        (
            SERVER,
            wrap(exc.OperationalError, '\nconnection to server at "h" failed'),
            Unavailable,
            '(connection to server at "h" failed); check that the server runs and accepts the connection, or set',
        ),
    ],
)
def test_an_error_names_the_problem_and_the_remedy(
    place: str, error: Exception, kind: type[StoreError], message: str
) -> None:
    with pytest.raises(kind) as raised, database.explain_errors(place):
        raise error
    assert str(raised.value).startswith(place)
    assert message in str(raised.value)


def test_a_password_of_an_opened_url_is_removed_from_errors() -> None:
    url = "postgresql://u:canary-p%40ss-1@127.0.0.1:1/x?sslpassword=canary-ssl-2&sslpassword=canary-ssl-3"
    with pytest.raises(Unavailable):
        database.open_database(url, Timeouts())
    for secret in ("canary-p@ss-1", "canary-ssl-2", "canary-ssl-3"):
        for error in (wrap(exc.OperationalError, f"bad {secret}"), exc.ArgumentError(f"bad {secret}")):
            with pytest.raises(Unavailable, match=r"\(bad \(secret\)") as raised, database.explain_errors(SERVER):
                raise error
            assert "canary" not in str(raised.value)


async def test_a_store_without_one_of_its_tables_is_damaged(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "prod.db")) as store:
        with sqlite3.connect(tmp_path / "prod.db") as connection:
            connection.execute("DROP TABLE bindings")
        connection.close()
        with pytest.raises(Damaged, match="no such table: bindings"):
            await store.bindings("prod")


async def test_a_store_without_a_version_is_damaged(tmp_path: Path) -> None:
    database.open_database(str(tmp_path / "prod.db"), Timeouts())[0].dispose()
    with sqlite3.connect(tmp_path / "prod.db") as connection:
        connection.execute("DELETE FROM store")
    connection.close()
    with pytest.raises(Damaged, match="it has no schema version"):
        database.open_database(str(tmp_path / "prod.db"), Timeouts())


def find_open_files(folder: Path) -> list[str]:
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(descriptor.readlink()))
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
    return sorted(path for path in found if path.startswith(str(folder)))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list open files")
async def test_files_are_closed_after_use_and_after_a_refusal(tmp_path: Path) -> None:
    file = tmp_path / "prod.db"
    async with open_store(str(file)) as store:
        await store.bindings("prod")
        assert str(file) in find_open_files(tmp_path)
    assert find_open_files(tmp_path) == []
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE store SET version = 99")
    connection.close()
    refusals = []
    for _ in range(3):
        with pytest.raises(Unavailable) as refused:
            database.open_database(str(file), Timeouts())
        refusals.append(refused)  # its frames could reference a connection
    assert find_open_files(tmp_path) == []


async def test_a_new_store_is_synced_to_disk_before_its_first_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = set[int]()
    fsync = os.fsync

    def record_sync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record_sync)
    async with open_store(str(tmp_path / "prod.db")):
        assert synced >= {(tmp_path / "prod.db").stat().st_ino, tmp_path.stat().st_ino}


async def test_a_store_that_another_process_creates_at_the_same_moment_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def link_later(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        asyncio.run(store_a_binding(target))
        link(source, target)

    monkeypatch.setattr(os, "link", link_later)
    async with open_store(str(tmp_path / "prod.db")) as store:
        assert await store.bindings("prod") == {BOT: Binding("bot_1")}
    assert [path.name for path in tmp_path.iterdir()] == ["prod.db"]


async def store_a_binding(file: Path) -> None:
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        await journal.bind({BOT: Binding("bot_1")})


async def test_readers_and_writers_share_the_store_in_memory() -> None:
    async with open_store(MEMORY) as store, store.journal("prod", command="apply") as journal:
        bots = [Address("BotUser", f"b{number}") for number in range(20)]
        found = await asyncio.gather(
            *(journal.bind({bot: Binding("bot_1")}) for bot in bots), *(store.bindings("prod") for _ in range(20))
        )
        assert all(bindings is None or bindings.keys() <= set(bots) for bindings in found)
        assert (await store.bindings("prod")).keys() == set(bots)


async def test_a_store_in_memory_with_no_free_connection_is_refused() -> None:
    async with open_store(MEMORY, timeouts=Timeouts(busy=0.01)) as store:
        with store._engine.connect(), pytest.raises(Unavailable, match=r"^the store in memory cannot be used \(QueueP"):
            await store.bindings("prod")


def fail(failure: StoreError) -> None:
    raise AssertionError(failure)


async def test_a_store_in_memory_supports_all_that_a_file_does() -> None:
    async with (
        open_store(MEMORY) as store,
        store.lock("prod", on_loss=fail) as holder,
        store.journal("prod", command="apply", holder=holder) as journal,
    ):
        await asyncio.gather(*(journal.intend(Intent(f"i{n}", BOT, "prod", "/bot_users")) for n in range(50)))
        await journal.bind({BOT: Binding("bot_1")})
        await journal.record_account(AccountMembership("https://a", ("BotUser:bot_1",)))
        assert len(await store.find_open_intents("prod")) == 50
        assert await store.bindings("prod") == {BOT: Binding("bot_1")}
        assert await store.membership("prod") == AccountMembership("https://a", ("BotUser:bot_1",))


async def test_a_new_store_in_memory_is_empty() -> None:
    async with open_store(MEMORY) as store, store.journal("prod", command="apply") as journal:
        await journal.bind({BOT: Binding("bot_1")})
    async with open_store(MEMORY) as store:
        assert await store.bindings("prod") == {}


async def test_the_memory_url_of_sqlite_is_refused_with_the_supported_one() -> None:
    with pytest.raises(Unavailable, match="use memory: if that is intended"):
        async with open_store("sqlite:///:memory:"):
            pass
