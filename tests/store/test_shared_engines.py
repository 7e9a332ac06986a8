"""Engines that the members of a fleet share within a process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import make_url

from reconciler.model.address import Address
from reconciler.model.snapshot import Binding
from reconciler.store import database
from reconciler.store.database import Timeouts
from reconciler.store.errors import StoreError, Unavailable
from reconciler.store.fleets.records import open_fleet_records
from reconciler.store.shared_engines import SharedEngines
from reconciler.store.store import open_store
from tests.store.stores import new_store
from tests.store.test_postgres_server import run

BOT = Address("BotUser", "berlin")
SOON = Timeouts()


def test_an_engine_is_opened_once_and_remains_open_while_unused(tmp_path: Path) -> None:
    engines, where = SharedEngines(), str(tmp_path / "a.db")
    first, place = engines.acquire(where, SOON)
    assert engines.acquire(where, SOON) == (first, place)
    engines.release(where, SOON)
    engines.release(where, SOON)
    assert engines.acquire(where, SOON)[0] is first
    assert engines.acquire(where, Timeouts(busy=1.0))[0] is not first
    engines.close()


def test_at_most_one_unused_engine_remains_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engines, closed = SharedEngines(), list[str]()

    class Engine:
        def __init__(self, where: str) -> None:
            self.where = where

        def dispose(self) -> None:
            closed.append(self.where)

    monkeypatch.setattr(database, "open_database", lambda where, timeouts: (Engine(where), where))
    for where in "abc":
        engines.acquire(where, SOON)
    engines.release("a", SOON)
    assert closed == []
    engines.release("b", SOON)
    assert closed == ["a"]
    engines.acquire("a", SOON)
    engines.release("c", SOON)
    assert closed == ["a", "b"]
    engines.close()
    assert sorted(closed) == ["a", "a", "b", "c"]


def test_opening_an_engine_is_retried_after_a_failure(tmp_path: Path) -> None:
    engines, folder = SharedEngines(), tmp_path / "a.db"
    folder.mkdir()
    for _ in range(2):
        with pytest.raises(StoreError):
            engines.acquire(str(folder), SOON)
    folder.rmdir()
    engines.acquire(str(folder), SOON)
    engines.close()


def test_threads_that_start_at_the_same_moment_open_one_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engines, opened, together = SharedEngines(), list[str](), threading.Barrier(8)
    open_database = database.open_database

    def count(where: str, timeouts: Timeouts) -> object:
        opened.append(where)
        return open_database(where, timeouts)

    monkeypatch.setattr(database, "open_database", count)

    def use(number: int) -> int:
        together.wait()
        for _ in range(50):
            engine, _place = engines.acquire(str(tmp_path / "a.db"), SOON)
            with engine.connect() as connection:
                connection.exec_driver_sql("SELECT version FROM store")
            engines.release(str(tmp_path / "a.db"), SOON)
        return number

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(use, range(8))) == list(range(8))
    assert len(opened) == 1
    engines.close()


def test_an_engine_opened_before_a_fork_is_used_by_the_parent_only(tmp_path: Path) -> None:
    engines, where = SharedEngines(), str(tmp_path / "a.db")
    engine, _ = engines.acquire(where, SOON)
    with engine.connect() as connection:
        own = connection.connection.dbapi_connection
    engines.forget()
    assert own is not None
    own.cursor().execute("SELECT version FROM store")  # still open
    assert engines.acquire(where, SOON)[0] is not engine
    engines.close()
    with engine.connect() as connection:
        assert connection.connection.dbapi_connection is not own
    engine.dispose()
    own.close()


FORK_AND_FAIL = textwrap.dedent(
    """
    import logging, os, sys
    from reconciler.store.database import Timeouts, open_database
    from reconciler.store.errors import StoreError
    from reconciler.store.shared_engines import _engines

    engine, _ = _engines.acquire(sys.argv[1], Timeouts())
    if not (child := os.fork()):
        os._exit(_engines.acquire(sys.argv[1], Timeouts())[0] is engine)
    assert os.waitpid(child, 0)[1] == 0
    assert _engines.acquire(sys.argv[1], Timeouts())[0] is engine
    try:
        open_database("postgresql://tester@127.0.0.1:9/x", Timeouts())
    except StoreError:
        logging.getLogger("psycopg").error("a message of the driver, which the error has too")
        logging.getLogger("sqlalchemy").error("a message of the driver, which the error has too")
    """
)


def test_a_forked_process_opens_another_engine_and_no_driver_prints(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORK_AND_FAIL, str(tmp_path / "a.db")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def test_engines_of_files_are_not_shared(tmp_path: Path) -> None:
    where = str(tmp_path / "a.db")
    async with open_store(where, "berlin") as one, open_store(where, "paris") as other:
        assert one._engine is not other._engine


@pytest.mark.parametrize("where", ["postgresql:/x", "mysql://a/b", "x.db", "sqlite:///x.db", "postgresql"])
def test_only_postgresql_urls_are_servers(where: str) -> None:
    assert not database.is_server(where)
    assert database.is_server("postgres://user@host/x")
    assert database.is_server("PostgreSQL+psycopg://user@host/x")


# --- on a server --------------------------------------------------------------------------------------------------


@pytest.fixture
def url(tmp_path: Path) -> str:
    return new_store("server", tmp_path)


@pytest.mark.postgres
async def test_members_share_the_engine_of_their_server(url: str) -> None:
    async with open_store(url, "berlin") as berlin:
        pass
    async with open_store(url, "paris") as paris, open_fleet_records(url) as records, open_store(url) as other:
        assert paris._engine is berlin._engine
        assert records._engine is berlin._engine
        assert other._engine is not berlin._engine


@pytest.mark.postgres
def test_event_loops_of_several_threads_share_an_engine(url: str) -> None:
    async def bind(scope: str) -> int:
        async with open_store(url, scope) as store, store.journal("prod", command="apply") as journal:
            await journal.bind({BOT: Binding(scope)})
            assert await store.bindings("prod") == {BOT: Binding(scope)}
            return id(store._engine)

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda number: asyncio.run(bind(f"m{number}")), range(40)))) == 1


@pytest.mark.postgres
async def test_connections_that_the_server_closed_are_replaced(url: str) -> None:
    async with open_store(url, "berlin") as store, store.journal("prod", command="apply") as journal:
        await journal.bind({BOT: Binding("bot_1")})
    name = make_url(url).database
    run(
        os.environ["RECONCILER_TEST_POSTGRES"],
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",  # noqa: S608 - a name from this test
    )
    async with open_store(url, "berlin") as store:
        assert await store.bindings("prod") == {BOT: Binding("bot_1")}


FORKED = textwrap.dedent(
    """
    import os, sys
    from reconciler.store.database import Timeouts
    from reconciler.store.shared_engines import _engines

    def backend():
        engine, _ = _engines.acquire(sys.argv[1], Timeouts())
        with engine.connect() as connection:
            return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()

    of_parent = backend()
    if not (child := os.fork()):
        assert backend() != of_parent
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert backend() == of_parent
    """
)


@pytest.mark.postgres
def test_a_forked_process_does_not_use_the_connections_of_its_parent(url: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, url], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.postgres
async def test_an_unreachable_server_is_named_each_time() -> None:
    for _ in range(2):
        with pytest.raises(Unavailable, match="connection failed"):
            async with open_store("postgresql://tester@127.0.0.1:9/x", "berlin"):
                pass
