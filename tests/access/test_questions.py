"""Answers about single requests, compared with the reference gateway over random accounts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from reconciler.access.account import Account
from reconciler.access.conditions import Person
from reconciler.access.places import Door
from reconciler.access.questions import Outcome, Question, Visitor, answer
from tests.access.accounts import random_account
from tests.access.borders import PREFLIGHT, Borders
from tests.access.gateway.messages import Identity, Request
from tests.access.live import read_resources
from tests.harness.tiers import only_if

QUICK, FULL, A_TEST, DRAWS = 200, 5_000, 50, 20
firsts = pytest.mark.parametrize("first", only_if(lambda first: first < QUICK, range(0, FULL, A_TEST)))


@firsts
def test_answers_agree_with_the_platform(first: int) -> None:
    assert not [*_find_wrong(first)]


@firsts
def test_requests_to_accounts_without_expressions_and_undocumented_facts_are_answered(first: int) -> None:
    unknown = [(seed, given.depends_on) for seed, _, given in _ask(first, exact=True) if given.outcome == "unknown"]
    assert not unknown


def test_some_requests_pass_and_some_are_refused_and_some_are_unknown() -> None:
    counts = Counter(given.outcome for _, _, given in _ask(0, exact=False))
    assert min(counts[outcome] for outcome in Outcome) > 5


def _find_wrong(first: int) -> Iterator[Any]:
    for exact in (True, False):
        for seed, (request, expected), given in _ask(first, exact=exact):
            if given.outcome != "unknown" and not expected.open_outcome and given.outcome != expected.outcome:
                yield seed, exact, request, expected, given.outcome


def _ask(first: int, *, exact: bool) -> Iterator[Any]:
    for seed in range(first, first + A_TEST):
        r = Random(seed)
        objects = random_account(r, exact)
        account, borders = Account(read_resources(objects)), Borders(objects, objects)
        for request in (borders.draw(r) for _ in range(DRAWS)):
            if (question := to_question(request)) is not None:
                yield seed, (request, borders.states[0].answer(request)), answer(account, question)


def to_question(request: Request) -> Question | None:
    """None for what a question cannot express: tokens, signatures, and a server name that differs from the host."""
    has_token = request.basic or request.tokens or request.webhook_signed_by
    person = _to_person(request.identity)
    if has_token or request.sni != "" or (request.identity is not None and person is None):
        return None
    method = "GET" if request.method != "OPTIONS" else "CORS preflight" if request.headers == PREFLIGHT else "OPTIONS"
    door = Door(request.scheme, request.port, request.binding)
    return Question(
        door, request.host, request.path, Visitor(request.source, method, request.certificate or "", person)
    )


def _to_person(identity: Identity | None) -> Person | None:
    if identity is None or identity.kind == "saml" or identity.teams or identity.organizations or identity.groups:
        return None
    return Person(identity.issuer, "email" if identity.email else "", identity.email)
