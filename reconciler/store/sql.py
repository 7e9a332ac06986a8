"""Parts of the statements that read a store, as text which SQLite and PostgreSQL both understand.

A statement names a table in braces, such as `{bindings}`, and its parameters after colons. `{ge}` and `{lt}` compare
texts byte by byte. Importing this imports no database library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct


class Session(Protocol):
    """Executes statements. `place`: of the database, for messages. Methods raise a StoreError."""

    place: str

    def rows(self, query: str, parameters: Mapping[str, object]) -> list[Any]:
        """The rows of a query, with their columns as attributes."""

    def write(self, statements: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
        """Executes each statement with each of its rows, in one transaction."""


class Names:
    """What stands for the names in braces. `schema`: that of the tables on a server."""

    def __init__(self, schema: str = "", *, ge: str, lt: str) -> None:
        self._comparisons = {"ge": ge, "lt": lt}
        self._prefix = f"{schema}." if schema else ""

    def __getitem__(self, name: str) -> str:
        return self._comparisons.get(name) or self._prefix + name


class Condition(Struct, frozen=True):
    """A condition on rows, with the values of its parameters."""

    text: str
    values: Mapping[str, object]


def is_one_of(column: str, values: Iterable[str], name: str) -> Condition:
    """Whether a column has one of these values. `name`: begins the names of the parameters."""
    named = {f"{name}{number}": value for number, value in enumerate(values)}
    return Condition(f"{column} IN ({', '.join(f':{name}' for name in named)})" if named else "1 = 0", named)


def is_of_kinds(column: str, kinds: Iterable[str]) -> Condition:
    """Whether the address in a column is of one of these kinds."""
    named = {f"kind{number}": f"{kind}/%" for number, kind in enumerate(kinds)}
    return Condition(f"({' OR '.join(f'{column} LIKE :{name}' for name in named)})" if named else "1 = 0", named)


def insert(table: str, columns: Iterable[str]) -> str:
    """The statement that inserts a row, whose values are parameters with the names of the columns."""
    names = tuple(columns)
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"INSERT INTO {{{table}}} ({quoted}) VALUES ({', '.join(f':{name}' for name in names)})"
