"""Fields that the platform derives: one function per kind, called with the draft of a created or updated object.

Derived values are stored in the draft's document under the names of the response.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from reconciler.sandbox.base import certificates, ids, vocabulary
from reconciler.sandbox.base.database import Document
from reconciler.sandbox.base.draft import Draft, World
from reconciler.sandbox.wire.responses import ref

DEFAULT_PORTS = {"http": 80, "https": 443, "tls": 443}
_POLICY = "certificate_management_policy"
_DAY = timedelta(days=1)


def derive(draft: Draft, world: World) -> None:
    if not draft.kind.wire.untimed and draft.is_new:
        draft.doc["created_at"] = certificates.stamp(world.database.now())
    rule = _RULES.get(draft.kind.name)
    if rule is not None:
        rule(draft, world)


# --- endpoints and edges ----------------------------------------------------------------------------------------------


def _endpoint(draft: Draft, world: World) -> None:
    doc = draft.doc
    parts = urlsplit(doc["url"])
    host, port = parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    hostport = f"{host}:{port}"
    domain, address = world.domain_of(host), world.address_of(hostport)
    if not doc["bindings"]:
        doc["bindings"] = ["internal"] if host.endswith(".internal") else ["public"]
    if draft.is_new:
        doc["principal"] = ref(world.principal)
    doc |= {
        "type": "cloud",
        "public_url": doc["url"],
        "proto": parts.scheme,
        "scheme": parts.scheme,
        "host": host,
        "port": port,
        "hostport": hostport,
        "domain": ref(domain.id) if domain else None,
        "tcp_addr": ref(address.id) if address else None,
        "updated_at": certificates.stamp(world.database.now()),
        "region": "",
    }


def _termination(draft: Draft, world: World) -> None:
    module = draft.doc.get("tls_termination")
    if module is not None and module.get("terminate_at") != "upstream" and not module["min_version"]:
        module["min_version"] = "1.2"  # the platform's default


# --- credentials ------------------------------------------------------------------------------------------------------


def _credential(draft: Draft, world: World) -> None:
    draft.doc["owner_id"] = draft.doc["owner_id"] or world.principal
    if draft.kind.one_time and draft.is_new:
        draft.once = ids.token(draft.id)
        # Only the digest is stored; the token that an agent or client presents later is compared with it.
        draft.doc["_token_sha256"] = hashlib.sha256(draft.once.encode()).hexdigest()


# --- domains and addresses --------------------------------------------------------------------------------------------


def _domain(draft: Draft, world: World) -> None:
    doc = draft.doc
    if draft.before is None:
        own = world.is_platforms(doc["domain"])
        label = hashlib.sha256(draft.id.encode()).hexdigest()
        wildcard = doc["domain"].startswith("*.")
        doc["cname_target"] = None if own else f"{label[:17]}.{label[17:20]}.cname.{world.platform_domain}"
        doc["acme_challenge_cname_target"] = (
            f"{label[20:37]}.{label[37:40]}.acme.{world.platform_domain}" if wildcard and not own else None
        )
    elif doc[_POLICY] is None and draft.before[_POLICY] and doc["certificate_id"] == draft.before["certificate_id"]:
        doc["certificate_id"] = ""  # the managed certificate is removed with its policy
    _reset_certificate_status(draft)


def _ingress(draft: Draft, world: World) -> None:
    if draft.is_new:
        domain = draft.doc["domain"]
        label = hashlib.sha256(draft.id.encode()).hexdigest()[:12]
        draft.doc["ns_targets"] = [f"ns-{number}.{label}.agent.{world.platform_domain}" for number in range(1, 5)]
        draft.doc["region_domains"] = [f"{region}.{domain}" for region in vocabulary.REGIONS]
    _reset_certificate_status(draft)


def _reset_certificate_status(draft: Draft) -> None:
    """Resets the status of a new or changed certificate policy. Later reads start and finish the provisioning."""
    doc = draft.doc
    if doc[_POLICY] is None or draft.before is None or draft.before[_POLICY] != doc[_POLICY]:
        doc["certificate_management_status"] = None


def _address(draft: Draft, world: World) -> None:
    if draft.is_new:
        number = world.database.count("addresses") - 1
        region = draft.doc["region"]
        zone = "" if region == "us" else f"{region}."
        draft.doc["addr"] = f"{1 + number // 40000}.tcp.{zone}{world.platform_domain}:{20000 + number % 40000}"


# --- certificates and keys --------------------------------------------------------------------------------------------


def _authority(draft: Draft, world: World) -> None:
    if draft.is_new:
        draft.doc |= certificates.authority(certificates.certificates(draft.doc["ca_pem"])[0])


def _certificate(draft: Draft, world: World) -> None:
    if draft.is_new:
        draft.doc |= certificates.certificate(certificates.certificates(draft.doc["certificate_pem"])[0])


def _ssh_authority(draft: Draft, world: World) -> None:
    doc = draft.doc
    if draft.is_new:
        kind_of_key = doc["private_key_type"]
        doc["_private_key"], doc["public_key"] = certificates.new_ssh_key(
            kind_of_key, doc["elliptic_curve"], doc["key_size"]
        )
        doc["key_type"] = kind_of_key


def period(draft: Draft, now: datetime) -> tuple[datetime, datetime]:
    """The start and end of an SSH certificate's validity, with defaults counted from `now`."""
    after, until = draft.doc["valid_after"], draft.doc["valid_until"]
    lifetime = _DAY if draft.kind.name == "SSHUserCertificate" else 365 * _DAY
    return (
        vocabulary.instant(after) if after else now,
        vocabulary.instant(until) if until else now + lifetime,
    )


def _ssh_certificate(draft: Draft, world: World) -> None:
    doc, of_user = draft.doc, draft.kind.name == "SSHUserCertificate"
    if not draft.is_new:
        return
    since, until = period(draft, world.database.now())
    doc["key_type"] = certificates.key_type(certificates.ssh_public_key(doc["public_key"]))
    authority = world.find(doc["ssh_certificate_authority_id"])
    assert authority is not None
    options = {name: doc[name] for name in ("critical_options", "extensions")} if of_user else None
    doc["certificate"] = certificates.sign_ssh(
        authority.body["_private_key"], doc["public_key"], draft.id, doc["principals"], since, until, options
    )


# --- vaults -----------------------------------------------------------------------------------------------------------


def _vault(draft: Draft, world: World) -> None:
    draft.doc |= {"updated_at": certificates.stamp(world.database.now()), "last_updated_by": world.principal}
    if draft.is_new:
        draft.doc["created_by"] = world.principal
    for secret in world.database.page("Secret") if not draft.is_new else ():
        if secret.body["vault_id"] == draft.id:
            world.database.replace(secret, {**secret.body, "vault_name": draft.doc["name"]})


def _secret(draft: Draft, world: World) -> None:
    vault = world.find(draft.doc["vault_id"])
    assert vault is not None
    draft.doc |= {
        "vault_name": vault.body["name"],
        "updated_at": certificates.stamp(world.database.now()),
        "last_updated_by": ref(world.principal),
    }
    if draft.is_new:
        draft.doc["created_by"] = ref(world.principal)


# --- kinds that manifests cannot declare ------------------------------------------------------------------------------


def _operator(draft: Draft, world: World) -> None:
    draft.doc["updated_at"] = certificates.stamp(world.database.now())
    draft.doc["region"] = draft.doc["region"] or "global"
    draft.doc["enabled_features"] = [feature.lower() for feature in draft.doc["enabled_features"]]
    if draft.doc["binding"] is not None and "binding" in draft.supplied:
        draft.doc["_binding"] = _bind(draft.doc["binding"], (draft.before or {}).get("_binding"), world.database.now())
    if draft.is_new:
        draft.doc["principal"] = ref(world.principal)


def _bind(binding: Document, before: Document | None, now: datetime) -> Document:
    """What the platform adds to the binding of an operator: a certificate for its request, and where it connects to."""
    certificate = (before or {}).get("cert")
    if binding["csr"]:
        certificate = certificates.sign_request(binding["csr"], now)
    return {"cert": certificate, "ingress_endpoint": "kubernetes-binding-ingress.sandbox.test:443"}


def _report(draft: Draft, world: World) -> None:
    hosts = dict.fromkeys(urlsplit(url).hostname or "" for url in draft.doc["urls"])
    draft.doc |= {"status": "PENDING", "hostnames": [{"hostname": host, "status": "PENDING"} for host in hosts]}


_RULES: dict[str, Callable[[Draft, World], None]] = {
    "CloudEndpoint": _endpoint,
    "TLSEdge": _termination,
    "HTTPSEdge": _termination,
    "TunnelCredential": _credential,
    "SSHCredential": _credential,
    "ReservedDomain": _domain,
    "ReservedAddress": _address,
    "AgentIngress": _ingress,
    "CertificateAuthority": _authority,
    "TLSCertificate": _certificate,
    "SSHCertificateAuthority": _ssh_authority,
    "SSHHostCertificate": _ssh_certificate,
    "SSHUserCertificate": _ssh_certificate,
    "APIKey": _credential,
    "KubernetesOperator": _operator,
    "AbuseReport": _report,
    "Vault": _vault,
    "Secret": _secret,
}
