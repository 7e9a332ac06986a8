"""Each operation of the written table over a real socket, and no other operation."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from reconciler.kinds import read_only
from reconciler.sandbox.operations.routes import operations
from reconciler.sandbox.wire.openapi import document
from tests.harness.platform import Sandbox
from tests.sandbox.account import Account
from tests.sandbox.table import ROWS, TABLE, Row, prepare

DOCUMENT = document(operations(read_only.list_served()), "http://sandbox.test")


def test_the_sandbox_has_exactly_the_operations_of_the_table() -> None:
    served = sorted(f"{operation.method} {operation.path}" for operation in operations(read_only.list_served()))
    assert served == sorted(f"{row.method} {row.path}" for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path}")
def test_an_operation_responds_as_the_table_states(sandbox: Sandbox, row: Row) -> None:
    account = Account(sandbox)
    path, body = prepare(account, row)
    answer = sandbox.request(row.method, path, body)
    assert answer.status_code == row.status, answer.text
    if not row.shape:
        assert answer.content == b""
        return
    found = answer.json()
    _schema_of(row, "responses", str(row.status)).validate(found)
    if body is not None:
        _schema_of(row, "requestBody").validate(body)
    if row.list_key:
        assert set(found) == {row.list_key, "uri", *(["next_page_uri"] if row.paged else [])}
        assert found["uri"] == f"{sandbox.base_url}{path}"
        found = found[row.list_key][0]
    keys = set(TABLE["shapes"][row.shape])
    assert keys <= set(found)
    if row.shape == "listed_reserved_addr":
        assert "endpoint_configuration" not in found


WRITES = [row for row in ROWS if row.method in ("POST", "PATCH", "PUT") and "{" in row.path]


@pytest.mark.parametrize("row", WRITES, ids=lambda row: f"{row.method} {row.path}")
def test_a_body_may_repeat_the_parameters_of_its_path(sandbox: Sandbox, row: Row) -> None:
    path, body = prepare(Account(sandbox), row)
    repeated = find_parameters(row, path)
    sent = {**repeated, "module": body} if row.method == "PUT" else {**(body or {}), **repeated}
    answer = sandbox.request(row.method, path, sent)
    assert answer.status_code == row.status, answer.text
    if body is not None:
        _schema_of(row, "requestBody").validate(sent)
    if row.method == "PUT":
        bare = sandbox.request("PUT", path, body)
        assert answer.json() == bare.json()


@pytest.mark.parametrize("row", WRITES, ids=lambda row: f"{row.method} {row.path}")
def test_a_parameter_in_a_body_that_differs_from_the_path_is_refused(sandbox: Sandbox, row: Row) -> None:
    path, body = prepare(Account(sandbox), row)
    for name in find_parameters(row, path):
        answer = sandbox.request(row.method, path, {**(body or {}), name: "other"})
        assert (answer.status_code, answer.json()["error_code"]) == (400, "ERR_NGROK_214")
        assert f"The field '{name}' differs from" in answer.json()["msg"]


def find_parameters(row: Row, path: str) -> dict[str, str]:
    """The values of the parameters of a path by their names, such as `edge_id`."""
    pairs = zip(row.path.split("/"), path.split("/"), strict=True)
    return {name.strip("{}"): value for name, value in pairs if name.startswith("{")}


def _schema_of(row: Row, *place: str) -> Draft202012Validator:
    """The schema of the operation's request or response in the OpenAPI document."""
    described = DOCUMENT["paths"][row.path][row.method.lower()]
    for step in (*place, "content", "application/json", "schema"):
        described = described[step]
    return Draft202012Validator({**described, "components": DOCUMENT["components"]})
