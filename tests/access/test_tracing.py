"""Explanations of single requests: they end as the answer does, whatever the account."""

from __future__ import annotations

from reconciler.access.tracing import explain
from tests.access.asking import ask, firsts


@firsts
def test_an_explanation_ends_as_the_answer(first: int) -> None:
    for one in (*ask(first, exact=True), *ask(first, exact=False)):
        explanation = explain(one.account, one.question)
        assert (explanation.outcome, explanation.depends_on) == (one.given.outcome, one.given.depends_on), one.seed
        assert explanation.steps
