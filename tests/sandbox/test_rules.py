"""Every row of the table of rules over a real socket, and no rule without a row."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter

import httpx
import pytest

from reconciler.sandbox.wire import refusal
from reconciler.sandbox.wire.refusal import Cause
from tests.harness.platform import Sandbox
from tests.sandbox import rules, rules_public
from tests.sandbox.account import Account
from tests.sandbox.rules import Row, get

ROWS = [*rules.ROWS, *rules_public.ROWS]

CAUSES = {name: cause for name, cause in vars(refusal).items() if isinstance(cause, Cause)}
BY_LOAD = {"TOO_MANY_AT_ONCE"}  # needs two requests at a time: its test is below
BY_ACCOUNT = {"DOMAIN_OF_OTHER", "SSH_KEY_OF_OTHER"}  # need a second account: see test_accounts


def _name(row: Row) -> str:
    return f"{row.rule}-{row.code}"


def _pattern(cause: Cause) -> str:
    """A pattern of the messages of a cause."""
    return ".*".join(re.escape(part) for part in re.split(r"{[^}]*}", cause.text))


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_a_violation_is_refused_with_the_code_of_its_rule(sandbox: Sandbox, row: Row) -> None:
    answer = row.request(Account(sandbox))
    body = answer.json()
    assert (answer.status_code, body.get("error_code", "").removeprefix("ERR_NGROK_")) == (row.status, row.code), body
    assert re.fullmatch(_pattern(CAUSES[row.rule]), body["msg"], re.DOTALL), "another rule with the same code"


@pytest.mark.parametrize("row", {row.status: row for row in ROWS}.values(), ids=lambda row: str(row.status))
def test_a_refusal_has_the_public_form(sandbox: Sandbox, row: Row) -> None:
    answer = row.request(Account(sandbox))
    body = answer.json()
    assert set(body) == {"status_code", "msg", "details"} | ({"error_code"} if row.code else set())
    assert (body["status_code"], answer.headers["content-type"]) == (row.status, "application/json")
    assert body["details"] == {"operation_id": answer.headers["ngrok-operation-id"]}
    assert re.fullmatch(r"op_[0-9A-Za-z]{27}", body["details"]["operation_id"])


def test_each_rule_has_a_row() -> None:
    assert {row.rule for row in ROWS} | BY_LOAD | BY_ACCOUNT == set(CAUSES)


def test_a_row_has_the_code_of_its_rule_or_of_its_kind() -> None:
    known = {(name, cause.status, str(cause.code or "")) for name, cause in CAUSES.items()}
    other = Counter(row.rule for row in ROWS if (row.rule, row.status, row.code) not in known)
    assert set(other) == {"TOO_LONG", "CREATES_OVER_BUDGET"}


@pytest.mark.usefixtures("over_socket")
def test_too_many_concurrent_requests_are_refused(sandbox: Sandbox) -> None:
    sandbox.request("PUT", "/_sandbox/budget", {"at_once": 1})
    sandbox.fault("GET /bot_users", then="hang")
    first = threading.Thread(target=lambda: _time_out(sandbox))
    first.start()
    while not sandbox.log():
        time.sleep(0.01)  # the first request is in the log as soon as it hangs
    answer = get("/ip_policies")(Account(sandbox))
    assert (answer.status_code, answer.json()["error_code"]) == (429, "ERR_NGROK_225")
    sandbox.reset()
    first.join()


def _time_out(sandbox: Sandbox) -> None:
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{sandbox.base_url}/bot_users", headers=sandbox.headers, timeout=0.5)
