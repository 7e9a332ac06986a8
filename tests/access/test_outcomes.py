"""Outcomes for whole networks, compared with the answers about single addresses over random accounts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.access.account import Account
from reconciler.access.networks import EVERYWHERE, Networks, parse_networks
from reconciler.access.outcomes import Outcomes, find_outcomes
from reconciler.access.places import Region
from reconciler.access.questions import Outcome, Question, answer
from tests.access.accounts import random_account
from tests.access.borders import Borders
from tests.access.live import read_resources
from tests.access.test_questions import to_question
from tests.harness.tiers import only_if

QUICK, FULL, A_TEST, DRAWS = 200, 2_000, 50, 10
firsts = pytest.mark.parametrize("first", only_if(lambda first: first < QUICK, range(0, FULL, A_TEST)))
NETWORKS = ("0.0.0.0/0", "203.0.113.0/24", "10.0.0.0/8", "2001:db8::/32", "::/0")


@firsts
def test_each_address_of_a_network_has_the_outcome_of_a_request_from_it(first: int) -> None:
    for question, account, sources, found in ask(first):
        for outcome in Outcome:
            for address in borders_of(found.find(outcome)):
                visitor = replace(question.visitor, source=address)
                assert answer(account, replace(question, visitor=visitor)).outcome is outcome, (question, address)
        parts = [found.find(outcome) for outcome in Outcome]
        assert parts[0] | parts[1] | parts[2] == sources
        assert sum(part.size() for part in parts) == sources.size()


def test_networks_have_several_outcomes_at_once_and_each_outcome_occurs() -> None:
    found = [outcomes for first in range(0, QUICK, A_TEST) for *_, outcomes in ask(first)]
    counts = Counter(outcome for one in found for outcome in Outcome if one.find(outcome))
    assert min(counts[outcome] for outcome in Outcome) > 20
    assert sum(bool(one.passing) and bool(one.refused) for one in found) > 20
    assert all(bool(one.unknown) == bool(one.depends_on) for one in found)


def ask(first: int) -> Iterator[tuple[Question, Account, Networks, Outcomes]]:
    for seed in range(first, first + A_TEST):
        r = Random(seed)
        objects: Any = random_account(r, exact=seed % 2 == 0)
        account, borders = Account(read_resources(objects)), Borders(objects, objects)
        for request in (borders.draw(r) for _ in range(DRAWS)):
            if (question := to_question(request)) is None:
                continue
            path = question.path if question.door.scheme in ("http", "https") else ""
            sources = r.choice([EVERYWHERE, parse_networks([r.choice(NETWORKS)])])
            region = Region(question.door, question.host.lower(), path)
            yield question, account, sources, find_outcomes(account, region, question.visitor, sources)


def borders_of(networks: Networks) -> Iterator[str]:
    """The first and last address of the first ranges."""
    for network in list(networks.networks())[:6]:
        yield from (str(network[0]), str(network[-1]))
