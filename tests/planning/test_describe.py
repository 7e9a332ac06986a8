"""The manifest of a live object: its spec, and fields that it must omit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.value import Value
from reconciler.planning.importing.describe import Attachment, describe
from tests.harness.builders import at, live, ref

NAMES = {
    ("HTTPSEdge", "e1"): at("HTTPSEdge/e"),
    ("IPPolicy", "ipp_1"): at("IPPolicy/p"),
    ("CertificateAuthority", "ca_1"): at("CertificateAuthority/c"),
    ("WeightedBackend", "b1"): at("WeightedBackend/b"),
    ("StaticBackend", "b2"): at("StaticBackend/s"),
}
PEM = "-----BEGIN CERTIFICATE-----\nx"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIATrl8ChByK6GyTChnSYfDvuM0+29PlAD3Mq+l1Zct9L"
ROUTE = {"match": "/", "match_type": "exact_path"}


def find_owner(kind: str, id: str) -> Address | None:
    return NAMES.get((kind, id))


def read(
    kind: str, body: dict[str, Any], parent: str | None = None, applied: tuple[str, ...] = ()
) -> tuple[dict[str, Value], list[str]]:
    return describe(kinds.get(kind), live(kind, "x_1", body, parent=parent), find_owner, applied)


@pytest.mark.parametrize(
    ("kind", "body", "spec"),
    [
        ("TLSEdge", {"description": "", "metadata": "", "hostports": []}, {}),
        ("TLSEdge", {"description": "x", "metadata": "m"}, {"description": "x", "metadata": "m"}),
        ("TLSEdge", {"mutual_tls": None, "hostports": ["a.x:443"]}, {"hostports": ["a.x:443"]}),
        (
            "TLSEdge",
            {"mutual_tls": {"enabled": True, "certificate_authorities": [{"id": "ca_1"}, {"id": "ca_2"}]}},
            {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/c"), "ca_2"]}},
        ),
        ("TLSEdge", {"tls_termination": {"terminate_at": "edge"}}, {"tls_termination": {}}),
        (
            "TLSEdge",
            {"tls_termination": {"terminate_at": "upstream"}},
            {"tls_termination": {"terminate_at": "upstream"}},
        ),
        (
            "TLSEdge",
            {"backend": {"enabled": False, "backend": {"id": "b1"}}},
            {"backend": {"enabled": False, "backend_id": ref("WeightedBackend/b")}},
        ),
        ("CertificateAuthority", {"ca_pem": PEM}, {"ca_pem": Attachment(PEM, "pem")}),
        ("FailoverBackend", {"backends": ["b1", "b2", "b9"]}, None),
        (
            "WeightedBackend",
            {"backends": [{"backend_id": "b2", "weight": 0}, {"backend_id": "b9", "weight": 3}]},
            {"backends": [{"backend_id": ref("StaticBackend/s"), "weight": 0}, {"backend_id": "b9", "weight": 3}]},
        ),
        (
            "IPPolicyRule",
            {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8", "action": "allow"},
            {"ip_policy_id": ref("IPPolicy/p"), "cidr": "10.0.0.0/8", "action": "allow"},
        ),
        ("BotUser", {"name": "b", "active": True}, {"name": "b"}),
        ("BotUser", {"name": "b", "active": False}, {"name": "b", "active": False}),
        ("HTTPResponseBackend", {"body": "", "headers": {}, "status_code": 200}, {}),
        (
            "HTTPResponseBackend",
            {"body": "b", "headers": {"a": "b"}, "status_code": 503},
            {"body": "b", "headers": {"a": "b"}, "status_code": 503},
        ),
        (
            "EventSubscription",
            {"destinations": [{"id": "ed_1"}], "sources": [{"type": "a.v0", "uri": "x"}]},
            {"destination_ids": ["ed_1"]},
        ),
        # The platform derives the certificate from the policy.
        (
            "ReservedDomain",
            {"domain": "a.x", "certificate": {"id": "c"}, "certificate_management_policy": {"private_key_type": "rsa"}},
            {"domain": "a.x", "certificate_management_policy": {"private_key_type": "rsa"}},
        ),
        (
            "ReservedDomain",
            {"domain": "a.x", "certificate": {"id": "cert_1"}},
            {"domain": "a.x", "certificate_id": "cert_1"},
        ),
        # A default of the server that a manifest may not contain beside the other values.
        (
            "SSHHostCertificate",
            {
                "ssh_certificate_authority_id": "sshca_2",
                "public_key": KEY,
                "principals": ["a"],
                "valid_after": "2030-01-01T00:00:00Z",
                "valid_until": "2029-01-01T00:00:00Z",
            },
            {
                "ssh_certificate_authority_id": "sshca_2",
                "public_key": KEY,
                "principals": ["a"],
                "valid_after": "2030-01-01T00:00:00Z",
            },
        ),
        # Undocumented shapes are copied.
        ("TLSEdge", {"hostports": "odd", "mutual_tls": "odd"}, {"hostports": "odd", "mutual_tls": "odd"}),
        ("WeightedBackend", {"backends": ["odd"]}, {"backends": ["odd"]}),
    ],
)
def test_the_spec_has_the_write_shape_without_defaults_and_with_references(
    kind: str, body: dict[str, Any], spec: dict[str, Any] | None
) -> None:
    if spec is None:
        spec = {"backends": [ref("WeightedBackend/b"), ref("StaticBackend/s"), "b9"]}
    assert read(kind, body) == (spec, [])


@pytest.mark.parametrize(
    ("kind", "body", "applied", "declared", "ignored"),
    [
        ("HTTPSEdgeRoute", {"saml": {"idp_metadata": "<xml/>"}}, (), {"saml": {}}, ["saml.idp_metadata"]),
        (
            "HTTPSEdgeRoute",
            {"oidc": {"issuer": "https://i", "client_id": "c", "client_secret": "hush"}},
            (),
            {"oidc": {"issuer": "https://i", "client_id": "c"}},
            ["oidc.client_secret"],
        ),
        (
            "HTTPSEdgeRoute",
            {"oauth": {"provider": {"github": {"client_id": "c", "client_secret": "hush"}}}},
            (),
            {"oauth": {"provider": {"github": {"client_id": "c"}}}},
            ["oauth.provider.github.client_secret"],
        ),
        (
            "HTTPSEdgeRoute",
            {"oauth": {"provider": {"github": {"email_addresses": ["a@b.c"], "client_secret": ""}}}},
            (),
            {"oauth": {"provider": {"github": {"email_addresses": ["a@b.c"]}}}},
            [],
        ),
        (
            "HTTPSEdgeRoute",
            {"oauth": {"provider": {"github": {"client_secret": "hush"}}}},
            (),
            {"oauth": {"provider": {"github": {}}}},
            ["oauth.provider.github.client_secret"],
        ),
        # Write-only, but set: without it the provider is invalid.
        (
            "HTTPSEdgeRoute",
            {"webhook_verification": {"provider": "github", "secret": ""}},
            (),
            {"webhook_verification": {"provider": "github"}},
            ["webhook_verification.secret"],
        ),
        ("Secret", {"name": "n", "vault": {"id": "v"}, "value": "hush"}, (), {"name": "n", "vault_id": "v"}, ["value"]),
        ("TLSCertificate", {"certificate_pem": "c"}, (), {"certificate_pem": "c"}, ["private_key_pem"]),
        ("ReservedDomain", {"domain": "a.x", "region": "eu"}, (), {"domain": "a.x"}, []),
        ("ReservedDomain", {"domain": "a.x", "region": "eu"}, ("region", "domain"), {"domain": "a.x"}, ["region"]),
        ("SSHCertificateAuthority", {}, ("key_size",), {}, ["key_size"]),
        (
            "EventDestination",
            {"target": {"metrics": {"service": "s", "api_key": "hush"}}},
            (),
            {"target": {"metrics": {"service": "s"}}},
            ["target.metrics.api_key"],
        ),
    ],
)
def test_secrets_and_write_only_values_are_ignored_where_they_are_set(
    kind: str, body: dict[str, Any], applied: tuple[str, ...], declared: dict[str, Any], ignored: list[str]
) -> None:
    route = kind == "HTTPSEdgeRoute"
    spec, paths = read(kind, {**(ROUTE if route else {}), **body}, "e2" if route else None, applied)
    assert (spec, paths) == ({**({"edge_id": "e2", **ROUTE} if route else {}), **declared}, ignored)
    assert "hush" not in str(spec)


@pytest.mark.parametrize(("parent", "expected"), [("e1", ref("HTTPSEdge/e")), ("e2", "e2"), (None, None)])
def test_a_child_refers_to_its_parent(parent: str | None, expected: Value) -> None:
    assert read("HTTPSEdgeRoute", ROUTE, parent)[0].get("edge_id") == expected


@pytest.mark.parametrize(
    ("text", "ending", "document"),
    [
        ('{"on_tcp_connect": []}', "json", {"on_tcp_connect": []}),
        ('  {"on_tcp_connect": []}', "json", {"on_tcp_connect": []}),
        ("on_tcp_connect: []", "policy", {"on_tcp_connect": []}),
        ('{"on_tcp_connect": [{"": 1}]}', "json", None),
        ('{"on_tcp_connect": [[{"<<": 1}]]}', "json", None),
        ('{"on_tcp_connect": {"${{ x }}": 1}}', "json", None),
        ('{"on_tcp_connect": "${{ x }}"}', "json", {"on_tcp_connect": "${{ x }}"}),
        ("{}", "json", {}),
        ("no policy", "policy", None),
    ],
)
def test_a_traffic_policy_is_a_document_where_a_manifest_can_contain_it(
    text: str, ending: str, document: dict[str, Any] | None
) -> None:
    spec, _ = read("TLSEdge", {"traffic_policy": {"enabled": True, "value": text}})
    assert spec == {"traffic_policy": {"value": Attachment(text, ending)}}
    assert Attachment(text, ending).document == document


def test_a_certificate_is_never_a_document() -> None:
    text = json.dumps({"on_tcp_connect": []})
    assert Attachment(text, "pem").document is None


def test_an_input_only_value_is_described_where_a_response_shows_it() -> None:
    response = {"region": "us", "endpoint_configuration": {"id": "ec_1", "uri": ""}}
    assert read("ReservedAddress", response) == ({"endpoint_configuration_id": "ec_1"}, [])
