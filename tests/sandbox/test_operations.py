"""Each operation of the written table over a real socket, and no operation besides."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from reconciler.kinds import read_only
from reconciler.sandbox.operations.routes import operations
from reconciler.sandbox.wire.openapi import document
from tests.platform import Sandbox
from tests.sandbox.account import BODIES, MODULES, UPDATES, Account

TABLE = yaml.safe_load((Path(__file__).parent / "operations.yaml").read_text())
DOCUMENT = document(operations(read_only.served()), "http://sandbox.test")


@dataclass(frozen=True)
class Row:
    method: str
    path: str
    status: int
    shape: str = ""
    list_key: str = ""
    paged: bool = True

    @classmethod
    def parse(cls, text: str) -> Row:
        left, _, right = text.partition(" -> ")
        method, path = left.split()
        status, *answer = right.split()
        if not answer:
            return cls(method, path, int(status))
        key = answer[1] if len(answer) > 1 else ""
        return cls(method, path, int(status), answer[0].strip("[]"), key, "unpaged" not in answer)


ROWS = [Row.parse(text) for text in TABLE["specified"] + TABLE["beyond"]]


def test_the_sandbox_has_exactly_the_operations_of_the_table() -> None:
    served = sorted(f"{each.method} {each.path}" for each in operations(read_only.served()))
    assert served == sorted(f"{row.method} {row.path}" for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path}")
def test_the_operation_answers_as_written(sandbox: Sandbox, row: Row) -> None:
    account = Account(sandbox)
    path, body = _prepare(account, row)
    answer = sandbox.request(row.method, path, body)
    assert answer.status_code == row.status, answer.text
    if not row.shape:
        assert answer.content == b""
        return
    found = answer.json()
    _described(row, "responses", str(row.status)).validate(found)
    if body is not None:
        _described(row, "requestBody").validate(body)
    if row.list_key:
        assert set(found) == {row.list_key, "uri", *(["next_page_uri"] if row.paged else [])}
        assert found["uri"] == f"{sandbox.base_url}{path}"
        found = found[row.list_key][0]
    keys = set(TABLE["shapes"][row.shape])
    assert keys <= set(found)
    if row.shape == "listed_reserved_addr":
        assert "endpoint_configuration" not in found


def _described(row: Row, *place: str) -> Draft202012Validator:
    """What the OpenAPI document says of the operation's body or answer."""
    described = DOCUMENT["paths"][row.path][row.method.lower()]
    for step in (*place, "content", "application/json", "schema"):
        described = described[step]
    return Draft202012Validator({**described, "components": DOCUMENT["components"]})


def _prepare(account: Account, row: Row) -> tuple[str, Any]:
    """The path, with everything there that the operation needs, and its body."""
    path, shape = account.place(row.path), re.sub(r"{\w+}", "{}", row.path)
    match row.method:
        case "POST":
            return path, BODIES[shape](account) if row.shape else None
        case "PUT":
            return path, MODULES[path.rpartition("/")[2]](account)
        case "PATCH":
            return path, UPDATES.get(shape, {"description": "changed"})
    if row.list_key:
        account.make(path)
    return path, None
