"""Opens the database of a store: an SQLite file, or a schema on a PostgreSQL server.

Creates it completely or not at all, and refuses one that is damaged, belongs to another program, or has another schema
version.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from sqlalchemy import URL, Engine, create_engine, func, insert, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlalchemy.schema import CreateSchema

from reconciler.model.redaction import Redactor
from reconciler.store import encoding, errors, files, postgres, schema
from reconciler.store.errors import MEMORY, Damaged, Unavailable
from reconciler.store.sql import Names
from reconciler.store.statements import list_creations

_SCHEMES = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": postgres.DRIVER,
    "postgresql+psycopg": postgres.DRIVER,
    "postgres": postgres.DRIVER,  # a common spelling
}
SCHEMA_LOCK = files.APPLICATION  # key of the advisory lock under which a server's schema is created
SERVER_NAMES = Names(encoding.NAME, ge="~>=~", lt="~<~")  # these operators have the index of their column
_redactor = Redactor(())  # for messages of drivers, which may quote the URL with its password


class Timeouts(Struct, frozen=True):
    """Timeouts in seconds.

    busy     for another process that uses the file
    connect  to a server; at least 2, and `connect_timeout` in the URL takes precedence
    answer   of a server; half of the time after which a lock expires
    """

    busy: float = files.BUSY_SECONDS
    connect: int = 10
    answer: float = 30.0


class EngineSession:
    """Executes statements, see `sql`, on a server or in memory; see `sql.Session`."""

    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self._names = SERVER_NAMES if engine.dialect.name == "postgresql" else files.NAMES
        self.place = place

    def rows(self, query: str, parameters: Mapping[str, object]) -> list[Any]:
        """The rows of a query, with their columns as attributes."""
        with explain_errors(self.place), self._engine.connect() as connection:
            return list(connection.execute(text(query.format_map(self._names)), parameters))

    def write(self, statements: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
        """Executes each statement with each of its rows, in one transaction."""
        with explain_errors(self.place), self._engine.begin() as connection:
            for statement, rows in statements.items():
                connection.execute(text(statement.format_map(self._names)), rows)


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
        with files.explain_errors(place):
            yield
    except OperationalError as failure:
        damaged = files.means_damage(failure.orig)
        raise (Damaged if damaged else errors.explain_unavailable)(place, _first_line(failure)) from failure
    except DatabaseError as failure:
        served = "://" in place  # on a server this is a matter of permissions, not of damage
        raise (errors.explain_unavailable if served else Damaged)(place, _first_line(failure)) from failure
    except SQLAlchemyError as failure:
        raise Unavailable(place, _redactor.redact(str(failure))) from failure


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
            engine = engine.execution_options(schema_translate_map={None: encoding.NAME})
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
        if not inspector.has_schema(encoding.NAME):
            connection.execute(CreateSchema(encoding.NAME))
        elif inspector.has_table(schema.store.name, encoding.NAME):
            version = connection.execute(select(schema.store.c.version)).scalar()
            if version is not None:
                files.check_version(version, name)
        # Only the tables that are missing.
        schema.metadata.create_all(connection)
        if connection.execute(select(schema.store.c.version)).first() is None:
            connection.execute(insert(schema.store).values(version=encoding.VERSION))


# --- a file -----------------------------------------------------------------------------------------------------------


def _open_file(path: Path, timeouts: Timeouts) -> Engine:
    place = str(path)
    with explain_errors(place):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not files.exists(path):
            _create_file(path)
        files.check_before_use(path)
        engine = create_engine("sqlite://", poolclass=QueuePool, creator=lambda: files.connect(path, timeouts.busy))
        try:
            with closing(engine.raw_connection()) as connection:
                files.check_content(cast("sqlite3.Connection", connection.driver_connection), place)
        except BaseException:
            engine.dispose()
            raise
    return engine


def _create_file(path: Path) -> None:
    """Creates the database under a temporary name and links it: a process that dies here leaves no partial database."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    fresh = Path(name)
    try:
        with closing(sqlite3.connect(name)) as connection:
            connection.execute(f"PRAGMA application_id = {files.APPLICATION}")
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
    execute(f"INSERT INTO {schema.store.name} VALUES ({encoding.VERSION})")  # noqa: S608 - both are constants
