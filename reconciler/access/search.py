"""Finds a request that one program passes and another refuses, and says whether that is certain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.access.conditions import (
    ANY_METHOD,
    METHODS,
    Certificate,
    Claim,
    Condition,
    Login,
    Method,
    Person,
    Source,
    Token,
)
from reconciler.access.networks import EVERYWHERE, Networks, unmap
from reconciler.access.programs import PASS, REFUSE, Branch, Program, conditions_of

MAX_CLAIMS: Final = 12  # different expressions in both programs: more are not analyzed
MAX_STEPS: Final = 20_000  # tests of one comparison
_MAX_OPEN: Final = 10  # open claims whose values are tried one by one

TokenKey = tuple[str, ...]


class Case(Struct, frozen=True):
    """A set of requests that take the same way through two programs: the values of each property that remain."""

    source: Networks
    methods: frozenset[str]
    certificates: frozenset[str]
    people: frozenset[Person | None]
    tokens: Mapping[str, frozenset[TokenKey | None]]  # by scheme
    claims: Mapping[Claim, bool] = field(default_factory=dict)

    def split(self, condition: Condition) -> tuple[Case | None, Case | None]:
        """The requests for which the condition holds, and the others; None if there is none."""
        match condition:
            case Source(networks):
                return (
                    self._with(source=self.source & networks),
                    self._with(source=self.source - networks),
                )
            case Method(methods):
                return self._with(methods=self.methods & methods), self._with(methods=self.methods - methods)
            case Certificate(authorities):
                return (
                    self._with(certificates=self.certificates & authorities),
                    self._with(certificates=self.certificates - authorities),
                )
            case Login():
                admitted = frozenset(person for person in self.people if condition.admits(person))
                return self._with(people=admitted), self._with(people=self.people - admitted)
            case Token(scheme):
                have = self.tokens[scheme]
                accepted = frozenset(token for token in have if condition.admits(token))
                return (
                    self._with(tokens={**self.tokens, scheme: accepted} if accepted else {}),
                    self._with(tokens={**self.tokens, scheme: have - accepted} if have - accepted else {}),
                )
            case Claim():
                if condition in self.claims:
                    return (self, None) if self.claims[condition] else (None, self)
                return (
                    replace(self, claims={**self.claims, condition: True}),
                    replace(self, claims={**self.claims, condition: False}),
                )

    def _with(self, **values: Any) -> Case | None:
        return replace(self, **values) if all(values.values()) else None

    def example(self) -> Request:
        """One request of the set, the plainest."""
        people = sorted(self.people, key=lambda person: (person is not None, str(person)))
        return Request(
            self.source.first(),
            ANY_METHOD if ANY_METHOD in self.methods else min(self.methods),
            min(self.certificates),
            people[0],
            {
                scheme: min(tokens, key=lambda token: (token is not None, token or ()))
                for scheme, tokens in self.tokens.items()
            },
            self.claims,
        )


class Request(Struct, frozen=True):
    """One request, by the properties that conditions test. The claims that are not in `claims` do not hold."""

    source: str
    method: str
    certificate: str  # the digest of its authority; empty: none
    person: Person | None
    tokens: Mapping[str, TokenKey | None]
    claims: Mapping[Claim, bool]


class Found(Struct, frozen=True):
    """An example of a difference. `request` None: the programs were too large to compare."""

    request: Request | None
    is_certain: bool  # it holds whatever the values of the open claims are


def find_gained(before: Program, after: Program) -> Found | None:
    """A request that `after` passes and `before` refuses; None if there is none. A certain one if there is one."""
    if before is after:
        return None
    conditions = list(conditions_of(before, after))
    claims = dict.fromkeys(part for part in conditions if isinstance(part, Claim))
    opens = [claim for claim in claims if claim.is_open]
    if len(claims) - len(opens) > MAX_CLAIMS:
        return Found(None, False)
    doubtful: Found | None = None
    steps = _Steps(MAX_STEPS)
    try:
        for case in _differences(before, after, _make_universe(conditions), steps):
            if _is_certain(before, after, case, opens):
                return Found(case.example(), True)
            doubtful = doubtful or Found(case.example(), False)
    except _TooMany:
        return Found(None, False)
    return doubtful


def passes_any(program: Program) -> bool:
    """Whether the program may pass some request: gates that exclude each other let no one through."""
    return find_gained(REFUSE, program) is not None


def find_passing(program: Program, case: Case) -> Networks | None:
    """The addresses from which some request of a set may get through; None if there are too many cases to tell."""
    return find_where(REFUSE, program, case)


def find_where(before: Program, after: Program, case: Case) -> Networks | None:
    """The addresses from which `after` passes some request of a set that `before` refuses; None if too many."""
    steps, found = _Steps(MAX_STEPS), Networks()
    try:
        for gained in _differences(before, after, case, steps):
            found |= gained.source
    except _TooMany:
        return None
    return found


def make_universe(*programs: Program) -> Case:
    """All requests, with the values of each property that the programs distinguish."""
    return _make_universe(conditions_of(*programs))


def _make_universe(conditions: Iterable[Condition]) -> Case:
    certificates, people = {""}, {None}
    seen: list[Token] = []
    for condition in conditions:
        match condition:
            case Certificate(authorities):
                certificates |= authorities
            case Login():
                people |= {*condition.people()}  # type: ignore[arg-type]
            case Token():
                seen.append(condition)
    return Case(EVERYWHERE, METHODS, frozenset(certificates), frozenset(people), list_tokens(seen))


def list_tokens(conditions: Iterable[Token]) -> dict[str, frozenset[TokenKey | None]]:
    """By scheme: no token, and a token for each combination of values that a condition lists."""
    tokens: dict[str, set[TokenKey | None]] = {}
    for condition in conditions:
        choices = [sorted(values) if values is not None else [""] for values in condition.accepted]
        mine = tokens.setdefault(condition.scheme, {None})
        mine |= {(condition.scheme, *values) for values in product(*choices)}
    return {scheme: frozenset(found) for scheme, found in tokens.items()}


class _TooMany(Exception):
    pass


class _Steps:
    def __init__(self, left: int) -> None:
        self.left = left

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooMany


def _differences(before: Program, after: Program, case: Case, steps: _Steps) -> Iterator[Case]:
    """The sets of requests that `after` passes and `before` refuses."""
    stack = [(before, after, case)]
    while stack:
        one, other, case = stack.pop()
        steps.take()
        if one is other or one is PASS or other is REFUSE:
            continue
        node = other if isinstance(other, Branch) else one
        if not isinstance(node, Branch):
            yield case
            continue
        holds, fails = case.split(node.condition)
        ways = [(holds, node.then), (fails, node.otherwise)]
        if isinstance(node.condition, Source | Method):
            ways.reverse()  # the last one is looked at first: an address that is admitted, and a request without more
        for part, way in ways:
            if part is not None:
                stack.append((one, way, part) if node is other else (way, other, part))


def _is_certain(before: Program, after: Program, case: Case, opens: list[Claim]) -> bool:
    """Whether an example of the case is a difference for all values of the open claims of both programs.

    One from an IPv4-mapped address is to be one from its IPv4 address, too.
    """
    request = case.example()
    plain = unmap(request.source)
    requests = [request] if plain is None else [request, replace(request, source=plain)]
    if len(opens) > _MAX_OPEN:
        return False
    return all(
        run(after, tried) and not run(before, tried)
        for one in requests
        for values in product((False, True), repeat=len(opens))
        for tried in [replace(one, claims={**one.claims, **dict(zip(opens, values, strict=True))})]
    )


def run(program: Program, request: Request) -> bool:
    """Whether the program passes a request."""
    node = program
    while isinstance(node, Branch):
        node = node.then if holds(node.condition, request) else node.otherwise
    return node.passes


def holds(condition: Condition, request: Request) -> bool:
    """Whether a request satisfies a condition."""
    match condition:
        case Source(networks):
            return networks.contains(request.source)
        case Method(methods):
            return request.method in methods
        case Certificate(authorities):
            return request.certificate in authorities
        case Login():
            return condition.admits(request.person)
        case Token(scheme):
            return condition.admits(request.tokens.get(scheme))
        case Claim():
            return request.claims.get(condition, False)
