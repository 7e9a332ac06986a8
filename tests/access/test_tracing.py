"""Explanations of single requests: they end as the answer does, whatever the account."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from reconciler.access.account import Account
from reconciler.access.questions import answer
from reconciler.access.tracing import explain
from tests.access.accounts import random_account
from tests.access.borders import Borders
from tests.access.live import read_resources
from tests.access.test_questions import to_question
from tests.harness.tiers import only_if

QUICK, FULL, A_TEST, DRAWS = 200, 5_000, 50, 20
firsts = pytest.mark.parametrize("first", only_if(lambda first: first < QUICK, range(0, FULL, A_TEST)))


@firsts
def test_an_explanation_ends_as_the_answer(first: int) -> None:
    for exact in (True, False):
        for seed, question, given in _explain(first, exact=exact):
            explanation = explain(*question)
            assert (explanation.outcome, explanation.depends_on) == (given.outcome, given.depends_on), seed
            assert explanation.steps


def _explain(first: int, *, exact: bool) -> Iterator[Any]:
    for seed in range(first, first + A_TEST):
        r = Random(seed)
        objects = random_account(r, exact)
        account, borders = Account(read_resources(objects)), Borders(objects, objects)
        for question in filter(None, (to_question(borders.draw(r)) for _ in range(DRAWS))):
            yield seed, (account, question), answer(account, question)
