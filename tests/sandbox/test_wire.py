"""Headers, bodies and errors; requests as public clients send them; faults."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from reconciler.kinds import read_only
from reconciler.sandbox.base.database import Database
from reconciler.sandbox.operations.objects import Objects
from reconciler.sandbox.server.app import App
from reconciler.sandbox.wire import bodies
from tests.harness.platform import HEADERS, KEY, Sandbox
from tests.sandbox.account import POLICY, Account

pytestmark = pytest.mark.usefixtures("over_socket")

BEARER = {"Authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize("name", ["Service-Version", "Ngrok-Version"])
def test_either_version_header_is_accepted(sandbox: Sandbox, name: str) -> None:
    assert sandbox.request("GET", "/bot_users", headers={**BEARER, name: "2"}).status_code == 200


def test_a_second_delete_is_404(sandbox: Sandbox) -> None:
    path = f"/bot_users/{Account(sandbox).id('/bot_users')}"
    sandbox.delete(path)
    assert sandbox.refusal("DELETE", path) == (404, "")


def test_an_unsupported_method_is_405(sandbox: Sandbox) -> None:
    answer = sandbox.request("PUT", "/bot_users", {})
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, POST")


def test_an_internal_error_has_the_common_form_and_is_printed_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    database = Database(":memory:")
    app = App(Objects(database, read_only.list_served()), api_key=KEY, cut=lambda scope: None)
    monkeypatch.setattr(bodies, "complete", lambda *value: 1 // 0)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://sandbox.test", headers=HEADERS) as client:
            return await client.post("/bot_users", json={"name": "a"})

    answer = asyncio.run(send())
    database.close()
    body = answer.json()
    assert (answer.status_code, body["status_code"]) == (500, 500)
    assert body["details"] == {"operation_id": answer.headers["ngrok-operation-id"]}
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert [request["status"] for request in app.log.since(0)] == [500]


# --- requests as public clients send them -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/reserved_domains", {"domain": "a.example.com", "region": "", "resolves_to": []}),
        ("/reserved_addrs", {"region": ""}),
        ("/credentials", {"acl": [], "owner_id": ""}),
        ("/ssh_certificate_authorities", {"private_key_type": "", "elliptic_curve": "", "key_size": 0}),
        ("/event_subscriptions", {"sources": [{"type": "ip_policy_created.v0"}], "destination_ids": []}),
        ("/edges/tls", {"hostports": None, "backend": None, "ip_restriction": None}),
    ],
)
def test_creates_with_empty_values_are_accepted(sandbox: Sandbox, path: str, body: dict[str, Any]) -> None:
    made = sandbox.post(path, {"description": "", "metadata": "", **body})
    assert (made["description"], made["metadata"]) == ("", "")


def test_a_restriction_that_is_not_enforced_is_accepted(sandbox: Sandbox) -> None:
    body = {"type": "api", "ip_policy_ids": [Account(sandbox).id("/ip_policies")], "enforced": False}
    assert sandbox.post("/ip_restrictions", {"description": "", "metadata": "", **body})["enforced"] is False


def test_sources_with_fields_and_a_filter_are_accepted(sandbox: Sandbox) -> None:
    source = {"type": "http_request_complete.v0", "fields": ["http.request.method"], "filter": "true"}
    made = sandbox.post("/event_subscriptions", {"sources": [source]})
    sandbox.post(f"{made['uri']}/sources", source | {"type": "tcp_connection_closed.v0"})
    found = sandbox.get(made["uri"])["sources"]
    assert [set(source) for source in found] == [{"type", "uri", "fields", "filter"}] * 2
    assert [source["fields"] for source in found] == [["http.request.method"]] * 2
    assert [source["filter"] for source in found] == ["true"] * 2


@pytest.mark.parametrize("path", ["/edges/tcp", "/edges/tls", "/edges/https"])
def test_an_edge_without_hostports_has_null(sandbox: Sandbox, path: str) -> None:
    assert sandbox.post(path, {"hostports": []})["hostports"] is None


@pytest.mark.parametrize(
    ("collection", "body"),
    [
        ("/reserved_domains", {"region": "", "resolves_to": [], "description": "", "metadata": ""}),
        ("/event_subscriptions", {"sources": []}),
        ("/credentials", {"acl": []}),
        ("/ip_restrictions", {"enforced": False}),
    ],
)
def test_updates_with_empty_values_are_accepted(sandbox: Sandbox, collection: str, body: dict[str, Any]) -> None:
    made = Account(sandbox).make(collection)
    assert sandbox.patch(f"{collection}/{made['id']}", body)["id"] == made["id"]


def test_a_secret_with_a_vault_id_and_an_empty_vault_name_is_accepted(sandbox: Sandbox) -> None:
    body = {"vault_id": Account(sandbox).id("/vaults"), "vault_name": "", "name": "a", "value": "s"}
    made = sandbox.post("/vault_secrets", {"description": "", "metadata": "", **body})
    assert made["vault"]["id"] == body["vault_id"]


def test_an_empty_module_is_put_without_a_body(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/https/{edge_id}/routes/{id}") + "/compression"
    assert sandbox.put(path, None) == {"enabled": True}


def test_a_client_of_the_public_service_needs_no_other_version_header(sandbox: Sandbox) -> None:
    headers = {**BEARER, "ngrok-version": "2", "Content-Type": "application/json"}
    answer = sandbox.request("POST", "/ip_policies", content=b"{}", headers=headers)
    assert answer.status_code == 201
    assert sandbox.request("DELETE", f"/ip_policies/{answer.json()['id']}", headers=headers).status_code == 204


@pytest.mark.parametrize("collection", ["/edges/tcp", "/edges/tls", "/bot_users", "/backends/failover"])
def test_an_empty_update_changes_nothing(sandbox: Sandbox, collection: str) -> None:
    made = Account(sandbox).make(collection)
    assert sandbox.patch(f"{collection}/{made['id']}", {}) == made


def test_a_source_is_updated_without_a_body(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/event_subscriptions/{id}/sources/{type}")
    assert sandbox.patch(path, None)["type"] == "ip_policy_created.v0"


def test_an_endpoint_needs_no_type(sandbox: Sandbox) -> None:
    made = sandbox.post("/endpoints", {"url": f"https://{Account(sandbox).domain()}", "traffic_policy": POLICY})
    assert made["type"] == "cloud"


@pytest.mark.parametrize(
    ("collection", "field", "value", "expected"),
    [
        ("/credentials", "acl", ["bind:app.example.com.", "bind:*.a.example.com."], None),
        ("/credentials", "acl", ["bind:app.example.com.:443", "bind:App.example.com:65535"], None),
        ("/backends/static", "address", "[2001:db8::1]:80", None),
        ("/backends/static", "address", "origin.example.com.:80", None),
        ("/edges/tls", "hostports", ["Cut.Example.com.:443"], ["cut.example.com:443"]),
        (
            "/edges/tcp",
            "ip_restriction",
            {"enabled": False, "ip_policy_ids": []},
            {"enabled": False, "ip_policies": []},
        ),
    ],
)
def test_an_equivalent_value_is_accepted(
    sandbox: Sandbox, collection: str, field: str, value: Any, expected: Any
) -> None:
    sandbox.post("/reserved_domains", {"domain": "cut.example.com"})
    assert Account(sandbox).make(collection, **{field: value})[field] == (expected or value)


def test_a_saml_name_id_of_no_format_is_persistent(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    path = account.place("/edges/https/{edge_id}/routes/{id}") + "/saml"
    made = sandbox.put(path, account.module("saml") | {"nameid_format": ""})
    assert made["nameid_format"] == "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"


# --- operations of the sandbox only -----------------------------------------------------------------------------------


def test_several_objects_are_planted_together_or_not_at_all(sandbox: Sandbox) -> None:
    items = [{"collection": "bot_users", "object": {}}, {"collection": "nobody", "object": {}}]
    assert sandbox.refusal("POST", "/_sandbox/objects", items) == (404, "")
    assert sandbox.get("/bot_users")["bot_users"] == []


def test_a_planted_object_that_is_no_endpoint_can_be_deleted(sandbox: Sandbox) -> None:
    sandbox.plant("bot_users", {"name": "a"})
    [made] = sandbox.get("/bot_users")["bot_users"]
    sandbox.delete(f"/bot_users/{made['id']}")
    assert sandbox.get("/bot_users")["bot_users"] == []


def test_an_invalid_fault_is_refused_with_those_beside_it(sandbox: Sandbox) -> None:
    sandbox.refusal("POST", "/_sandbox/faults", [{"on": "* *", "then": "cut"}, {"on": "* *", "status": 999}])
    assert sandbox.get("/_sandbox/faults") == {"faults": []}


# --- faults -----------------------------------------------------------------------------------------------------------


def _names(sandbox: Sandbox) -> list[str]:
    return [user["name"] for user in sandbox.get("/bot_users")["bot_users"]]


@pytest.mark.parametrize(("then", "left"), [("cut", ["a"]), ("commit-then-cut", ["b", "a"])])
def test_a_fault_cuts_the_nth_request_before_or_after_it_is_done(sandbox: Sandbox, then: str, left: list[str]) -> None:
    sandbox.fault("POST /bot_users", nth=2, then=then)
    sandbox.post("/bot_users", {"name": "a"})
    with pytest.raises(httpx.TransportError):
        sandbox.post("/bot_users", {"name": "b"})
    assert _names(sandbox) == left
    assert [request["status"] for request in sandbox.log()] == [201, 0, 200]


@pytest.mark.parametrize(("then", "left"), [("status", []), ("commit-then-status", ["a"])])
def test_a_fault_answers_with_another_status(sandbox: Sandbox, then: str, left: list[str]) -> None:
    sandbox.fault("* /bot_*", then=then, status=503, headers={"Retry-After": "7"}, body={"msg": "later"})
    answer = sandbox.request("POST", "/bot_users", {"name": "a"})
    assert (answer.status_code, answer.headers["Retry-After"], answer.json()) == (503, "7", {"msg": "later"})
    assert _names(sandbox) == left


def test_the_log_has_each_request_once(sandbox: Sandbox) -> None:
    sandbox.post("/bot_users", {"name": "a"})
    sandbox.get("/bot_users?limit=1")
    first, second = sandbox.log()
    assert (first["method"], first["path"], first["status"]) == ("POST", "/bot_users", 201)
    assert (second["method"], second["path"], second["status"]) == ("GET", "/bot_users?limit=1", 200)
    assert sandbox.log(since=first["sequence"]) == [second]
