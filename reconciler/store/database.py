"""Opens the database of a store: creates a new one whole or not at all, and refuses one that is damaged.

A file that cannot be trusted is never taken for an empty one.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, insert, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError, SQLAlchemyError

from reconciler.store import schema
from reconciler.store.failures import Damaged, Unavailable

_BUSY = 30  # seconds to wait for another process's commit


def opened(where: str) -> tuple[Engine, str]:
    """The database behind a path or URL, and how to call it in messages (without a password)."""
    if "://" not in where:
        return _file(Path(where)), where
    try:
        url = make_url(where)
    except ArgumentError as failure:
        raise Unavailable("the store", "its URL cannot be read") from failure
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            raise Unavailable(shown, "a store in memory survives nothing")
        return _file(Path(url.database)), url.database
    with explained(shown):
        try:
            engine = create_engine(url, pool_pre_ping=True)
        except ImportError as failure:
            raise Unavailable(shown, f"its driver is not installed: {failure}") from failure
        _create(engine)
        _check_version(engine, shown)
    return engine, shown


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Database errors as ours: damaged, or not available."""
    try:
        yield
    except OperationalError as failure:
        # "disk I/O error", "database is locked" and the like may pass; these do not
        damaged = any(sign in str(failure.orig) for sign in ("malformed", "no such table", "no such column"))
        raise (Damaged if damaged else Unavailable)(place, str(failure.orig)) from failure
    except DatabaseError as failure:
        raise Damaged(place, str(failure.orig)) from failure
    except sqlite3.DatabaseError as failure:  # from the first words to a fresh connection, which nobody wraps
        raise Damaged(place, str(failure)) from failure
    except SQLAlchemyError as failure:
        raise Unavailable(place, str(failure)) from failure
    except OSError as failure:
        raise Unavailable(place, failure.strerror or str(failure)) from failure


def _file(path: Path) -> Engine:
    place = str(path)
    with explained(place):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            if Path(f"{path}-wal").exists():
                raise Damaged(f"{path}-wal", "the database it belongs to is gone")
            _make(path)
        elif path.stat().st_size == 0:
            raise Damaged(place, "it is empty")
        engine = _engine(path)
        try:
            _check_pages(engine, place)
            _check_version(engine, place)
        except BaseException:
            engine.dispose()
            raise
    return engine


def _check_pages(engine: Engine, place: str) -> None:
    with engine.connect() as connection:
        verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    if verdict != "ok":
        raise Damaged(place, str(verdict))


def _make(path: Path) -> None:
    """A new database appears under its name complete: a process that dies here leaves nothing that looks like one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    fresh = Path(name)
    try:
        engine = create_engine(f"sqlite:///{fresh}")
        _create(engine)
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


def _engine(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": _BUSY, "check_same_thread": False})

    def prepare(connection: sqlite3.Connection, _: Any) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    event.listen(engine, "connect", prepare)
    return engine


def _create(engine: Engine) -> None:
    with engine.begin() as connection:
        schema.metadata.create_all(connection)
        if connection.execute(select(schema.store.c.version)).first() is None:
            connection.execute(insert(schema.store).values(version=schema.VERSION))


def _check_version(engine: Engine, place: str) -> None:
    with engine.connect() as connection:
        version = connection.execute(select(schema.store.c.version)).scalar()
    if version is None:
        raise Damaged(place, "it does not say which version it has")
    if version > schema.VERSION:
        raise Unavailable(place, f"it was written by a newer reconciler: version {version}, not {schema.VERSION}")
