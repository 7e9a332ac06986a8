"""The sandbox's database: documents by collection and id, unique names, and references between documents.

One SQLite file. A mutating request is one transaction, flushed to disk before the response, so that a kill at any point
leaves the state after some request. Independent of kinds and HTTP.

A database has one or more accounts. Collections, names and facts of an account are stored with the prefix `ACCOUNT/`;
those of the first account, whose name is empty, have no prefix. Inside `in_account` all methods read and write this
account only. Only the names in `SHARED` are unique across all accounts.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from reconciler.sandbox.base.ids import Ksuids

Document = dict[str, Any]

SHARED = frozenset({"address", "domain", "ingress", "key", "public key"})
"""The spaces of names that are unique across all accounts."""

_APPLICATION = 0x7265636E  # SQLite's application id, which identifies a database of the sandbox
_SCHEMA = f"""
BEGIN IMMEDIATE;
PRAGMA application_id = {_APPLICATION};
CREATE TABLE IF NOT EXISTS documents (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL, parent TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (collection, parent, id)
);
CREATE INDEX IF NOT EXISTS pages ON documents (collection, parent, sequence);
CREATE TABLE IF NOT EXISTS names (
    space TEXT NOT NULL, name TEXT NOT NULL, owner INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    PRIMARY KEY (space, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS names_of ON names (owner);
CREATE TABLE IF NOT EXISTS uses (
    target TEXT NOT NULL, user INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE, field TEXT NOT NULL,
    PRIMARY KEY (target, user, field)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS uses_of ON uses (user);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
COMMIT;
"""


class Stored(Struct, frozen=True):
    sequence: int
    collection: str
    parent: str
    id: str
    body: Document


class Database:
    def __init__(self, path: str) -> None:
        # Calls come from one thread at a time. With the flag, tests may open it in another thread than it serves in.
        self._sql = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._check_own()
        if path != ":memory:":
            self._sql.execute("PRAGMA journal_mode = WAL")
            self._sql.execute("PRAGMA synchronous = FULL")
        self._sql.execute("PRAGMA foreign_keys = ON")
        self._sql.executescript(_SCHEMA)
        self._changes: list[tuple[Stored | None, Stored | None]] = []
        self._prefix = ""  # of the account: empty, or `ACCOUNT/`
        self.clock_offset = timedelta()
        self._ids = Ksuids(self.fact("last_id") or "")

    def _check_own(self) -> None:
        """Raises DatabaseError if the file is the database of another program."""
        # In this order, because another sandbox may be initializing the same file.
        [tables] = self._sql.execute("SELECT count(*) FROM sqlite_master").fetchone()
        [application] = self._sql.execute("PRAGMA application_id").fetchone()
        if application != _APPLICATION and (application or tables):
            self._sql.close()
            raise sqlite3.DatabaseError("not a database of the sandbox; use another file")

    def close(self) -> None:
        self._sql.close()

    def now(self) -> datetime:
        """The platform's time, in whole seconds: that of the machine, moved by `clock_offset`."""
        return (datetime.now(UTC) + self.clock_offset).replace(microsecond=0)

    @contextmanager
    def in_account(self, account: str) -> Iterator[None]:
        """Reads and writes this account inside the block; empty: the first account. The block must not await."""
        before, self._prefix = self._prefix, f"{account}/" if account else ""
        try:
            yield
        finally:
            self._prefix = before

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction. Nested calls join the outermost, which commits or rolls back."""
        if self._sql.in_transaction:
            yield
            return
        self._changes.clear()
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._sql.execute("ROLLBACK")
            raise
        self._sql.execute("COMMIT")

    def new_id(self, prefix: str) -> str:
        fresh = self._ids.new()
        self.remember("last_id", fresh)  # ids must increase even after a restart with the clock set back
        return prefix + fresh

    # --- documents ----------------------------------------------------------------------------------------------------

    def find(self, collection: str, identity: str, parent: str = "") -> Stored | None:
        row = self._sql.execute(
            "SELECT sequence, collection, parent, id, body FROM documents WHERE collection=? AND parent=? AND id=?",
            (self._prefix + collection, parent, identity),
        ).fetchone()
        return _load_row(row) if row else None

    def page(self, collection: str, parent: str = "", before: str | None = None, limit: int = -1) -> list[Stored]:
        """Up to `limit` documents, newest first, older than the object `before`, which may have been deleted."""
        position = "" if before is None else "AND sequence < ?"
        rows = self._sql.execute(
            "SELECT sequence, collection, parent, id, body FROM documents WHERE collection=? AND parent=? "  # noqa: S608
            f"{position} ORDER BY sequence DESC LIMIT ?",
            (
                self._prefix + collection,
                parent,
                *([] if before is None else [self._place(collection, parent, before)]),
                limit,
            ),
        )
        return [_load_row(row) for row in rows]

    def iterate(self, collection: str, parent: str = "", before: str | None = None) -> Iterator[Stored]:
        """Yields all documents, newest first, and reads them in pages of 100 as needed."""
        while page := self.page(collection, parent, before, 100):
            yield from page
            before = page[-1].id

    def _place(self, collection: str, parent: str, identity: str) -> int:
        collection, where = self._prefix + collection, "FROM documents WHERE collection=? AND parent=? AND id"
        found = self._sql.execute(f"SELECT sequence {where}=?", (collection, parent, identity)).fetchone()
        if found is None:
            # Deleted meanwhile: ids sort by time, so its position is just after the next older one.
            older = f"SELECT sequence + 1 {where}<? ORDER BY id DESC LIMIT 1"
            found = self._sql.execute(older, (collection, parent, identity)).fetchone()
        return int(found[0]) if found else 0

    def insert(self, collection: str, identity: str, body: Document, parent: str = "") -> Stored:
        cursor = self._sql.execute(
            "INSERT INTO documents (collection, parent, id, body) VALUES (?, ?, ?, ?)",
            (self._prefix + collection, parent, identity, json.dumps(body)),
        )
        assert cursor.lastrowid is not None
        stored = Stored(cursor.lastrowid, collection, parent, identity, body)
        self._changes.append((None, stored))
        return stored

    def replace(self, stored: Stored, body: Document) -> Stored:
        self._sql.execute("UPDATE documents SET body=? WHERE sequence=?", (json.dumps(body), stored.sequence))
        fresh = Stored(stored.sequence, stored.collection, stored.parent, stored.id, body)
        self._changes.append((stored, fresh))
        return fresh

    def delete(self, stored: Stored) -> None:
        """Deletes the document, its names and its references, but not its children."""
        self._sql.execute("DELETE FROM documents WHERE sequence=?", (stored.sequence,))
        self._changes.append((stored, None))

    def changes(self) -> list[tuple[Stored | None, Stored | None]]:
        """The documents written in this transaction since the last call, each before and after."""
        changes, self._changes = self._changes, []
        return changes

    def parents(self, collection: str, identity: str) -> list[str]:
        """The parents that have a child with this id."""
        rows = self._sql.execute(
            "SELECT parent FROM documents WHERE collection=? AND id=? ORDER BY sequence",
            (self._prefix + collection, identity),
        )
        return [str(parent) for (parent,) in rows]

    def trim(self, collection: str, parent: str, kept: int) -> None:
        """Deletes all but the latest `kept` documents."""
        collection = self._prefix + collection
        last = "SELECT sequence FROM documents WHERE collection=? AND parent=? ORDER BY sequence DESC LIMIT 1 OFFSET ?"
        self._sql.execute(
            f"DELETE FROM documents WHERE collection=? AND parent=? AND sequence <= ({last})",  # noqa: S608
            (collection, parent, collection, parent, kept),
        )

    def clear(self) -> None:
        """Deletes everything of all accounts except the last id, so that ids never repeat."""
        with self.transaction():
            self._sql.execute("DELETE FROM documents")
            self._sql.execute("DELETE FROM facts WHERE name <> 'last_id'")

    # --- unique names -------------------------------------------------------------------------------------------------

    def take(self, owner: Stored, names: Iterable[tuple[str, str]], *, is_new: bool = False) -> tuple[str, str] | None:
        """Replaces the names of the owner by these (space, name) pairs.

        Returns the first pair that another document has; the caller then rolls the transaction back.
        """
        if not is_new:
            self._sql.execute("DELETE FROM names WHERE owner=?", (owner.sequence,))
        for space, name in dict.fromkeys(names):
            try:
                self._sql.execute("INSERT INTO names VALUES (?, ?, ?)", (self._space(space), name, owner.sequence))
            except sqlite3.IntegrityError:
                return space, name
        return None

    def find_by_name(self, space: str, name: str) -> Stored | None:
        """The document of this account that has the name; None if no document or that of another account has it."""
        row = self._find_named(space, name)
        return _load_row(row) if row and _prefix_of(row[1]) == self._prefix else None

    def account_by_name(self, space: str, name: str) -> str | None:
        """The account whose document has the name, for the spaces in `SHARED`; None if no document has it."""
        row = self._find_named(space, name)
        return _prefix_of(row[1]).removesuffix("/") if row else None

    def _find_named(self, space: str, name: str) -> tuple[int, str, str, str, str] | None:
        row: tuple[int, str, str, str, str] | None = self._sql.execute(
            "SELECT sequence, collection, parent, id, body FROM documents JOIN names ON owner = sequence "
            "WHERE space=? AND name=?",
            (self._space(space), name),
        ).fetchone()
        return row

    def _space(self, space: str) -> str:
        return space if space in SHARED else self._prefix + space

    def has_name_of_other(self, space: str, start: str, owner: str) -> bool:
        """Whether a document with another id than `owner` has a name that begins with `start`."""
        row = self._sql.execute(
            "SELECT 1 FROM documents JOIN names ON owner = sequence "
            "WHERE space=? AND name>=? AND substr(name, 1, ?)=? AND id<>? LIMIT 1",
            (self._space(space), start, len(start), start, owner),
        ).fetchone()
        return row is not None

    # --- references ---------------------------------------------------------------------------------------------------

    def use(self, user: Stored, targets: Iterable[tuple[str, str]], *, is_new: bool = False) -> None:
        """Replaces the references of a document by these (field, id) pairs."""
        if not is_new:
            self._sql.execute("DELETE FROM uses WHERE user=?", (user.sequence,))
        for field, target in dict.fromkeys(targets):
            self._sql.execute("INSERT INTO uses VALUES (?, ?, ?)", (target, user.sequence, field))

    def user_of(self, target: str) -> Stored | None:
        """The oldest document that refers to the object, or None."""
        row = self._sql.execute(
            "SELECT sequence, collection, parent, id, body FROM documents JOIN uses ON user = sequence "
            "WHERE target=? AND id<>? ORDER BY sequence LIMIT 1",
            (target, target),
        ).fetchone()
        return _load_row(row) if row else None

    def users_of(self, target: str) -> list[Stored]:
        """The documents that refer to the object, oldest first."""
        rows = self._sql.execute(
            "SELECT DISTINCT sequence, collection, parent, id, body FROM documents JOIN uses ON user = sequence "
            "WHERE target=? AND id<>? ORDER BY sequence",
            (target, target),
        )
        return [_load_row(row) for row in rows]

    # --- facts about the platform and the account ---------------------------------------------------------------------

    def own(self, name: str) -> str:
        """The name of a fact about the account."""
        return self._prefix + name

    def is_fact_of_other(self, name: str, value: str) -> bool:
        """Whether another account has this value of a fact."""
        rows = self._sql.execute("SELECT name FROM facts WHERE value=?", (value,))
        return any(found.rpartition("/")[2] == name and found != self.own(name) for (found,) in rows)

    def fact(self, name: str) -> str | None:
        row = self._sql.execute("SELECT value FROM facts WHERE name=?", (name,)).fetchone()
        return str(row[0]) if row else None

    def remember(self, name: str, value: str) -> None:
        self._sql.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def count(self, name: str) -> int:
        """The next number of a counter: 1, 2, 3, …"""
        number = int(self.fact(name) or 0) + 1
        self.remember(name, str(number))
        return number


def _load_row(row: tuple[int, str, str, str, str]) -> Stored:
    sequence, collection, parent, identity, body = row
    return Stored(sequence, collection.rpartition("/")[2], parent, identity, json.loads(body))


def _prefix_of(collection: str) -> str:
    """The prefix of the account in a stored collection."""
    return "".join(collection.rpartition("/")[:2])
