"""Proposes access tests from a state of the account: for each entry point who gets through, and who does not.

Few tests that tell something: for each way through a gate (an address, a sign-in, a certificate, a token) one request
that passes, and one without it that is refused. Each test passes on the account that it was proposed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.access.account import PARTS, Account, identify_authority
from reconciler.access.conditions import (
    ANY_METHOD,
    OPTIONS,
    PREFLIGHT,
    Certificate,
    Claim,
    Login,
    Method,
    Token,
)
from reconciler.access.destinations import read_destination
from reconciler.access.entering import NOT_DECLARED, EntryPoint
from reconciler.access.networks import EVERYWHERE, MAPPED, Networks
from reconciler.access.outcomes import Outcomes, find_entry, find_outcomes
from reconciler.access.people import check_provider
from reconciler.access.places import Region, fold_case
from reconciler.access.programs import Program, conditions_of
from reconciler.access.questions import SIGNATURE
from reconciler.access.witness import TOO_LARGE
from reconciler.model.access import Authority
from reconciler.model.access_test import ATTRIBUTES, MOST_VALUES, Caller, Expected
from reconciler.planning.access_tests import to_visitor

_MOST_NETWORKS: Final = 8  # that a test lists; of more, it names one address
_MOST_CHOICES: Final = 2  # certificates and people of one entry point, whose combinations are tried


class Expectation(Struct, frozen=True):
    """What becomes of a caller's requests from addresses."""

    sources: tuple[str, ...]
    caller: Caller
    expect: Expected


class ProposedTests(Struct, frozen=True):
    """Expectations that entry points share.

    targets   as of an access test, at most as many as one test may have
    admits    who gets through, in words
    """

    targets: tuple[str, ...]
    binding: str
    admits: str
    expectations: tuple[Expectation, ...]


def propose_tests(account: Account, entries: Iterable[EntryPoint]) -> Iterator[ProposedTests]:
    """Tests for entry points of an account, in their order. What the account does not decide has none."""
    authorities = _name_authorities(account)
    alike: dict[tuple[str, str, tuple[Expectation, ...]], list[str]] = {}
    for entry in entries:
        region = _choose_request(account, entry)
        if region is None:
            continue
        chosen = find_entry(account, region)
        assert chosen is not None
        expectations = tuple(_Entry(account, region, chosen.program, authorities).list_expectations())
        if expectations:
            binding = "public" if region.door.binding == "account" else region.door.binding
            alike.setdefault((binding, chosen.admits, expectations), []).append(_spell(region))
    for (binding, admits, expectations), targets in alike.items():
        for first in range(0, len(targets), MOST_VALUES):
            yield ProposedTests(tuple(targets[first : first + MOST_VALUES]), binding, admits, expectations)


def _spell(region: Region) -> str:
    """The destination as a test names it."""
    if region.door.binding == "account":
        return region.door.scheme
    return f"{region.origin}{'' if region.path == '/' else region.path}"


def _choose_request(account: Account, entry: EntryPoint) -> Region | None:
    """One host and path of an entry point, as a test names it; None if no test can name one.

    The path itself if requests to it are treated as those to the paths below it.
    """
    region = entry.region
    if region.door.binding == "account":
        return region if region.door.scheme in PARTS else None
    if region.door.binding == "credential":
        return None
    region = replace(region, host=region.example_host(account.doors.get(region.door, {})), below=False)
    paths = [""]
    if region.door.scheme in ("http", "https"):
        mentioned = fold_case(account.list_paths(region.door, region.host))
        paths = [entry.region.path or "/", entry.region.example_path(mentioned)]
    found = (replace(region, path=path) for path in paths)
    return next((one for one in found if _is_spelled(one) and _serves(account, one, entry.program)), None)


def _is_spelled(region: Region) -> bool:
    """Whether a test can name exactly this host and path."""
    try:
        return read_destination(_spell(region), region.door.binding) == region
    except ValueError:
        return False


def _serves(account: Account, region: Region, program: Program) -> bool:
    found = find_entry(account, region)
    return found is not None and found.program is program


def _name_authorities(account: Account) -> Mapping[str, str]:
    """By the digest of each certificate authority a name that finds it."""
    found: dict[str, str] = {}
    for resource in account.resources.values():
        if isinstance(resource.kind.access, Authority):
            digest = identify_authority(resource)
            for name in (resource.name, resource.name.partition("/")[2]):
                if name and account.find_authority(name) == digest:
                    found[digest] = name
    return found


class _Entry(Struct, frozen=True):
    """One host and path with its program."""

    account: Account
    region: Region
    program: Program
    authorities: Mapping[str, str]

    def list_expectations(self) -> Iterator[Expectation]:
        """Those who get through, each with those who do not for lack of something; and what is unknown."""
        outcomes: dict[Caller, Outcomes] = {}
        let_in: list[Caller] = []
        is_tested = any(isinstance(condition, Method) for condition in conditions_of(self.program))
        for method in (ANY_METHOD, OPTIONS, PREFLIGHT) if is_tested else (ANY_METHOD,):
            let_in = let_in or self._find_let_in(method, outcomes)
        is_part = self.region.door.binding == "account"
        if is_part and not any(found.refused for found in outcomes.values()):
            return  # every account has it, and nothing restricts it
        expectations = [*self._expect_passing(let_in, outcomes)]
        if not let_in:
            expectations += self._expect_none(outcomes)
        yield from dict.fromkeys(expectations)

    def _find_let_in(self, method: str, outcomes: dict[Caller, Outcomes]) -> list[Caller]:
        """The callers who get through, without those who have more than they need. Adds the outcomes of all callers."""
        let_in: list[Caller] = []
        for caller in sorted(self._list_callers(method), key=_count_properties):  # stable
            outcomes[caller] = found = self._ask(caller)
            weaker = [outcomes[other].passing for other in let_in if _is_weaker(other, caller)]
            if found.passing - MAPPED - _join(weaker):
                let_in.append(caller)
        return let_in

    def _expect_passing(self, let_in: list[Caller], outcomes: Mapping[Caller, Outcomes]) -> Iterator[Expectation]:
        for caller in let_in:
            found = outcomes[caller]
            yield Expectation(_choose_sources(found.passing), caller, Expected.ALLOW)
            address = found.passing.first()
            for lesser in (*_list_lesser(caller), Caller()):
                if lesser != caller and self._ask(lesser).refused.contains(address):
                    yield Expectation((address,), lesser, Expected.DENY)
            if found.refused:
                yield Expectation(_choose_sources(found.refused), caller, Expected.DENY)
        if Caller() in let_in:
            yield from self._expect_unknown(Caller(), outcomes[Caller()])

    def _expect_none(self, outcomes: Mapping[Caller, Outcomes]) -> Iterator[Expectation]:
        """Of an entry point through which no one gets for certain."""
        unknown = [caller for caller, found in outcomes.items() if found.unknown]
        if unknown:
            yield from self._expect_unknown(unknown[0], outcomes[unknown[0]])
        refused = outcomes[Caller()].refused
        if refused:
            yield Expectation(_choose_sources(refused), Caller(), Expected.DENY)

    def _expect_unknown(self, caller: Caller, found: Outcomes) -> Iterator[Expectation]:
        undecided = any(fact.startswith(NOT_DECLARED) or fact == TOO_LARGE for fact in found.depends_on)
        if found.unknown and not undecided:
            yield Expectation((found.unknown.first(),), caller, Expected.UNKNOWN)

    def _ask(self, caller: Caller) -> Outcomes:
        """The outcomes of requests from everywhere, without those that only IPv4-mapped addresses have."""
        found = find_outcomes(self.account, self.region, to_visitor(caller), EVERYWHERE)
        passing, refused, unknown = map(_drop_mapped, (found.passing, found.refused, found.unknown))
        return Outcomes(found.entry, passing, refused, unknown, found.depends_on)

    def _list_callers(self, method: str) -> Iterator[Caller]:
        """A caller for each combination of the credentials that the gates test, with this method."""
        conditions = list(conditions_of(self.program))
        digests = {digest for part in conditions if isinstance(part, Certificate) for digest in part.authorities}
        names = sorted(self.authorities[digest] for digest in digests if digest in self.authorities)
        people = sorted({person for part in conditions if isinstance(part, Login) for person in _list_people(part)})
        has_token = any(isinstance(part, Token) or _is_signature(part) for part in conditions)
        for name, (provider, attribute, value), token in product(
            ["", *names[:_MOST_CHOICES]], [("", "", ""), *people[:_MOST_CHOICES]], [False, True][: 1 + has_token]
        ):
            yield Caller(method, name, provider, attribute, value, token)


def _drop_mapped(networks: Networks) -> Networks:
    """Nothing if all addresses are IPv4-mapped ones: no client has one, and a test of them alone is undecided."""
    return networks if networks - MAPPED else Networks()


def _is_signature(condition: object) -> bool:
    return isinstance(condition, Claim) and condition.text.startswith(SIGNATURE)


def _list_people(login: Login) -> Iterator[tuple[str, str, str]]:
    """Someone whom a login admits: anyone, or of its list the first of the first attribute that tests know."""
    provider = login.provider.partition(" (")[0]
    try:
        check_provider(provider)
    except ValueError:
        return
    if not _is_name(provider):
        return
    if not login.admitted:
        yield provider, "", ""
        return
    for attribute in ATTRIBUTES:
        values = sorted(value for name, value in login.admitted if name == attribute and _is_name(value))
        if values:
            yield provider, attribute, values[0]
            return


def _is_name(text: str) -> bool:
    """Whether an access test may have the text."""
    return bool(text) and text.isprintable() and len(text) <= 1_000


def _count_properties(caller: Caller) -> int:
    return sum(map(bool, (caller.certificate, caller.provider, caller.has_token)))


def _is_weaker(one: Caller, other: Caller) -> bool:
    """Whether one has nothing that the other has not."""
    mine, others = ((caller.certificate, caller.provider, caller.has_token) for caller in (one, other))
    return all(not have or have == has for have, has in zip(mine, others, strict=True))


def _list_lesser(caller: Caller) -> Iterator[Caller]:
    """The caller without each of its properties."""
    if caller.attribute:
        yield replace(caller, attribute="", value="")
    if caller.provider:
        yield replace(caller, provider="", attribute="", value="")
    if caller.certificate:
        yield replace(caller, certificate="")
    if caller.has_token:
        yield replace(caller, has_token=False)


def _join(parts: Iterable[Networks]) -> Networks:
    found = Networks()
    for part in parts:
        found |= part
    return found


def _choose_sources(networks: Networks) -> tuple[str, ...]:
    """The networks if they are few, else one address."""
    listed = [network.removesuffix("/128" if ":" in network else "/32") for network in networks.networks()]
    return tuple(listed) if len(listed) <= _MOST_NETWORKS else (networks.first(),)
