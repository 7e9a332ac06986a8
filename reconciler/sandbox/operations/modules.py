"""Validation of the modules of edges and routes, whether sent by POST, PATCH or PUT."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from reconciler.sandbox.base import vocabulary
from reconciler.sandbox.base.draft import Draft
from reconciler.sandbox.wire import refusal


def check_modules(draft: Draft) -> None:
    doc = draft.doc
    for field in draft.kind.fields:
        module = doc.get(field.name) if field.module else None
        if module is not None:
            while_enabled = _REQUIRED_WHILE_ENABLED.get(field.name, ()) if module.get("enabled") else ()
            for name in (*REQUIRED.get(field.name, ()), *while_enabled):
                if not module.get(name):
                    cause = _MISSING.get((field.name, name), refusal.REQUIRED)
                    raise cause(field=f"{field.name}.{name}")
    if (termination := doc.get("tls_termination")) is not None and draft.kind.name == "TLSEdge":
        _check_termination(termination)
        if termination["terminate_at"] == "upstream" and doc.get("mutual_tls") is not None:
            raise refusal.MUTUAL_TLS_UPSTREAM()
        if termination["terminate_at"] == "upstream" and doc.get("traffic_policy") is not None:
            raise refusal.MODULES_UPSTREAM(modules="traffic_policy")
    if (policy := doc.get("traffic_policy")) is not None and isinstance(policy, dict):
        wrong = vocabulary.wrong_policy(policy["value"])
        if wrong is not None:
            raise refusal.MODULE_POLICY(field="traffic_policy.value", why=wrong)
    if (saml := doc.get("saml")) is not None:
        _check_saml(saml)
    if (webhook := doc.get("webhook_verification")) is not None:
        _check_webhook(webhook)


# The required fields of each module.
REQUIRED = {
    "backend": ("backend_id",),
    "traffic_policy": ("value",),
    "saml": ("idp_metadata",),
    "webhook_verification": ("provider",),
    "oidc": ("issuer", "client_id", "client_secret"),
    "oauth": ("provider",),
}
_REQUIRED_WHILE_ENABLED = {
    "ip_restriction": ("ip_policy_ids",),
    "mutual_tls": ("certificate_authority_ids",),
}

_MISSING = {
    ("ip_restriction", "ip_policy_ids"): refusal.MODULE_WITHOUT_POLICIES,
    ("oidc", "issuer"): refusal.OIDC_ISSUER,
    ("oidc", "client_id"): refusal.OIDC_CLIENT,
    ("oidc", "client_secret"): refusal.OIDC_SECRET,
    ("saml", "idp_metadata"): refusal.SAML_METADATA_MISSING,
    ("oauth", "provider"): refusal.OAUTH_NO_PROVIDER,
}


def _check_termination(module: dict[str, Any]) -> None:
    if module["terminate_at"] not in ("edge", "upstream"):
        raise refusal.TERMINATE_AT(value=module["terminate_at"])
    if module["terminate_at"] == "upstream" and module["min_version"] is not None:
        raise refusal.MIN_VERSION_UPSTREAM()
    if module["min_version"] and module["min_version"] not in vocabulary.TLS_VERSIONS:
        raise refusal.MIN_VERSION(value=module["min_version"])


def _check_saml(module: dict[str, Any]) -> None:
    path: list[str] = []
    roots: list[str] = []
    entities: list[str] = []  # their ids
    roles: set[str] = set()

    def start(name: str, attributes: dict[str, str]) -> None:
        path.append(name)
        if len(path) == 1:
            roots.append(name)
        elif len(path) == 2:
            roles.add(name)
        if name == _ENTITY:
            entities.append(attributes.get("entityID", ""))

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: path.pop()
    # Document types are rejected: metadata needs none, and their entities can expand without limit.
    parser.StartDoctypeDeclHandler = _no_document_type
    try:
        parser.Parse(module["idp_metadata"].encode(), True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # LookupError: unknown encoding
        raise refusal.SAML_METADATA(why=error) from error
    if roots != [_ENTITY]:
        raise refusal.SAML_METADATA(why="the root element is not EntityDescriptor of SAML 2.0")
    if len(entities) != 1 or not entities[0].strip():
        raise refusal.SAML_METADATA(why="it must describe exactly one entity, with an entityID")
    if _IDENTITY_PROVIDER not in roles:
        raise refusal.SAML_METADATA(why="it has no IDPSSODescriptor")
    module["nameid_format"] = module["nameid_format"] or vocabulary.NAMEID_FORMATS[0]
    if module["nameid_format"] not in vocabulary.NAMEID_FORMATS:
        raise refusal.NAMEID_FORMAT(value=module["nameid_format"])


_ENTITY = "urn:oasis:names:tc:SAML:2.0:metadata EntityDescriptor"
_IDENTITY_PROVIDER = "urn:oasis:names:tc:SAML:2.0:metadata IDPSSODescriptor"


def _no_document_type(*declaration: Any) -> None:
    raise ValueError("it declares a document type")


def _check_webhook(module: dict[str, Any]) -> None:
    provider = module["provider"].lower()
    if provider not in vocabulary.WEBHOOK_PROVIDERS:
        raise refusal.WEBHOOK_PROVIDER(value=module["provider"])
    if provider == "sns" and module["secret"]:
        raise refusal.WEBHOOK_NO_SECRET()
    if provider != "sns" and not module["secret"]:
        raise refusal.WEBHOOK_SECRET(value=module["provider"])
