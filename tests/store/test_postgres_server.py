"""The store on a real PostgreSQL server, which `make test-postgres` starts for these tests."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import uuid

import pytest
from sqlalchemy import create_engine, make_url, text

from reconciler.engine.ports import Intent
from reconciler.model.access_change import Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Ended, Outcome
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.history import CheckedHealth, DriftCheck, DriftedResource, Opening
from reconciler.model.plan import Call, Verb
from reconciler.model.snapshot import Binding
from reconciler.store import database, encoding, lock
from reconciler.store.account import AccountMembership
from reconciler.store.database import Timeouts
from reconciler.store.errors import Damaged, Locked, StoreError, Unavailable, Unreleased
from reconciler.store.store import open_store
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project, policies, resource

pytestmark = pytest.mark.postgres

BOT = Address("BotUser", "berlin")
INTENT = Intent("i1", BOT, "prod", "/bot_users", frozenset({"bot_2", "bot_1"}), {"name": "berlin"})


def run(url: str, *statements: str) -> list[tuple[object, ...]]:
    """The rows of the last statement, executed as an administrator."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    found: list[tuple[object, ...]] = []
    with engine.connect() as connection:
        for statement in statements:
            result = connection.execute(text(statement))
            found = [tuple(row) for row in result] if result.returns_rows else []
    engine.dispose()
    return found


@pytest.fixture
def url() -> str:
    """An empty database."""
    server = os.environ["RECONCILER_TEST_POSTGRES"]
    name = f"t{uuid.uuid4().hex}"
    run(server, f"CREATE DATABASE {name}")
    return make_url(server).set(database=name).render_as_string(hide_password=False)


def fail(failure: StoreError) -> None:
    raise AssertionError(failure)


async def test_stored_rows_are_read_after_the_store_is_opened_again(url: str) -> None:
    binding = Binding("bot_3", {"name": "abc"}, protect=True)
    call = Call("create BotUser/berlin", BOT, Verb.CREATE, "/bot_users")
    async with open_store(url) as store, store.journal("prod", command="apply") as journal:
        await journal.intend(INTENT)
        await journal.bind({BOT: binding})
        await journal.record_receipt("i0")
        await journal.record_account(AccountMembership("https://a", ("BotUser:bot_3",)))
        await journal.record(Ended(call, Outcome.DONE, 1.0, "bot_3"))
    async with open_store(url) as store:
        assert await store.find_open_intents("prod") == (INTENT,)
        assert await store.bindings("prod") == {BOT: binding}
        assert await store.receipts("prod") == frozenset({"i0"})
        assert await store.membership("prod") == AccountMembership("https://a", ("BotUser:bot_3",))
        assert [recorded_call.outcome for recorded_call in await store.history("prod")] == ["succeeded"]
        assert await store.find_open_intents("dev") == ()


async def test_runs_and_drift_checks_are_listed(url: str) -> None:
    moved = DriftedResource(BOT, Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM, ("name",))
    opening = Opening("https://a.example.com", Verdict.WIDENS, "no one", "everyone", is_certain=False)
    health = CheckedHealth(1, (HealthRow(str(BOT), "bot_3", Health(State.DEGRADED, due=9.5)),))
    check = DriftCheck(100.0, 12, "abc", (moved,), complete=False, openings=(opening,), health=health)
    async with open_store(url) as store:
        async with store.journal("prod", command="apply") as journal:
            await journal.record(Ended(Call("x", BOT, Verb.CREATE, "/bot_users"), Outcome.DONE, 1.0, "bot_3"))
        await store.drift_history.record("prod", check)
        assert await store.drift_history.list_drift_checks("prod") == (check,)
        assert await store.drift_history.list_judged("prod", 1) == (check,)
        (listed_run,) = await store.drift_history.list_runs("prod")
        assert (listed_run.command, listed_run.calls) == ("apply", {Outcome.DONE: 1})


@pytest.mark.parametrize("version", [1, encoding.VERSION - 1])
async def test_a_store_of_an_unreleased_version_is_refused_and_not_changed(url: str, version: int) -> None:
    """No missing table is created either, also if several processes open it at the same moment."""
    async with open_store(url) as store, store.journal("prod", command="apply") as journal:
        await journal.record_receipt("i0")
    run(
        url,
        "DROP TABLE reconciler.looks",
        "ALTER TABLE reconciler.receipts DROP COLUMN place",
        f"UPDATE reconciler.store SET version = {version:d}",  # noqa: S608
    )
    columns = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'reconciler'"
    before = sorted(run(url, columns), key=str)

    async def open_refused() -> None:
        with pytest.raises(Unreleased, match=f"has schema version {version}, .* was not changed"):
            async with open_store(url):
                pass

    await asyncio.gather(*(open_refused() for _ in range(4)))
    assert sorted(run(url, columns), key=str) == before
    assert run(url, "SELECT version FROM reconciler.store") == [(version,)]
    assert run(url, "SELECT intent FROM reconciler.receipts") == [("i0",)]


async def test_a_concluded_intent_is_not_open(url: str) -> None:
    async with open_store(url) as store, store.journal("prod", command="apply") as journal:
        await asyncio.gather(*(journal.intend(Intent(f"i{n}", BOT, "prod", "/bot_users")) for n in range(200)))
        await journal.conclude("i7", "bot_3")
        assert len(await store.find_open_intents("prod")) == 199


async def test_a_stack_is_locked_for_other_connections(url: str) -> None:
    async with open_store(url) as one, open_store(url) as other, one.lock("prod", on_loss=fail):
        with pytest.raises(Locked, match="is being applied by process"):
            async with other.lock("prod", on_loss=fail):
                pass
        async with other.lock("dev", on_loss=fail):
            pass


@pytest.mark.parametrize("wrong", [-10_000, -545, 61, 10_000])
async def test_a_wrong_clock_takes_over_no_lock_and_loses_none(url: str, wrong: float) -> None:
    """The server's clock decides about expiry, whatever the clocks of its clients are."""
    remote = lock.Holder("t", "elsewhere", "another machine", 1)
    async with open_store(url) as right, open_store(url, now=lambda: time.time() + wrong) as other:
        async with lock.hold_lock(right._engine, url, "prod", on_loss=fail, holder=remote):
            with pytest.raises(Locked, match=r"process 1 on elsewhere since .*; wait .* within (60|59) s"):
                async with other.lock("prod", on_loss=fail):
                    pass
        async with other.lock("prod", on_loss=fail):
            with pytest.raises(Locked):
                async with lock.hold_lock(right._engine, url, "prod", on_loss=fail, holder=remote):
                    pass
        left = "SELECT 'prod', 't', 'x', 'y', 1, ago, ago FROM (SELECT extract(epoch FROM now()) - 1 AS ago)"
        run(url, f"INSERT INTO reconciler.locks {left} AS past")
        async with other.lock("prod", on_loss=fail):
            pass


async def test_a_heartbeat_by_a_wrong_clock_renews_the_lock(url: str) -> None:
    async with open_store(url, now=lambda: 0.0) as store, store.lock("prod", on_loss=fail, lasts=0.4):
        (first,) = run(url, "SELECT expires FROM reconciler.locks")
        await asyncio.sleep(0.2)  # two heartbeats
        assert run(url, "SELECT expires FROM reconciler.locks") > [first]
        assert run(url, "SELECT expires > extract(epoch FROM clock_timestamp()) FROM reconciler.locks") == [(True,)]


KILLED = textwrap.dedent(
    """
    import asyncio, os, signal, sys
    from reconciler.engine.ports import Intent
    from reconciler.model.address import Address
    from reconciler.store.store import open_store

    async def main():
        async with open_store(sys.argv[1]) as store, store.lock("prod", on_loss=print) as holder:
            async with store.journal("prod", command="apply", holder=holder) as journal:
                for number in range(25):
                    await journal.intend(Intent(f"i{number}", Address("BotUser", "b"), "prod", "/bot_users"))
                os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())
    """
)


async def test_after_a_kill_acknowledged_writes_are_stored_and_the_lock_is_free(url: str) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, url], check=False)  # noqa: ASYNC221 - waits for its end
    assert killed.returncode == -signal.SIGKILL
    async with open_store(url) as store, store.lock("prod", on_loss=fail):
        assert len(await store.find_open_intents("prod")) == 25


OPENED = textwrap.dedent(
    """
    import asyncio, sys
    from reconciler.store.store import open_store

    async def main(url, stack):
        async with open_store(url) as store, store.journal(stack, command="apply") as journal:
            await journal.record_receipt(stack)

    sys.stdin.readline()  # until all processes have started
    asyncio.run(main(*sys.argv[1:]))
    """
)


def test_processes_that_create_the_schema_at_the_same_time_create_one(url: str) -> None:
    def start(stack: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", OPENED, url, stack]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    processes = [start(f"s{number}") for number in range(4)]
    assert [process.communicate("go\n")[1] for process in processes] == [""] * 4
    assert run(url, "SELECT version FROM reconciler.store") == [(encoding.VERSION,)]


async def test_connections_that_create_the_schema_at_the_same_time_create_one(url: str) -> None:
    """Eight connections to each of six databases: without a lock around the creation, some would find half a schema."""

    async def one(url: str, stack: str) -> None:
        async with open_store(url) as store, store.journal(stack, command="apply") as journal:
            await journal.record_receipt(stack)

    for number in range(6):
        name = make_url(url).database
        run(url, f"CREATE DATABASE {name}_{number}")
        fresh = make_url(url).set(database=f"{name}_{number}").render_as_string(hide_password=False)
        await asyncio.gather(*(one(fresh, f"s{stack}") for stack in range(8)))
        assert run(fresh, "SELECT version FROM reconciler.store") == [(encoding.VERSION,)]


async def test_a_connection_waits_while_another_creates_the_schema(url: str) -> None:
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.begin() as other:
        other.execute(text(f"SELECT pg_advisory_xact_lock({database.SCHEMA_LOCK})"))
        other.execute(text("CREATE SCHEMA reconciler"))
        store = open_store(url)
        waiting = asyncio.ensure_future(store.__aenter__())
        await asyncio.sleep(0.5)
        assert not waiting.done()
    await waiting
    await store.__aexit__(None, None, None)
    engine.dispose()


async def test_tables_of_the_same_names_in_another_schema_are_unchanged(url: str) -> None:
    run(url, "CREATE TABLE store (version text)", "INSERT INTO store VALUES ('a shop')", "CREATE TABLE locks (x text)")
    async with open_store(url) as store, store.journal("prod", command="apply") as journal:
        await journal.record_receipt("i0")
    assert run(url, "SELECT version FROM public.store") == [("a shop",)]


async def test_a_newer_version_is_refused(url: str) -> None:
    async with open_store(url):
        pass
    run(url, "UPDATE reconciler.store SET version = 99")
    with pytest.raises(Unavailable, match=f"schema version is 99, .* supports versions up to {encoding.VERSION}"):
        async with open_store(url):
            pass


async def test_an_edited_row_is_refused(url: str) -> None:
    async with open_store(url) as store, store.journal("prod", command="apply") as journal:
        await journal.bind({BOT: Binding("bot_3")})
    run(url, "UPDATE reconciler.bindings SET object = 'bot_4'")
    async with open_store(url) as store:
        with pytest.raises(Damaged, match="a row does not match its seal"):
            await store.bindings("prod")


async def test_missing_rights_are_reported_without_the_password(url: str) -> None:
    name = make_url(url).database
    run(url, f"CREATE ROLE guest_{name} LOGIN", f"REVOKE ALL ON DATABASE {name} FROM public")
    guest = make_url(url).set(username=f"guest_{name}", password="canary-d41d8cd9")
    with pytest.raises(Unavailable) as refused:
        async with open_store(guest.render_as_string(hide_password=False)):
            pass
    assert "permission denied" in str(refused.value)
    assert "canary" not in str(refused.value)
    assert "move it away" not in str(refused.value)


def grants(url: str, *rights: str) -> str:
    """The URL for a role with these rights and no others."""
    name = make_url(url).database
    run(url, f"CREATE ROLE worker_{name} LOGIN", f"REVOKE ALL ON DATABASE {name} FROM public")
    run(url, *(f"GRANT {right} TO worker_{name}" for right in rights))
    return make_url(url).set(username=f"worker_{name}").render_as_string(hide_password=False)


CONNECT, USE = "CONNECT ON DATABASE {name}", "USAGE ON SCHEMA reconciler"
TABLES = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA reconciler"


async def test_prepared_tables_need_no_right_to_create_any(url: str) -> None:
    async with open_store(url):
        pass
    worker = grants(url, CONNECT.format(name=make_url(url).database), USE, TABLES)
    async with (
        open_store(worker) as store,
        store.lock("prod", on_loss=fail) as holder,
        store.journal("prod", command="apply", holder=holder) as journal,
    ):
        await journal.intend(INTENT)
        await journal.bind({BOT: Binding("bot_3")})
        assert await store.bindings("prod") == {BOT: Binding("bot_3")}


async def test_a_prepared_schema_needs_no_right_on_the_database(url: str) -> None:
    run(url, "CREATE SCHEMA reconciler")
    worker = grants(url, CONNECT.format(name=make_url(url).database), "USAGE, CREATE ON SCHEMA reconciler")
    async with open_store(worker) as store, store.journal("prod", command="apply") as journal:
        await journal.intend(INTENT)


@pytest.mark.parametrize(
    ("prepared", "rights", "remedy"),
    [
        ([], [], "grant the role CONNECT on the database, and CREATE unless the schema reconciler exists"),
        ([], [CONNECT], "grant the role CONNECT on the database, and CREATE unless the schema reconciler exists"),
        (["CREATE SCHEMA reconciler"], [CONNECT], "grant the role USAGE and CREATE on the schema reconciler"),
        (["CREATE SCHEMA reconciler"], [CONNECT, USE], "grant the role USAGE and CREATE on the schema reconciler"),
        (
            ["CREATE SCHEMA reconciler", "CREATE TABLE reconciler.store (version integer)"],
            [CONNECT, "USAGE, CREATE ON SCHEMA reconciler"],
            "grant the role SELECT, INSERT, UPDATE and DELETE on all tables in the schema reconciler",
        ),
    ],
)
async def test_a_missing_right_is_named_with_its_remedy(
    url: str, prepared: list[str], rights: list[str], remedy: str
) -> None:
    if prepared:
        run(url, *prepared)
    worker = grants(url, *(right.format(name=make_url(url).database) for right in rights))
    with pytest.raises(Unavailable) as refused:
        async with open_store(worker):
            pass
    assert f"; {remedy}, or set RECONCILER_STORE to another path or URL" in str(refused.value)


async def test_errors_of_the_driver_are_printed_without_passwords(url: str) -> None:
    with pytest.raises(Unavailable, match=r"\(secret\)") as refused:
        async with open_store("postgresql://tester@/x?host=canary-d41d8cd9.invalid&password=canary-d41d8cd9"):
            pass
    assert "canary" not in str(refused.value)


async def test_the_order_of_deliveries_does_not_depend_on_the_clock(url: str) -> None:
    for intent, clock in (("i1", 2000.0), ("i2", 1000.0), ("i3", 1001.0)):
        async with (
            open_store(url, now=lambda clock=clock: clock) as store,  # type: ignore[misc]
            store.journal("prod", command="apply") as journal,
        ):
            await journal.intend(Intent(intent, BOT, "prod", "/credentials"))
            await journal.record_receipt(intent)
    async with open_store(url) as store:
        assert await store.find_overwritten("prod") == {"i1": BOT, "i2": BOT}


async def test_a_server_that_accepts_no_connection_is_refused_after_a_timeout() -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    url = f"postgresql://tester@127.0.0.1:{silent.getsockname()[1]}/x"
    with silent, pytest.raises(Unavailable, match=r"connection .*timeout.*; check that the server runs"):
        async with open_store(url, timeouts=Timeouts(connect=2)):
            pass


async def test_a_server_that_stops_responding_is_refused_after_a_timeout(url: str) -> None:
    async with open_store(url, timeouts=Timeouts(answer=0.5)) as store:
        blocking = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
        with blocking.begin() as connection:
            connection.execute(text("LOCK TABLE reconciler.bindings"))
            with pytest.raises(
                Unavailable, match=r"\(connection closed: the server did not respond within .*; check that"
            ):
                await store.bindings("prod")
        blocking.dispose()
        assert await store.bindings("prod") == {}


async def test_an_unreachable_server_is_named(url: str) -> None:
    with pytest.raises(Unavailable) as refused:
        async with open_store("postgresql://tester:canary-d41d8cd9@127.0.0.1:9/x"):
            pass
    assert str(refused.value).startswith("postgresql://tester:***@127.0.0.1:9/x cannot be used (connection failed")
    assert "check that the server runs" in str(refused.value)


async def test_a_connection_closed_by_the_server_fails_the_waiting_write(
    url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_store(url) as store, store.journal("prod", command="apply") as journal:
        name = make_url(url).database
        run(
            os.environ["RECONCILER_TEST_POSTGRES"],
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",  # noqa: S608 - a name from this test
        )
        with pytest.raises(Unavailable):
            await journal.intend(INTENT)
    assert capfd.readouterr().err == ""  # the driver would print there


def test_commands_use_a_store_on_a_server(on_sandbox: Project, sandbox: Sandbox, url: str) -> None:
    on_sandbox.environ["RECONCILER_STORE"] = url
    on_sandbox.declare(*policies("a"), resource("BotUser", "robot", name="robot"))
    assert on_sandbox("history") == Output(0, "", "No calls recorded yet.\n")
    assert on_sandbox("apply", "-y", "--quiet") == Output(0, "Applied: 2 created.\n", "")
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    assert on_sandbox("history").out.count("create BotUser/robot") == 1
    assert on_sandbox("plan", "--detailed-exitcode").code == 0
    assert not (on_sandbox.root / "state").exists()
