"""Opens the SQLite file of a store with the standard library: importing SQLAlchemy takes longer than a small plan.

A file that cannot be trusted is never treated as empty. A file of another program or version is never written to.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from reconciler.store import errors
from reconciler.store.encoding import VERSION
from reconciler.store.errors import Damaged, Foreign, Unavailable, Unreleased
from reconciler.store.sql import Names

APPLICATION = 0x7263_6E63  # "rcnc": the application id in the header of the file
BUSY_SECONDS = 30.0  # for another process that uses the file
_MAGIC = b"SQLite format 3\0"
_BROKEN = ("malformed", "unsupported file format", "no such table", "no such column")
NAMES = Names(ge=">=", lt="<")


@contextmanager
def explain_errors(place: str) -> Iterator[None]:
    """Raises errors of SQLite and the file system as Damaged or Unavailable."""
    try:
        yield
    except sqlite3.OperationalError as failure:
        raise (Damaged if means_damage(failure) else errors.explain_unavailable)(place, str(failure)) from failure
    except sqlite3.DatabaseError as failure:
        raise Damaged(place, str(failure)) from failure
    except UnicodeDecodeError as failure:  # in a message of SQLite that quotes a value
        raise Damaged(place, "a text in it is not UTF-8") from failure
    except OSError as failure:
        raise errors.explain_unavailable(place, failure.strerror or str(failure)) from failure


def means_damage(failure: object) -> bool:
    """Whether an operational error means damage. Others, such as "database is locked", may pass."""
    return any(sign in str(failure) for sign in _BROKEN)


def open_file(path: Path, busy: float) -> sqlite3.Connection:
    """A connection to an existing file that passed all checks. `busy`: see BUSY_SECONDS. Raises a StoreError."""
    with explain_errors(str(path)):
        exists(path)
        check_before_use(path)
        connection = connect(path, busy)
        try:
            check_content(connection, str(path))
        except BaseException:
            connection.close()
            raise
    return connection


def exists(path: Path) -> bool:
    """Whether the file exists. Raises Foreign for a special file, and Damaged if only the log exists."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        _refuse_special_file(f"{path}{suffix}")
    # Asked first: another process that creates the store now creates the log after the file.
    has_log = Path(f"{path}-wal").exists()
    if path.exists():
        return True
    if has_log:
        raise Damaged(f"{path}-wal", "its database file is missing")
    return False


def _refuse_special_file(place: str) -> None:
    """Refuses a pipe, for which a read would wait, and a device, which may not end. Symlinks are followed."""
    with suppress(FileNotFoundError):
        mode = os.stat(place).st_mode  # noqa: PTH116 - a place of SQLite's
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # SQLite reports a folder
            raise Foreign(place, "it is a pipe, a device or a socket")


def check_before_use(path: Path) -> None:
    """Checks what can be checked without writing to the file: it may belong to another program or version."""
    _check_header(path, str(path))
    _check_version_read_only(path, str(path))


def _check_header(path: Path, place: str) -> None:
    """Checks the header without SQLite, which would write to another program's file when the journal mode is set."""
    with path.open("rb") as file:
        header = file.read(100)  # the size of SQLite's header; the application's number is at 68
    if not header:
        raise Damaged(place, "it is empty")
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise Damaged(place, "file is not a database")
    if int.from_bytes(header[68:72], "big") != APPLICATION:
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
            check_version(row[0], place)


def connect(path: Path, busy: float) -> sqlite3.Connection:
    """A connection that threads may share."""
    connection = sqlite3.connect(path, timeout=busy, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def check_content(connection: sqlite3.Connection, place: str) -> None:
    """Checks the version, and all pages: missing rows of an old file with a newer log show in the indexes only."""
    row = connection.execute("SELECT version FROM store").fetchone()
    if row is None:
        raise Damaged(place, "it has no schema version")
    check_version(row[0], place)
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise Damaged(place, str(verdict).replace("\n", " "))


def check_version(version: int, place: str) -> None:
    """Raises Unreleased for an earlier schema version, Unavailable for a newer one."""
    if version > VERSION:
        why = f"its schema version is {version}, and this reconciler supports versions up to {VERSION}"
        raise Unavailable(place, why, "use a newer reconciler")
    if version < VERSION:
        raise Unreleased(place, version, VERSION)


class FileSession:
    """Executes statements, see `sql`, on a connection to a file."""

    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self._connection = connection
        self._using = threading.Lock()
        self.place = place

    def rows(self, query: str, parameters: Mapping[str, object]) -> list[Any]:
        """The rows of a query, with their columns as attributes."""
        with explain_errors(self.place), self._using:
            cursor = self._connection.execute(query.format_map(NAMES), parameters)
            row = _row_type(tuple(column[0] for column in cursor.description))
            return list(map(row, cursor))

    def close(self) -> None:
        """Closes the connection after the statement that runs: an interrupt does not wait for its thread."""
        with self._using:
            self._connection.close()

    def write(self, statements: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
        """Executes each statement with each of its rows, in one transaction."""
        with explain_errors(self.place), self._using, self._connection as connection:
            for statement, rows in statements.items():
                connection.executemany(statement.format_map(NAMES), rows)


@lru_cache
def _row_type(columns: tuple[str, ...]) -> type[tuple[Any, ...]]:
    return type("Row", (tuple,), {name: property(itemgetter(place)) for place, name in enumerate(columns)})
