"""References and unique names: what a refused request leaves unchanged, and when it is accepted later.

The code of each refusal is in `rules`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.platform import Sandbox
from tests.sandbox.account import BODIES, POLICY, Account


@pytest.mark.parametrize(
    ("collection", "change"),
    [
        ("/ip_policies", {"description": "é" * 128}),
        ("/endpoints", {"url": "https://nobody.example.com"}),
        ("/edges/tls", {"hostports": ["nobody.example.com:443"]}),
        ("/event_subscriptions", {"sources": [{"type": "weather_changed.v0"}]}),
        ("/tls_certificates", {"private_key_pem": "mine"}),
    ],
)
def test_a_refused_create_leaves_no_object(sandbox: Sandbox, collection: str, change: dict[str, Any]) -> None:
    sandbox.refusal("POST", collection, BODIES[collection](Account(sandbox)) | change)
    listed = sandbox.get(collection)
    assert next(value for value in listed.values() if isinstance(value, list)) == []


def test_a_refused_module_is_not_set(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/https/{edge_id}/routes/{id}") + "/saml"
    sandbox.refusal("PUT", path, {"idp_metadata": "<html/>"})
    assert sandbox.refusal("GET", path) == (404, "")


# --- unique values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("collection", "same", "code"),
    [
        ("/endpoints", "url", "18009"),
        ("/ssh_credentials", "public_key", "609"),
        ("/ip_restrictions", "type", "1802"),
        ("/reserved_domains", "domain", "413"),
        ("/agent_ingresses", "domain", "6706"),
        ("/bot_users", "name", "4112"),
        ("/edges/tls", "hostports", "7122"),
        ("/edges/tcp", "hostports", "7122"),
    ],
)
def test_a_duplicate_is_refused_until_the_first_object_is_deleted(
    sandbox: Sandbox, collection: str, same: str, code: str
) -> None:
    account = Account(sandbox)
    made = account.make(collection)
    again = BODIES[collection](account) | {same: made[same]}
    assert sandbox.refusal("POST", collection, again) == (400, code)
    sandbox.delete(f"{collection}/{made['id']}")
    sandbox.post(collection, again)


def test_an_edge_has_one_route_for_a_match(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/https/{id}") + "/routes"
    sandbox.post(path, {"match_type": "path_prefix", "match": "/"})
    assert sandbox.refusal("POST", path, {"match_type": "path_prefix", "match": "/"}) == (400, "7126")
    sandbox.post(path, {"match_type": "exact_path", "match": "/"})


def test_a_refused_update_does_not_change_the_object_and_its_unique_names(sandbox: Sandbox) -> None:
    sandbox.post("/bot_users", {"name": "a"})
    second = sandbox.post("/bot_users", {"name": "b"})
    assert sandbox.refusal("PATCH", f"/bot_users/{second['id']}", {"name": "a"}) == (400, "4112")
    assert sandbox.get(f"/bot_users/{second['id']}") == second
    assert sandbox.refusal("POST", "/bot_users", {"name": "b"}) == (400, "4112")


# --- in use -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "field", "used", "code"),
    [
        ("/ip_restrictions", "ip_policies", "/ip_policies", "1420"),
        ("/backends/failover", "backends", "/backends/tunnel_group", "6502"),
        ("/ssh_host_certificates", "ssh_certificate_authority_id", "/ssh_certificate_authorities", "1964"),
        ("/event_subscriptions", "destinations", "/event_destinations", "5112"),
        ("/endpoints", "domain", "/reserved_domains", "446"),
    ],
)
def test_a_referenced_object_is_not_deleted_until_its_referrer_is(
    sandbox: Sandbox, user: str, field: str, used: str, code: str
) -> None:
    made = Account(sandbox).make(user)
    value = made[field][0] if isinstance(made[field], list) else made[field]
    path = f"{used}/{value['id'] if isinstance(value, dict) else value}"
    assert sandbox.refusal("DELETE", path) == (400, code)
    sandbox.delete(f"{user}/{made['id']}")
    sandbox.delete(path)


@pytest.mark.parametrize(
    ("module", "field", "collection", "code"),
    [
        ("backend", "backend", "/backends/tunnel_group", "6502"),
        ("ip_restriction", "ip_policies", "/ip_policies", "1420"),
        ("mutual_tls", "certificate_authorities", "/certificate_authorities", ""),
    ],
)
def test_an_object_that_a_module_references_is_deleted_after_the_module(
    sandbox: Sandbox, module: str, field: str, collection: str, code: str
) -> None:
    path = Account(sandbox).place(f"/edges/tls/{{id}}/{module}")
    found = sandbox.get(path)[field]
    used = f"{collection}/{(found[0] if isinstance(found, list) else found)['id']}"
    assert sandbox.refusal("DELETE", used) == (400, code)
    sandbox.delete(path)
    sandbox.delete(used)


@pytest.mark.parametrize("collection", ["/edges/tls", "/edges/https"])
def test_a_domain_that_an_edge_serves_is_in_use(sandbox: Sandbox, collection: str) -> None:
    edge = Account(sandbox).make(collection)
    [domain] = sandbox.get("/reserved_domains")["reserved_domains"]
    assert sandbox.refusal("DELETE", domain["uri"]) == (400, "446")
    sandbox.patch(f"{collection}/{edge['id']}", {"hostports": []})
    sandbox.delete(domain["uri"])


def test_a_wildcard_domain_is_in_use_by_an_edge_below_it(sandbox: Sandbox) -> None:
    domain = sandbox.post("/reserved_domains", {"domain": "*.example.com"})
    sandbox.post("/edges/tls", {"hostports": ["a.example.com:443"]})
    assert sandbox.refusal("DELETE", domain["uri"]) == (400, "446")


def test_a_certificate_that_a_domain_serves_is_in_use(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/reserved_domains/{id}/certificate").removesuffix("/certificate")
    certificate = sandbox.get(path)["certificate"]["uri"]
    assert sandbox.refusal("DELETE", certificate) == (400, "")
    sandbox.delete(f"{path}/certificate")
    sandbox.delete(certificate)


def test_rules_are_deleted_with_their_policy(sandbox: Sandbox) -> None:
    rule = Account(sandbox).make("/ip_policy_rules")
    sandbox.delete(rule["ip_policy"]["uri"])
    assert sandbox.get("/ip_policy_rules")["ip_policy_rules"] == []


def test_routes_are_deleted_with_their_edge(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/https/{edge_id}/routes/{id}/backend").rpartition("/routes/")[0]
    [backend] = sandbox.get("/backends/tunnel_group")["backends"]
    sandbox.delete(path)
    sandbox.delete(backend["uri"])


def test_an_internal_endpoint_needs_no_domain(sandbox: Sandbox) -> None:
    made = sandbox.post("/endpoints", {"url": "https://api.internal", "traffic_policy": POLICY})
    assert (made["bindings"], made["domain"]) == (["internal"], None)


def test_pooled_endpoints_share_a_url(sandbox: Sandbox) -> None:
    first = Account(sandbox).make("/endpoints", pooling_enabled=True)
    second = {"url": first["url"], "traffic_policy": POLICY, "pooling_enabled": True}
    made = sandbox.post("/endpoints", second)
    assert sandbox.refusal("PATCH", f"/endpoints/{made['id']}", {"pooling_enabled": False}) == (400, "18017")
    sandbox.delete(f"/endpoints/{first['id']}")
    assert sandbox.patch(f"/endpoints/{made['id']}", {"pooling_enabled": False})["pooling_enabled"] is False


def test_the_last_rule_of_a_dashboard_policy_is_not_deleted(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    rule = account.make("/ip_policy_rules")
    restriction = account.make("/ip_restrictions", type="dashboard", ip_policy_ids=[rule["ip_policy"]["id"]])
    assert sandbox.refusal("DELETE", rule["uri"]) == (400, "1419")
    sandbox.delete(restriction["uri"])
    sandbox.delete(rule["uri"])


def test_a_domain_is_reserved_with_the_earlier_name_of_the_field(sandbox: Sandbox) -> None:
    assert sandbox.post("/reserved_domains", {"name": "A.example.com"})["domain"] == "a.example.com"
