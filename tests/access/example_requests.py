"""The request of the reference gateway that a difference shows as its example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.access.compare import Difference
from reconciler.access.conditions import Claim, Person
from reconciler.access.policies import digest
from reconciler.access.programs import Builder
from reconciler.access.search import Request as Example
from reconciler.access.search import TokenKey
from tests.access import objects as o
from tests.access.borders import BROWSER, PREFLIGHT, every_setting
from tests.access.gateway.index import list_expressions
from tests.access.gateway.messages import BindRequest, Identity, PlaneRequest, Request, Signature, Token

METHODS = {"GET": ("GET", (BROWSER,)), "OPTIONS": ("OPTIONS", (BROWSER,)), "CORS preflight": ("OPTIONS", PREFLIGHT)}


def to_request(
    difference: Difference, builder: Builder, *states: o.Account
) -> Request | PlaneRequest | BindRequest | None:
    """None for what has no counterpart: two signatures at once, an expression that a rewrite makes true or false.

    builder   that of the comparison, with the secrets that examples mention by name
    """
    region, example = difference.region, difference.example
    if example is None:
        return None
    if region.door.binding == "credential":
        return _to_bind(region.host, example)
    if region.door.binding == "account":
        return PlaneRequest(region.door.scheme, example.source)  # type: ignore[arg-type]
    secrets = {name: text for text, name in builder.secrets.items()}
    claims = {claim: value for claim, value in example.claims.items() if not claim.is_open}
    signed = [claim for claim, holds in claims.items() if holds and _is_signature(claim)]
    expressions = {claim: holds for claim, holds in claims.items() if not _is_signature(claim)}
    plain = {claim.text: holds for claim, holds in expressions.items() if not claim.context}
    if len(signed) > 1 or any(holds != plain.get(claim.text, False) for claim, holds in expressions.items()):
        return None
    paths = {route["match"] for state in states for route in state.get("HTTPSEdgeRoute", ())}
    paths -= set() if region.path else {"/"}  # of other edges: here it would leave nothing
    unset = {key: False for state in states for key in list_expressions(state)}
    method, headers = METHODS[example.method]
    return Request(
        region.door.scheme,
        region.host.replace("*.", "example-of-a-wildcard."),
        region.door.port,
        region.example_path(paths) or "/",
        method,
        example.source,
        certificate=_authority(example.certificate, *states),
        identity=_to_identity(example.person, secrets),
        webhook_signed_by=_to_signature(signed[0], secrets) if signed else None,
        basic=_to_basic(example.tokens.get("basic-auth"), secrets),
        tokens=tuple(_to_tokens(example.tokens, *states)),
        headers=headers,
        binding=region.door.binding,  # type: ignore[arg-type]
        assignments=unset | plain,
    )


def _to_bind(credential: str, example: Example) -> BindRequest | None:
    token = example.tokens.get("bind")
    if token is None:
        return None
    rule = token[1].removeprefix("bind:")
    if "=" in rule:
        key, _, value = rule.partition("=")
        return BindRequest(credential, labels=((key.replace("*", "any"), value.replace("*", "any")),))
    host, _, port = rule.partition(":")
    if port:
        return BindRequest(credential, "tcp", host, int(port))
    return BindRequest(credential, host=host or "a.host.of.no.rule")


def _to_identity(person: Person | None, secrets: Mapping[str, str]) -> Identity | None:
    if person is None:
        return None
    if person.provider.startswith("SAML "):
        metadata = secrets[person.provider.removeprefix("SAML ")]
        return Identity(metadata, "saml", groups=frozenset({person.value} if person.attribute else ()))
    provider, _, application = person.provider.partition(" (application ")
    application = application.removesuffix(")")
    if "://" in provider:
        return Identity(provider, "oidc", application=application)
    match person.attribute:
        case "team":
            return Identity(provider, teams=frozenset({person.value}), application=application)
        case "organization":
            return Identity(provider, organizations=frozenset({person.value}), application=application)
    emails = {"email": person.value, "domain": f"user@{person.value}"}
    email = emails.get(person.attribute, "other@example.info")
    return Identity(provider, email=email, application=application)


def _to_signature(claim: Claim, secrets: Mapping[str, str]) -> Signature:
    return Signature(claim.text.removeprefix("signed by "), secrets[claim.context])


def _is_signature(claim: Claim) -> bool:
    return claim.text.startswith("signed by ")


def _to_basic(token: TokenKey | None, secrets: Mapping[str, str]) -> str | None:
    return secrets[token[1]] if token is not None else None


def _to_tokens(tokens: Mapping[str, TokenKey | None], *states: o.Account) -> Iterator[Token]:
    """The JSON web tokens of an example: under each name that a configuration of their scheme reads."""
    configs = [config for state in states for config in every_setting(state) if "jws" in config]
    keys = {digest(config["jws"]["keys"]): config["jws"]["keys"]["sources"]["additional_jkus"][0] for config in configs}
    names = {digest(config["http"]): [wanted["name"] for wanted in config["http"]["tokens"]] for config in configs}
    for scheme, token in tokens.items():
        if token is not None and scheme != "basic-auth":
            _, issuer, audience, algorithm, key = token
            for name in names[scheme.removeprefix("JSON web token ")]:
                yield Token(name, issuer, audience, keys[key], algorithm)


def _authority(certificate: str, *states: o.Account) -> str | None:
    if not certificate:
        return None
    authorities = [found for state in states for found in state.get("CertificateAuthority", ())]
    return next(found["id"] for found in authorities if digest(found["ca_pem"].strip()) == certificate)
