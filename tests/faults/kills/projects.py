"""The projects that are applied and killed: what is declared before and after, and the shapes of calls in between.

Every shape of a call is somewhere on the way from `before` to `after`; `test_points` sees to that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from reconciler.model.manifest import Manifest
from tests.kinds import pems
from tests.project.texts import load_texts

Document = dict[str, Any]
STACK = "kills"
_ENDPOINT_CONFIGURATION = "ec_2ZJ1HRm5ZkQYyOQ0P1rD0V8n1aT"


@dataclass(frozen=True, eq=False)
class CrashProject:
    """`undone` are modules that somebody removes by hand after `before`: (kind, name, module)."""

    name: str
    before: tuple[Document, ...]
    after: tuple[Document, ...]
    undone: tuple[tuple[str, str, str], ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def resources(self) -> int:
        return len({(document["kind"], document["name"]) for document in (*self.before, *self.after)})

    def manifest(self, documents: tuple[Document, ...]) -> Manifest:
        return load_texts({"all.yaml": text_of(documents).encode()}, STACK, {}).manifest

    def write(self, root: Path, documents: tuple[Document, ...]) -> None:
        """As a project's folder."""
        (root / "manifests").mkdir(parents=True, exist_ok=True)
        guards = "guards: {max_delete_percent: 100, max_update_percent: 100}\n"
        (root / "reconciler.yaml").write_text(f"version: 1\nstack: {STACK}\nlimits: {{settle_seconds: 1}}\n{guards}")
        (root / "manifests" / "all.yaml").write_text(text_of(documents))


def text_of(documents: tuple[Document, ...]) -> str:
    return "---\n".join(json.dumps(document) + "\n" for document in documents)  # JSON is YAML


def tokens_of(documents: tuple[Document, ...]) -> Mapping[str, str]:
    """Where each credential's token is to be delivered, by the credential's name."""
    return {
        document["name"]: document["deliver"]["token"]["to_file"] for document in documents if "deliver" in document
    }


def _of(kind: str, name: str, /, **spec: Any) -> Document:
    return {"kind": kind, "name": name, "spec": spec}


def _ref(kind: str, name: str) -> Document:
    return {"ref": f"{kind}/{name}"}


def _credential(name: str, /, **spec: Any) -> Document:
    return {**_of("TunnelCredential", name, **spec), "deliver": {"token": {"to_file": f"secrets/{name}"}}}


def _policies(*names: str) -> Document:
    return {"ip_policy_ids": [_ref("IPPolicy", name) for name in names]}


def _deny(status: int) -> Document:
    actions = [{"type": "deny", "config": {"status_code": status}}]
    return {"value": {"on_http_request": [{"actions": actions}]}}


def _target(member: str) -> Document:
    auth = {"role": {"role_arn": "arn:aws:iam::123456789012:role/audit"}}
    arn = f"arn:aws:{member}:eu-central-1:123456789012:audit"
    name = {"logs": "log_group_arn", "stream": "stream_arn"}[member]
    return {member: {name: arn, "auth": auth}}


@cache
def create_all() -> CrashProject:
    """Five resources out of nothing: with and without a record, below another, and with a one-time secret."""
    return CrashProject(
        "building",
        (),
        (
            _of("BotUser", "ci", name="ci"),
            _credential("agent", owner_id=_ref("BotUser", "ci"), acl=["bind:a.example.com"]),
            _of("EventSubscription", "audit"),
            _of(
                "EventSource",
                "created",
                subscription_id=_ref("EventSubscription", "audit"),
                type="ip_policy_created.v0",
            ),
            _of("TLSEdge", "pay", tls_termination={"min_version": "1.3"}),
        ),
    )


@cache
def replace_all() -> CrashProject:
    """Five resources that change, and one that does not: all sorts of replacement and of calls for modules."""
    partners = pems.certificate("partners", ca=True), pems.certificate("new partners", ca=True)

    def edge(authority: str, policy: Document) -> tuple[Document, ...]:
        return (
            _of("CertificateAuthority", "partners", ca_pem=authority),
            _of(
                "TLSEdge",
                "pay",
                mutual_tls={"certificate_authority_ids": [_ref("CertificateAuthority", "partners")]},
                **policy,
            ),
        )

    return CrashProject(
        "rebuilding",
        (
            *edge(partners[0], {"traffic_policy": _deny(404)}),
            _of("IPPolicy", "pay"),
            _of("IPPolicyRule", "pay", ip_policy_id=_ref("IPPolicy", "pay"), cidr="10.0.0.0/8", action="allow"),
            _of("TCPEdge", "db", traffic_policy=_deny(404)),
            _of("BotUser", "old", name="old"),
        ),
        (
            *edge(partners[1], {"description": "without its policy"}),
            _of("IPPolicy", "pay"),
            _of("IPPolicyRule", "pay", ip_policy_id=_ref("IPPolicy", "pay"), cidr="10.0.0.0/8", action="deny"),
            _of("TCPEdge", "db", traffic_policy=_deny(404)),
        ),
        (("TCPEdge", "db", "traffic_policy"),),
    )


@cache
def plain() -> CrashProject:
    """Three resources of which the platform takes any number, each referring to the one before."""
    return CrashProject(
        "plain",
        (),
        (
            _of("IPPolicy", "office"),
            _of("TLSEdge", "pay", ip_restriction=_policies("office")),
            _of("TCPEdge", "db", ip_restriction=_policies("office")),
        ),
    )


@cache
def single() -> CrashProject:
    """One credential, and nothing else."""
    return CrashProject("single", (), (_credential("agent"),))


@cache
def unique_names() -> CrashProject:
    """Two resources with names that only one may have."""
    return CrashProject(
        "named",
        (),
        (
            _of("ReservedDomain", "pay", domain="pay.example.com"),
            _of("TLSEdge", "pay", hostports=["pay.example.com:443"]),
        ),
    )


@cache
def fifty() -> CrashProject:
    """About fifty resources of all sorts, a part of which is made, changed, replaced and deleted."""
    pem = {name: pems.certificate(name, ca=True) for name in ("one", "two", "three")}
    key = {name: pems.ssh_key(name) for name in ("fleet", "old", "new")}
    undone = (("TLSEdge", "drifted", "ip_restriction"), ("HTTPSEdgeRoute", "plain", "traffic_policy"))
    return CrashProject("fifty", _fifty_before(pem, key), _fifty_after(pem, key), undone)


def _fifty_before(pem: Mapping[str, str], key: Mapping[str, str]) -> tuple[Document, ...]:
    return (
        *(_of("BotUser", name, name=name) for name in ("ci", "fleet", "nightly", "old")),
        _credential("kept", owner_id=_ref("BotUser", "ci")),
        _credential("passed-on", owner_id=_ref("BotUser", "ci")),
        _credential("old"),
        _of("SSHCredential", "fleet", public_key=key["fleet"], owner_id=_ref("BotUser", "fleet")),
        _of("SSHCredential", "old", public_key=key["old"]),
        _of("IPPolicy", "office", description="Office"),
        _of("IPPolicy", "partners"),
        _of("IPPolicy", "old"),
        _of("IPPolicyRule", "lan", ip_policy_id=_ref("IPPolicy", "office"), cidr="10.0.0.0/8", action="allow"),
        _of("IPPolicyRule", "vpn", ip_policy_id=_ref("IPPolicy", "office"), cidr="10.1.0.0/16", action="allow"),
        _of("IPPolicyRule", "old", ip_policy_id=_ref("IPPolicy", "old"), cidr="10.2.0.0/16", action="deny"),
        _of("IPRestriction", "api", type="api", enforced=False, **_policies("office")),
        _of("CertificateAuthority", "partners", ca_pem=pem["one"]),
        _of("ReservedDomain", "shop", domain="shop.example.com"),
        _of("ReservedDomain", "same", domain="same.example.com"),
        _of(
            "ReservedDomain",
            "managed",
            domain="managed.example.com",
            certificate_management_policy={"authority": "letsencrypt", "private_key_type": "ecdsa"},
        ),
        _of("ReservedAddress", "kept", region="eu"),
        _of("TunnelGroupBackend", "blue", labels={"app": "blue"}),
        _of("TunnelGroupBackend", "green", labels={"app": "green"}),
        _of("FailoverBackend", "shop", backends=[_ref("TunnelGroupBackend", "blue")]),
        _of(
            "TLSEdge",
            "pay",
            hostports=["shop.example.com:443"],
            mutual_tls={"certificate_authority_ids": [_ref("CertificateAuthority", "partners")]},
            traffic_policy=_deny(404),
        ),
        _of("TLSEdge", "ledger", ip_restriction=_policies("office")),
        _of("TLSEdge", "drifted", ip_restriction=_policies("office")),
        _of("TCPEdge", "old", hostports=["${{ ReservedAddress/kept.addr }}"]),
        _of("HTTPSEdge", "shop"),
        _route("root", "/", backend={"backend_id": _ref("FailoverBackend", "shop")}),
        _route("admin", "/admin", ip_restriction=_policies("office"), traffic_policy=_deny(404)),
        _route(
            "plain", "/plain", backend={"backend_id": _ref("TunnelGroupBackend", "blue")}, traffic_policy=_deny(404)
        ),
        _of("EventDestination", "audit", format="json", target=_target("logs")),
        _of("EventSubscription", "audit", destination_ids=[_ref("EventDestination", "audit")]),
        _source("kept", "ip_policy_created.v0"),
        _source("old", "ip_policy_updated.v0"),
        _of("CloudEndpoint", "status", url="https://managed.example.com", traffic_policy=_deny(404)["value"]),
    )


def _fifty_after(pem: Mapping[str, str], key: Mapping[str, str]) -> tuple[Document, ...]:
    return (
        _of("BotUser", "ci", name="ci"),
        _of("BotUser", "fleet", name="fleet"),
        _of("BotUser", "nightly", name="nightly", active=False),
        _of("BotUser", "new", name="new"),
        _of("BotUser", "newer", name="newer"),
        _credential("kept", owner_id=_ref("BotUser", "ci"), description="patched"),
        _credential("passed-on", owner_id=_ref("BotUser", "fleet")),
        _credential("new", owner_id=_ref("BotUser", "new"), acl=["bind:*.example.com"]),
        _credential("newer"),
        _of("SSHCredential", "fleet", public_key=key["fleet"], owner_id=_ref("BotUser", "new")),
        _of("SSHCredential", "new", public_key=key["new"]),
        _of("IPPolicy", "office", description="The office"),
        _of("IPPolicy", "partners"),
        _of("IPPolicy", "new"),
        _of("IPPolicyRule", "lan", ip_policy_id=_ref("IPPolicy", "office"), cidr="10.0.0.0/8", action="deny"),
        _of("IPPolicyRule", "vpn", ip_policy_id=_ref("IPPolicy", "office"), cidr="10.1.0.0/16", action="deny"),
        _of("IPPolicyRule", "new", ip_policy_id=_ref("IPPolicy", "new"), cidr="10.3.0.0/16", action="deny"),
        _of("IPPolicyRule", "newer", ip_policy_id=_ref("IPPolicy", "new"), cidr="10.4.0.0/16", action="allow"),
        _of("IPRestriction", "api", type="api", enforced=True, **_policies("office", "new")),
        _of("IPRestriction", "agent", type="agent", enforced=False, **_policies("new")),
        _of("CertificateAuthority", "partners", ca_pem=pem["two"]),
        _of("CertificateAuthority", "new", ca_pem=pem["three"]),
        _of("ReservedDomain", "shop", domain="shop.example.com"),
        _of("ReservedDomain", "same", domain="same.example.com"),
        _of("ReservedDomain", "managed", domain="managed.example.com"),
        _of("ReservedDomain", "new", domain="new.example.com"),
        _of("ReservedAddress", "kept", region="eu"),
        _of("ReservedAddress", "new", region="us", endpoint_configuration_id=_ENDPOINT_CONFIGURATION),
        _of("TunnelGroupBackend", "blue", labels={"app": "blue"}),
        _of("TunnelGroupBackend", "green", labels={"app": "emerald"}),
        _of("TunnelGroupBackend", "new", labels={"app": "new"}),
        _of("HTTPResponseBackend", "new", status_code=503, body="soon"),
        _of(
            "FailoverBackend",
            "shop",
            backends=[_ref("TunnelGroupBackend", "blue"), _ref("HTTPResponseBackend", "new")],
        ),
        _of(
            "TLSEdge",
            "pay",
            hostports=["shop.example.com:443"],
            mutual_tls={
                "certificate_authority_ids": [_ref("CertificateAuthority", name) for name in ("partners", "new")]
            },
        ),
        _of("TLSEdge", "ledger", ip_restriction=_policies("office", "partners")),
        _of("TLSEdge", "drifted", ip_restriction=_policies("office")),
        _of("TLSEdge", "new", hostports=["new.example.com:443"], tls_termination={"min_version": "1.3"}),
        _of("TCPEdge", "new", hostports=["${{ ReservedAddress/new.addr }}"], ip_restriction=_policies("new")),
        _of("HTTPSEdge", "shop", description="The shop"),
        _route("root", "/", backend={"backend_id": _ref("TunnelGroupBackend", "new")}),
        _route("admin", "/admin", traffic_policy=_deny(403)),
        _route(
            "plain", "/plain", backend={"backend_id": _ref("TunnelGroupBackend", "blue")}, traffic_policy=_deny(404)
        ),
        _route(
            "new", "/new", backend={"backend_id": _ref("TunnelGroupBackend", "green")}, ip_restriction=_policies("new")
        ),
        _of("EventDestination", "audit", format="json", target=_target("stream")),
        _of("EventSubscription", "audit", destination_ids=[_ref("EventDestination", "audit")]),
        _source("kept", "ip_policy_created.v0"),
        _source("new", "ip_policy_deleted.v0"),
        _source("newer", "domain_created.v0"),
        _of("CloudEndpoint", "status", url="https://managed.example.com", traffic_policy=_deny(403)["value"]),
    )


def _route(name: str, path: str, /, **modules: Any) -> Document:
    edge = _ref("HTTPSEdge", "shop")
    return _of("HTTPSEdgeRoute", name, edge_id=edge, match_type="path_prefix", match=path, **modules)


def _source(name: str, event: str) -> Document:
    return _of("EventSource", name, subscription_id=_ref("EventSubscription", "audit"), type=event)
