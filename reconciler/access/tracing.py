"""Explains what becomes of one request: which object serves it, and which gate decides in which way.

for step in explain(account, question).steps: print(step.text, step.resources)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from reconciler.access.account import Account, Resource, is_redirected, is_served_by_children
from reconciler.access.conditions import Certificate, Claim, Condition, Login, Method, Source, Token
from reconciler.access.entering import trace
from reconciler.access.places import Region
from reconciler.access.programs import Branch, Program
from reconciler.access.questions import SIGNATURE, Outcome, Question, find_deciding, make_request
from reconciler.access.search import Request, holds, run


class Step(Struct, frozen=True):
    """One thing that happens to a request.

    text       in words
    resources  the names of the resources that it comes from
    holds      what the gate decided: the request satisfies it, or not; None: nothing was decided here, or it is unknown
    """

    text: str
    resources: tuple[str, ...] = ()
    holds: bool | None = None


class Explanation(Struct, frozen=True):
    """What becomes of a request.

    depends_on  if it is unknown: the expressions and the facts that decide
    """

    outcome: Outcome
    steps: tuple[Step, ...]
    depends_on: tuple[str, ...] = ()


def explain(account: Account, question: Question) -> Explanation:
    """What becomes of a request; the outcome is that of `answer`."""
    region = question.region
    if region.door.binding != "account" and not account.has_way_in(region):
        steps = (*_list_places(account, region), Step("nothing serves the host"))
        is_redirected = any(step.holds is False for step in steps[:-1])
        return Explanation(Outcome.REFUSE, steps[:-1] if is_redirected else steps)
    entry, origins = trace(account, region)
    request = make_request(account, entry.program, question.visitor)
    steps = (*_list_places(account, region), *_walk(entry.program, request, origins))
    if deciding := find_deciding(entry.program, request):
        return Explanation(Outcome.UNKNOWN, steps, deciding)
    return Explanation(Outcome.PASS if run(entry.program, request) else Outcome.REFUSE, steps)


def _list_places(account: Account, region: Region) -> Iterator[Step]:
    """Which objects serve the host, and which route the path."""
    hosts = account.doors.get(region.door, {})
    for pattern in account.find_patterns(region):
        yield Step(str(replace(region, host=pattern, path="")), tuple(resource.name for resource in hosts[pattern]))
        for resource in hosts[pattern]:
            if is_redirected(resource, region.door):
                yield Step("plain http is redirected to https", (resource.name,), holds=False)
            elif is_served_by_children(resource):
                yield _describe_route(account, resource, region.path)


def _describe_route(account: Account, edge: Resource, path: str) -> Step:
    route, _ = account.find_route(edge.key, path)
    if route is None:
        return Step(f"no route of it serves {path}", (), holds=False)
    match, kind = str(route.fields.get("match")), route.fields.get("match_type")
    words = f"paths that begin with {match}" if kind == "path_prefix" else f"the path {match}"
    return Step(f"{path} is one of {words}" if kind == "path_prefix" else f"{path} is {words}", (route.name,))


def _walk(program: Program, request: Request, origins: Mapping[Condition, tuple[str, ...]]) -> Iterator[Step]:
    """The gates that the request comes to, and where it ends. What decides nothing is left out."""
    node = program
    while isinstance(node, Branch):
        condition = node.condition
        if isinstance(condition, Claim) and condition not in request.claims:
            ends = [_ends_of(way, request) for way in (node.then, node.otherwise)]
            if ends[0] == ends[1] and ends[0] is not None:
                node = node.otherwise
                continue
            yield Step(_describe_claim(condition), origins.get(condition, ()))
            return
        decided = holds(condition, request)
        yield Step(_describe(condition, request, decided), origins.get(condition, ()), decided)
        node = node.then if decided else node.otherwise


def _ends_of(program: Program, request: Request) -> bool | None:
    """Whether the request passes; None: that depends on what is not known."""
    return None if find_deciding(program, request) else run(program, request)


def _describe(condition: Condition, request: Request, decided: bool) -> str:
    no = "" if decided else "no "
    match condition:
        case Source(networks):
            return f"{request.source} is {'' if decided else 'not '}in {networks.shorten()}"
        case Method():
            return f"{request.method} is {'' if decided else 'not '}one of the methods that need no sign-in"
        case Certificate(_, names):
            return f"{no or 'a '}client certificate of {' or '.join(names) or 'a listed authority'}"
        case Login(provider, admitted):
            who = f" as one of {', '.join(sorted(value for _, value in admitted))}" if admitted else ""
            return f"{'' if decided else 'not '}signed in at {provider.partition(' (')[0]}{who}"
        case Token(scheme):
            what = "user and password" if scheme == "basic-auth" else "token"
            return f"{no or 'a '}{what} that is accepted"
        case Claim(text) if text.startswith(SIGNATURE):
            return f"{'' if decided else 'not '}{text}"
    return _describe_claim(condition)


def _describe_claim(claim: Claim) -> str:
    return f"unknown: {claim.text}" if claim.is_open else f"unknown whether the request satisfies {claim.text}"
