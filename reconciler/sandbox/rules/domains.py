"""Validation of reserved domains, reserved addresses and agent ingresses."""

from __future__ import annotations

from typing import Any

from reconciler.sandbox.base import vocabulary
from reconciler.sandbox.base.draft import Draft, Rule, World
from reconciler.sandbox.wire import refusal
from reconciler.sandbox.wire.refusal import Cause

REQUIRED: dict[str, dict[str, Cause]] = {
    "AgentIngress": {"domain": refusal.REQUIRED},
}
UNCHANGED: dict[str, Cause] = {
    "ReservedDomain": refusal.DOMAIN_UNCHANGED,
    "ReservedAddress": refusal.ADDRESS_UNCHANGED,
}


def _check_reserved_domain(draft: Draft, world: World) -> None:
    doc = draft.doc
    doc["domain"] = _check_domain(doc["domain"], wildcard=True)
    if doc["region"]:
        refusal.check_choice(doc["region"], vocabulary.REGIONS, refusal.REGION)
    policy, certificate = "certificate_management_policy", "certificate_id"
    if draft.supplied.get(policy) is not None and draft.supplied.get(certificate):
        raise refusal.CERTIFICATE_TWICE()
    _check_certificate_policy(doc[policy])
    chosen = world.find(draft.supplied.get(certificate) or "")
    if chosen is not None and "_managed" in chosen.body:
        raise refusal.CERTIFICATE_NOT_UPLOADED(id=chosen.id)
    if draft.supplied.get(certificate) == "" and draft.before is not None and draft.before[policy] is not None:
        raise refusal.MANAGED_CERTIFICATE()
    if doc["domain"] == f"*.{world.platform_domain}":
        raise refusal.WILDCARD_OF_ALL(value=doc["domain"])
    if world.is_platforms(doc["domain"]):
        if doc[policy] is not None:
            raise refusal.POLICY_ON_OWN_DOMAIN()
        if doc[certificate]:
            raise refusal.UPLOAD_ON_OWN_DOMAIN()
    # An update with one of the two removes the other.
    if draft.supplied.get(certificate):
        doc[policy] = None
    elif draft.supplied.get(policy) is not None and draft.before is not None and draft.before[policy] is None:
        doc[certificate] = ""


def _check_domain(text: str, *, wildcard: bool) -> str:
    domain = vocabulary.host(text)
    bare = domain.removeprefix("*.") if wildcard else domain
    if "*" in bare:
        if not wildcard:
            raise refusal.INGRESS_WILDCARD(value=domain)
        first = bare.partition(".")[0]
        raise (refusal.WILDCARD_PART if "*" in first else refusal.WILDCARD)(value=domain)
    if "_" in bare:
        raise refusal.UNDERSCORE(value=domain)
    if len(domain.encode()) > 253:
        raise refusal.DOMAIN_TOO_LONG()
    labels = bare.split(".")
    odd = next((sign for sign in bare if not (sign.isascii() and (sign.isalnum() or sign in ".-"))), None)
    if odd is not None:
        raise refusal.DOMAIN_CHARACTER(sign=odd, value=domain)
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
        refusal.check_choice(policy["authority"], ("letsencrypt",), refusal.AUTHORITY)
        refusal.check_choice(policy["private_key_type"], ("rsa", "ecdsa"), refusal.KEY_TYPE)


def _check_address(draft: Draft, world: World) -> None:
    draft.doc["region"] = draft.doc["region"] or "us"
    refusal.check_choice(draft.doc["region"], vocabulary.REGIONS, refusal.ADDRESS_REGION)


def _check_ingress(draft: Draft, world: World) -> None:
    draft.doc["domain"] = _check_domain(draft.doc["domain"], wildcard=False)
    if world.is_platforms(draft.doc["domain"]):
        raise refusal.INGRESS_OWN_DOMAIN(value=draft.doc["domain"])
    _check_certificate_policy(draft.doc["certificate_management_policy"])


RULES: dict[str, Rule] = {
    "ReservedDomain": _check_reserved_domain,
    "ReservedAddress": _check_address,
    "AgentIngress": _check_ingress,
}
