"""What the platform refuses of an object's own content; `links` has what it refuses for the sake of other objects.

Written from the platform's documentation, and on purpose not from the kinds' validation: the two must be able to
disagree. A rule may put a value into its normal form (a domain's case, a url's default port).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from reconciler.model.kind import Shape
from reconciler.sandbox import bodies, derive, keys, refusal, vocabulary
from reconciler.sandbox.draft import Draft, World
from reconciler.sandbox.modules import check_modules
from reconciler.sandbox.refusal import Cause
from reconciler.sandbox.targets import check_target

_LIMITS = {"description": 255, "metadata": 4096}  # bytes

_REQUIRED: dict[str, dict[str, Cause]] = {
    "CloudEndpoint": {
        "url": refusal.ENDPOINT_REQUIRED,
        "traffic_policy": refusal.ENDPOINT_REQUIRED,
    },
    "SSHCredential": {"public_key": refusal.SSH_KEY_EMPTY},
    "IPRestriction": {"type": refusal.REQUIRED, "ip_policy_ids": refusal.RESTRICTION_EMPTY},
    "IPPolicyRule": {"cidr": refusal.REQUIRED, "ip_policy_id": refusal.REQUIRED, "action": refusal.REQUIRED},
    "ReservedDomain": {"domain": refusal.NOT_QUALIFIED},
    "SSHHostCertificate": {
        "ssh_certificate_authority_id": refusal.SSH_AUTHORITY_MISSING,
        "public_key": refusal.HOST_KEY_MISSING,
    },
    "AgentIngress": {"domain": refusal.REQUIRED},
    "BotUser": {"name": refusal.BOT_NAME},
    "CertificateAuthority": {"ca_pem": refusal.REQUIRED},
    "TLSCertificate": {"certificate_pem": refusal.REQUIRED, "private_key_pem": refusal.REQUIRED},
    "HTTPSEdgeRoute": {"match_type": refusal.REQUIRED, "match": refusal.REQUIRED},
    "EventSource": {"type": refusal.EVENT_TYPE_MISSING},
    "EventDestination": {"target": refusal.REQUIRED},
}
_UNCHANGED = {
    "ReservedDomain": refusal.DOMAIN_UNCHANGED,
    "ReservedAddress": refusal.ADDRESS_UNCHANGED,
    "TunnelCredential": refusal.CREDENTIAL_UNCHANGED,
    "SSHCredential": refusal.CREDENTIAL_UNCHANGED,
    "IPPolicy": refusal.POLICY_UNCHANGED,
    "IPPolicyRule": refusal.POLICY_RULE_UNCHANGED,
    "CloudEndpoint": refusal.ENDPOINT_UNCHANGED,
}


def required(kind: str) -> tuple[str, ...]:
    """The fields without which nothing of this kind is created."""
    return tuple(_REQUIRED.get(kind, ()))


def check_update(kind: str, body: dict[str, Any]) -> None:
    """Some kinds refuse an update that supplies nothing."""
    if not body and kind in _UNCHANGED:
        raise _UNCHANGED[kind]()


def check(draft: Draft, world: World) -> None:
    for name, cause in _REQUIRED.get(draft.kind.name, {}).items():
        if draft.doc.get(name) in ("", None, []):
            raise cause(field=name, value="")
    for field, path, value in bodies.walk(bodies.fields(draft.kind), draft.doc):
        limit = _LIMITS.get(field.name)
        if limit is not None and field.shape is Shape.TEXT and len(value.encode()) > limit:
            raise refusal.TOO_LONG(field=path, limit=limit, size=len(value.encode()))
    rule = _RULES.get(draft.kind.name)
    if rule is not None:
        rule(draft, world)
    check_modules(draft)


def choice(value: str, choices: Iterable[str], cause: Cause) -> None:
    if value not in choices:
        raise cause(value=value)


# --- endpoints and edges ----------------------------------------------------------------------------------------------


def _endpoint(draft: Draft, world: World) -> None:
    doc = draft.doc
    choice(draft.supplied.get("type", "cloud"), ("cloud",), refusal.ENDPOINT_TYPE)
    doc["url"] = _url(doc["url"])
    scheme, host = doc["url"].partition(":")[0], urlsplit(doc["url"]).hostname or ""
    if draft.before is not None:
        old = draft.before["url"].partition(":")[0]
        if old != scheme:
            raise refusal.ENDPOINT_SCHEME(old=old, new=scheme)
    bindings = doc["bindings"]
    for binding in bindings:
        choice(binding, vocabulary.BINDINGS, refusal.BINDING_UNKNOWN)
        if bindings.count(binding) > 1:
            raise refusal.BINDING_REPEATED(value=binding)
    internal = host.endswith(".internal")
    if bindings and internal != ("internal" in bindings):
        raise refusal.BINDING_INTERNAL(host=host)
    if "kubernetes" in bindings and scheme not in ("http", "tls", "tcp"):
        raise refusal.BINDING_KUBERNETES(scheme=scheme)
    wrong = vocabulary.wrong_policy(doc["traffic_policy"])
    if wrong is not None:
        raise refusal.ENDPOINT_POLICY(why=wrong)
    if internal or "kubernetes" in bindings:
        return
    if scheme == "tcp":
        if world.address_of(f"{host}:{urlsplit(doc['url']).port}") is None:
            raise refusal.ENDPOINT_UNRESERVED(host=host)
    elif world.domain_of(host) is None:
        raise refusal.ENDPOINT_UNRESERVED(host=host)


def _url(text: str) -> str:
    """The normal form: lower case, no default port, no trailing slash."""
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise refusal.ENDPOINT_URL(url=text) from error
    scheme, host = parts.scheme.lower(), vocabulary.host(parts.hostname or "")
    shown = parts.netloc.lower() == f"{parts.hostname}" + ("" if port is None else f":{port}")
    if scheme not in ("http", "https", "tcp", "tls") or not shown or parts.path not in ("", "/") or parts.query:
        raise refusal.ENDPOINT_URL(url=text)
    if scheme == "tcp" and port is None:
        raise refusal.ENDPOINT_PORT(url=text)
    if not vocabulary.is_hostport(f"{host}:{port or 1}"):
        raise refusal.ENDPOINT_URL(url=text)
    return f"{scheme}://{host}" + ("" if port in (None, derive.DEFAULT_PORTS.get(scheme)) else f":{port}")


def _tcp_edge(draft: Draft, world: World) -> None:
    for value in _hostports(draft):
        if world.address_of(value) is None:
            raise refusal.HOSTPORT_ADDRESS(value=value)


def _domain_edge(draft: Draft, world: World) -> None:
    for value in _hostports(draft):
        host, _, port = value.rpartition(":")
        if port != "443":
            raise refusal.HOSTPORT_PORT(value=value)
        if world.domain_of(host) is None:
            raise refusal.HOSTPORT_DOMAIN(value=value)


def _hostports(draft: Draft) -> list[str]:
    for value in draft.doc["hostports"]:
        if not vocabulary.is_hostport(value.strip().lower()):
            raise refusal.HOSTPORT_MALFORMED(value=value)
    draft.doc["hostports"] = [value.strip().lower() for value in draft.doc["hostports"]]
    return list(draft.doc["hostports"])


def _route(draft: Draft, world: World) -> None:
    match_types = ("exact_path", "path_prefix")
    if draft.doc["match_type"] not in match_types:
        raise refusal.NOT_A_CHOICE(field="match_type", choices=", ".join(match_types), value=draft.doc["match_type"])
    if not draft.doc["match"].startswith("/"):
        raise refusal.ROUTE_MATCH(value=draft.doc["match"])


# --- credentials ------------------------------------------------------------------------------------------------------


def _acl(draft: Draft, world: World) -> None:
    for rule in draft.doc["acl"]:
        if not vocabulary.is_acl_rule(rule):
            raise refusal.ACL_RULE(value=rule)


def _ssh_credential(draft: Draft, world: World) -> None:
    _acl(draft, world)
    try:
        keys.key_type(keys.ssh_public_key(draft.doc["public_key"], pem=True))
    except ValueError as error:
        raise refusal.SSH_KEY_INVALID(why=error) from error


# --- IP restrictions and policies -------------------------------------------------------------------------------------


def _restriction(draft: Draft, world: World) -> None:
    choice(draft.doc["type"], vocabulary.RESTRICTIONS, refusal.RESTRICTION_TYPE)


def _policy_rule(draft: Draft, world: World) -> None:
    doc = draft.doc
    choice(doc["action"], ("allow", "deny"), refusal.POLICY_ACTION)
    cidr = doc["cidr"].strip().lower()
    if "/" not in cidr:
        raise refusal.CIDR_MASK(value=cidr)
    try:
        network = ipaddress.ip_network(cidr, strict=False)
    except ValueError as error:
        raise refusal.CIDR_INVALID(value=cidr) from error
    if ipaddress.ip_address(cidr.partition("/")[0]) != network.network_address:
        raise refusal.CIDR_HOST_BITS(value=cidr, network=network)
    doc["cidr"] = str(network)


# --- domains and addresses --------------------------------------------------------------------------------------------


def _domain(draft: Draft, world: World) -> None:
    doc = draft.doc
    doc["domain"] = _check_domain(doc["domain"], wildcard=True)
    if doc["region"]:
        choice(doc["region"], vocabulary.REGIONS, refusal.REGION)
    policy, certificate = "certificate_management_policy", "certificate_id"
    if draft.supplied.get(policy) is not None and draft.supplied.get(certificate):
        raise refusal.CERTIFICATE_TWICE()
    _check_certificate_policy(doc[policy])
    if world.is_platforms(doc["domain"]):
        if doc[policy] is not None:
            raise refusal.POLICY_ON_OWN_DOMAIN()
        if doc[certificate]:
            raise refusal.UPLOAD_ON_OWN_DOMAIN()
    # The one that an update supplies takes the place of the other.
    if draft.supplied.get(certificate):
        doc[policy] = None
    elif draft.supplied.get(policy) is not None and draft.before is not None and draft.before[policy] is None:
        doc[certificate] = ""


def _check_domain(text: str, *, wildcard: bool) -> str:
    domain = vocabulary.host(text)
    bare = domain.removeprefix("*.") if wildcard else domain
    if "*" in bare:
        raise refusal.WILDCARD(value=domain)
    if "_" in bare:
        raise refusal.UNDERSCORE(value=domain)
    if len(domain.encode()) > 253:
        raise refusal.DOMAIN_TOO_LONG()
    labels = bare.split(".")
    if any(len(label.encode()) > 63 for label in labels):
        raise refusal.LABEL_TOO_LONG(value=domain)
    if len(labels) < 2 or not all(vocabulary.is_label(label) for label in labels) or labels[-1].isdecimal():
        raise refusal.NOT_QUALIFIED(value=domain)
    for label in labels:
        if label.startswith("xn--"):
            try:
                label[4:].encode("ascii").decode("punycode")
            except UnicodeError as error:
                raise refusal.PUNYCODE(value=domain) from error
    return domain


def _check_certificate_policy(policy: dict[str, Any] | None) -> None:
    if policy is not None:
        choice(policy["authority"], ("letsencrypt",), refusal.AUTHORITY)
        choice(policy["private_key_type"], ("rsa", "ecdsa"), refusal.KEY_TYPE)


def _address(draft: Draft, world: World) -> None:
    draft.doc["region"] = draft.doc["region"] or "us"
    choice(draft.doc["region"], vocabulary.REGIONS, refusal.ADDRESS_REGION)


def _ingress(draft: Draft, world: World) -> None:
    draft.doc["domain"] = _check_domain(draft.doc["domain"], wildcard=False)
    if world.is_platforms(draft.doc["domain"]):
        raise refusal.INGRESS_OWN_DOMAIN(value=draft.doc["domain"])
    _check_certificate_policy(draft.doc["certificate_management_policy"])


# --- backends ---------------------------------------------------------------------------------------------------------


def _failover(draft: Draft, world: World) -> None:
    seen, waiting = set[str](), [each for each in draft.doc["backends"] if each]
    while waiting:
        identity = waiting.pop()
        if identity == draft.id:
            raise refusal.FAILOVER_CYCLE()
        if identity not in seen:
            seen.add(identity)
            found = world.find(identity)
            waiting += found.body.get("backends", []) if found else []


def _response(draft: Draft, world: World) -> None:
    if not 100 <= draft.doc["status_code"] <= 599:
        raise refusal.STATUS_CODE(value=draft.doc["status_code"])


# --- certificates and keys --------------------------------------------------------------------------------------------


def _authority(draft: Draft, world: World) -> None:
    if not draft.is_new:
        return
    try:
        found = keys.certificates(draft.doc["ca_pem"])
        keys.authority(found[0])
    except ValueError as error:
        raise refusal.NOT_PEM(why=error) from error
    if len(found) > 1:
        raise refusal.SEVERAL_AUTHORITIES()
    if not keys.is_authority(found[0]):
        raise refusal.NOT_AN_AUTHORITY()


def _certificate(draft: Draft, world: World) -> None:
    if not draft.is_new:
        return
    try:
        leaf = keys.certificates(draft.doc["certificate_pem"])[0]
        keys.certificate(leaf)
    except ValueError as error:
        raise refusal.CERTIFICATE_INVALID(why=error) from error
    try:
        key = keys.private_key(draft.doc["private_key_pem"])
    except TypeError as error:
        raise refusal.ENCRYPTED_KEY() from error
    except ValueError as error:
        raise refusal.PRIVATE_KEY_INVALID(why=error) from error
    if not keys.belongs(key, leaf):
        raise refusal.KEY_MISMATCH()


def _ssh_authority(draft: Draft, world: World) -> None:
    doc = draft.doc
    doc["private_key_type"] = kind_of_key = doc["private_key_type"] or "ed25519"
    choice(kind_of_key, ("rsa", "ecdsa", "ed25519"), refusal.SSH_KEY_TYPE)
    if doc["elliptic_curve"] and (kind_of_key != "ecdsa" or keys.curve(doc["elliptic_curve"]) is None):
        raise refusal.CURVE()
    if doc["key_size"] and (kind_of_key != "rsa" or doc["key_size"] not in (2048, 4096)):
        raise refusal.KEY_SIZE()


def _host_certificate(draft: Draft, world: World) -> None:
    doc = draft.doc
    for name in ("valid_after", "valid_until"):
        if doc[name]:
            try:
                vocabulary.instant(doc[name])
            except ValueError as error:
                raise refusal.BAD_TIMESTAMP(field=name, value=doc[name]) from error
    since = vocabulary.instant(doc["valid_after"]) if doc["valid_after"] else derive.now()
    if doc["valid_until"] and vocabulary.instant(doc["valid_until"]) <= since:
        raise refusal.NOT_A_DURATION()
    try:
        keys.key_type(keys.ssh_public_key(doc["public_key"]))
    except ValueError as error:
        raise refusal.HOST_KEY_INVALID(why=error) from error


# --- events -----------------------------------------------------------------------------------------------------------


def _source(draft: Draft, world: World) -> None:
    choice(draft.doc["type"], vocabulary.EVENT_TYPES, refusal.EVENT_TYPE)


def _subscription(draft: Draft, world: World) -> None:
    types = [each["type"] for each in draft.doc["sources"] or []]
    for each in types:
        if not each:
            raise refusal.EVENT_TYPE_MISSING()
        choice(each, vocabulary.EVENT_TYPES, refusal.EVENT_TYPE)
        if types.count(each) > 1:
            raise refusal.SOURCE_DUPLICATE(value=each)


_RULES: dict[str, Callable[[Draft, World], None]] = {
    "CloudEndpoint": _endpoint,
    "TCPEdge": _tcp_edge,
    "TLSEdge": _domain_edge,
    "HTTPSEdge": _domain_edge,
    "HTTPSEdgeRoute": _route,
    "TunnelCredential": _acl,
    "SSHCredential": _ssh_credential,
    "IPRestriction": _restriction,
    "IPPolicyRule": _policy_rule,
    "ReservedDomain": _domain,
    "ReservedAddress": _address,
    "AgentIngress": _ingress,
    "FailoverBackend": _failover,
    "HTTPResponseBackend": _response,
    "CertificateAuthority": _authority,
    "TLSCertificate": _certificate,
    "SSHCertificateAuthority": _ssh_authority,
    "SSHHostCertificate": _host_certificate,
    "EventSource": _source,
    "EventSubscription": _subscription,
    "EventDestination": lambda draft, world: check_target(draft),
}
