"""The database file: created, recognized again, and never written over that of another program."""

import sqlite3
from pathlib import Path

import pytest

from reconciler.sandbox.base.database import Database


def test_the_database_of_another_program_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE mine (a)")
    other.close()
    before = file.read_bytes()
    with pytest.raises(sqlite3.DatabaseError, match="not a database of the sandbox; use another file"):
        Database(str(file))
    assert (file.read_bytes(), [path.name for path in tmp_path.iterdir()]) == (before, ["other.db"])


def test_an_empty_file_becomes_a_database_and_is_recognized_later(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    file.touch()
    for _ in range(2):
        Database(str(file)).close()
