"""Answers whether one request gets through, and who may use an entry point at all.

answer(account, Question(Door("https", 443), "shop.example.com", "/admin", visitor)).outcome
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import product
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.access.account import Account
from reconciler.access.conditions import ANY_METHOD, Claim, Condition, Login, Person, Token
from reconciler.access.entering import EntryPoint, enter
from reconciler.access.networks import FAMILIES, Networks, unmap
from reconciler.access.places import Door, Region
from reconciler.access.programs import Program, conditions_of
from reconciler.access.search import Request, TokenKey, find_passing, list_tokens, make_universe, run
from reconciler.access.witness import MAPPED_ADDRESS, TOO_LARGE

SIGNATURE: Final = "signed by "
_MAX_CLAIMS: Final = 12  # what is not known about a request: 4,096 combinations


class Outcome(StrEnum):
    """Whether a request gets through."""

    PASS = "pass"  # noqa: S105
    REFUSE = "refuse"
    UNKNOWN = "unknown"


class Visitor(Struct, frozen=True):
    """Who sends a request.

    source       an IPv4 or IPv6 address
    method       `GET` stands for all methods but `OPTIONS`
    certificate  the name of the authority that signed the client certificate; empty: none
    person       as whom the visitor is signed in, at a provider of this name or issuer; None: not signed in
    has_token    whether the request has whatever tokens, passwords or signatures an entry point asks for
    """

    source: str
    method: str = ANY_METHOD
    certificate: str = ""
    person: Person | None = None
    has_token: bool = False


class Question(Struct, frozen=True):
    """One request: where it arrives, and from whom."""

    door: Door
    host: str
    path: str
    visitor: Visitor

    @property
    def region(self) -> Region:
        """The region of exactly this request."""
        path = self.path if self.door.scheme in ("http", "https") else ""
        return Region(self.door, self.host.lower(), path)


class Answer(Struct, frozen=True):
    """Whether a request gets through.

    entry       the entry point of exactly this host and path; None: nothing serves the host
    depends_on  if it is unknown: the expressions and the facts that decide
    """

    outcome: Outcome
    entry: EntryPoint | None
    depends_on: tuple[str, ...] = ()


def answer(account: Account, question: Question) -> Answer:
    """Whether a request gets through. Expressions of policies may hold or not: they make an answer unknown."""
    region = question.region
    if not account.has_way_in(region):
        return Answer(Outcome.REFUSE, None)
    entry = enter(account, region)
    request = make_request(account, entry.program, question.visitor)
    if deciding := find_deciding(entry.program, request):
        return Answer(Outcome.UNKNOWN, entry, deciding)
    return Answer(Outcome.PASS if run(entry.program, request) else Outcome.REFUSE, entry)


def find_deciding(program: Program, request: Request) -> tuple[str, ...]:
    """The expressions and facts on which the outcome of a request depends; none if it is certain.

    Of one from an IPv4-mapped address it is certain only if it is that of its IPv4 address.
    """
    claims = [claim for claim in _claims_of(program) if claim not in request.claims]
    if len(claims) > _MAX_CLAIMS:
        return (TOO_LARGE,)
    texts = {claim.text for claim in _list_deciding(program, request, claims)}
    if (plain := unmap(request.source)) is not None:
        other = replace(request, source=plain)
        texts |= {claim.text for claim in _list_deciding(program, other, claims)}
        if run(program, request) != run(program, other):
            texts.add(MAPPED_ADDRESS)
    return tuple(sorted(texts))


def _list_deciding(program: Program, request: Request, claims: list[Claim]) -> Iterator[Claim]:
    """The claims on which the outcome rests for some values of the others."""
    outcomes = {
        values: run(program, replace(request, claims={**request.claims, **dict(zip(claims, values, strict=True))}))
        for values in product((False, True), repeat=len(claims))
    }
    for index, claim in enumerate(claims):
        flipped = ((*values[:index], not values[index], *values[index + 1 :]) for values in outcomes)
        if any(outcomes[one] != outcomes[other] for one, other in zip(outcomes, flipped, strict=True)):
            yield claim


def make_request(account: Account, program: Program, visitor: Visitor) -> Request:
    """The request of a visitor, in the terms of a program. Its claims are those that the visitor decides."""
    conditions = list(conditions_of(program))
    certificate = account.find_authority(visitor.certificate) if visitor.certificate else ""
    tokens = {scheme: token if visitor.has_token else None for scheme, token in _choose_tokens(conditions).items()}
    signatures = {claim: visitor.has_token for claim in _claims_of(program) if claim.text.startswith(SIGNATURE)}
    known = certificate if certificate is not None else f"of {visitor.certificate}"
    return Request(visitor.source, visitor.method, known, _sign_in(conditions, visitor.person), tokens, signatures)


def _choose_tokens(conditions: Iterable[Condition]) -> Mapping[str, TokenKey | None]:
    """For each scheme the token that the most conditions admit; None if no condition admits a token."""
    tests = [condition for condition in conditions if isinstance(condition, Token)]
    return {
        scheme: max(
            sorted(token for token in tokens if token is not None),
            key=lambda token: sum(test.admits(token) for test in tests),
            default=None,
        )
        for scheme, tokens in list_tokens(tests).items()
    }


def _sign_in(conditions: Iterable[Condition], person: Person | None) -> Person | None:
    """The person, at the application of the provider that the program asks for."""
    if person is None:
        return None
    providers = [condition.provider for condition in conditions if isinstance(condition, Login)]
    same = (provider for provider in providers if provider.partition(" (")[0] == person.provider)
    return replace(person, provider=next(same, person.provider))


def _claims_of(program: Program) -> list[Claim]:
    return list(dict.fromkeys(part for part in conditions_of(program) if isinstance(part, Claim)))


# --- who may use an entry point ---------------------------------------------------------------------------------------


def is_public(program: Program) -> bool | None:
    """Whether an anonymous client may get through from at least half of all IPv4 or IPv6 addresses; None: too large."""
    sources = find_sources(program, is_anonymous=True)
    return None if sources is None else any(2 * (sources & family).size() >= family.size() for family in FAMILIES)


def find_sources(program: Program, *, is_anonymous: bool = False) -> Networks | None:
    """The addresses from which some request may get through; None if the program is too large to tell.

    is_anonymous  only requests without certificate, sign-in, token and signature
    """
    case = make_universe(program)
    if is_anonymous:
        case = replace(
            case,
            certificates=frozenset({""}),
            people=frozenset({None}),
            tokens={scheme: frozenset({None}) for scheme in case.tokens},
            claims={claim: False for claim in _claims_of(program) if claim.text.startswith(SIGNATURE)},
        )
    return find_passing(program, case)


def list_unknown(program: Program) -> tuple[str, ...]:
    """What is not documented or not known, and decides who gets through."""
    return tuple(sorted({claim.text for claim in _claims_of(program) if claim.is_open}))
