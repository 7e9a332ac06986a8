"""Laws of the analysis over random accounts and edits, compared with the reference gateway.

A seed names an edit. A failure shows it: `random_pair(Random(seed), exact)`.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from reconciler.access.places import Region
from reconciler.model.access_change import Verdict
from tests.access import objects as o
from tests.access.accounts import random_account, random_pair
from tests.access.borders import Borders
from tests.access.example_requests import to_request
from tests.access.gateway.gateway import Gateway
from tests.access.gateway.messages import BindRequest, PlaneRequest, Request
from tests.access.live import compare_accounts
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
def test_an_edit_and_its_reversal_are_reported_at_the_same_entry_points(first: int) -> None:
    assert not [*find_asymmetric(first)]


@firsts
def test_the_same_access_in_other_words_is_no_change(first: int) -> None:
    assert not [*find_unstable(first)]


@firsts
def test_an_edit_without_expressions_and_undocumented_facts_is_judged_with_certainty(first: int) -> None:
    edits = ((seed, compare_accounts(*random_pair(Random(seed), exact=True))) for seed in seeds(first))
    assert not [(seed, found.depends_on) for seed, changes in edits for found in changes if not found.is_certain]


@pytest.mark.soak
@pytest.mark.parametrize("first", range(FULL, FULL + SOAK, 1_000))
def test_the_laws_hold_for_a_million_edits(first: int) -> None:
    for start in range(first, first + 1_000, A_TEST):
        laws = find_unreported, find_false_witnesses, find_asymmetric, find_unstable
        assert not [fault for law in laws for fault in law(start)]


def test_the_gateway_answers_most_witnesses() -> None:
    counts: Counter[bool] = Counter()
    for seed in range(QUICK):
        states = random_pair(Random(seed), is_exact(seed))
        changes = (found for found in compare_accounts(*states) if found.is_certain)
        counts.update(to_request(found, *states) is not None for found in changes)
    assert counts[True] > 4 * counts[False]


# --- laws: each finds the faults of some edits -----------------------------------------------------------------------


def seeds(first: int) -> range:
    return range(first, first + A_TEST)


def is_exact(seed: int) -> bool:
    return seed % 2 == 0


def find_unreported(first: int) -> Iterator[Any]:
    for seed in seeds(first):
        r = Random(seed)
        states = random_pair(r, is_exact(seed))
        gains = [found.region for found in compare_accounts(*states) if found.verdict in GAINS]
        borders = Borders(*states)
        draws: list[Callable[[Random], Request | BindRequest | PlaneRequest]] = [borders.draw] * 20
        draws += [borders.draw_bind, borders.draw_plane] * 3
        for request in (draw(r) for draw in draws):
            before, after = (state.answer(request) for state in borders.states)
            is_gained = before.outcome == "refuse" and after.outcome == "pass"
            if is_gained and not any(covers(region, request) for region in gains):
                yield seed, request, before, after


def covers(region: Region, request: Request | BindRequest | PlaneRequest) -> bool:
    door = region.door
    if isinstance(request, PlaneRequest):
        # public endpoints are compared one by one, so that the plane `endpoints` is none of its own
        return request.plane == "endpoints" or (door.binding, door.scheme) == ("account", request.plane)
    if isinstance(request, BindRequest):
        return (door.binding, region.host) == ("credential", request.credential)
    if (door.scheme, door.port, door.binding) != (request.scheme, request.port, request.binding):
        return False
    if request.host != region.host and not (region.host[:2] == "*." and request.host.endswith(region.host[1:])):
        return False
    return request.path.startswith(region.path) if region.below else region.path in ("", request.path)


def find_false_witnesses(first: int) -> Iterator[Any]:
    for seed in seeds(first):
        states = random_pair(Random(seed), is_exact(seed))
        gateways = [Gateway(state) for state in states]
        for change in compare_accounts(*states):
            request = to_request(change, *states) if change.is_certain else None
            if request is None:
                continue
            one, other = gateways if change.verdict in GAINS else reversed(gateways)
            answers = one.answer(request), other.answer(request)
            if [answer.outcome for answer in answers] != ["refuse", "pass"]:
                yield seed, str(change.verdict), request, answers


def find_asymmetric(first: int) -> Iterator[Any]:
    for seed in seeds(first):
        before, after = random_pair(Random(seed), is_exact(seed))
        forward, backward = compare_accounts(before, after), compare_accounts(after, before)
        # what an edit takes away only, its reversal gives back
        for one, other in ((forward, backward), (backward, forward)):
            lost = {str(found.region) for found in one if found.verdict not in GAINS}
            gained = {str(found.region) for found in other if found.verdict in GAINS}
            yield from ((seed, region) for region in sorted(lost - gained))


def find_unstable(first: int) -> Iterator[Any]:
    for seed in seeds(first):
        r = Random(seed)
        account = random_account(r, is_exact(seed))
        rewords = [split_networks, reorder]
        # the text of an expression may mean something else after an action that names other IP policies
        rewords += [rename_rules] if is_exact(seed) else []
        for reword in rewords:
            if changes := compare_accounts(account, reword(account, r)):
                yield seed, reword.__name__, [str(found.region) for found in changes]


def split_networks(account: o.Account, r: Random) -> o.Account:
    """Each network of an IP policy as its two halves."""
    return {**account, "IPPolicyRule": [half for rule in account.get("IPPolicyRule", ()) for half in _halve(rule)]}


def _halve(rule: o.Object) -> list[o.Object]:
    network = ipaddress.ip_network(rule["cidr"])
    if network.prefixlen == network.max_prefixlen:
        return [rule]
    return [{**rule, "id": f"{rule['id']} {half}", "cidr": str(half)} for half in network.subnets()]


def rename_rules(account: o.Account, r: Random) -> o.Account:
    """The IP policies and their rules with other ids, wherever they are mentioned."""
    return _map(account, lambda text: text.replace("ipp_", "ipp_new_").replace("ipr_", "ipr_new_"))


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
