"""Headers, bodies and errors; what public clients are used to send; faults."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.platform import HEADERS, KEY, Sandbox
from tests.sandbox.account import CONFIGURATION, POLICY, Account

BEARER = {"Authorization": f"Bearer {KEY}"}


def _code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "").removeprefix("ERR_NGROK_")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Service-Version": "2"}, (401, "200")),
        ({"Authorization": "Digest x", "Service-Version": "2"}, (401, "201")),
        ({"Authorization": "Bearer wrong", "Service-Version": "2"}, (403, "203")),
        (BEARER, (400, "218")),
        ({**BEARER, "Service-Version": "1"}, (400, "217")),
    ],
)
def test_a_request_without_its_headers_is_refused(
    sandbox: Sandbox, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    assert _code(httpx.get(f"{sandbox.base_url}/bot_users", headers=headers)) == expected


@pytest.mark.parametrize("name", ["Service-Version", "Ngrok-Version"])
def test_either_version_header_will_do(sandbox: Sandbox, name: str) -> None:
    assert httpx.get(f"{sandbox.base_url}/bot_users", headers={**BEARER, name: "2"}).status_code == 200


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b'{"name": "a"}', None, "216"),
        (b'{"name": "a"}', "text/plain", "210"),
        (b'{"name": "a"', "application/json", "212"),
        (b"", "application/json", "212"),
        (b"name=a", "application/json", "213"),
        (b'["a"]', "application/json", "213"),
        (b'{"name": NaN}', "application/json", "213"),
        (b'{"name": "\\ud800"}', "application/json", "213"),
        (b'{"name": "\xff"}', "application/json", "213"),
        (b"[" * 100_000, "application/json", "213"),
        (b'{"name": "a", "colour": "red"}', "application/json", "214"),
        (b'{"name": 1}', "application/json", "215"),
        (b'{"name": "a", "active": 1}', "application/json", "215"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(sandbox: Sandbox, content: bytes, kind: str | None, code: str) -> None:
    headers = {**HEADERS, **({"Content-Type": kind} if kind else {})}
    answer = httpx.post(f"{sandbox.base_url}/bot_users", content=content, headers=headers)
    assert _code(answer) == (400, code)


def test_a_body_where_none_belongs_is_refused(sandbox: Sandbox) -> None:
    assert sandbox.refusal("GET", "/bot_users", {"name": "a"}) == (400, "211")


def test_an_error_has_the_public_form(sandbox: Sandbox) -> None:
    answer = sandbox.request("GET", "/bot_users/nobody")
    body = answer.json()
    assert set(body) == {"error_code", "status_code", "msg", "details"}
    assert (body["error_code"], body["status_code"]) == ("ERR_NGROK_222", 404)
    assert body["details"] == {"operation_id": answer.headers["Ngrok-Operation-Id"]}


def test_what_does_not_exist_is_404_without_a_code(sandbox: Sandbox) -> None:
    assert sandbox.refusal("GET", "/bot_users/bot_1aBcDeFgHiJkLmNoPqRsTuVwXyZ") == (404, "")


def test_an_id_of_another_kind_is_404(sandbox: Sandbox) -> None:
    assert sandbox.refusal("GET", f"/bot_users/{CONFIGURATION}") == (404, "227")


def test_a_second_delete_is_404(sandbox: Sandbox) -> None:
    path = f"/bot_users/{Account(sandbox).id('/bot_users')}"
    sandbox.delete(path)
    assert sandbox.refusal("DELETE", path) == (404, "")


def test_a_method_that_is_not_there_is_405(sandbox: Sandbox) -> None:
    answer = sandbox.request("PUT", "/bot_users", {})
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, POST")


# --- what public clients are used to send -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/reserved_domains", {"domain": "a.example.com", "region": "", "resolves_to": []}),
        ("/reserved_addrs", {"region": ""}),
        ("/credentials", {"acl": []}),
        ("/ssh_certificate_authorities", {"private_key_type": "", "elliptic_curve": "", "key_size": 0}),
        ("/event_subscriptions", {"sources": [{"type": "ip_policy_created.v0"}], "destination_ids": []}),
        ("/edges/tls", {"hostports": None, "backend": None, "ip_restriction": None}),
    ],
)
def test_creates_with_empty_values_are_accepted(sandbox: Sandbox, path: str, body: dict[str, Any]) -> None:
    made = sandbox.post(path, {"description": "", "metadata": "", **body})
    assert (made["description"], made["metadata"]) == ("", "")


@pytest.mark.parametrize("collection", ["/edges/tcp", "/edges/tls", "/bot_users", "/backends/failover"])
def test_an_update_with_nothing_changes_nothing(sandbox: Sandbox, collection: str) -> None:
    made = Account(sandbox).make(collection)
    assert sandbox.patch(f"{collection}/{made['id']}", {}) == made


@pytest.mark.parametrize(
    ("collection", "code"),
    [
        ("/reserved_domains", "422"),
        ("/reserved_addrs", "506"),
        ("/credentials", "606"),
        ("/ssh_credentials", "606"),
        ("/ip_policies", "1400"),
        ("/ip_policy_rules", "1401"),
        ("/endpoints", "18004"),
    ],
)
def test_some_kinds_refuse_an_update_with_nothing(sandbox: Sandbox, collection: str, code: str) -> None:
    made = Account(sandbox).id(collection)
    assert sandbox.refusal("PATCH", f"{collection}/{made}", {}) == (400, code)


def test_a_source_is_updated_without_a_body(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/event_subscriptions/{id}/sources/{type}")
    assert sandbox.patch(path, None)["type"] == "ip_policy_created.v0"


def test_an_endpoint_needs_no_type(sandbox: Sandbox) -> None:
    made = sandbox.post("/endpoints", {"url": f"https://{Account(sandbox).domain()}", "traffic_policy": POLICY})
    assert made["type"] == "cloud"


# --- faults -----------------------------------------------------------------------------------------------------------


def _names(sandbox: Sandbox) -> list[str]:
    return [each["name"] for each in sandbox.get("/bot_users")["bot_users"]]


@pytest.mark.parametrize(("then", "left"), [("cut", ["a"]), ("commit-then-cut", ["b", "a"])])
def test_a_fault_cuts_the_nth_request_before_or_after_it_is_done(sandbox: Sandbox, then: str, left: list[str]) -> None:
    sandbox.fault("POST /bot_users", nth=2, then=then)
    sandbox.post("/bot_users", {"name": "a"})
    with pytest.raises(httpx.TransportError):
        sandbox.post("/bot_users", {"name": "b"})
    assert _names(sandbox) == left
    assert [each["status"] for each in sandbox.log()] == [201, 0, 200]


@pytest.mark.parametrize(("then", "left"), [("status", []), ("commit-then-status", ["a"])])
def test_a_fault_answers_with_another_status(sandbox: Sandbox, then: str, left: list[str]) -> None:
    sandbox.fault("* /bot_*", then=then, status=503, headers={"Retry-After": "7"}, body={"msg": "later"})
    answer = sandbox.request("POST", "/bot_users", {"name": "a"})
    assert (answer.status_code, answer.headers["Retry-After"], answer.json()) == (503, "7", {"msg": "later"})
    assert _names(sandbox) == left


def test_the_log_tells_each_request_once(sandbox: Sandbox) -> None:
    sandbox.post("/bot_users", {"name": "a"})
    sandbox.get("/bot_users?limit=1")
    first, second = sandbox.log()
    assert (first["method"], first["path"], first["status"]) == ("POST", "/bot_users", 201)
    assert (second["method"], second["path"], second["status"]) == ("GET", "/bot_users?limit=1", 200)
    assert sandbox.log(since=first["sequence"]) == [second]
