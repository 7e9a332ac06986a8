"""Describes an example of a difference in words: one concrete request."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Set

from reconciler.access.conditions import Certificate, Claim, Condition, Login, Token
from reconciler.access.places import Region
from reconciler.access.programs import Program, conditions_of
from reconciler.access.search import Found, Request

TOO_LARGE = "the rules have too many conditions to compare"
MAPPED_ADDRESS = "an IPv4-mapped address is an IPv6 address"


def describe_request(
    region: Region, paths: Set[str], declared: Container[str], found: Found, *programs: Program
) -> str:
    """One request of the region: "`GET https://shop.example.com/admin/x` from 192.0.2.1, not signed in".

    Empty if the programs were too large to find one. What is not known is left out: `Difference.depends_on` has it.
    """
    request = found.request
    if request is None:
        return ""
    if region.door.binding == "credential":
        return _describe_bind(request)
    where = _describe_place(region, paths, declared, request)
    return ", ".join([f"{where} from {request.source}", *_properties(request, *programs)])


def _describe_place(region: Region, paths: Set[str], declared: Container[str], request: Request) -> str:
    door = region.door
    if door.binding == "account":
        return region.host
    here = Region(door, region.example_host(declared))
    if door.scheme not in ("http", "https"):
        return f"`{here.origin}`"
    path = region.example_path(paths) if paths else ""
    return f"`{'GET' if request.method == 'GET' else 'OPTIONS'} {here.origin}{path or '/'}`"


def _describe_bind(request: Request) -> str:
    token = request.tokens.get("bind")
    rule = token[1].removeprefix("bind:") if token is not None else ""
    return f"an agent may open {rule or 'any endpoint, address or label'}"


def _properties(request: Request, *programs: Program) -> Iterator[str]:
    conditions = list(conditions_of(*programs))
    if request.method == "CORS preflight":
        yield "a CORS preflight"
    if any(isinstance(condition, Certificate) for condition in conditions):
        yield _describe_certificate(request, conditions)
    if any(isinstance(condition, Login) for condition in conditions):
        yield str(request.person) if request.person is not None else "not signed in"
    for word in sorted({_name_token(condition.scheme) for condition in conditions if isinstance(condition, Token)}):
        held = (_name_token(scheme) for scheme, token in request.tokens.items() if token is not None)
        yield f"with a {word}" if word in held else f"without a {word}"
    claims = [claim for claim in conditions if isinstance(claim, Claim)]
    signed = {claim.text for claim in claims if request.claims.get(claim)}
    for claim in dict.fromkeys(claims):
        holds = request.claims.get(claim)
        if claim.is_open:
            continue
        if claim.text.startswith("signed by "):
            if holds or claim.text not in signed:  # signed with one of two secrets
                yield claim.text if holds else f"not {claim.text}"
        elif holds is not None:
            yield f"where `{claim.text}` is {'true' if holds else 'false'}"


def _name_token(scheme: str) -> str:
    return "password" if scheme == "basic-auth" else "token"


def _describe_certificate(request: Request, conditions: Iterable[Condition]) -> str:
    if not request.certificate:
        return "without a client certificate"
    for condition in conditions:
        if isinstance(condition, Certificate) and request.certificate in condition.authorities:
            return f"with a client certificate of {' or '.join(condition.names) or 'a listed authority'}"
    return "with a client certificate"
