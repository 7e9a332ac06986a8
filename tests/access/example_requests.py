"""The request of the reference gateway that a difference shows as its example."""

from __future__ import annotations

from reconciler.access.compare import Difference
from reconciler.access.conditions import Claim, Person
from reconciler.access.policies import digest
from tests.access import objects as o
from tests.access.borders import BROWSER, PREFLIGHT
from tests.access.gateway.gateway import Gateway
from tests.access.gateway.messages import Identity, PlaneRequest, Request, Signature

METHODS = {"GET": ("GET", (BROWSER,)), "OPTIONS": ("OPTIONS", (BROWSER,)), "CORS preflight": ("OPTIONS", PREFLIGHT)}


def to_request(difference: Difference, *states: o.Account) -> Request | PlaneRequest | None:
    """None for what has no counterpart: tokens, SAML, expressions after a rewrite, what a credential may open."""
    region, example = difference.region, difference.example
    if example is None or region.door.binding == "credential" or any(example.tokens.values()):
        return None
    if region.door.binding == "account":
        return PlaneRequest(region.door.scheme, example.source)  # type: ignore[arg-type]
    claims = {claim: value for claim, value in example.claims.items() if not claim.is_open}
    identity = _identity(example.person)
    if any(holds and claim.context for claim, holds in claims.items()) or (example.person and not identity):
        return None
    paths = {route["match"] for state in states for route in state.get("HTTPSEdgeRoute", ())}
    paths -= set() if region.path else {"/"}  # of other edges: here it would leave nothing
    expressions = {key: False for state in states for key in Gateway(state).expressions()}
    method, headers = METHODS[example.method]
    return Request(
        region.door.scheme,
        region.host.replace("*.", "example-of-a-wildcard."),
        region.door.port,
        region.example_path(paths) or "/",
        method,
        example.source,
        certificate=_authority(example.certificate, *states),
        identity=identity,
        webhook_signed_by=_signature(claims),
        headers=headers,
        binding=region.door.binding,  # type: ignore[arg-type]
        assignments=expressions | {claim.text: value for claim, value in claims.items() if not claim.context},
    )


def _identity(person: Person | None) -> Identity | None:
    if person is None or person.provider.startswith("SAML"):
        return None
    provider = person.provider.partition(" (application ")[0]
    if "://" in provider:
        return Identity(provider, "oidc")
    match person.attribute:
        case "team":
            return Identity(provider, teams=frozenset({person.value}))
        case "organization":
            return Identity(provider, organizations=frozenset({person.value}))
    emails = {"email": person.value, "domain": f"user@{person.value}"}
    return Identity(provider, email=emails.get(person.attribute, "other@example.info"))


def _signature(claims: dict[Claim, bool]) -> Signature | None:
    signed = [
        claim.text.removeprefix("signed by ") for claim, holds in claims.items() if holds and _is_signature(claim)
    ]
    return Signature(signed[0], "s") if signed else None


def _is_signature(claim: Claim) -> bool:
    return claim.text.startswith("signed by ")


def _authority(certificate: str, *states: o.Account) -> str | None:
    if not certificate:
        return None
    authorities = [found for state in states for found in state.get("CertificateAuthority", ())]
    return next(found["id"] for found in authorities if digest(found["ca_pem"].strip()) == certificate)
