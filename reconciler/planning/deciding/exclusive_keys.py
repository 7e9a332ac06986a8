"""What only one object may hold at a time: a unique key among its kind, a hostport among all edges, the way to sign in
among the routes of an edge; and where an endpoint stands, no edge does, nor where some share a key anybody alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from reconciler.kinds.rules.canonical import hostport_of_url
from reconciler.model.canonical import Form
from reconciler.model.kind import Exclusive, Kind
from reconciler.model.value import Value, canonical, is_known
from reconciler.planning.comparing.canonical_fields import identity
from reconciler.planning.matching.index import Register

Claim = tuple[str, bytes]
LiveKey = tuple[str, str]  # kind, locator


Sort = Callable[[Kind, Form], Iterator[Claim]]


def holders_of(register: Register, kinds: Mapping[str, Kind], sort: Sort) -> Mapping[Claim, list[LiveKey]]:
    """Who holds what, as far as was seen."""
    found: dict[Claim, list[LiveKey]] = defaultdict(list)
    for key, live in sorted(register.by_locator.items()):
        if register.twins.get(key) not in register.taken:
            for claim in sort(kinds[live.kind], register.form(kinds[live.kind], live)):
                found[claim].append(key)
    return found


def claims(kind: Kind, form: Form) -> Iterator[Claim]:
    """What nobody else may have."""
    if kind.is_unique(form):
        yield from _key(kind, form)
    if kind.parent is not None and any(form.get(name) is not None for name in kind.one_of):
        # Not only of one object: no two below one parent.
        yield "module", canonical(f"{' or '.join(kind.one_of)} below {form.get(kind.parent.field)}")
    yield from _exclusive(kind, form)


def _exclusive(kind: Kind, form: Form) -> Iterator[Claim]:
    for each in kind.fields:
        value: Value = form.get(each.name)
        if Exclusive in each and isinstance(value, list):
            # One name space for all kinds: a hostport is served by one edge of any sort.
            yield from ((each.name, canonical(item)) for item in value if is_known(item))


def _key(kind: Kind, form: Form) -> Iterator[Claim]:
    if (key := identity(kind, form)) is not None:
        yield kind.same_as or kind.name, b"[" + b",".join(key) + b"]"


def places(kind: Kind, form: Form) -> Iterator[Claim]:
    """What nobody else may claim, while others of its own kind may stand there too."""
    if kind.unique and not kind.is_unique(form):
        yield from _key(kind, form)
    yield from _place(kind, form, https=False)


def https_places(kind: Kind, form: Form) -> Iterator[Claim]:
    """The hostport of an https url, which is free to the kinds that may stand beside it."""
    yield from _place(kind, form, https=True)


def https_claims(kind: Kind, form: Form) -> Iterator[Claim]:
    """The hostports at which no https url may be."""
    if not kind.beside_https:
        yield from _exclusive(kind, form)


def _place(kind: Kind, form: Form, *, https: bool) -> Iterator[Claim]:
    if kind.stands_at is None:
        return
    name, claimed = kind.stands_at
    url = form.get(name)
    if isinstance(url, str) and url.startswith("https:") is https and (hostport := hostport_of_url(url)) is not None:
        yield claimed, canonical(hostport)


AGAINST: Mapping[Sort, tuple[Sort, ...]] = {
    claims: (claims, places),
    places: (claims,),
    https_claims: (https_places,),
    https_places: (https_claims,),
}
"""Whose hold on the same stands against taking it in this way."""
