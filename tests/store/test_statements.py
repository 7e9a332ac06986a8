from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, bindparam, create_engine, func, insert, select, update

from reconciler.store import schema
from reconciler.store.statements import execute, list_creations

ROWS = [
    {"stack": stack, "holder": "h", "host": "a", "machine": "m", "pid": 1, "since": 0.5, "expires": 1.5}
    for stack in "ab"
]
ADD = insert(schema.locks)
RENEW = update(schema.locks).where(schema.locks.c.stack == bindparam("of")).values(expires=schema.locks.c.expires + 2)
READ = (
    select(schema.locks, func.coalesce(schema.locks.c.expires, 7).label("end")).where(schema.locks.c.pid < 2).limit(5)
)


@pytest.fixture
def engine() -> Engine:
    engine = create_engine("sqlite://")
    schema.metadata.create_all(engine)
    return engine


def read(engine: Engine, statement: Any) -> list[dict[str, Any]]:
    with engine.begin() as connection:
        return [dict(row) for row in connection.execute(statement).mappings()]


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1]], ids=["several", "one"])
def test_a_statement_has_the_effect_and_the_rows_that_sqlalchemy_describes(
    engine: Engine, rows: list[dict[str, Any]]
) -> None:
    for _ in range(2):  # the second time from its text
        with engine.begin() as connection:
            execute(connection, ADD, *rows)
            assert execute(connection, RENEW, {"of": "a"}).rowcount == 1
            assert execute(connection, RENEW, {"of": "unknown"}).rowcount == 0
            found = [dict(row) for row in execute(connection, READ).mappings()]
        assert found == read(engine, READ)
        assert [row["end"] for row in found] == [3.5, 1.5][: len(rows)]
        with engine.begin() as connection:
            connection.execute(schema.locks.delete())


def test_a_new_file_has_the_tables_and_indexes_that_sqlalchemy_creates(engine: Engine, tmp_path: Path) -> None:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
    with sqlite3.connect(tmp_path / "new.db") as connection:
        for creation in list_creations():
            connection.execute(creation)
        created = connection.execute(query).fetchall()
    connection.close()
    with engine.begin() as described:
        assert created == [tuple(row) for row in described.exec_driver_sql(query)]
    assert len(created) > len(schema.metadata.tables)
