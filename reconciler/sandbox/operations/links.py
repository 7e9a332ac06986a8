"""References between objects and unique names: what must exist, what must be unique, and what blocks a deletion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.model.value import Json
from reconciler.sandbox.base import certificates
from reconciler.sandbox.base.draft import Draft, World
from reconciler.sandbox.base.ids import is_id, prefix_of
from reconciler.sandbox.wire import bodies, refusal
from reconciler.sandbox.wire.refusal import Cause, Refusal

_BACKENDS = ("bkdfo_", "bkdtg_", "bkdhr_", "bkdwd_", "bkdsc_")

# By field name, anywhere in a body: the allowed id prefixes, and the error if the object does not exist.
_REFERENCES: dict[str, tuple[tuple[str, ...], Cause]] = {
    "backend_id": (_BACKENDS, refusal.NO_BACKEND),
    "backends": (_BACKENDS, refusal.NO_CHILD),
    "ip_policy_ids": (("ipp_",), refusal.NO_POLICY_OF_MODULE),
    "ip_policy_id": (("ipp_",), refusal.NO_POLICY),
    "certificate_authority_ids": (("ca_",), refusal.NO_AUTHORITY),
    "ssh_certificate_authority_id": (("sshca_",), refusal.NO_SSH_AUTHORITY),
    "certificate_id": (("cert_",), refusal.NO_CERTIFICATE),
    "destination_ids": (("ed_",), refusal.NO_DESTINATION),
    "http_endpoint_configuration_id": (("ec_",), refusal.NO_SUCH_OBJECT),
    "https_endpoint_configuration_id": (("ec_",), refusal.NO_SUCH_OBJECT),
    "endpoint_configuration_id": (("ec_",), refusal.NO_SUCH_OBJECT),
    "owner_id": (("usr_", "bot_", "service_"), refusal.NO_SUCH_OBJECT),
    "vault_id": (("vault_",), refusal.NO_VAULT),
}
# By field name: the errors of a malformed id and of an id of another kind, if they are not the common ones.
_NO_ID: dict[str, tuple[Cause, Cause]] = {
    "backend_id": (refusal.BACKEND_ID, refusal.BACKEND_ID),
    "backends": (refusal.CHILD_ID, refusal.CHILD_KIND),
    "ip_policy_ids": (refusal.POLICY_ID, refusal.POLICY_ID),
    "ip_policy_id": (refusal.POLICY_ID_OF_RULE, refusal.POLICY_ID_OF_RULE),
    "certificate_authority_ids": (refusal.AUTHORITY_ID, refusal.AUTHORITY_ID),
}
_REFERRING = frozenset(_REFERENCES)
_WELL_FORMED_IS_ENOUGH = ("ec_", "usr_")  # objects of the platform that the emulated API does not serve

# Fields whose references do not block a deletion: an owner can be deleted while its credentials exist.
_HOLDS_NOTHING = {"owner_id"}

_IN_USE: dict[str, Cause] = {
    "IPPolicy": refusal.POLICY_IN_USE,
    "ReservedDomain": refusal.DOMAIN_IN_USE,
    "ReservedAddress": refusal.ADDRESS_IN_USE,
    "FailoverBackend": refusal.BACKEND_IN_USE,
    "TunnelGroupBackend": refusal.BACKEND_IN_USE,
    "HTTPResponseBackend": refusal.BACKEND_IN_USE,
    "WeightedBackend": refusal.BACKEND_IN_USE,
    "StaticBackend": refusal.BACKEND_IN_USE,
    "Vault": refusal.VAULT_NOT_EMPTY,
    "SSHCertificateAuthority": refusal.SSH_AUTHORITY_IN_USE,
    "EventDestination": refusal.DESTINATION_IN_USE,
    "CertificateAuthority": refusal.AUTHORITY_IN_USE,
}

# Kinds that are deleted with the object that they refer to, instead of blocking its deletion, by that object's kind.
CASCADES = {"IPPolicy": "IPPolicyRule"}


def in_use_refusal(kind: str, identity: str, user: str) -> Refusal:
    return _IN_USE.get(kind, refusal.IN_USE)(id=identity, user=user)


def references(draft: Draft) -> Iterator[tuple[str, str, str]]:
    """Yields (path, field name, id) of every reference in the document."""
    for field, path, value in bodies.walk(bodies.holders(draft.kind, _REFERRING), draft.doc):
        if field.name in _REFERENCES:
            several = isinstance(value, (list, dict))
            for identity in value if several else [value]:
                if identity or several:  # a single reference may be empty, an item of a list must not
                    yield path, field.name, identity


def check_references(draft: Draft, world: World) -> None:
    """Checks that each reference in the request is well-formed and that its object exists."""
    for path, name, identity in references(draft):
        if draft.before is not None and path.partition(".")[0] not in draft.supplied:
            continue
        prefixes, missing = _REFERENCES[name]
        if name == "owner_id" and "@" in identity:
            continue  # the public service also accepts an email address
        if not any(is_id(identity, prefix) for prefix in prefixes):
            wrong = refusal.WRONG_ID if len(prefixes) == 1 else refusal.SEVERAL_WRONG_ID
            malformed, wrong = _NO_ID.get(name, (refusal.MALFORMED_ID, wrong))
            cause = wrong if prefix_of(identity) else malformed
            raise cause(field=path, id=identity, wanted=", ".join(prefixes))
        known = prefix_of(identity) in _WELL_FORMED_IS_ENOUGH and not world.is_user_of_other(identity)
        if not known and world.find(identity) is None:
            if draft.kind.name == "IPRestriction":
                missing = refusal.NO_POLICY_OF_RESTRICTION
            raise missing(field=path, id=identity)


def uses(draft: Draft, world: World) -> Iterator[tuple[str, str]]:
    """Yields (field, id) of the objects that cannot be deleted while this object exists."""
    for path, name, identity in references(draft):
        if name not in _HOLDS_NOTHING and prefix_of(identity) not in _WELL_FORMED_IS_ENOUGH:
            yield path, identity
    for field in ("domain", "tcp_addr"):
        if draft.kind.name == "CloudEndpoint" and draft.doc.get(field):
            yield field, draft.doc[field]["$ref"]
    for value in draft.doc.get("hostports") or []:
        found = world.address_of(value) or world.domain_of(value.rpartition(":")[0])
        if found is not None:
            yield "hostports", found.id


def names(draft: Draft) -> Iterable[tuple[str, str]]:
    """The unique names of the object, as (space, name)."""
    doc = draft.doc
    match draft.kind.name:
        case "CloudEndpoint":
            return [("pool", f"{doc['url']} {draft.id}") if doc.get("pooling_enabled") else ("url", doc["url"])]
        case "ReservedDomain":
            return [("domain", doc["domain"])]
        case "ReservedAddress":
            return [("address", doc["addr"])]
        case "AgentIngress":
            return [("ingress", doc["domain"])]
        case "IPRestriction":
            return [("restriction", doc["type"])]
        case "IPPolicyRule":
            return [("cidr", f"{doc['ip_policy_id']} {doc['cidr']}")]
        case "SSHCredential":
            return [("public key", certificates.ssh_line(certificates.ssh_public_key(doc["public_key"], pem=True)))]
        case "Vault":
            return [("vault", doc["name"])]
        case "Secret":
            return [("secret", f"{doc['vault_id']} {doc['name']}")]
        case "BotUser":
            return [("bot", doc["name"])]
        case "APIKey":
            return [("key", draft.id)]
        case "HTTPSEdgeRoute":
            return [("route", f"{draft.parent} {doc['match_type']} {doc['match']}")]
        case "TCPEdge" | "TLSEdge" | "HTTPSEdge":
            return [("hostport", value) for value in doc["hostports"]]
    return []


_OF_OTHER_ACCOUNT: dict[str, Cause] = {
    "domain": refusal.DOMAIN_OF_OTHER,
    "public key": refusal.SSH_KEY_OF_OTHER,
}


def duplicate_refusal(space: str, name: str, *, is_foreign: bool) -> Refusal:
    """The error of a name that another object has; `is_foreign`: an object of another account."""
    if is_foreign and space in _OF_OTHER_ACCOUNT:
        return _OF_OTHER_ACCOUNT[space](value=name)
    causes: dict[str, tuple[Cause, dict[str, Json]]] = {
        "url": (refusal.ENDPOINT_DUPLICATE, {}),
        "domain": (refusal.DOMAIN_DUPLICATE, {}),
        "ingress": (refusal.INGRESS_DUPLICATE, {}),
        "restriction": (refusal.RESTRICTION_DUPLICATE, {}),
        "cidr": (refusal.CIDR_DUPLICATE, {"value": name.partition(" ")[2]}),
        "public key": (refusal.SSH_KEY_DUPLICATE, {}),
        "bot": (refusal.BOT_DUPLICATE, {}),
        "route": (refusal.ROUTE_DUPLICATE, {"value": name.partition(" ")[2]}),
        "hostport": (refusal.HOSTPORT_TAKEN, {}),
        "vault": (refusal.VAULT_DUPLICATE, {}),
        "secret": (refusal.SECRET_DUPLICATE, {"value": name.partition(" ")[2]}),
    }
    cause, named = causes[space]
    return cause(**{"value": name, **named})
