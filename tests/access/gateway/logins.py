"""Who is admitted by the login modules of routes, and which tokens by the action jwt-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.access.gateway.messages import Identity, Token
from tests.access.gateway.policies import is_interpolated

FIRST_MEMBERSHIPS = 200


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a login admits a user, and the open rows on which that rests."""

    admits: bool
    reason: str = ""
    is_signed_in: bool = True
    rows: tuple[str, ...] = ()


def decide(kind: str, module: Mapping[str, Any], identity: Identity | None) -> Decision:
    """The decision of the module oauth, oidc or saml."""
    provider, settings = _provider(kind, module)
    if identity is None or (identity.kind, identity.issuer) != (kind, provider):
        return Decision(False, "not signed in", is_signed_in=False)
    if kind != "saml" and not is_of_application(settings, identity):
        return Decision(False, "signed in at another application", is_signed_in=False)
    if kind == "oidc":
        return Decision(True)
    if kind == "saml":
        groups = settings.get("authorized_groups") or []
        return Decision(not groups or bool(identity.groups & {*groups}), "not in an authorized group")
    return _decide_oauth(settings, identity)


def is_of_application(settings: Mapping[str, Any], identity: Identity) -> bool:
    """Whether the user signed in at the application of a login: a session belongs to a client id and a provider."""
    return identity.application == (settings.get("client_id") or "")


def _provider(kind: str, module: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """What signs users in, and the lists that narrow it."""
    if kind == "oidc":
        return module["issuer"], module
    if kind == "saml":
        return module["idp_metadata"], module
    return next((name, settings) for name, settings in module["provider"].items() if settings is not None)


def _decide_oauth(settings: Mapping[str, Any], identity: Identity) -> Decision:
    emails, by_email, rows = _admit_email(settings, identity)
    members, by_membership, more = _admit_member(settings, identity)
    rows += more
    if emails and members and by_email != by_membership:
        rows += ("memberships-and-emails",)
    return Decision(by_email and by_membership, "the account is not in a list", rows=rows)


def _admit_email(settings: Mapping[str, Any], identity: Identity) -> tuple[bool, bool, tuple[str, ...]]:
    """Whether there are lists of e-mails, whether they admit the user, and open rows."""
    addresses, domains = settings.get("email_addresses") or [], settings.get("email_domains") or []
    by_address = identity.email in addresses
    by_domain = identity.email.rpartition("@")[2] in domains
    rows: tuple[str, ...] = ()
    if addresses and domains and by_address != by_domain:
        rows += ("both-email-lists",)
    if not by_domain and any(identity.email.endswith(domain) for domain in domains):
        rows += ("email-domain-suffix",)
    return bool(addresses or domains), by_address or by_domain or not (addresses or domains), rows


def _admit_member(settings: Mapping[str, Any], identity: Identity) -> tuple[bool, bool, tuple[str, ...]]:
    """Whether there are lists of memberships, whether they admit the user, and open rows."""
    teams, organizations = set(settings.get("teams") or ()), set(settings.get("organizations") or ())
    by_team, by_organization = bool(teams & identity.teams), bool(organizations & identity.organizations)
    rows: tuple[str, ...] = ()
    if teams and organizations and by_team != by_organization:
        rows += ("teams-and-organizations",)
    if (teams or organizations) and max(len(identity.teams), len(identity.organizations)) > FIRST_MEMBERSHIPS:
        rows += ("many-memberships",)
    return bool(teams or organizations), by_team or by_organization or not (teams or organizations), rows


def validate_tokens(config: Mapping[str, Any], tokens: tuple[Token, ...]) -> bool | None:
    """Whether each listed token is present and valid. None: that depends on settings with `${…}`."""
    names = [wanted["name"] for wanted in config["http"]["tokens"]]
    if all(any(_is_valid(config, name, token) for token in tokens) for name in names):
        return True
    return None if is_interpolated(config) else False


def _is_valid(config: Mapping[str, Any], name: str, token: Token) -> bool:
    issuers = [allowed["value"] for allowed in config["issuer"]["allow_list"]]
    audiences = [allowed["value"] for allowed in (config.get("audience") or {}).get("allow_list") or ()]
    jws = config["jws"]
    return (
        token.name.lower() == name.lower()
        and token.issuer in issuers
        and (not audiences or token.audience in audiences)
        and token.algorithm in jws["allowed_algorithms"]
        and token.keys in jws["keys"]["sources"]["additional_jkus"]
    )
