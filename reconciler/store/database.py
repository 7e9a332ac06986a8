"""Opens the database of a store: creates a new one whole or not at all, and refuses one that is damaged or not ours.

A file that cannot be trusted is never taken for an empty one, and a file of another program's is never written to.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, insert, select, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from reconciler.model.redaction import Redactor
from reconciler.store import errors, postgres, schema
from reconciler.store.errors import MEMORY, Damaged, Foreign, Unavailable

_MAGIC = b"SQLite format 3\0"
_APPLICATION = 0x7263_6E63  # "rcnc" in the header of our files: SQLite leaves the number to the application
_BROKEN = ("malformed", "unsupported file format", "no such table", "no such column")
_SCHEMES = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": postgres.DRIVER,
    "postgresql+psycopg": postgres.DRIVER,
    "postgres": postgres.DRIVER,  # as the server's own tools say too
}
SCHEMA_LOCK = 0x7263_6E63  # the key of the advisory lock around the creation of the schema on a server
_HAS_SCHEMA = text("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = :name")
_redactor = Redactor(())  # over what drivers say, who may quote the URL they were given


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds until an attempt is given up.

    busy     while another process works with the file
    connect  to a server, which waits for 2 at least; the URL may say otherwise
    answer   of a server; a lock lives twice as long without a heartbeat
    """

    busy: float = 30.0
    connect: int = 10
    answer: float = 30.0


def open_database(where: str, timeouts: Timeouts) -> tuple[Engine, str]:
    """The database behind a path or URL, and how to call it in messages (without a password)."""
    if where == MEMORY:
        return _open_memory(timeouts), "the store in memory"
    if "://" not in where:
        return _open_file(Path(where), timeouts), where
    url = _parse_url(where)
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            raise Unavailable(where, "a store in memory survives nothing", f"say {MEMORY} if that is meant")
        return _open_file(Path(url.database), timeouts), url.database
    return _open_server(url, timeouts)


def _parse_url(where: str) -> URL:
    """Where it cannot be read nothing of it is shown: who knows where in it the password is."""
    scheme, _, rest = where.partition("://")
    if scheme.lower() not in _SCHEMES:
        why = "stores are files, or tables on a PostgreSQL server"
        raise Unavailable(f"{scheme}://…", why, "use postgresql:// or the path of a file")
    if rest.count("@") > 1 and _SCHEMES[scheme.lower()] == postgres.DRIVER:
        raise Unavailable("the store", "its URL has more than one @", "write those within a word as %40")
    try:
        return make_url(f"{_SCHEMES[scheme.lower()]}://{rest}")
    except ArgumentError:
        raise Unavailable("the store", "its URL cannot be read") from None
    except ValueError:
        remedy = "write several servers as postgresql://user@/database?host=a:5432&host=b:5432"
        raise Unavailable("the store", "the port in its URL is no number", remedy) from None


@contextmanager
def explain_errors(place: str) -> Iterator[None]:
    """Database errors as ours: damaged, or not available."""
    try:
        yield
    except OperationalError as failure:
        # "disk I/O error", "database is locked" and the like may pass; these do not
        damaged = any(sign in str(failure.orig) for sign in _BROKEN)
        raise (Damaged if damaged else errors.explain_unavailable)(place, _first_line(failure)) from failure
    except DatabaseError as failure:
        served = "://" in place  # a server looks after its own files: what it refuses is a matter of rights
        raise (errors.explain_unavailable if served else Damaged)(place, _first_line(failure)) from failure
    except sqlite3.OperationalError as failure:  # from the first words to a fresh connection, which nobody wraps
        raise errors.explain_unavailable(place, str(failure)) from failure
    except sqlite3.DatabaseError as failure:
        raise Damaged(place, str(failure)) from failure
    except UnicodeDecodeError as failure:  # of what SQLite quotes where it does not understand it
        raise Damaged(place, "a text in it is not UTF-8") from failure
    except SQLAlchemyError as failure:
        raise Unavailable(place, _redactor.redact(str(failure))) from failure
    except OSError as failure:
        raise errors.explain_unavailable(place, failure.strerror or str(failure)) from failure


def _first_line(failure: DatabaseError) -> str:
    return _redactor.redact(str(failure.orig).strip().partition("\n")[0])


# --- a server ---------------------------------------------------------------------------------------------------------


def _open_server(url: URL, timeouts: Timeouts) -> tuple[Engine, str]:
    shown = postgres.display_name(url)
    for password in postgres.find_passwords(url):
        _redactor.add(password)
    with explain_errors(shown):
        try:
            engine = postgres.make_engine(url, connect=timeouts.connect, answer=timeouts.answer)
        except ImportError as failure:
            why = f"its driver is not installed: {failure}"
            raise Unavailable(shown, why, "install reconciler with its extra postgres") from failure
        try:
            # A database serves many: our tables stand in a schema of their own.
            engine = engine.execution_options(schema_translate_map={None: schema.NAME})
            _create_on_server(engine)
            _upgrade(engine, shown)
        except BaseException:
            engine.dispose()
            raise
    return engine, shown


def _create_on_server(engine: Engine) -> None:
    """Creates what is missing, one process at a time: IF NOT EXISTS does not keep two from creating the same at once.

    The lock ends with the transaction, so that a process that dies here leaves nothing behind.
    """
    with engine.begin() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(SCHEMA_LOCK)))
        # Who may not make a schema may not say IF NOT EXISTS either.
        if connection.execute(_HAS_SCHEMA, {"name": schema.NAME}).first() is None:
            connection.execute(text(f"CREATE SCHEMA {schema.NAME}"))
        _create_tables(connection)


# --- a file -----------------------------------------------------------------------------------------------------------


def _open_file(path: Path, timeouts: Timeouts) -> Engine:
    place = str(path)
    with explain_errors(place):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            if Path(f"{path}-wal").exists():
                raise Damaged(f"{path}-wal", "the database it belongs to is gone")
            _create_file(path)
        _check_header(path, place)
        engine = _make_engine(path, timeouts)
        try:
            _upgrade(engine, place)
            _check_pages(engine, place)
        except BaseException:
            engine.dispose()
            raise
    return engine


def _check_header(path: Path, place: str) -> None:
    """Read without SQLite, which would write to another program's file as soon as it is told how to work."""
    with path.open("rb") as file:
        header = file.read(100)  # the size of SQLite's header; the application's number is at 68
    if not header:
        raise Damaged(place, "it is empty")
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise Damaged(place, "file is not a database")
    if int.from_bytes(header[68:72], "big") != _APPLICATION:
        raise Foreign(place, "it is a database of another program")


def _check_pages(engine: Engine, place: str) -> None:
    """The whole check: of an old file with a newer log, only the indexes tell that rows are missing."""
    with engine.connect() as connection:
        verdict = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
    if verdict != "ok":
        raise Damaged(place, str(verdict).replace("\n", " "))


def _create_file(path: Path) -> None:
    """A new database appears under its name complete: a process that dies here leaves nothing that looks like one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    fresh = Path(name)
    try:
        engine = create_engine(URL.create("sqlite", database=name))  # as text, a % or ? in it would mean something
        try:
            with engine.begin() as connection:
                connection.exec_driver_sql(f"PRAGMA application_id = {_APPLICATION}")
                _create_tables(connection)
        finally:
            engine.dispose()
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        try:
            os.link(fresh, path)  # unlike a rename, it loses against another process that was quicker
        except FileExistsError:
            return
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    finally:
        fresh.unlink()


def _make_engine(path: Path, timeouts: Timeouts) -> Engine:
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": timeouts.busy, "check_same_thread": False})

    def prepare(connection: sqlite3.Connection, _: Any) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    event.listen(engine, "connect", prepare)
    return engine


def _open_memory(timeouts: Timeouts) -> Engine:
    """One connection, which is the database; whoever wants it waits for its turn."""
    engine = create_engine(
        "sqlite://",
        connect_args={"check_same_thread": False},
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        pool_timeout=timeouts.busy,
    )
    with engine.begin() as connection:
        _create_tables(connection)
    return engine


# --- any --------------------------------------------------------------------------------------------------------------


def _create_tables(connection: Connection) -> None:
    """Creates the tables that are missing, and the row with their version, in the transaction of the connection."""
    schema.metadata.create_all(connection)
    if connection.execute(select(schema.store.c.version)).first() is None:
        connection.execute(insert(schema.store).values(version=schema.VERSION))


def _upgrade(engine: Engine, place: str) -> None:
    """To our version; what is newer is refused."""
    with engine.connect() as connection:
        version = connection.execute(select(schema.store.c.version)).scalar()
    if version is None:
        raise Damaged(place, "it does not say which version it has")
    if version > schema.VERSION:
        why = f"it was written by a newer reconciler: version {version}, not {schema.VERSION}"
        raise Unavailable(place, why, "use that one")
    if version < schema.VERSION:
        ours = update(schema.store).where(schema.store.c.version == version).values(version=schema.VERSION)
        with engine.begin() as connection:
            if not connection.execute(ours).rowcount:
                return  # another process was quicker
            for added in range(version + 1, schema.VERSION + 1):
                for executable_ddl_element in schema.UPGRADES[added]:
                    connection.execute(executable_ddl_element)
