"""Answers about single requests, compared with the reference gateway over random accounts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reconciler.access.questions import Outcome
from tests.access.asking import Asked, ask, firsts
from tests.access.gateway.addresses import unmap


@firsts
def test_answers_agree_with_the_platform(first: int) -> None:
    assert not [*_find_wrong(first)]


@firsts
def test_requests_to_accounts_without_expressions_and_undocumented_facts_are_answered(first: int) -> None:
    asked = [one for one in ask(first, exact=True) if unmap(one.request.source) is None]
    assert not [(one.seed, one.given.depends_on) for one in asked if one.given.outcome == "unknown"]


def test_some_requests_pass_and_some_are_refused_and_some_are_unknown() -> None:
    counts = Counter(one.given.outcome for one in ask(0, exact=False))
    assert min(counts[outcome] for outcome in Outcome) > 5


def _find_wrong(first: int) -> Iterator[Asked]:
    for one in (*ask(first, exact=True), *ask(first, exact=False)):
        outcome, expected = one.given.outcome, one.expected
        if outcome != "unknown" and not expected.open_outcome and outcome != expected.outcome:
            yield one
