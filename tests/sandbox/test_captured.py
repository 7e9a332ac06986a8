"""Behaviors of the public platform that the specification does not describe: one row per behavior."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from reconciler.sandbox.base import certificates
from tests.harness.platform import HEADERS, Sandbox
from tests.kinds import pems
from tests.sandbox.account import POLICY, Account

NOBODY = "1aBcDeFgHiJkLmNoPqRsTuVwXyZ"
Behavior = Callable[[Account], None]


def _no_targets(a: Account) -> None:
    made = a.make("/reserved_domains", resolves_to=[])
    assert made["resolves_to"] is None
    updated = a.sandbox.patch(f"/reserved_domains/{made['id']}", {"resolves_to": [{"value": "eu"}]})
    assert updated["resolves_to"] == [{"value": "eu"}]


def _region(a: Account) -> None:
    for made in (a.make("/reserved_domains", region="eu"), a.make("/reserved_domains")):
        assert made["region"] == a.sandbox.get(f"/reserved_domains/{made['id']}")["region"] == ""


def _own_owner(a: Account) -> None:
    bot = a.id("/bot_users")
    key = a.make("/api_keys", owner_id=bot)
    as_bot: dict[str, Any] = {"headers": {**HEADERS, "Authorization": f"Bearer {key['token']}"}}
    for collection in ("/credentials", "/api_keys"):
        for body in ({}, {"owner_id": bot}):
            assert a.sandbox.request("POST", collection, body, **as_bot).json()["owner_id"] == bot
    ssh = {"public_key": pems.ssh_key()}
    assert a.sandbox.request("POST", "/ssh_credentials", ssh, **as_bot).json()["owner_id"] == bot
    assert a.make("/credentials")["owner_id"].startswith("usr_")
    vault = a.sandbox.request("POST", "/vaults", {"name": "v"}, **as_bot).json()
    assert vault["created_by"] == bot


def _active_again(a: Account) -> None:
    bot = a.id("/bot_users")
    headers = {**HEADERS, "Authorization": f"Bearer {a.make('/api_keys', owner_id=bot)['token']}"}

    def status() -> int:
        return a.sandbox.request("GET", "/vaults", headers=headers).status_code

    seen = [status()]
    for active in (False, True):
        a.sandbox.patch(f"/service_users/{bot.replace('bot_', 'service_')}", {"active": active})
        seen.append(status())
    assert seen == [200, 403, 200]


def _unknown_session(a: Account) -> None:
    for command in ("stop", "restart", "update"):
        assert a.sandbox.refusal("POST", f"/tunnel_sessions/ts_{NOBODY}/{command}", {}) == (404, "")
    path = f"/tunnel_sessions/{a.plant('/tunnel_sessions')['id']}/stop"
    assert a.sandbox.refusal("POST", path, {"now": True}) == (400, "214")
    assert a.sandbox.request("POST", path, {}).status_code == 204


def _beside_tls(a: Account) -> None:
    edge = a.make("/edges/tls")
    host = edge["hostports"][0].removesuffix(":443")
    a.sandbox.post("/endpoints", {"url": f"https://{host}", "traffic_policy": POLICY})
    assert a.sandbox.refusal("POST", "/endpoints", {"url": f"tls://{host}", "traffic_policy": POLICY}) == (400, "18009")
    a.sandbox.delete(f"/edges/tls/{edge['id']}")
    a.sandbox.post("/edges/tls", {"hostports": [f"{host}:443"]})


def _lower_case(a: Account) -> None:
    made = a.make("/backends/http_response", headers={"Content-Type": "text/plain"})
    assert made["headers"] == {"content-type": "text/plain"}
    assert a.sandbox.patch(f"/backends/http_response/{made['id']}", {"headers": {}})["headers"] is None


def _line_feed(a: Account) -> None:
    for given in (pems.certificate("root", ca=True).rstrip(), pems.certificate("root", ca=True) + "\n\n"):
        assert a.make("/certificate_authorities", ca_pem=given)["ca_pem"] == f"{given.rstrip()}\n"
    leaf = pems.certificate("leaf").rstrip()
    assert a.make("/tls_certificates", certificate_pem=leaf)["certificate_pem"] == f"{leaf}\n"


def _order_of_sources(a: Account) -> None:
    path = a.place("/event_subscriptions/{id}") + "/sources"
    types = [f"vault_{how}.v0" for how in ("updated", "created", "deleted")]
    for type_ in types:
        a.sandbox.post(path, {"type": type_})
    assert [source["type"] for source in a.sandbox.get(path)["sources"]] == types


def _no_status_yet(a: Account) -> None:
    made = a.make("/reserved_domains", certificate_management_policy={})
    path, changed = f"/reserved_domains/{made['id']}", {"private_key_type": "rsa"}
    responses = [made, *(a.sandbox.get(path) for _ in range(2))]
    responses += [a.sandbox.patch(path, {"certificate_management_policy": changed}), a.sandbox.get(path)]
    found = [response["certificate_management_status"] for response in responses]
    assert [status and bool(status["provisioning_job"]) for status in found] == [None, True, False, None, True]


def _empty_match(a: Account) -> None:
    path = a.place("/edges/https/{edge_id}/routes/{id}")
    before = a.sandbox.get(path)
    after = a.sandbox.patch(path, {"match_type": "", "match": "", "description": "d"})
    assert after == before | {"description": "d"}


def _fields(a: Account) -> None:
    path = a.place("/event_subscriptions/{id}")
    source: dict[str, Any] = {"type": "http_request_complete.v0", "fields": ["conn.client_ip"], "filter": "true"}
    made = a.sandbox.post(f"{path}/sources", source)
    assert {**source, "uri": made["uri"]} == made
    updated = a.sandbox.patch(path, {"sources": [{"type": "vault_created.v0"}, source]})["sources"]
    assert {source["type"]: set(source) for source in updated} == {
        "vault_created.v0": {"type", "uri"},
        source["type"]: {"type", "uri", "fields", "filter"},
    }
    replaced = a.sandbox.patch(path, {"sources": [{"type": source["type"]}]})["sources"]
    assert [set(source) for source in replaced] == [{"type", "uri"}]


def _edge_endpoints(a: Account) -> None:
    address, domain = a.make("/reserved_addrs"), a.make("/reserved_domains")
    tcp = a.make("/edges/tcp", hostports=[address["addr"]], metadata="m", description="d")
    tls = a.make("/edges/tls", hostports=[f"{domain['domain']}:443"])
    listed = {endpoint["edge"]["id"]: endpoint for endpoint in a.sandbox.get("/endpoints")["endpoints"]}
    assert {endpoint["type"] for endpoint in listed.values()} == {"edge"}
    assert listed[tcp["id"]]["url"] == f"tcp://{address['addr']}"
    assert listed[tcp["id"]]["tcp_addr"] == {"id": address["id"], "uri": address["uri"]}
    assert (listed[tcp["id"]]["metadata"], listed[tcp["id"]]["description"]) == ("m", "d")
    assert listed[tls["id"]]["public_url"] == f"tls://{domain['domain']}"
    assert listed[tls["id"]]["domain"]["id"] == domain["id"]
    tls_endpoint = listed[tls["id"]]["id"]
    a.sandbox.patch(f"/edges/tls/{tls['id']}", {"metadata": "mine"})
    assert a.sandbox.get(f"/endpoints/{tls_endpoint}")["metadata"] == "mine"
    for method, body in (("PATCH", {"url": "https://x.y"}), ("DELETE", None)):
        assert a.sandbox.refusal(method, f"/endpoints/{tls_endpoint}", body)[0] == 400
    a.sandbox.patch(f"/edges/tls/{tls['id']}", {"hostports": []})
    a.sandbox.delete(f"/edges/tcp/{tcp['id']}")
    assert a.sandbox.get("/endpoints")["endpoints"] == []


def _abuse_report(a: Account) -> None:
    made = a.make("/abuse_reports", urls=["https://phish.example.com/a", "https://phish.example.com/b"], metadata="m")
    assert (made["status"], made["metadata"]) == ("PENDING", "m")
    assert made["hostnames"] == [{"hostname": "phish.example.com", "status": "PENDING"}]
    assert a.sandbox.get(f"/abuse_reports/{made['id']}") == made
    assert a.sandbox.refusal("GET", "/abuse_reports")[0] == 405


def _not_found(a: Account) -> None:
    """The text of a 404 without a code ends without a full stop."""
    answer = a.sandbox.request("GET", f"/bot_users/bot_{NOBODY}").json()
    assert (answer["msg"], "error_code" in answer) == ("Resource not found", False)


def _preflight(a: Account) -> None:
    """A browser asks without a key whether a page may send a request."""
    asks = {"Origin": "https://page.example.com", "Access-Control-Request-Method": "PATCH"}
    answer = a.sandbox.request("OPTIONS", "/ip_policies", headers=asks)
    assert (answer.status_code, answer.content) == (204, b"")
    assert "PATCH" in answer.headers["Access-Control-Allow-Methods"]
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    answer = a.sandbox.request("GET", "/ip_policies", headers={**HEADERS, "Origin": "https://page.example.com"})
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, "*")
    assert a.sandbox.request("OPTIONS", "/ip_policies", headers=HEADERS).status_code == 405


def _filter_of_bindings(a: Account) -> None:
    a.make("/endpoints", url="http://shop.default", bindings=["kubernetes"])
    a.make("/endpoints")
    [found] = a.sandbox.get(f"/endpoints?filter={quote('obj.binding == ' + repr('kubernetes'))}")["endpoints"]
    assert found["bindings"] == ["kubernetes"]
    assert a.sandbox.refusal("GET", f"/endpoints?filter={quote(repr('kubernetes') + ' in obj.bindings')}") == (
        400,
        "250",
    )


def _operators(a: Account) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "operator")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    csr = request.public_bytes(Encoding.PEM).decode()
    made = a.make(
        "/kubernetes_operators", binding={"endpoint_selectors": ["true"], "csr": csr}, enabled_features=["Bindings"]
    )
    assert (made["region"], made["enabled_features"]) == ("global", ["bindings"])
    assert set(made["binding"]) == {"endpoint_selectors", "cert", "ingress_endpoint"}
    certificate = x509.load_pem_x509_certificate(made["binding"]["cert"]["cert"].encode())
    assert certificate.public_key() == key.public_key()
    assert datetime.fromisoformat(made["binding"]["cert"]["not_after"]) == certificate.not_valid_after_utc
    path = f"/kubernetes_operators/{made['id']}"
    bound = a.make("/endpoints", url="http://shop.default", bindings=["kubernetes"])
    a.make("/endpoints")
    assert [endpoint["id"] for endpoint in a.sandbox.get(f"{path}/bound_endpoints")["endpoints"]] == [bound["id"]]
    assert a.sandbox.patch(path, {"description": "d"})["deployment"] == made["deployment"]
    a.sandbox.delete(path)
    assert a.sandbox.get("/kubernetes_operators")["operators"] == []


CAPTURED: dict[str, Behavior] = {
    "a missing object has no code, and a text without a full stop": _not_found,
    "a browser's preflight is answered without a key": _preflight,
    "endpoints are filtered by `binding`, not by `bindings`": _filter_of_bindings,
    "a domain that resolves everywhere shows null": _no_targets,
    "a domain has no region, whatever it was created with": _region,
    "the owner is by default the bot or user of the key": _own_owner,
    "the keys of a bot work while it is active": _active_again,
    "a command to a session may carry an empty object": _unknown_session,
    "a cloud https endpoint may stand beside a TLS edge": _beside_tls,
    "header names of a response are in lower case, and none are null": _lower_case,
    "PEM ends in one line feed": _line_feed,
    "event sources are listed in the order of creation": _order_of_sources,
    "a certificate policy has no status at first": _no_status_yet,
    "an empty match of a route's update is not supplied": _empty_match,
    "the fields and the filter of an event source are replaced with the list of sources": _fields,
    "an abuse report is pending, and is not listed": _abuse_report,
    "a Kubernetes operator registers itself": _operators,
    "what an edge serves is an endpoint of type edge": _edge_endpoints,
}


@pytest.mark.parametrize("name", CAPTURED)
def test_a_captured_behavior_is_emulated(sandbox: Sandbox, name: str) -> None:
    CAPTURED[name](Account(sandbox))


def test_serial_numbers_have_leading_zeros() -> None:
    for number, expected in ((1, "01"), (0x4F2, "04f2"), (0x10F2, "10f2")):
        leaf = x509.load_pem_x509_certificate(pems.certificate("leaf", serial=number).encode())
        assert certificates.certificate(leaf)["serial_number"] == expected
