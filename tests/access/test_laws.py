"""Laws of the analysis over random accounts and edits, compared with the reference gateway.

A seed names two edits: one of a whole account, and one of a single gate of a small account. A failure shows which:
`random_pair(Random(seed), exact)` and `random_edit(Random(seed), exact)`.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random
from typing import Any

import pytest

from reconciler.access.account import Account
from reconciler.access.compare import Difference, analyze, compare, program_text
from reconciler.access.entering import EntryPoint
from reconciler.access.places import Region
from reconciler.access.programs import Builder
from reconciler.model.access_change import Verdict
from tests.access import objects as o
from tests.access.accounts import random_pair
from tests.access.borders import Borders
from tests.access.example_requests import to_request
from tests.access.gateway.messages import Answer, BindRequest, PlaneRequest, Request
from tests.access.live import compare_accounts, read_account
from tests.access.single_edits import random_edit
from tests.harness.tiers import only_if

QUICK, FULL, SOAK, A_TEST = 100, 10_000, 1_000_000, 50
GAINS = frozenset({Verdict.WIDENS, Verdict.EXPOSES})
firsts = pytest.mark.parametrize("first", only_if(lambda first: first < QUICK, range(0, FULL, A_TEST)))


@firsts
def test_each_request_that_passes_since_an_edit_is_in_a_reported_entry_point(first: int) -> None:
    assert not [*find_unreported(first)]


@firsts
def test_the_witness_of_a_change_shows_it_at_the_platform(first: int) -> None:
    assert not [*find_false_witnesses(first)]


@firsts
def test_a_change_that_rests_on_what_is_not_documented_is_unknown(first: int) -> None:
    assert not [*find_overconfident(first)]


@firsts
def test_an_edit_and_its_reversal_are_reported_at_the_same_entry_points(first: int) -> None:
    assert not [*find_asymmetric(first)]


@firsts
def test_the_same_access_in_other_words_is_no_change(first: int) -> None:
    assert not [*find_unstable(first)]


@firsts
def test_an_edit_without_expressions_and_undocumented_facts_is_judged_with_certainty(first: int) -> None:
    assert not [*find_doubtful(first)]


LAWS: tuple[Callable[[int], Iterator[Any]], ...]


@pytest.mark.soak
@pytest.mark.parametrize("first", range(FULL, FULL + SOAK, 1_000))
def test_the_laws_hold_for_a_million_edits(first: int) -> None:
    for start in range(first, first + 1_000, A_TEST):
        assert not [fault for law in LAWS for fault in law(start)]


def test_the_gateway_answers_most_witnesses() -> None:
    counts: Counter[bool] = Counter()
    for edit in edits(0):
        counts.update(request is not None for _, request, _ in edit.witnesses)
    assert counts[True] > 20 * counts[False]


def test_an_entry_point_that_two_states_share_is_that_of_each_of_them() -> None:
    for edit in edits(0):
        for objects, account in zip(edit.states, edit.accounts, strict=True):
            fresh = read_account(objects, Builder())
            fresh.builder.secrets |= edit.builder.secrets  # names are given in the order of first mention
            assert [*map(_describe, analyze(account))] == [*map(_describe, analyze(fresh))], edit.name


def _describe(entry: EntryPoint) -> tuple[Region, str, frozenset[str], str]:
    return entry.region, entry.admits, entry.uses, program_text(entry.program)


# --- edits ------------------------------------------------------------------------------------------------------------


Asked = Request | BindRequest | PlaneRequest


@dataclass(frozen=True)
class Edit:
    """An edit with what the analysis says of it."""

    name: str
    states: tuple[o.Account, o.Account]
    accounts: tuple[Account, Account]
    is_exact: bool
    builder: Builder
    changes: tuple[Difference, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it is an edit of a whole account."""
        return self.name.startswith("whole")

    @cached_property
    def borders(self) -> Borders:
        return Borders(*self.states)

    @cached_property
    def witnesses(self) -> list[tuple[Difference, Asked | None, tuple[Answer, ...]]]:
        """Each certain change with the request of its witness, and the answers of the states that lack and give access.
        None and no answers for what the gateway cannot be asked."""
        found: list[tuple[Difference, Asked | None, tuple[Answer, ...]]] = []
        for change in self.changes:
            if change.is_certain:
                request = to_request(change, self.builder, *self.states)
                without, with_ = self.borders.states if change.verdict in GAINS else reversed(self.borders.states)
                answers = (without.answer(request), with_.answer(request)) if request is not None else ()
                found.append((change, request, answers))
        return found


@lru_cache(2)
def edits(first: int) -> list[Edit]:
    """The edits of the seeds that follow each other from `first`."""
    return [edit for seed in seeds(first) for edit in _draw(seed)]


def _draw(seed: int) -> Iterator[Edit]:
    exact = is_exact(seed)
    draws: dict[str, Callable[[Random], tuple[o.Account, o.Account]]] = {
        "whole account": lambda r: random_pair(r, exact),
        "single gate": lambda r: random_edit(r, exact=exact),
    }
    for name, draw in draws.items():
        states, builder = draw(Random(seed)), Builder()
        before, after = (read_account(state, builder) for state in states)
        yield Edit(f"{name}, {seed}", states, (before, after), exact, builder, compare(before, after))


def seeds(first: int) -> range:
    return range(first, first + A_TEST)


def is_exact(seed: int) -> bool:
    return seed % 2 == 0


# --- laws: each finds the faults of some edits -----------------------------------------------------------------------


def find_unreported(first: int) -> Iterator[Any]:
    for edit in edits(first):
        r = Random(edit.name)
        gains = [found.region for found in edit.changes if found.verdict in GAINS]
        borders = edit.borders
        draws: list[Callable[[Random], Asked]] = [borders.draw] * 20
        draws += [borders.draw_bind, borders.draw_plane] * 3
        for request in (draw(r) for draw in draws):
            before, after = (state.answer(request) for state in borders.states)
            is_gained = (before.outcome, after.outcome) == ("refuse", "pass")
            if isinstance(request, PlaneRequest) and request.plane == "endpoints":
                continue  # public endpoints are compared one by one
            if is_gained and not any(covers(region, request) for region in gains):
                yield edit.name, request, before, after


def covers(region: Region, request: Asked) -> bool:
    door = region.door
    if isinstance(request, PlaneRequest):
        return (door.binding, door.scheme) == ("account", request.plane)
    if isinstance(request, BindRequest):
        return (door.binding, region.host) == ("credential", request.credential)
    if (door.scheme, door.port, door.binding) != (request.scheme, request.port, request.binding):
        return False
    if request.host != region.host and not (region.host[:2] == "*." and request.host.endswith(region.host[1:])):
        return False
    return request.path.startswith(region.path) if region.below else region.path in ("", request.path)


def find_false_witnesses(first: int) -> Iterator[Any]:
    for edit in edits(first):
        for change, request, answers in edit.witnesses:
            if answers and [answer.outcome for answer in answers] != ["refuse", "pass"]:
                yield edit.name, str(change.verdict), request, answers


EXACT = frozenset({"no-address-list"})
"""Open rows that the analysis takes as they are."""


def find_overconfident(first: int) -> Iterator[Any]:
    for edit in edits(first):
        for change, request, answers in edit.witnesses:
            if rows := frozenset[str]().union(*(answer.open_outcome for answer in answers)) - EXACT:
                yield edit.name, str(change.verdict), sorted(rows), request


def find_doubtful(first: int) -> Iterator[Any]:
    for edit in edits(first):
        doubts = [change.depends_on for change in edit.changes if not change.is_certain]
        if edit.is_exact and doubts:
            yield edit.name, doubts


def find_asymmetric(first: int) -> Iterator[Any]:
    for edit in edits(first):
        forward, backward = edit.changes, compare(*reversed(edit.accounts))
        # what an edit takes away only, its reversal gives back
        for one, other in ((forward, backward), (backward, forward)):
            lost = {str(found.region) for found in one if found.verdict not in GAINS}
            gained = {str(found.region) for found in other if found.verdict in GAINS}
            yield from ((edit.name, region) for region in sorted(lost - gained))


def find_unstable(first: int) -> Iterator[Any]:
    for edit in edits(first):
        if edit.is_whole:
            r, account, builder = Random(edit.name), edit.states[0], edit.builder
            halves = split_networks(account, r)
            for name, one, other in (
                ("split", account, halves),
                ("merge", halves, merge_networks(halves)),
                ("reorder", account, reorder(account, r)),
                ("rename", account, rename(account)),
            ):
                if changes := compare_accounts(one, other, builder=builder):
                    yield edit.name, name, [str(found.region) for found in changes]


LAWS = (find_unreported, find_false_witnesses, find_overconfident, find_doubtful, find_asymmetric, find_unstable)


def split_networks(account: o.Account, r: Random) -> o.Account:
    """Each network of an IP policy as its two halves."""
    return {**account, "IPPolicyRule": [half for rule in account.get("IPPolicyRule", ()) for half in _halve(rule)]}


def _halve(rule: o.Object) -> list[o.Object]:
    network = ipaddress.ip_network(rule["cidr"])
    if network.prefixlen == network.max_prefixlen:
        return [rule]
    return [{**rule, "id": f"{rule['id']} {half}", "cidr": str(half)} for half in network.subnets()]


def merge_networks(account: o.Account) -> o.Account:
    """The networks of each IP policy in as few rules as possible."""
    networks: dict[tuple[str, str, int], list[Any]] = defaultdict(list)
    for rule in account.get("IPPolicyRule", ()):
        network = ipaddress.ip_network(rule["cidr"])
        networks[rule["ip_policy"]["id"], rule["action"], network.version].append(network)
    rules = [
        o.ip_rule(policy, str(network), action)
        for (policy, action, _), found in networks.items()
        for network in ipaddress.collapse_addresses(found)
    ]
    return {**account, "IPPolicyRule": rules}


_NEW_IDS = {"ipp_": "ipp_new_", "ipr_": "ipr_new_", "ca_": "ca_new_"}


def rename(account: o.Account) -> o.Account:
    """The IP policies, their rules and authorities with other ids, wherever they are mentioned."""
    renamed: o.Account = _map(account, _rename)
    for old, new in zip(account.get("CertificateAuthority", ()), renamed["CertificateAuthority"], strict=True):
        new["ca_pem"] = old["ca_pem"]
    return renamed


def _rename(text: str) -> str:
    for old, new in _NEW_IDS.items():
        text = text.replace(old, new)
    return text


def _map(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {name: _map(inner, change) for name, inner in value.items()}
        case list() | tuple():
            return [_map(inner, change) for inner in value]
    return value


def reorder(account: o.Account, r: Random) -> o.Account:
    """The lists of objects in another order."""
    return {kind: r.sample([*bodies], len(bodies)) for kind, bodies in account.items()}
