"""The data for the life of each kind: a full declaration, and for each field another legal value.

The only part of these tests that depends on a kind: `test_life` derives the rest from the kinds' fields, and fails if
a kind or a field is missing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import serialization

from reconciler import kinds
from tests.kinds import pems

Document = dict[str, Any]
SUBJECT = "subject"  # the name of the resource under test


@dataclass(frozen=True)
class Life:
    """
    spec      as written in a manifest, with as many fields as go together
    others    path of a field → another value that is legal beside all the others before it
    replaced  path of a field → a value that forces replacement, where the field itself could be updated in place
    beside    the other resources that it refers to, before and after
    bound     paths of fields that other fields of the spec require
    brief     whether what it shares with another life of the kind is tested only with that one
    variants  of the sandbox
    """

    kind: str
    spec: Document
    others: Mapping[str, Any] = field(default_factory=dict)
    replaced: Mapping[str, Any] = field(default_factory=dict)
    beside: tuple[Document, ...] = ()
    bound: tuple[str, ...] = ()
    called: str = ""
    brief: bool = False
    variants: Mapping[str, bool] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind}-{self.called}" if self.called else self.kind

    @property
    def document(self) -> Document:
        secret = kinds.get(self.kind).one_time
        extra = {"deliver": {secret: {"to_file": "secrets/token"}}} if secret else {}
        return {"kind": self.kind, "name": SUBJECT, "spec": self.spec, **extra}


def _of(kind: str, name: str, /, **spec: Any) -> Document:
    return {"kind": kind, "name": name, "spec": spec}


def _ref(kind: str, name: str) -> Document:
    return {"ref": f"{kind}/{name}"}


def _two_of(kind: str, /, **same: Any) -> tuple[Document, Document]:
    """Two resources of a kind, `a` and `b`."""
    return _of(kind, "a", **same), _of(kind, "b", **same)


def _policy(status: int) -> Document:
    actions = [{"type": "deny", "config": {"status_code": status}}]
    return {"on_http_request": [{"name": "only-get", "expressions": ["req.method != 'GET'"], "actions": actions}]}


def _metadata_of(provider: str) -> str:
    return pems.saml(f"https://{provider}.example.com")


def _traditional_key() -> str:
    """The key of `pems.private_key()` in the other PEM format."""
    key = serialization.load_pem_private_key(pems.private_key().encode(), None)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode("ascii")


_TEXTS = {"description": "as declared", "metadata": '{"team": "edge"}'}
_OTHER_TEXTS = {"description": "another", "metadata": "plain text, not JSON"}

_POLICIES = _two_of("IPPolicy")
_BACKENDS = _two_of("TunnelGroupBackend")
_BOTS = (_of("BotUser", "a", name="bot a"), _of("BotUser", "b", name="bot b"))
_DOMAINS = (
    _of("ReservedDomain", "a", domain="a.life.example.com"),
    _of("ReservedDomain", "b", domain="b.life.example.com"),
)
_ADDRESSES = _two_of("ReservedAddress")
_AUTHORITIES = (
    _of("CertificateAuthority", "a", ca_pem=pems.certificate("authority a", ca=True)),
    _of("CertificateAuthority", "b", ca_pem=pems.certificate("authority b", ca=True)),
)
_CERTIFICATES = (
    _of("TLSCertificate", "a", certificate_pem=pems.certificate("x"), private_key_pem=pems.private_key("x")),
    _of("TLSCertificate", "b", certificate_pem=pems.certificate("y"), private_key_pem=pems.private_key("y")),
)
_CONFIGURATIONS = ("ec_2ZJ1HRm5ZkQYyOQ0P1rD0V8n1aT", "ec_2ZJ1HRm5ZkQYyOQ0P1rD0V8n1aU")

_VAULTS = (_of("Vault", "a", name="life/a"), _of("Vault", "b", name="life/b"))


def _weight(backend: str, weight: int) -> Document:
    return {"backend_id": _ref("TunnelGroupBackend", backend), "weight": weight}


_BACKEND = {"enabled": True, "backend_id": _ref("TunnelGroupBackend", "a")}
_OTHER_BACKEND = {"backend.enabled": False, "backend.backend_id": _ref("TunnelGroupBackend", "b")}
_RESTRICTION = {"enabled": True, "ip_policy_ids": [_ref("IPPolicy", "a")]}
_OTHER_RESTRICTION = {
    "ip_restriction.enabled": False,
    "ip_restriction.ip_policy_ids": [_ref("IPPolicy", "b"), _ref("IPPolicy", "a")],
}
_MUTUAL_TLS = {"enabled": True, "certificate_authority_ids": [_ref("CertificateAuthority", "a")]}
_OTHER_MUTUAL_TLS = {
    "mutual_tls.enabled": False,
    "mutual_tls.certificate_authority_ids": [_ref("CertificateAuthority", "b")],
}
_TRAFFIC_POLICY = {"enabled": True, "value": _policy(405)}
_OTHER_TRAFFIC_POLICY = {"traffic_policy.enabled": False, "traffic_policy.value": _policy(403)}

_ARN = "arn:cloud:stream:eu-1:123456789012"
_ROLE = {"role": {"role_arn": f"{_ARN}:role/events"}}
_CREDS = {"creds": {"cloud_access_key_id": "AKID", "cloud_secret_access_key": "cloud secret"}}
_INGESTION = {
    "tenant_id": "tenant",
    "client_id": "client",
    "client_secret": "client secret",
    "logs_ingestion_uri": "https://ingest.example.com",
    "data_collection_rule_id": "dcr-1",
    "data_collection_stream_name": "Custom-Events",
}


def _destination_by_role(member: str, called: str) -> Life:
    """A destination whose target signs in at a cloud by a role, and then by another role."""
    at = f"target.{member}"
    others = {f"{at}.{called}": f"{_ARN}:another", f"{at}.auth.role.role_arn": f"{_ARN}:role/another"}
    return Life(
        "EventDestination",
        {"target": {member: {"auth": _ROLE, called: f"{_ARN}:one"}}},
        others,
        {"target": {"metrics": {"api_key": "vendor key"}}},
        called=member,
    )


def _destination_by_keys(member: str, called: str) -> Life:
    at = f"target.{member}.auth.creds"
    return Life(
        "EventDestination",
        {"target": {member: {"auth": _CREDS, called: f"{_ARN}:one"}}},
        {f"{at}.cloud_access_key_id": "AKID2", f"{at}.cloud_secret_access_key": "another cloud secret"},
        called=f"{member} by keys",
    )


def _oauth(provider: str, spec: Document, others: Document, *, brief: bool = True) -> Life:
    """A route that admits users of this provider, and then other users."""
    at = f"oauth.provider.{provider}"
    return Life(
        "HTTPSEdgeRoute",
        {**_ROOT, "oauth": {**_SIGN_IN, "auth_check_interval": 60, "provider": {provider: {**_PROVIDER, **spec}}}},
        {
            **({} if brief else _other_sign_in("oauth")),
            **({} if brief else {"oauth.auth_check_interval": 90}),
            **{f"{at}.{name}": value for name, value in {**_OTHER_PROVIDER, **others}.items()},
        },
        beside=_two_of("HTTPSEdge"),
        bound=(f"{at}.client_id", f"{at}.client_secret", f"{at}.scopes", at, "oauth.provider"),
        called=provider,
        brief=brief,
    )


def _other_sign_in(module: str) -> Document:
    return {
        f"{module}.enabled": False,
        f"{module}.options_passthrough": False,
        f"{module}.cookie_prefix": "web.",
        f"{module}.inactivity_timeout": 60,
        f"{module}.maximum_duration": 7200,
    }


_ROOT = {"edge_id": _ref("HTTPSEdge", "a"), "match_type": "path_prefix", "match": "/"}
_SIGN_IN = {
    "enabled": True,
    "options_passthrough": True,
    "cookie_prefix": "app.",
    "inactivity_timeout": 600,
    "maximum_duration": 3600,
}
_PROVIDER = {
    "client_id": "app",
    "client_secret": "application secret",
    "scopes": ["read", "email"],
    "email_addresses": ["ops@example.com"],
    "email_domains": ["example.com", "example.org"],
}
_OTHER_PROVIDER = {
    "client_id": "another app",
    "client_secret": "another application secret",
    "scopes": ["read"],
    "email_addresses": ["dev@example.com", "ops@example.com"],
    "email_domains": ["example.net"],
}

LIVES = (
    Life(
        "AgentIngress",
        {
            **_TEXTS,
            "domain": "connect.example.com",
            "certificate_management_policy": {"authority": "letsencrypt", "private_key_type": "ecdsa"},
        },
        {
            **_OTHER_TEXTS,
            "domain": "elsewhere.example.com",
            "certificate_management_policy.private_key_type": "rsa",
        },
    ),
    Life(
        "APIKey",
        {**_TEXTS, "owner_id": _ref("BotUser", "a")},
        {**_OTHER_TEXTS, "owner_id": _ref("BotUser", "b")},
        beside=_BOTS,
    ),
    Life("BotUser", {"name": "subject", "active": False}, {"name": "another", "active": True}),
    Life(
        "CertificateAuthority",
        {**_TEXTS, "ca_pem": pems.certificate("one", ca=True)},
        {**_OTHER_TEXTS, "ca_pem": pems.certificate("two", ca=True)},
    ),
    Life(
        "CloudEndpoint",
        {
            **_TEXTS,
            "url": "http://a.life.example.com",
            "traffic_policy": _policy(405),
            "bindings": ["public"],
            "pooling_enabled": False,
        },
        {
            **_OTHER_TEXTS,
            "url": "http://b.life.example.com:8080",
            "traffic_policy": _policy(403),
            "bindings": ["public", "kubernetes"],
            "pooling_enabled": True,
        },
        {"url": "https://b.life.example.com"},
        _DOMAINS,
    ),
    Life(
        "EventDestination",
        {
            **_TEXTS,
            "format": "json",
            "target": {"metrics": {"api_key": "vendor key", "tags": "a:b", "service": "edge", "site": "eu"}},
        },
        {
            **_OTHER_TEXTS,
            "target.metrics.api_key": "another vendor key",
            "target.metrics.tags": "c:d",
            "target.metrics.service": "core",
            "target.metrics.site": "us",
        },
        {"target": {"ingestion": _INGESTION}},
    ),
    Life(
        "EventDestination",
        {"target": {"ingestion": _INGESTION}},
        {
            **{f"target.ingestion.{name}": f"another {name}" for name in _INGESTION},
            "target.ingestion.logs_ingestion_uri": "https://elsewhere.example.com",
        },
        called="ingestion",
    ),
    _destination_by_role("delivery", "delivery_stream_arn"),
    _destination_by_keys("delivery", "delivery_stream_arn"),
    _destination_by_role("stream", "stream_arn"),
    _destination_by_keys("stream", "stream_arn"),
    _destination_by_role("logs", "log_group_arn"),
    _destination_by_keys("logs", "log_group_arn"),
    Life(
        "EventSource",
        {
            "subscription_id": _ref("EventSubscription", "a"),
            "type": "http_request_complete.v0",
            "fields": ["http.request.method", "conn.client_ip"],
            "filter": "true",
        },
        {
            "subscription_id": _ref("EventSubscription", "b"),
            "type": "tcp_connection_closed.v0",
            "fields": ["conn.client_ip"],
            "filter": "false",
        },
        beside=_two_of("EventSubscription"),
    ),
    Life(
        "EventSubscription",
        {
            **_TEXTS,
            "destination_ids": [_ref("EventDestination", "a")],
        },
        {
            **_OTHER_TEXTS,
            "destination_ids": [_ref("EventDestination", "b"), _ref("EventDestination", "a")],
        },
        beside=_two_of("EventDestination", target={"metrics": {"api_key": "vendor key"}}),
    ),
    Life(
        "FailoverBackend",
        {**_TEXTS, "backends": [_ref("TunnelGroupBackend", "a"), _ref("TunnelGroupBackend", "b")]},
        {**_OTHER_TEXTS, "backends": [_ref("TunnelGroupBackend", "b"), _ref("TunnelGroupBackend", "a")]},
        beside=_BACKENDS,
    ),
    Life(
        "HTTPResponseBackend",
        {**_TEXTS, "status_code": 503, "headers": {"Content-Type": "text/plain", "X-A": "1"}, "body": "sorry"},
        {**_OTHER_TEXTS, "status_code": 404, "headers": {"content-type": "text/html"}, "body": "gone"},
    ),
    Life(
        "HTTPSEdge",
        {
            **_TEXTS,
            "hostports": ["a.life.example.com:443"],
            "mutual_tls": _MUTUAL_TLS,
            "tls_termination": {"enabled": True, "min_version": "1.3"},
        },
        {
            **_OTHER_TEXTS,
            "hostports": ["b.life.example.com:443", "a.life.example.com:443"],
            **_OTHER_MUTUAL_TLS,
            "tls_termination.enabled": False,
            "tls_termination.min_version": "1.2",
        },
        beside=(*_DOMAINS, *_AUTHORITIES),
    ),
    Life(
        "HTTPSEdgeRoute",
        {
            **_TEXTS,
            "edge_id": _ref("HTTPSEdge", "a"),
            "match_type": "path_prefix",
            "match": "/hooks",
            "backend": _BACKEND,
            "ip_restriction": _RESTRICTION,
            "webhook_verification": {"enabled": True, "provider": "github", "secret": "webhook secret"},
            "user_agent_filter": {"enabled": True, "allow": ["(?i)firefox", "(?i)curl"], "deny": ["(?i)bot"]},
            "circuit_breaker": {
                "enabled": True,
                "tripped_duration": 30,
                "rolling_window": 60,
                "num_buckets": 6,
                "volume_threshold": 20,
                "error_threshold_percentage": 0.25,
            },
            "request_headers": {"enabled": True, "add": {"X-From": "edge", "x-a": "1"}, "remove": ["Cookie", "X-B"]},
            "response_headers": {"enabled": True, "add": {"X-From": "edge"}, "remove": ["Server"]},
            "compression": {"enabled": True},
            "websocket_tcp_converter": {"enabled": True},
            "traffic_policy": _TRAFFIC_POLICY,
        },
        {
            **_OTHER_TEXTS,
            "edge_id": _ref("HTTPSEdge", "b"),
            "match_type": "exact_path",
            "match": "/other",
            **_OTHER_BACKEND,
            **_OTHER_RESTRICTION,
            "webhook_verification.enabled": False,
            "webhook_verification.provider": "stripe",
            "webhook_verification.secret": "another webhook secret",
            "user_agent_filter.enabled": False,
            "user_agent_filter.allow": ["(?i)safari"],
            "user_agent_filter.deny": ["(?i)crawler", "(?i)bot"],
            "circuit_breaker.enabled": False,
            "circuit_breaker.tripped_duration": 40,
            "circuit_breaker.rolling_window": 50,
            "circuit_breaker.num_buckets": 5,
            "circuit_breaker.volume_threshold": 30,
            "circuit_breaker.error_threshold_percentage": 1,
            "request_headers.enabled": False,
            "request_headers.add": {"x-from": "elsewhere"},
            "request_headers.remove": ["cookie"],
            "response_headers.enabled": False,
            "response_headers.add": {"x-from": "elsewhere"},
            "response_headers.remove": ["x-powered-by", "server"],
            "compression.enabled": False,
            "websocket_tcp_converter.enabled": False,
            **_OTHER_TRAFFIC_POLICY,
        },
        beside=(*_two_of("HTTPSEdge"), *_BACKENDS, *_POLICIES),
        bound=("webhook_verification.secret",),
    ),
    Life(
        "HTTPSEdgeRoute",
        {
            "edge_id": _ref("HTTPSEdge", "a"),
            "match_type": "path_prefix",
            "match": "/",
            "saml": {
                "enabled": True,
                "options_passthrough": True,
                "cookie_prefix": "app.",
                "inactivity_timeout": 600,
                "maximum_duration": 3600,
                "idp_metadata": _metadata_of("one"),
                "force_authn": True,
                "allow_idp_initiated": True,
                "authorized_groups": ["ops", "dev"],
                "nameid_format": "urn:oasis:names:tc:SAML:2.0:nameid-format:transient",
            },
        },
        {
            "saml.enabled": False,
            "saml.options_passthrough": False,
            "saml.cookie_prefix": "web.",
            "saml.inactivity_timeout": 60,
            "saml.maximum_duration": 7200,
            "saml.idp_metadata": _metadata_of("two"),
            "saml.force_authn": False,
            "saml.allow_idp_initiated": False,
            "saml.authorized_groups": ["ops"],
            "saml.nameid_format": "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
        },
        beside=_two_of("HTTPSEdge"),
        called="saml",
    ),
    Life(
        "HTTPSEdgeRoute",
        {
            **_ROOT,
            "oidc": {
                **_SIGN_IN,
                "issuer": "https://login.example.com",
                "client_id": "app",
                "client_secret": "application secret",
                "scopes": ["profile", "email"],
            },
        },
        {
            **_other_sign_in("oidc"),
            "oidc.issuer": "https://sso.example.com",
            "oidc.client_id": "another app",
            "oidc.client_secret": "another application secret",
            "oidc.scopes": ["openid"],
        },
        beside=_two_of("HTTPSEdge"),
        called="oidc",
    ),
    _oauth(
        "github",
        {"teams": ["ops"], "organizations": ["example"]},
        {"teams": ["dev"], "organizations": ["a"]},
        brief=False,
    ),
    *(
        _oauth(provider, {}, {})
        for provider in ("facebook", "microsoft", "google", "linkedin", "gitlab", "twitch", "amazon")
    ),
    Life("IPPolicy", _TEXTS, _OTHER_TEXTS),
    Life(
        "IPPolicyRule",
        {**_TEXTS, "ip_policy_id": _ref("IPPolicy", "a"), "cidr": "203.0.113.0/24", "action": "allow"},
        {**_OTHER_TEXTS, "cidr": "2001:DB8::/32", "ip_policy_id": _ref("IPPolicy", "b"), "action": "deny"},
        beside=_POLICIES,
    ),
    Life(
        "IPRestriction",
        {**_TEXTS, "type": "api", "ip_policy_ids": [_ref("IPPolicy", "a")], "enforced": True},
        {
            **_OTHER_TEXTS,
            "type": "agent",
            "ip_policy_ids": [_ref("IPPolicy", "b"), _ref("IPPolicy", "a")],
            "enforced": False,
        },
        beside=_POLICIES,
    ),
    Life(
        "ReservedAddress",
        {**_TEXTS, "region": "eu", "endpoint_configuration_id": _CONFIGURATIONS[0]},
        {**_OTHER_TEXTS, "region": "jp", "endpoint_configuration_id": _CONFIGURATIONS[1]},
    ),
    Life(
        "ReservedDomain",
        {
            **_TEXTS,
            "domain": "subject.example.com",
            "region": "eu",
            "resolves_to": [{"value": "us"}, {"value": "eu"}],
            "certificate_management_policy": {"authority": "letsencrypt", "private_key_type": "rsa"},
            "http_endpoint_configuration_id": _CONFIGURATIONS[0],
            "https_endpoint_configuration_id": _CONFIGURATIONS[0],
        },
        {
            **_OTHER_TEXTS,
            "domain": "elsewhere.example.com",
            "resolves_to": [{"value": "ap"}],
            "certificate_management_policy.private_key_type": "ecdsa",
            "http_endpoint_configuration_id": _CONFIGURATIONS[1],
            "https_endpoint_configuration_id": _CONFIGURATIONS[1],
        },
    ),
    Life(
        "ReservedDomain",
        {"domain": "subject.example.com", "certificate_id": _ref("TLSCertificate", "a")},
        {"certificate_id": _ref("TLSCertificate", "b")},
        beside=_CERTIFICATES,
        called="uploaded",
    ),
    Life(
        "SSHCertificateAuthority",
        {**_TEXTS, "private_key_type": "ed25519"},
        {**_OTHER_TEXTS, "private_key_type": "ecdsa"},
    ),
    Life(
        "SSHCertificateAuthority",
        {"private_key_type": "ecdsa", "elliptic_curve": "nistp256"},
        {"elliptic_curve": "nistp384"},
        bound=("private_key_type",),
        called="ecdsa",
    ),
    Life(
        "SSHCertificateAuthority",
        {"private_key_type": "rsa", "key_size": 4096},
        {"key_size": 2048},
        bound=("private_key_type",),
        called="rsa",
    ),
    Life(
        "SSHCredential",
        {
            **_TEXTS,
            "public_key": pems.ssh_key("one"),
            "acl": ["bind:one.example.com"],
            "owner_id": _ref("BotUser", "a"),
        },
        {
            **_OTHER_TEXTS,
            "public_key": pems.ssh_key("two"),
            "acl": ["bind:*.example.com", "bind:team=*"],
            "owner_id": _ref("BotUser", "b"),
        },
        beside=_BOTS,
    ),
    Life(
        "SSHHostCertificate",
        {
            **_TEXTS,
            "ssh_certificate_authority_id": _ref("SSHCertificateAuthority", "a"),
            "public_key": pems.ssh_key("host one"),
            "principals": ["one.example.com", "192.0.2.1"],
            "valid_after": "2030-01-01T00:00:00Z",
            "valid_until": "2031-01-01T00:00:00+01:00",
        },
        {
            **_OTHER_TEXTS,
            "ssh_certificate_authority_id": _ref("SSHCertificateAuthority", "b"),
            "public_key": pems.ssh_key("host two"),
            "principals": ["two.example.com"],
            "valid_after": "2030-06-01T00:00:00Z",
            "valid_until": "2032-01-01T00:00:00Z",
        },
        beside=_two_of("SSHCertificateAuthority"),
    ),
    Life(
        "SSHUserCertificate",
        {
            **_TEXTS,
            "ssh_certificate_authority_id": _ref("SSHCertificateAuthority", "a"),
            "public_key": pems.ssh_key("user one"),
            "principals": ["alice", "ops"],
            "critical_options": {"force-command": "/bin/true"},
            "extensions": {"permit-pty": ""},
            "valid_after": "2030-01-01T00:00:00Z",
            "valid_until": "2031-01-01T00:00:00+01:00",
        },
        {
            **_OTHER_TEXTS,
            "ssh_certificate_authority_id": _ref("SSHCertificateAuthority", "b"),
            "public_key": pems.ssh_key("user two"),
            "principals": ["bob"],
            "critical_options": {"source-address": "192.0.2.0/24"},
            "extensions": {"permit-pty": "", "permit-port-forwarding": ""},
            "valid_after": "2030-06-01T00:00:00Z",
            "valid_until": "2032-01-01T00:00:00Z",
        },
        beside=_two_of("SSHCertificateAuthority"),
    ),
    Life(
        "Secret",
        {**_TEXTS, "name": "stripe", "value": "vaulted value", "vault_id": _ref("Vault", "a")},
        {**_OTHER_TEXTS, "name": "adyen", "value": "another vaulted value", "vault_id": _ref("Vault", "b")},
        beside=_VAULTS,
        bound=("vault_id",),
    ),
    Life(
        "Secret",
        {"name": "stripe", "value": "vaulted value", "vault_name": "life/a"},
        {"vault_name": "life/b"},
        beside=_VAULTS,
        bound=("vault_name",),
        called="by name",
    ),
    Life(
        "StaticBackend",
        {**_TEXTS, "address": "one.example.com:443", "tls": {"enabled": True}},
        {**_OTHER_TEXTS, "address": "two.example.com:8443", "tls.enabled": False},
    ),
    Life(
        "TCPEdge",
        {
            **_TEXTS,
            "hostports": ["${{ ReservedAddress/a.addr }}"],
            "backend": _BACKEND,
            "ip_restriction": _RESTRICTION,
            "traffic_policy": _TRAFFIC_POLICY,
        },
        {
            **_OTHER_TEXTS,
            "hostports": ["${{ ReservedAddress/b.addr }}"],
            **_OTHER_BACKEND,
            **_OTHER_RESTRICTION,
            **_OTHER_TRAFFIC_POLICY,
        },
        beside=(*_ADDRESSES, *_BACKENDS, *_POLICIES),
    ),
    Life(
        "TLSCertificate",
        {**_TEXTS, "certificate_pem": pems.certificate(), "private_key_pem": pems.private_key()},
        {
            **_OTHER_TEXTS,
            "certificate_pem": pems.certificate(ca=True),  # another one of the same key
            "private_key_pem": _traditional_key(),
        },
    ),
    Life(
        "TLSEdge",
        {
            **_TEXTS,
            "hostports": ["a.life.example.com:443"],
            "backend": _BACKEND,
            "ip_restriction": _RESTRICTION,
            "mutual_tls": _MUTUAL_TLS,
            "tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.3"},
            "traffic_policy": _TRAFFIC_POLICY,
        },
        {
            **_OTHER_TEXTS,
            "hostports": ["b.life.example.com:443"],
            **_OTHER_BACKEND,
            **_OTHER_RESTRICTION,
            **_OTHER_MUTUAL_TLS,
            "tls_termination.enabled": False,
            "tls_termination.min_version": "1.2",
            **_OTHER_TRAFFIC_POLICY,
        },
        beside=(*_DOMAINS, *_BACKENDS, *_POLICIES, *_AUTHORITIES),
    ),
    Life(
        "TLSEdge",
        {"hostports": ["a.life.example.com:443"], "tls_termination": {"terminate_at": "upstream"}},
        {"tls_termination.terminate_at": "edge"},
        beside=_DOMAINS,
        called="upstream",
    ),
    Life(
        "TunnelCredential",
        {**_TEXTS, "acl": ["bind:one.example.com"], "owner_id": _ref("BotUser", "a")},
        {**_OTHER_TEXTS, "acl": ["bind:*.example.com", "bind:team=*"], "owner_id": _ref("BotUser", "b")},
        beside=_BOTS,
    ),
    Life(
        "TunnelGroupBackend",
        {**_TEXTS, "labels": {"service": "payments", "zone": "one"}},
        {**_OTHER_TEXTS, "labels": {"service": "payments"}},
    ),
    Life("Vault", {**_TEXTS, "name": "life/one"}, {**_OTHER_TEXTS, "name": "life/two"}),
    Life(
        "WeightedBackend",
        {**_TEXTS, "backends": [_weight("a", 90), _weight("b", 10)]},
        {**_OTHER_TEXTS, "backends": [_weight("b", 0), _weight("a", 100)]},
        beside=_BACKENDS,
    ),
)
