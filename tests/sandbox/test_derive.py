"""Fields that the platform derives, checked against the values from which it derives them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    SSHCertificateType,
    load_ssh_public_identity,
)

from tests.harness.platform import HEADERS, Sandbox
from tests.kinds import pems
from tests.sandbox.account import CONFIGURATION, POLICY, Account

PREFIXES = {
    "/endpoints": "ep_",
    "/edges/tcp": "edgtcp_",
    "/edges/tls": "edgtls_",
    "/edges/https": "edghts_",
    "/credentials": "cr_",
    "/ssh_credentials": "sshcr_",
    "/ip_restrictions": "ipx_",
    "/ip_policies": "ipp_",
    "/ssh_host_certificates": "shcrt_",
    "/ssh_certificate_authorities": "sshca_",
    "/agent_ingresses": "agin_",
    "/reserved_domains": "rd_",
    "/reserved_addrs": "ra_",
    "/backends/failover": "bkdfo_",
    "/backends/http_response": "bkdhr_",
    "/backends/tunnel_group": "bkdtg_",
    "/bot_users": "bot_",
    "/certificate_authorities": "ca_",
    "/tls_certificates": "cert_",
    "/event_subscriptions": "esb_",
    "/event_destinations": "ed_",
}


SOURCES = [{"type": "ip_policy_created.v0"}, {"type": "ip_policy_updated.v0"}]


def _now() -> datetime:
    return datetime.now(UTC)


def _moment(text: str) -> datetime:
    assert text.endswith("Z")
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(("collection", "prefix"), PREFIXES.items())
def test_an_object_has_an_id_an_address_and_a_time(sandbox: Sandbox, collection: str, prefix: str) -> None:
    made = Account(sandbox).make(collection)
    assert re.fullmatch(rf"{prefix}[0-9A-Za-z]{{27}}", made["id"])
    base = "" if collection == "/agent_ingresses" else sandbox.base_url
    assert made["uri"] == f"{base}{collection}/{made['id']}"
    assert abs(_moment(made["created_at"]) - _now()) < timedelta(seconds=60)


def test_ids_sort_by_creation(sandbox: Sandbox) -> None:
    made = [sandbox.post("/ip_policies", {})["id"] for _ in range(50)]
    assert made == sorted(made)


# --- credentials ------------------------------------------------------------------------------------------------------


def test_a_token_is_returned_once(sandbox: Sandbox) -> None:
    made = sandbox.post("/credentials", {"description": "agent"})
    path = f"/credentials/{made['id']}"
    assert re.fullmatch(made["id"].removeprefix("cr_") + "_[0-9A-Za-z]{21}", made["token"])
    later = [sandbox.get(path), sandbox.patch(path, {"acl": ["*"]}), *sandbox.get("/credentials")["credentials"]]
    assert [object_["token"] for object_ in later] == [None, None, None]


def test_an_api_key_works_until_it_is_deleted(sandbox: Sandbox) -> None:
    made = sandbox.post("/api_keys", {})
    headers = {**HEADERS, "Authorization": f"Bearer {made['token']}"}
    assert sandbox.request("GET", "/api_keys", headers=headers).status_code == 200
    almost = {**HEADERS, "Authorization": f"Bearer {made['token'][:-1]}"}
    assert sandbox.request("GET", "/api_keys", headers=almost).status_code == 403
    sandbox.delete(f"/api_keys/{made['id']}")
    assert sandbox.request("GET", "/api_keys", headers=headers).status_code == 403


def test_a_credential_token_is_no_api_key(sandbox: Sandbox) -> None:
    headers = {**HEADERS, "Authorization": f"Bearer {sandbox.post('/credentials', {})['token']}"}
    assert sandbox.request("GET", "/credentials", headers=headers).status_code == 403


def test_the_default_owner_of_a_credential_is_the_caller(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    bot = account.id("/bot_users")
    assert account.make("/credentials")["owner_id"].startswith("usr_")
    assert account.make("/credentials", owner_id=bot)["owner_id"] == bot


# --- endpoints --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://App.Example.com:443", ("https://app.example.com", "https", 443)),
        ("http://app.example.com:8080", ("http://app.example.com:8080", "http", 8080)),
        ("tls://app.example.com", ("tls://app.example.com", "tls", 443)),
    ],
)
def test_an_endpoint_is_derived_from_its_url(sandbox: Sandbox, url: str, expected: tuple[str, str, int]) -> None:
    domain = sandbox.post("/reserved_domains", {"domain": "*.example.com"})
    made = sandbox.post("/endpoints", {"url": url, "traffic_policy": POLICY})
    normalized, scheme, port = expected
    assert (made["url"], made["public_url"], made["proto"], made["scheme"]) == (normalized, normalized, scheme, scheme)
    assert (made["host"], made["port"], made["hostport"]) == ("app.example.com", port, f"app.example.com:{port}")
    assert made["domain"] == {"id": domain["id"], "uri": domain["uri"]}
    assert (made["bindings"], made["type"], made["tcp_addr"]) == (["public"], "cloud", None)
    assert made["traffic_policy"] == POLICY


def test_a_tcp_endpoint_is_bound_to_its_reserved_address(sandbox: Sandbox) -> None:
    address = Account(sandbox).make("/reserved_addrs")
    made = sandbox.post("/endpoints", {"url": f"tcp://{address['addr']}", "traffic_policy": POLICY})
    assert made["tcp_addr"] == {"id": address["id"], "uri": address["uri"]}


# --- domains and addresses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "cname", "acme"),
    [
        ("app.example.com", True, False),
        ("*.example.com", True, True),
        ("app.sandbox.test", False, False),
        ("*.app.sandbox.test", False, False),
    ],
)
def test_only_custom_domains_have_dns_targets(sandbox: Sandbox, domain: str, cname: bool, acme: bool) -> None:
    made = sandbox.post("/reserved_domains", {"domain": domain})
    assert (made["cname_target"] is not None, made["acme_challenge_cname_target"] is not None) == (cname, acme)


def test_a_domain_is_normalized(sandbox: Sandbox) -> None:
    made = sandbox.post("/reserved_domains", {"domain": " App.Example.COM. "})
    assert made["domain"] == "app.example.com"


def test_a_managed_certificate_exists_at_the_second_read(sandbox: Sandbox) -> None:
    made = sandbox.post("/reserved_domains", {"domain": "a.example.com", "certificate_management_policy": {}})
    path = f"/reserved_domains/{made['id']}"
    assert made["certificate_management_policy"] == {"authority": "letsencrypt", "private_key_type": "ecdsa"}
    first, second = sandbox.get(path), sandbox.get(path)
    assert (made["certificate"], first["certificate"]) == (None, None)
    assert made["certificate_management_status"] is None
    assert first["certificate_management_status"]["provisioning_job"]["error_code"] is None
    assert second["certificate_management_status"]["provisioning_job"] is None
    assert _moment(second["certificate_management_status"]["renews_at"]) > _now()
    certificate = sandbox.get(second["certificate"]["uri"])
    assert certificate["subject_alternative_names"]["dns_names"] == ["a.example.com"]
    assert (certificate["private_key_type"], certificate["issued_at"]) == ("ecdsa", certificate["not_before"])


def test_a_managed_certificate_is_deleted_with_its_policy(sandbox: Sandbox) -> None:
    made = sandbox.post("/reserved_domains", {"domain": "a.example.com", "certificate_management_policy": {}})
    path = f"/reserved_domains/{made['id']}"
    certificate = [sandbox.get(path) for _ in range(2)][-1]["certificate"]
    assert sandbox.refusal("DELETE", f"{path}/certificate") == (400, "436")
    assert sandbox.refusal("DELETE", certificate["uri"]) == (400, "1966")
    sandbox.delete(f"{path}/certificate_management_policy")
    after = sandbox.get(path)
    assert (after["certificate"], after["certificate_management_status"]) == (None, None)
    assert sandbox.refusal("GET", certificate["uri"]) == (404, "")


def test_a_certificate_policy_replaces_an_uploaded_certificate(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    uploaded = account.id("/tls_certificates")
    path = f"/reserved_domains/{account.id('/reserved_domains', certificate_id=uploaded)}"
    assert sandbox.get(path)["certificate"]["id"] == uploaded
    assert sandbox.patch(path, {"certificate_management_policy": {"private_key_type": "rsa"}})["certificate"] is None
    assert sandbox.get(f"/tls_certificates/{uploaded}")["id"] == uploaded


def test_each_reserved_address_is_different(sandbox: Sandbox) -> None:
    made = [sandbox.post("/reserved_addrs", {})["addr"] for _ in range(20)]
    assert len(set(made)) == 20
    assert all(re.fullmatch(r"\d\.tcp\.sandbox\.test:\d{5}", address) for address in made)


def test_an_address_shows_its_configuration_but_not_in_lists(sandbox: Sandbox) -> None:
    made = Account(sandbox).make("/reserved_addrs")
    path = f"/reserved_addrs/{made['id']}"
    after = sandbox.patch(path, {"endpoint_configuration_id": CONFIGURATION})
    assert after["endpoint_configuration"]["id"] == CONFIGURATION
    assert "endpoint_configuration" not in sandbox.get("/reserved_addrs")["reserved_addrs"][0]
    sandbox.delete(f"{path}/endpoint_configuration")
    assert sandbox.get(path)["endpoint_configuration"] is None


def test_an_agent_ingress_has_one_domain_for_each_region(sandbox: Sandbox) -> None:
    made = sandbox.post("/agent_ingresses", {"domain": "agents.example.com", "certificate_management_policy": {}})
    regions = ["ap", "au", "eu", "in", "jp", "sa", "us"]
    assert sorted(made["region_domains"]) == [f"{region}.agents.example.com" for region in regions]
    assert len(made["ns_targets"]) > 1
    assert made["certificate_management_policy"]["private_key_type"] == "rsa"


# --- certificates and keys --------------------------------------------------------------------------------------------


def test_a_certificate_authority_has_the_fields_of_its_pem(sandbox: Sandbox) -> None:
    pem = pems.certificate("root", ca=True)
    real = x509.load_pem_x509_certificate(pem.encode())
    made = sandbox.post("/certificate_authorities", {"ca_pem": pem})
    assert (made["ca_pem"], made["subject_common_name"]) == (pem, "root")
    assert _moment(made["not_before"]) == real.not_valid_before_utc
    assert _moment(made["not_after"]) == real.not_valid_after_utc


def test_a_tls_certificate_is_returned_without_its_key(sandbox: Sandbox) -> None:
    made = Account(sandbox).make("/tls_certificates")
    assert "private_key_pem" not in sandbox.get(f"/tls_certificates/{made['id']}")
    assert (made["subject_common_name"], made["private_key_type"], made["issued_at"]) == ("leaf", "ecdsa", None)


@pytest.mark.parametrize("kind_of_key", ["rsa", "ecdsa", "ed25519"])
def test_a_host_certificate_is_signed_by_its_authority(sandbox: Sandbox, kind_of_key: str) -> None:
    authority = sandbox.post("/ssh_certificate_authorities", {"private_key_type": kind_of_key})
    key = pems.ssh_key()
    made = sandbox.post(
        "/ssh_host_certificates",
        {
            "ssh_certificate_authority_id": authority["id"],
            "public_key": key,
            "principals": ["build-1.example.com", "10.0.0.1"],
            "valid_after": "2030-01-01T02:00:00+02:00",
            "valid_until": "2031-01-01T00:00:00Z",
        },
    )
    certificate = load_ssh_public_identity(made["certificate"].encode())
    assert isinstance(certificate, SSHCertificate)
    certificate.verify_cert_signature()
    assert certificate.type is SSHCertificateType.HOST
    assert certificate.valid_principals == [b"build-1.example.com", b"10.0.0.1"]
    assert (made["valid_after"], made["key_type"]) == ("2030-01-01T00:00:00Z", "ed25519")
    assert certificate.valid_after == _moment(made["valid_after"]).timestamp()
    assert certificate.valid_before == _moment(made["valid_until"]).timestamp()
    signer = certificate.signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert signer == authority["public_key"]


def test_a_host_certificate_is_valid_for_a_year_and_for_all_hosts_by_default(sandbox: Sandbox) -> None:
    made = Account(sandbox).make("/ssh_host_certificates")
    assert _moment(made["valid_until"]) - _moment(made["valid_after"]) == timedelta(days=365)
    certificate = load_ssh_public_identity(made["certificate"].encode())
    assert isinstance(certificate, SSHCertificate)
    assert certificate.valid_principals == []


def test_a_host_certificate_may_begin_later_within_its_year(sandbox: Sandbox) -> None:
    soon = (_now() + timedelta(days=30)).isoformat(timespec="seconds")
    made = Account(sandbox).make("/ssh_host_certificates", valid_after=soon)
    assert _moment(made["valid_after"]) == datetime.fromisoformat(soon)
    assert _moment(made["valid_until"]) - _now() > timedelta(days=364)


# --- routes, modules, events ------------------------------------------------------------------------------------------


def test_saml_urls_end_with_the_route(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/https/{edge_id}/routes/{id}/saml")
    route = path.split("/")[-2]
    found = sandbox.get(path)
    assert found["entity_id"] == found["metadata_url"]
    assert found["entity_id"].endswith(f"/saml/{route}")
    assert found["assertion_consumer_service_url"] == f"{found['entity_id']}/acs"
    x509.load_pem_x509_certificate(found["request_signing_certificate_pem"].encode())


def test_an_edge_embeds_its_routes(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    path = account.place("/edges/https/{id}")
    made = [account.make(f"{path}/routes", match=f"/{name}") for name in "ab"]
    assert sandbox.get(path)["routes"] == made
    assert sandbox.get("/edges/https")["https_edges"][0]["routes"] == made


def test_a_destination_is_read_without_secrets_and_with_unused_members(sandbox: Sandbox) -> None:
    auth = {"creds": {"cloud_access_key_id": "id", "cloud_secret_access_key": "hush"}}
    target = {"stream": {"auth": auth, "stream_arn": "arn:cloud:stream"}}
    made = sandbox.post("/event_destinations", {"format": "json", "target": target})
    assert made["target"] == {
        "delivery": None,
        "stream": {
            "auth": {"role": None, "creds": {"cloud_access_key_id": "id", "cloud_secret_access_key": ""}},
            "stream_arn": "arn:cloud:stream",
        },
        "logs": None,
        "metrics": None,
        "ingestion": None,
    }


def test_a_subscription_embeds_its_sources(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    path = account.place("/event_subscriptions/{id}")
    made = sandbox.patch(path, {"sources": [{"type": "ip_policy_created.v0"}]})
    [source] = made["sources"]
    assert source == {"type": "ip_policy_created.v0", "uri": f"{sandbox.base_url}{path}/sources/ip_policy_created.v0"}
    sandbox.post(f"{path}/sources", {"type": "ip_policy_updated.v0"})
    assert [source["type"] for source in sandbox.get(path)["sources"]] == [
        "ip_policy_created.v0",
        "ip_policy_updated.v0",
    ]
    assert sandbox.patch(path, {"description": "d"})["sources"] != []
    assert sandbox.patch(path, {"sources": []})["sources"] == []


def test_the_sources_of_a_subscription_are_none_again_by_null(sandbox: Sandbox) -> None:
    path = f"/event_subscriptions/{sandbox.post('/event_subscriptions', {'sources': SOURCES})['id']}"
    assert sandbox.patch(path, {"sources": None})["sources"] == []
    assert sandbox.get(path)["sources"] == []


def test_a_list_of_sources_ignores_page_parameters(sandbox: Sandbox) -> None:
    """The list has no field for the next page, so that a part of it would look complete."""
    path = f"/event_subscriptions/{sandbox.post('/event_subscriptions', {'sources': SOURCES})['id']}/sources"
    assert sandbox.get(f"{path}?limit=1&before_id=ip_policy_created.v0") == sandbox.get(path)
    assert len(sandbox.get(path)["sources"]) == 2
    assert sandbox.refusal("GET", f"{path}?limit=0") == (400, "233")


# --- modules by POST, PATCH, PUT and DELETE ---------------------------------------------------------------------------


def test_a_module_in_an_update_replaces_the_whole_module(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    backend, other = account.id("/backends/tunnel_group"), account.id("/backends/tunnel_group")
    policies: dict[str, Any] = account.module("ip_restriction")
    module = {"backend_id": backend, "enabled": False}
    made = sandbox.post("/edges/tcp", {"backend": module, "ip_restriction": policies})
    after = sandbox.patch(f"/edges/tcp/{made['id']}", {"backend": {"backend_id": other}})
    assert made["backend"]["enabled"] is False
    assert (after["backend"]["enabled"], after["backend"]["backend"]["id"]) == (True, other)
    assert after["ip_restriction"] == made["ip_restriction"]


def test_null_does_not_remove_a_module_in_an_update(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/tls/{id}/backend").removesuffix("/backend")
    assert sandbox.refusal("PATCH", path, {"backend": None}) == (400, "")
    assert sandbox.get(path)["backend"] is not None


def test_a_module_that_is_not_set_is_404(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/tls/{id}") + "/backend"
    assert [sandbox.refusal(method, path) for method in ("GET", "DELETE")] == [(404, ""), (404, "")]


def test_the_platform_sets_a_default_tls_version(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/edges/tls/{id}") + "/tls_termination"
    assert sandbox.put(path, {}) == {"enabled": True, "terminate_at": "edge", "min_version": "1.2"}
    assert sandbox.put(path, {"terminate_at": "upstream"})["min_version"] is None


def test_null_resets_a_field_to_its_default(sandbox: Sandbox) -> None:
    path = Account(sandbox).place("/agent_ingresses/{id}")
    sandbox.patch(path, {"certificate_management_policy": {}, "description": "d"})
    after = sandbox.patch(path, {"certificate_management_policy": None, "description": None})
    assert (after["certificate_management_policy"], after["description"]) == (None, "")
