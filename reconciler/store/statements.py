"""Executes statements that are built once in a process.

SQLAlchemy takes longer to build and compile a statement than SQLite to execute it, and keeps what it compiled with the
engine, of which each run has a new one. For files, the texts are kept here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, CursorResult, Executable, create_mock_engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import ExecutableDDLElement

from reconciler.store import schema

_SQLITE = sqlite.dialect()


class _Text(Struct, frozen=True):
    """A statement as SQLite gets it, with the names of its parameters in order. `constants`: those with a value."""

    sql: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]

    def order(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """The values of the parameters in order."""
        values = {**self.constants, **row}
        return tuple([values[name] for name in self.names])


def execute(connection: Connection, statement: Executable, *rows: Mapping[str, Any]) -> CursorResult[Any]:
    """Executes a statement, once for each row of parameters, or once without parameters.

    The statement must be a constant of the process, which is found again by its identity. It may have no list of values
    as a parameter.
    """
    if connection.dialect.name != _SQLITE.name:
        return connection.execute(statement, rows)
    text = _compile(statement, tuple(rows[0]) if rows else ())
    values = [text.order(row) for row in rows or ({},)]
    return connection.exec_driver_sql(text.sql, values if len(values) > 1 else values[0])


@lru_cache(maxsize=512)
def _compile(statement: Executable, keys: tuple[str, ...]) -> _Text:
    compiled = statement.compile(dialect=_SQLITE, column_keys=list(keys))  # type: ignore[attr-defined]
    return _Text(compiled.string, tuple(compiled.positiontup or ()), compiled.params)


@cache
def list_creations() -> tuple[str, ...]:
    """The statements that create all tables and indexes in an empty SQLite database."""
    texts: list[str] = []

    def record(creation: ExecutableDDLElement, *_: object, **__: object) -> None:
        texts.append(str(creation.compile(dialect=_SQLITE)))

    recorder = create_mock_engine("sqlite://", record)
    schema.metadata.create_all(recorder, checkfirst=False)
    return tuple(texts)
