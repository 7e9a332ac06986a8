"""Opens the database of a store: an SQLite file, or a schema on a PostgreSQL server.

Creates it completely or not at all, and refuses one that is damaged, belongs to another program, or has another schema
version.

A file that cannot be trusted is never treated as empty. A file of another program or version is never written to.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from sqlalchemy import URL, Engine, create_engine, event, func, insert, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlalchemy.schema import CreateSchema

from reconciler.model.redaction import Redactor
from reconciler.store import errors, postgres, schema
from reconciler.store.errors import MEMORY, Damaged, Foreign, Unavailable, Unreleased
from reconciler.store.statements import execute, list_creations

_MAGIC = b"SQLite format 3\0"
_APPLICATION = 0x7263_6E63  # "rcnc": the application id in the header of the file
_BROKEN = ("malformed", "unsupported file format", "no such table", "no such column")
_SCHEMES = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": postgres.DRIVER,
    "postgresql+psycopg": postgres.DRIVER,
    "postgres": postgres.DRIVER,  # a common spelling
}
SCHEMA_LOCK = _APPLICATION  # key of the advisory lock under which a server's schema is created
_VERSION = select(schema.store.c.version)
_redactor = Redactor(())  # for messages of drivers, which may quote the URL with its password


class Timeouts(Struct, frozen=True):
    """Timeouts in seconds.

    busy     for another process that uses the file
    connect  to a server; at least 2, and `connect_timeout` in the URL takes precedence
    answer   of a server; half of the time after which a lock expires
    """

    busy: float = 30.0
    connect: int = 10
    answer: float = 30.0


def open_database(where: str, timeouts: Timeouts) -> tuple[Engine, str]:
    """Opens the database at a path or URL; returns it with its name for messages, which has no password.

    Raises a StoreError.
    """
    if where == MEMORY:
        return _open_memory(timeouts), "the store in memory"
    if "://" not in where:
        return _open_file(Path(where), timeouts), where
    url = _parse_url(where)
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            raise Unavailable(where, "it would be lost at the end of the run", f"use {MEMORY} if that is intended")
        return _open_file(Path(url.database), timeouts), url.database
    return _open_server(url, timeouts)


def is_server(where: str) -> bool:
    """Whether a path or URL names a server. False for a URL that is invalid."""
    return _SCHEMES.get(where.partition("://")[0].lower()) == postgres.DRIVER and "://" in where


def _parse_url(where: str) -> URL:
    """Parses a URL. An error quotes nothing of it: the password may be anywhere in an invalid URL."""
    scheme, _, rest = where.partition("://")
    if scheme.lower() not in _SCHEMES:
        why = "only files and PostgreSQL servers are supported"
        raise Unavailable(f"{scheme}://…", why, "use a postgresql:// URL or the path of a file")
    if rest.count("@") > 1 and _SCHEMES[scheme.lower()] == postgres.DRIVER:
        raise Unavailable("the store", "its URL has more than one @", "write an @ of the user or password as %40")
    try:
        return make_url(f"{_SCHEMES[scheme.lower()]}://{rest}")
    except ArgumentError:
        raise Unavailable("the store", "its URL is invalid") from None
    except ValueError:
        remedy = "write several servers as postgresql://user@/database?host=a:5432&host=b:5432"
        raise Unavailable("the store", "the port in its URL is not a number", remedy) from None


@contextmanager
def explain_errors(place: str) -> Iterator[None]:
    """Raises errors of the database and the file system as Damaged or Unavailable."""
    try:
        yield
    except OperationalError as failure:
        # These mean damage. Others, such as "disk I/O error" and "database is locked", may pass.
        damaged = any(sign in str(failure.orig) for sign in _BROKEN)
        raise (Damaged if damaged else errors.explain_unavailable)(place, _first_line(failure)) from failure
    except DatabaseError as failure:
        served = "://" in place  # on a server this is a matter of permissions, not of damage
        raise (errors.explain_unavailable if served else Damaged)(place, _first_line(failure)) from failure
    except sqlite3.OperationalError as failure:  # from the PRAGMAs of a new connection, which SQLAlchemy does not wrap
        raise errors.explain_unavailable(place, str(failure)) from failure
    except sqlite3.DatabaseError as failure:
        raise Damaged(place, str(failure)) from failure
    except UnicodeDecodeError as failure:  # in a message of SQLite that quotes a value
        raise Damaged(place, "a text in it is not UTF-8") from failure
    except SQLAlchemyError as failure:
        raise Unavailable(place, _redactor.redact(str(failure))) from failure
    except OSError as failure:
        raise errors.explain_unavailable(place, failure.strerror or str(failure)) from failure


def _first_line(failure: DatabaseError) -> str:
    return _redactor.redact(str(failure.orig).strip().partition("\n")[0])


# --- a server ---------------------------------------------------------------------------------------------------------


def _open_server(url: URL, timeouts: Timeouts) -> tuple[Engine, str]:
    name = postgres.display_name(url)
    for password in postgres.find_passwords(url):
        _redactor.add(password)
    with explain_errors(name):
        try:
            engine = postgres.make_engine(url, connect=timeouts.connect, answer=timeouts.answer)
        except ImportError as failure:
            why = f"its driver is not installed: {failure}"
            raise Unavailable(name, why, "install reconciler with the extra postgres") from failure
        try:
            # The database may hold other tables: those of the store have a schema of their own.
            engine = engine.execution_options(schema_translate_map={None: schema.NAME})
            _create_on_server(engine, name)
        except BaseException:
            engine.dispose()
            raise
    return engine, name


def _create_on_server(engine: Engine, name: str) -> None:
    """Creates missing tables under an advisory lock: IF NOT EXISTS does not prevent two processes from creating one
    table at the same time. The lock ends with the transaction, also if the process dies.

    Tables of another version are refused before anything is created.
    """
    with engine.begin() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(SCHEMA_LOCK)))
        # CREATE SCHEMA IF NOT EXISTS fails without the privilege, even if the schema exists.
        inspector = inspect(connection)
        if not inspector.has_schema(schema.NAME):
            connection.execute(CreateSchema(schema.NAME))
        elif inspector.has_table(schema.store.name, schema.NAME):
            version = connection.execute(select(schema.store.c.version)).scalar()
            if version is not None:
                _check_version(version, name)
        # Only the tables that are missing.
        schema.metadata.create_all(connection)
        if connection.execute(select(schema.store.c.version)).first() is None:
            connection.execute(insert(schema.store).values(version=schema.VERSION))


# --- a file -----------------------------------------------------------------------------------------------------------


def _open_file(path: Path, timeouts: Timeouts) -> Engine:
    place = str(path)
    with explain_errors(place):
        path.parent.mkdir(parents=True, exist_ok=True)
        for suffix in ("", "-wal", "-shm", "-journal"):
            _refuse_special_file(f"{path}{suffix}")
        # Asked first: another process that creates the store now creates the log after the file.
        has_log = Path(f"{path}-wal").exists()
        if not path.exists():
            if has_log:
                raise Damaged(f"{path}-wal", "its database file is missing")
            _create_file(path)
        _check_header(path, place)
        _check_version_read_only(path, place)
        engine = _make_engine(path, timeouts)
        try:
            with engine.connect() as connection:
                version = execute(connection, _VERSION).scalar()
            if version is None:
                raise Damaged(place, "it has no schema version")
            _check_version(version, place)
            _check_pages(engine, place)
        except BaseException:
            engine.dispose()
            raise
    return engine


def _refuse_special_file(place: str) -> None:
    """Refuses a pipe, for which a read would wait, and a device, which may not end. Symlinks are followed."""
    with suppress(FileNotFoundError):
        mode = os.stat(place).st_mode  # noqa: PTH116 - a place of SQLite's
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # SQLite reports a folder
            raise Foreign(place, "it is a pipe, a device or a socket")


def _check_header(path: Path, place: str) -> None:
    """Checks the header without SQLite, which would write to another program's file when the journal mode is set."""
    with path.open("rb") as file:
        header = file.read(100)  # the size of SQLite's header; the application's number is at 68
    if not header:
        raise Damaged(place, "it is empty")
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise Damaged(place, "file is not a database")
    if int.from_bytes(header[68:72], "big") != _APPLICATION:
        raise Foreign(place, "it is a database of another program")


def _check_version_read_only(path: Path, place: str) -> None:
    """Refuses another version before a connection is opened that writes to the file: it would set the journal mode, and
    move the content of the log into the file.

    If the version cannot be read in this way, the next connection finds out why.
    """
    log = Path(f"{path}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    # Without a log, SQLite need not create one to read the file.
    url = f"{path.absolute().as_uri()}?{'mode=ro' if has_log else 'immutable=1'}"
    with suppress(sqlite3.Error), closing(sqlite3.connect(url, uri=True)) as connection:
        row = connection.execute("SELECT version FROM store").fetchone()
        if row is not None and isinstance(row[0], int):
            _check_version(row[0], place)


def _check_pages(engine: Engine, place: str) -> None:
    """Runs the complete integrity check: missing rows of an old file with a newer log show in the indexes only."""
    with engine.connect() as connection:
        verdict = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
    if verdict != "ok":
        raise Damaged(place, str(verdict).replace("\n", " "))


def _create_file(path: Path) -> None:
    """Creates the database under a temporary name and links it: a process that dies here leaves no partial database."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    fresh = Path(name)
    try:
        with closing(sqlite3.connect(name)) as connection:
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            _fill(connection.execute)
            connection.commit()
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        try:
            os.link(fresh, path)  # unlike a rename, it fails if another process was faster
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
    """A database in memory: one connection, which its users share one after the other."""
    engine = create_engine(
        "sqlite://",
        connect_args={"check_same_thread": False},
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        pool_timeout=timeouts.busy,
    )
    with engine.begin() as connection:
        _fill(connection.exec_driver_sql)
    return engine


def _fill(execute: Callable[[str], object]) -> None:
    """Creates the tables of an empty database, and the row with their version."""
    for creation in list_creations():
        execute(creation)
    execute(f"INSERT INTO {schema.store.name} VALUES ({schema.VERSION})")  # noqa: S608 - both are constants


# --- any --------------------------------------------------------------------------------------------------------------


def _check_version(version: int, place: str) -> None:
    """Raises Unreleased for an earlier schema version, Unavailable for a newer one."""
    if version > schema.VERSION:
        why = f"its schema version is {version}, and this reconciler supports versions up to {schema.VERSION}"
        raise Unavailable(place, why, "use a newer reconciler")
    if version < schema.VERSION:
        raise Unreleased(place, version, schema.VERSION)
