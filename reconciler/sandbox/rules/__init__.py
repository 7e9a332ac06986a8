"""Validation of an object's own content. `links` validates references and unique names.

Written from the platform's documentation, independently of the validation in `kinds`, so that tests can find
differences. A rule may normalize a value (the case of a domain, the default port of a URL). Each module has the
required fields, the errors of empty updates, and the rules, each by kind.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler.model.fields.field import Shape
from reconciler.sandbox.base.database import Document, Stored
from reconciler.sandbox.base.draft import Draft, Rule, World
from reconciler.sandbox.operations.modules import check_modules
from reconciler.sandbox.rules import access, backends, certificates, domains, edges, events, vaults
from reconciler.sandbox.rules.routes import check_route_modules
from reconciler.sandbox.wire import bodies, refusal
from reconciler.sandbox.wire.refusal import Cause

_LIMITS = {"description": 255, "metadata": 4096}  # bytes
_LIMITED = frozenset(_LIMITS)
# The codes of a description and of metadata that are too long, if they are not the common code.
_TOO_LONG = {
    "CloudEndpoint": (18012, 18013),
    "ReservedDomain": (420, 421),
    "ReservedAddress": (504, 505),
    "TunnelCredential": (604, 605),
    "SSHCredential": (604, 605),
    "APIKey": (604, 605),
    "IPPolicyRule": (1421, refusal.TOO_LONG.code),
    "TLSCertificate": (1914, 1915),
    "CertificateAuthority": (1916, 1917),
    "SSHCertificateAuthority": (1937, 1938),
    "SSHHostCertificate": (1945, 1946),
    "SSHUserCertificate": (1947, 1948),
}

# Fields of an update whose empty text is ignored.
_NOT_SUPPLIED_EMPTY = {"ReservedDomain": ("region",), "HTTPSEdgeRoute": ("match_type", "match")}

_REQUIRED: dict[str, dict[str, Cause]] = {
    **edges.REQUIRED,
    **access.REQUIRED,
    **domains.REQUIRED,
    **backends.REQUIRED,
    **certificates.REQUIRED,
    **vaults.REQUIRED,
    **events.REQUIRED,
}
_UNCHANGED: dict[str, Cause] = {**edges.UNCHANGED, **access.UNCHANGED, **domains.UNCHANGED}
_RULES: dict[str, Rule] = {
    **edges.RULES,
    **access.RULES,
    **domains.RULES,
    **backends.RULES,
    **certificates.RULES,
    **events.RULES,
    **vaults.RULES,
}


def list_required(kind: str) -> tuple[str, ...]:
    """The required fields of a create."""
    return tuple(_REQUIRED.get(kind, ()))


def check_update(kind: str, body: dict[str, Any]) -> None:
    """Rejects an empty update of the kinds that have a code for it."""
    if not body and kind in _UNCHANGED:
        raise _UNCHANGED[kind]()


def rename_older_fields(kind: str, body: Document) -> Document:
    """The body of a create, with deprecated field names replaced."""
    if kind == "ReservedDomain":
        if bool(body.get("name")) is bool(body.get("domain")):
            raise refusal.DOMAIN_NAME()
        body = {**body, "domain": body.get("domain") or body.get("name")}
        body.pop("name", None)
    check_retired(kind, body)
    return body


def drop_empty_fields(kind: str, body: Document) -> Document:
    """The body of an update, without the immutable fields that clients send empty."""
    check_retired(kind, body)
    empty = _NOT_SUPPLIED_EMPTY.get(kind, ())
    return {name: value for name, value in body.items() if name not in empty or value != ""}


def check_retired(kind: str, body: Document) -> None:
    """Rejects fields that the platform no longer supports, or supports elsewhere, with their own codes."""
    if kind == "IPPolicy" and "action" in body:
        raise refusal.POLICY_HAS_NO_ACTION()
    termination = body.get("tls_termination")
    if kind == "HTTPSEdge" and isinstance(termination, dict) and "terminate_at" in termination:
        raise refusal.NO_TERMINATE_AT()


def check_not_raw(stored: Stored) -> None:
    """Rejects an update of an object that was stored without validation."""
    _check_own(stored)
    if "_raw" in stored.body:
        raise refusal.RAW_READ_ONLY(id=stored.id)


def _check_own(stored: Stored) -> None:
    """Rejects changes of ephemeral and edge endpoints, and of the domain assigned to the account."""
    raw = stored.body.get("_raw")
    if raw is not None and stored.collection == "ReservedDomain" and raw.get("is_dev"):
        raise refusal.DEV_DOMAIN(id=stored.id)
    if raw is not None and stored.collection == "CloudEndpoint":
        raise refusal.ENDPOINT_READ_ONLY(id=stored.id, type=raw.get("type", "unknown"))


def check_delete(stored: Stored, world: World) -> None:
    """Rejects the deletion of objects that cannot be deleted. `links` checks references to the object."""
    _check_own(stored)
    if stored.collection == "BotUser" and not world.is_admin:
        raise refusal.BOT_BY_ADMIN()
    if stored.body.get("_managed"):
        raise refusal.CERTIFICATE_MANAGED(id=stored.id)
    if stored.collection == "IPPolicyRule" and "_raw" not in stored.body:
        access.check_last(stored, world)


def check(draft: Draft, world: World) -> None:
    for name, cause in _REQUIRED.get(draft.kind.name, {}).items():
        if draft.doc.get(name) in ("", None, []):
            raise cause(field=name, value="")
    for field, path, value in bodies.walk(bodies.holders(draft.kind, _LIMITED), draft.doc):
        limit = _LIMITS.get(field.name)
        if limit is not None and field.shape is Shape.TEXT and len(value.encode()) > limit:
            common = refusal.TOO_LONG.code
            description, metadata = _TOO_LONG.get(draft.kind.name, (common, common))
            cause = replace(refusal.TOO_LONG, code=description if field.name == "description" else metadata)
            raise cause(field=path, limit=limit, size=len(value.encode()))
    rule = _RULES.get(draft.kind.name)
    if rule is not None:
        rule(draft, world)
    check_modules(draft)
    if draft.kind.name == "HTTPSEdgeRoute":
        check_route_modules(draft, world)
