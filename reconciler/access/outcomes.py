"""Answers whether the same request gets through from each address of a network: exactly, without trying addresses."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from reconciler.access.account import Account
from reconciler.access.entering import EntryPoint, enter, enter_part
from reconciler.access.networks import MAPPED, Networks
from reconciler.access.places import Region
from reconciler.access.programs import PASS, REFUSE
from reconciler.access.questions import Outcome, Visitor, find_deciding, make_request
from reconciler.access.search import Case, Request, find_where
from reconciler.access.witness import TOO_LARGE


class Outcomes(Struct, frozen=True):
    """The addresses of a network by what becomes of a request from them.

    entry        None: nothing serves the host
    passing      it gets through whatever expressions and unknown facts are
    refused      it is refused whatever they are
    unknown      it depends on them, or the rules have too many conditions to tell
    depends_on   if there are unknown addresses: these expressions and facts
    """

    entry: EntryPoint | None
    passing: Networks
    refused: Networks
    unknown: Networks
    depends_on: tuple[str, ...] = ()

    def find(self, outcome: Outcome) -> Networks:
        """The addresses with an outcome."""
        return {Outcome.PASS: self.passing, Outcome.REFUSE: self.refused, Outcome.UNKNOWN: self.unknown}[outcome]


def find_outcomes(account: Account, region: Region, visitor: Visitor, sources: Networks) -> Outcomes:
    """The addresses of `sources` by outcome. The address of the visitor does not count.

    region   one host and path, or a part of the account
    sources  in a network with others, IPv4-mapped addresses count as IPv6 addresses: no client has one
    """
    entry = find_entry(account, region)
    if entry is None:
        return Outcomes(None, Networks(), sources, Networks())
    request = make_request(account, entry.program, visitor)
    case = _make_case(request, sources if sources - MAPPED else sources | sources.unmap())
    may_pass, may_fail = find_where(REFUSE, entry.program, case), find_where(entry.program, PASS, case)
    if may_pass is None or may_fail is None:
        return Outcomes(entry, Networks(), Networks(), sources, (TOO_LARGE,))
    if not sources - MAPPED:
        may_pass, may_fail = ((found | found.map()) & sources for found in (may_pass, may_fail))
    doubtful = may_pass & may_fail
    depends_on = find_deciding(entry.program, replace(request, source=doubtful.first())) if doubtful else ()
    return Outcomes(entry, may_pass - may_fail, may_fail - may_pass, doubtful, depends_on)


def find_entry(account: Account, region: Region) -> EntryPoint | None:
    """The entry point of one host and path, or of a part of the account; None if nothing serves the host."""
    if region.door.binding == "account":
        return enter_part(account, region)
    return enter(account, region) if account.has_way_in(region) else None


def _make_case(request: Request, sources: Networks) -> Case:
    """The same request from all of the sources."""
    return Case(
        sources,
        frozenset({request.method}),
        frozenset({request.certificate}),
        frozenset({request.person}),
        {scheme: frozenset({token}) for scheme, token in request.tokens.items()},
        request.claims,
    )
