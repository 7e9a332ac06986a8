from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from reconciler.store.database import SERVER_NAMES
from reconciler.store.files import NAMES
from reconciler.store.sql import Condition, insert, is_of_kinds, is_one_of

BOT, AGENT, BOTS = "BotUser/berlin", "TunnelCredential/agent", "BotUsers/paris"


@pytest.fixture
def rows() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE rows (address, "commit")')
    statement = insert("rows", {"address": "", "commit": ""}).format_map(NAMES)
    connection.executemany(statement, [{"address": address, "commit": "c"} for address in (BOT, AGENT, BOTS)])
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (is_of_kinds("address", ["BotUser"]), {BOT}),
        (is_of_kinds("address", ["BotUser", "TunnelCredential"]), {BOT, AGENT}),
        (is_of_kinds("address", []), set()),
        (is_one_of("address", [BOTS, AGENT, "unknown"], "a"), {BOTS, AGENT}),
        (is_one_of("address", [], "a"), set()),
        (is_one_of("address", ["' OR '' = '"], "a"), set()),
    ],
)
def test_a_condition_selects_rows(rows: sqlite3.Connection, condition: Condition, found: set[str]) -> None:
    query = f"SELECT address FROM rows WHERE {condition.text}"  # noqa: S608 - the text under test
    assert {address for (address,) in rows.execute(query, dict(condition.values))} == found


def test_a_table_on_a_server_is_in_the_schema_of_the_store() -> None:
    query = "SELECT * FROM {bindings} WHERE stack {ge} :a"
    assert query.format_map(NAMES) == "SELECT * FROM bindings WHERE stack >= :a"
    assert query.format_map(SERVER_NAMES) == "SELECT * FROM reconciler.bindings WHERE stack ~>=~ :a"
