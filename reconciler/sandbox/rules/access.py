"""Validation of credentials, API keys, bot users, IP policies, IP restrictions and abuse reports."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from reconciler.sandbox.base import certificates, vocabulary
from reconciler.sandbox.base.database import Stored
from reconciler.sandbox.base.draft import Draft, Rule, World
from reconciler.sandbox.wire import refusal
from reconciler.sandbox.wire.refusal import Cause

_FEATURES = ("bindings", "gateway", "ingress")

REQUIRED: dict[str, dict[str, Cause]] = {
    "SSHCredential": {"public_key": refusal.SSH_KEY_EMPTY},
    "IPRestriction": {"type": refusal.REQUIRED, "ip_policy_ids": refusal.RESTRICTION_EMPTY},
    "IPPolicyRule": {"cidr": refusal.REQUIRED, "ip_policy_id": refusal.REQUIRED, "action": refusal.REQUIRED},
    "BotUser": {"name": refusal.BOT_NAME},
    "AbuseReport": {"urls": refusal.REQUIRED},
}
UNCHANGED: dict[str, Cause] = {
    "TunnelCredential": refusal.CREDENTIAL_UNCHANGED,
    "SSHCredential": refusal.CREDENTIAL_UNCHANGED,
    "APIKey": refusal.CREDENTIAL_UNCHANGED,
    "IPPolicy": refusal.POLICY_UNCHANGED,
    "IPPolicyRule": refusal.POLICY_RULE_UNCHANGED,
}


def _check_owner(draft: Draft, world: World) -> None:
    owner = draft.supplied.get("owner_id") if draft.is_new else None
    if not owner:
        return
    if owner != world.principal and not world.is_admin:
        raise refusal.OWNER_BY_ADMIN(field="owner_id")
    if not world.is_active(owner):
        raise refusal.OWNER_INACTIVE(field="owner_id", id=owner)


def _check_bot(draft: Draft, world: World) -> None:
    if not world.is_admin:
        raise refusal.BOT_BY_ADMIN()


def _check_acl(draft: Draft, world: World) -> None:
    _check_owner(draft, world)
    for rule in draft.doc["acl"]:
        if not vocabulary.is_acl_rule(rule):
            raise refusal.ACL_RULE(value=rule)


def _check_ssh_credential(draft: Draft, world: World) -> None:
    _check_acl(draft, world)
    try:
        certificates.key_type(certificates.ssh_public_key(draft.doc["public_key"], pem=True))
    except ValueError as error:
        raise refusal.SSH_KEY_INVALID(why=error) from error


def _check_restriction(draft: Draft, world: World) -> None:
    refusal.check_choice(draft.doc["type"], vocabulary.RESTRICTIONS, refusal.RESTRICTION_TYPE)


def _check_policy_rule(draft: Draft, world: World) -> None:
    doc = draft.doc
    refusal.check_choice(doc["action"], ("allow", "deny"), refusal.POLICY_ACTION)
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


def check_last(rule: Stored, world: World) -> None:
    """Rejects the deletion of the last rule of a policy that restricts the dashboard."""
    policy = rule.body["ip_policy_id"]
    users = world.database.users_of(policy)
    held = any(user.collection == "IPRestriction" and user.body["type"] == "dashboard" for user in users)
    if held and sum(user.collection == "IPPolicyRule" for user in users) == 1:
        raise refusal.LAST_RULE(policy=policy)


def _check_report(draft: Draft, world: World) -> None:
    for url in draft.doc["urls"]:
        try:
            host = urlsplit(url).hostname
        except ValueError:
            host = None
        if not host:
            raise refusal.REPORTED_URL(value=url)


def _check_operator(draft: Draft, world: World) -> None:
    for feature in draft.doc["enabled_features"]:
        if feature.lower() not in _FEATURES:
            raise refusal.NOT_A_CHOICE(field="enabled_features", choices=", ".join(_FEATURES), value=feature)
    csr = (draft.doc["binding"] or {}).get("csr")
    if csr and not certificates.is_request(csr):
        raise refusal.OPERATOR_REQUEST(field="binding.csr")


RULES: dict[str, Rule] = {
    "AbuseReport": _check_report,
    "KubernetesOperator": _check_operator,
    "APIKey": _check_owner,
    "BotUser": _check_bot,
    "TunnelCredential": _check_acl,
    "SSHCredential": _check_ssh_credential,
    "IPRestriction": _check_restriction,
    "IPPolicyRule": _check_policy_rule,
}
