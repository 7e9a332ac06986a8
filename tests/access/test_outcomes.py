"""Outcomes for whole networks, compared with the answers about single addresses over random accounts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_network
from itertools import islice
from random import Random

import pytest
from msgspec.structs import replace

from reconciler.access import search
from reconciler.access.account import Account
from reconciler.access.networks import EVERYWHERE, MAPPED, Networks, parse_networks, unmap
from reconciler.access.outcomes import Outcomes, find_outcomes
from reconciler.access.questions import Outcome, Question, answer
from reconciler.access.witness import TOO_LARGE
from tests.access.asking import A_TEST, QUICK, Asked, ask, ask_few, firsts

NETWORKS = ("0.0.0.0/0", "203.0.113.0/24", "10.0.0.0/8", "2001:db8::/32", "::/0", "::ffff:0:0/96")


@firsts
def test_each_address_of_a_network_has_the_outcome_of_a_request_from_it(first: int) -> None:
    for question, account, sources, found in ask_networks(first):
        for outcome in Outcome:
            for address in borders_of(found.find(outcome)):
                if unmap(address) is not None and sources != MAPPED:
                    continue
                visitor = replace(question.visitor, source=address)
                assert answer(account, replace(question, visitor=visitor)).outcome is outcome, (question, address)
        parts = [found.find(outcome) for outcome in Outcome]
        assert parts[0] | parts[1] | parts[2] == sources
        assert sum(part.size() for part in parts) == sources.size()


def test_networks_have_several_outcomes_at_once_and_each_outcome_occurs() -> None:
    found = [outcomes for first in range(0, QUICK, A_TEST) for *_, outcomes in ask_networks(first)]
    counts = Counter(outcome for one in found for outcome in Outcome if one.find(outcome))
    assert min(counts[outcome] for outcome in Outcome) > 20
    assert sum(bool(one.passing) and bool(one.refused) for one in found) > 20
    assert all(bool(one.unknown) == bool(one.depends_on) for one in found)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_outcomes_are_exact_or_unknown_if_the_rules_are_too_large(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """At every limit, an address without a decision counts neither as refused nor as allowed."""
    cases = [
        _ask_network(one, sources) for one in ask_few(3) for sources in (EVERYWHERE, parse_networks(["10.0.0.0/8"]))
    ]
    monkeypatch.setattr(search, "MAX_STEPS", steps)
    undecided = 0
    for question, account, sources, exact in cases:
        found = find_outcomes(account, question.region, question.visitor, sources)
        undecided += TOO_LARGE in found.depends_on
        if TOO_LARGE in found.depends_on:
            assert found == Outcomes(exact.entry, Networks(), Networks(), sources, (TOO_LARGE,))
        else:
            assert found == exact
    assert steps or undecided == sum(exact.entry is not None for *_, exact in cases) > 0


@lru_cache(QUICK // A_TEST)
def ask_networks(first: int) -> list[tuple[Question, Account, Networks, Outcomes]]:
    """Some questions of the tests of answers, each for all addresses of a network."""
    r = Random(first)
    asked = [one for exact in (True, False) for one in ask(first, exact=exact)[::2]]
    return [_ask_network(one, r.choice([EVERYWHERE, parse_networks([r.choice(NETWORKS)])])) for one in asked]


def _ask_network(one: Asked, sources: Networks) -> tuple[Question, Account, Networks, Outcomes]:
    question = one.question
    return question, one.account, sources, find_outcomes(one.account, question.region, question.visitor, sources)


def borders_of(networks: Networks) -> Iterator[str]:
    """The first and last address of the first ranges."""
    for network in map(ip_network, islice(networks.networks(), 6)):
        yield from (str(network[0]), str(network[-1]))
