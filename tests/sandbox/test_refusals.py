"""What the platform refuses, and with which of the public codes. An empty code: none is known for the rule."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kinds import pems
from tests.platform import Sandbox
from tests.sandbox.account import BODIES, MODULES, POLICY, Account

NOBODY = "1aBcDeFgHiJkLmNoPqRsTuVwXyZ"  # the KSUID of nothing


# --- bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("collection", "change", "code"),
    [
        ("/ip_policies", {"description": "é" * 128}, "100"),
        ("/ip_policies", {"metadata": "é" * 2049}, "100"),
        ("/endpoints", {"type": "edge"}, "248"),
        ("/endpoints", {"traffic_policy": ""}, "18015"),
        ("/endpoints", {"traffic_policy": "on_http_request: 1"}, "18002"),
        ("/endpoints", {"url": "https://nobody.example.com"}, "18006"),
        ("/endpoints", {"url": "tcp://nobody.example.com"}, "18003"),
        ("/endpoints", {"url": "ftp://nobody.example.com"}, "249"),
        ("/endpoints", {"url": "https://a b"}, "249"),
        ("/endpoints", {"bindings": ["private"]}, "15005"),
        ("/endpoints", {"bindings": ["public", "public"]}, "15006"),
        ("/endpoints", {"bindings": ["internal"]}, "9029"),
        ("/edges/tcp", {"hostports": ["1.tcp.sandbox.test:1"]}, "7113"),
        ("/edges/tls", {"hostports": ["nobody.example.com:443"]}, "7117"),
        ("/edges/tls", {"hostports": ["nobody.example.com:8443"]}, "7116"),
        ("/edges/tls", {"hostports": ["nobody.example.com"]}, ""),
        ("/edges/tls", {"tls_termination": {"terminate_at": "upstream", "min_version": "1.2"}}, ""),
        ("/edges/tls", {"tls_termination": {"terminate_at": "nowhere"}}, ""),
        ("/edges/tls", {"backend": {}}, ""),
        ("/edges/tls", {"backend": {"backend_id": f"bkdtg_{NOBODY}"}}, ""),
        ("/edges/tls", {"backend": {"backend_id": "nothing"}}, "223"),
        ("/edges/tls", {"backend": {"backend_id": f"ipp_{NOBODY}"}}, "243"),
        ("/edges/tls", {"ip_restriction": {"ip_policy_ids": [f"ipp_{NOBODY}"]}}, "7007"),
        ("/edges/tls", {"ip_restriction": {"ip_policy_ids": [f"ca_{NOBODY}"]}}, "227"),
        ("/edges/tls", {"mutual_tls": {"certificate_authority_ids": [f"ca_{NOBODY}"]}}, "1672"),
        ("/edges/tls", {"traffic_policy": {"value": "[]"}}, "2200"),
        ("/edges/https", {"tls_termination": {"terminate_at": "edge"}}, "214"),
        ("/credentials", {"acl": ["listen:a.example.com"]}, "600"),
        ("/credentials", {"acl": ["bind:a.*.example.com"]}, "600"),
        ("/credentials", {"acl": ["bind:"]}, "600"),
        ("/credentials", {"owner_id": f"bot_{NOBODY}"}, ""),
        ("/ssh_credentials", {"public_key": ""}, "611"),
        ("/ssh_credentials", {"public_key": "ssh-ed25519 AAAA"}, "612"),
        ("/ip_restrictions", {"type": "everything"}, "1803"),
        ("/ip_restrictions", {"ip_policy_ids": []}, "1804"),
        ("/ip_restrictions", {"ip_policy_ids": [f"ipp_{NOBODY}"]}, "1801"),
        ("/ip_policy_rules", {"ip_policy_id": f"ipp_{NOBODY}"}, "1414"),
        ("/ip_policy_rules", {"action": "maybe"}, "1422"),
        ("/ip_policy_rules", {"cidr": "10.0.0.0"}, "1413"),
        ("/ip_policy_rules", {"cidr": "10.0.0.1/24"}, "1409"),
        ("/ip_policy_rules", {"cidr": "ten/24"}, "1406"),
        ("/reserved_domains", {"domain": ""}, "448"),
        ("/reserved_domains", {"domain": "localhost"}, "448"),
        ("/reserved_domains", {"domain": "a.*.example.com"}, "402"),
        ("/reserved_domains", {"domain": "a_b.example.com"}, "438"),
        ("/reserved_domains", {"domain": f"{'a' * 64}.example.com"}, "513"),
        ("/reserved_domains", {"domain": ".".join(["a" * 60] * 5)}, "514"),
        ("/reserved_domains", {"region": "mars"}, "400"),
        ("/reserved_domains", {"domain": "a.sandbox.test", "certificate_management_policy": {}}, "439"),
        ("/reserved_domains", {"certificate_management_policy": {"authority": "me"}}, ""),
        ("/reserved_domains", {"certificate_id": f"cert_{NOBODY}"}, ""),
        ("/reserved_domains", {"http_endpoint_configuration_id": f"ec_{NOBODY}"}, "214"),
        ("/reserved_addrs", {"region": "mars"}, "500"),
        ("/agent_ingresses", {"domain": "agents.sandbox.test"}, "6705"),
        ("/backends/failover", {"backends": [f"bkdtg_{NOBODY}"]}, "6501"),
        ("/backends/http_response", {"status_code": 42}, "6516"),
        ("/bot_users", {"name": ""}, "4109"),
        ("/certificate_authorities", {"ca_pem": "no pem"}, "1920"),
        ("/certificate_authorities", {"ca_pem": pems.certificate("leaf")}, "1913"),
        ("/certificate_authorities", {"ca_pem": pems.certificate("root", ca=True) * 2}, "1912"),
        ("/tls_certificates", {"private_key_pem": pems.private_key("other")}, "1923"),
        ("/tls_certificates", {"private_key_pem": pems.private_key("leaf", b"pass")}, "1902"),
        ("/ssh_certificate_authorities", {"key_size": 1024}, "1940"),
        ("/ssh_certificate_authorities", {"elliptic_curve": "256"}, "1942"),
        ("/ssh_host_certificates", {"valid_until": "yesterday"}, "241"),
        ("/ssh_host_certificates", {"valid_until": "2001-01-01T00:00:00Z"}, "1963"),
        ("/ssh_host_certificates", {"ssh_certificate_authority_id": f"sshca_{NOBODY}"}, "1949"),
        ("/event_subscriptions", {"sources": [{"type": "weather_changed.v0"}]}, "238"),
        ("/event_subscriptions", {"destination_ids": [f"ed_{NOBODY}"]}, "5103"),
        ("/event_destinations", {"target": {}}, "5100"),
        ("/event_destinations", {"target": {"metrics": {"api_key": "k"}, "ingestion": {}}}, "5100"),
        ("/event_destinations", {"target": {"logs": {"log_group_arn": "arn:x", "auth": {}}}}, "5106"),
        ("/event_destinations", {"format": "xml"}, ""),
    ],
)
def test_a_create_that_breaks_a_rule_is_refused_and_leaves_nothing(
    sandbox: Sandbox, collection: str, change: dict[str, Any], code: str
) -> None:
    body = BODIES[collection](Account(sandbox)) | change
    assert sandbox.refusal("POST", collection, body) == (400, code)
    listed = sandbox.get(collection)
    assert next(value for value in listed.values() if isinstance(value, list)) == []


@pytest.mark.parametrize(
    ("module", "change", "code"),
    [
        ("saml", {"idp_metadata": "<html/>"}, ""),
        ("saml", {"idp_metadata": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}, ""),
        ("saml", {"nameid_format": "initials"}, ""),
        ("saml", {"inactivity_timeout": -1}, "215"),
        ("saml", {"maximum_duration": 2**32}, "215"),
        ("webhook_verification", {"provider": "nobody"}, ""),
        ("webhook_verification", {"secret": ""}, "1626"),
        ("webhook_verification", {"provider": "sns"}, "1627"),
        ("backend", {"weight": 3}, "214"),
    ],
)
def test_a_module_that_breaks_a_rule_is_refused(
    sandbox: Sandbox, module: str, change: dict[str, Any], code: str
) -> None:
    account = Account(sandbox)
    path = account.place("/edges/https/{edge_id}/routes/{id}") + f"/{module}"
    assert sandbox.refusal("PUT", path, MODULES[module](account) | change) == (400, code)
    assert sandbox.refusal("GET", path) == (404, "")


def test_mutual_tls_needs_termination_at_the_edge(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/tls/{id}/mutual_tls").removesuffix("/mutual_tls")
    assert sandbox.refusal("PUT", f"{path}/tls_termination", {"terminate_at": "upstream"}) == (400, "1694")


def test_a_certificate_and_a_policy_exclude_each_other_in_one_request(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    both = {"certificate_id": account.id("/tls_certificates"), "certificate_management_policy": {}}
    path = account.place("/reserved_domains/{id}")
    assert sandbox.refusal("PATCH", path, both) == (400, "434")


@pytest.mark.parametrize(
    ("template", "body", "code"),
    [
        ("/reserved_domains/{id}", {"domain": "b.example.com"}, "214"),
        ("/reserved_domains/{id}", {"region": "us"}, "214"),
        ("/reserved_addrs/{id}", {"region": "us"}, "214"),
        ("/credentials/{id}", {"owner_id": ""}, "214"),
        ("/ip_policy_rules/{id}", {"action": "deny"}, "214"),
        ("/ip_restrictions/{id}", {"type": "agent"}, "214"),
        ("/certificate_authorities/{id}", {"ca_pem": ""}, "214"),
        ("/endpoints/{id}", {"type": "cloud"}, "214"),
        ("/endpoints/{id}", {"url": "http://d1.example.com"}, "18005"),
        ("/event_destinations/{id}", {"target": {"ingestion": {}}}, "5108"),
    ],
)
def test_what_cannot_change_is_refused(sandbox: Sandbox, template: str, body: dict[str, Any], code: str) -> None:
    assert sandbox.refusal("PATCH", Account(sandbox).place(template), body) == (400, code)


# --- one of each ------------------------------------------------------------------------------------------------------


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
def test_what_is_unique_is_refused_until_it_is_free(sandbox: Sandbox, collection: str, same: str, code: str) -> None:
    account = Account(sandbox)
    made = account.make(collection)
    again = BODIES[collection](account) | {same: made[same]}
    assert sandbox.refusal("POST", collection, again) == (400, code)
    sandbox.delete(f"{collection}/{made['id']}")
    sandbox.post(collection, again)


def test_a_policy_has_one_rule_for_a_network_whatever_it_does(sandbox: Sandbox) -> None:
    policy = Account(sandbox).id("/ip_policies")
    rule = {"ip_policy_id": policy, "cidr": "2001:DB8::/32"}
    assert sandbox.post("/ip_policy_rules", {**rule, "action": "allow"})["cidr"] == "2001:db8::/32"
    assert sandbox.refusal("POST", "/ip_policy_rules", {**rule, "action": "deny"}) == (400, "1408")


def test_an_edge_has_one_route_for_a_match(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/https/{id}") + "/routes"
    sandbox.post(path, {"match_type": "path_prefix", "match": "/"})
    assert sandbox.refusal("POST", path, {"match_type": "path_prefix", "match": "/"}) == (400, "7126")
    sandbox.post(path, {"match_type": "exact_path", "match": "/"})


def test_a_subscription_has_one_source_of_a_type(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/event_subscriptions/{id}/sources/{type}").rpartition("/")[0]
    assert sandbox.refusal("POST", path, {"type": "ip_policy_created.v0"}) == (400, "5127")


def test_a_refused_update_leaves_the_object_and_its_names(sandbox: Sandbox) -> None:
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
def test_what_is_in_use_is_not_deleted_until_it_is_free(
    sandbox: Sandbox, user: str, field: str, used: str, code: str
) -> None:
    made = Account(sandbox).make(user)
    value = made[field][0] if isinstance(made[field], list) else made[field]
    path = f"{used}/{value['id'] if isinstance(value, dict) else value}"
    assert sandbox.refusal("DELETE", path) == (400, code)
    sandbox.delete(f"{user}/{made['id']}")
    sandbox.delete(path)


@pytest.mark.parametrize(
    ("module", "shown", "collection", "code"),
    [
        ("backend", "backend", "/backends/tunnel_group", "6502"),
        ("ip_restriction", "ip_policies", "/ip_policies", "1420"),
        ("mutual_tls", "certificate_authorities", "/certificate_authorities", ""),
    ],
)
def test_what_a_module_uses_is_free_again_without_the_module(
    sandbox: Sandbox, module: str, shown: str, collection: str, code: str
) -> None:
    path = Account(sandbox).place(f"/edges/tls/{{id}}/{module}")
    found = sandbox.get(path)[shown]
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


def test_a_wildcard_domain_serves_what_lies_below_it(sandbox: Sandbox) -> None:
    domain = sandbox.post("/reserved_domains", {"domain": "*.example.com"})
    sandbox.post("/edges/tls", {"hostports": ["a.example.com:443"]})
    assert sandbox.refusal("DELETE", domain["uri"]) == (400, "446")


def test_a_certificate_that_a_domain_serves_is_in_use(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/reserved_domains/{id}/certificate").removesuffix("/certificate")
    certificate = sandbox.get(path)["certificate"]["uri"]
    assert sandbox.refusal("DELETE", certificate) == (400, "")
    sandbox.delete(f"{path}/certificate")
    sandbox.delete(certificate)


def test_a_policy_takes_its_rules_with_it(sandbox: Sandbox) -> None:
    rule = Account(sandbox).make("/ip_policy_rules")
    sandbox.delete(rule["ip_policy"]["uri"])
    assert sandbox.get("/ip_policy_rules")["ip_policy_rules"] == []


def test_an_edge_takes_its_routes_with_it(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/https/{edge_id}/routes/{id}/backend").rpartition("/routes/")[0]
    [backend] = sandbox.get("/backends/tunnel_group")["backends"]
    sandbox.delete(path)
    sandbox.delete(backend["uri"])


def test_an_internal_endpoint_needs_no_domain(sandbox: Sandbox) -> None:
    made = sandbox.post("/endpoints", {"url": "https://api.internal", "traffic_policy": POLICY})
    assert (made["bindings"], made["domain"]) == (["internal"], None)


def test_a_failover_backend_cannot_contain_itself(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    inner = account.id("/backends/failover")
    outer = account.id("/backends/failover", backends=[inner])
    assert sandbox.refusal("PATCH", f"/backends/failover/{inner}", {"backends": [outer]}) == (400, "6513")
