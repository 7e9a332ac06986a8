"""Questions about random accounts with their answers, drawn once for all tests of the same seeds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import NamedTuple

import pytest

from reconciler.access.account import Account
from reconciler.access.conditions import Person
from reconciler.access.places import Door
from reconciler.access.questions import Answer, Question, Visitor, answer
from tests.access.accounts import random_account
from tests.access.borders import PREFLIGHT, Borders
from tests.access.gateway import messages
from tests.access.gateway.messages import Identity, Request
from tests.access.live import read_account
from tests.harness.tiers import only_if

QUICK, FULL, A_TEST, DRAWS = 100, 5_000, 50, 20
firsts = pytest.mark.parametrize("first", only_if(lambda first: first < QUICK, range(0, FULL, A_TEST)))
"""The first seed of each test."""


class Asked(NamedTuple):
    """A request of the reference gateway with its answer, and the same as a question to the analysis."""

    seed: int
    account: Account
    request: Request
    expected: messages.Answer
    question: Question
    given: Answer


@lru_cache(2 * QUICK // A_TEST)
def ask(first: int, *, exact: bool) -> list[Asked]:
    """Requests on the borders of the accounts of some seeds."""
    return [asked for seed in range(first, first + A_TEST) for asked in _ask(seed, exact=exact)]


@lru_cache
def ask_few(seeds: int) -> list[Asked]:
    """Requests on the borders of a few accounts, for tests that need no more."""
    return [asked for seed in range(seeds) for asked in _ask(seed, exact=True)]


def _ask(seed: int, *, exact: bool) -> Iterator[Asked]:
    r = Random(seed)
    objects = random_account(r, exact)
    account, borders = read_account(objects), Borders(objects, objects)
    for request in (borders.draw(r) for _ in range(DRAWS)):
        if (question := to_question(request)) is not None:
            expected = borders.states[0].answer(request)
            yield Asked(seed, account, request, expected, question, answer(account, question))


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
