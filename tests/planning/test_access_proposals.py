"""Proposed access tests pass on the account that they were proposed from, and fail on one that lets others in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reconciler import kinds
from reconciler.access.account import Account
from reconciler.access.compare import analyze, compare
from reconciler.access.networks import MAPPED
from reconciler.access.programs import Builder
from reconciler.access.questions import find_sources
from reconciler.model.access_change import Verdict
from reconciler.model.access_test import AccessResult, AccessStatus, AccessTest, Expected
from reconciler.model.problem import Position
from reconciler.operations.authoring.access_proposal import render
from reconciler.planning.access import declare_account
from reconciler.planning.access_proposals import ProposedTests, propose_tests
from reconciler.planning.access_tests import run_tests
from reconciler.project.access_tests import load_tests
from tests.access.accounts import random_account, random_pair
from tests.access.live import read_resources
from tests.harness.builders import declare, manifest
from tests.harness.tiers import only_if

QUICK, FULL, A_TEST = 12, 1_200, 12
firsts = pytest.mark.parametrize("first", only_if(lambda first: first < QUICK, range(0, FULL, A_TEST)))


def propose(account: Account) -> tuple[ProposedTests, ...]:
    return tuple(propose_tests(account, sorted(analyze(account), key=lambda entry: entry.region)))


def run_file(folder: Path, text: str, account: Account) -> tuple[AccessResult, ...]:
    """The results of the tests that a file has."""
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests/access.yaml").write_text(text, encoding="utf-8")
    return run_tests(load_tests(folder), account).results


@firsts
def test_a_proposed_file_passes_on_the_same_account(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + A_TEST):
        objects: Any = random_account(Random(seed), exact=seed % 2 == 0)
        for is_partial in (False, True):
            account = Account(read_resources(objects), is_partial=is_partial)
            text = render(propose(account))
            results = run_file(tmp_path, text, account)
            assert [result for result in results if result.status is not AccessStatus.PASSED] == [], (seed, text)
            assert text == render(propose(account))


@firsts
def test_an_entry_point_has_a_test_that_expects_allow_exactly_if_some_request_passes(
    first: int,
) -> None:
    for seed in range(first, first + A_TEST):
        objects: Any = random_account(Random(seed), exact=True)
        account = Account(read_resources(objects))
        for entry in analyze(account):
            if entry.region.door.binding not in ("account", "credential"):
                sources = find_sources(entry.program)
                assert sources is not None
                expected = {found.expect for tests in propose_tests(account, [entry]) for found in tests.expectations}
                assert (Expected.ALLOW in expected) == bool(sources - MAPPED), (seed, entry.region)
                assert expected <= {Expected.ALLOW, Expected.DENY}


def test_an_entry_point_that_only_admits_preflight_requests_is_tested_with_one(tmp_path: Path) -> None:
    sign_ins = [
        {"type": "oauth", "config": {"provider": "google", "allow_cors_preflight": True}},
        {"type": "oauth", "config": {"provider": "github"}},  # no one is signed in at both
    ]
    answer = {"type": "custom-response", "config": {"status_code": 200}}
    policy = {"on_http_request": [{"actions": [*sign_ins, answer]}]}
    shop = declare("CloudEndpoint/shop", {"url": "https://shop.example.com", "traffic_policy": policy})
    account = declare_account(manifest(shop), {kind.name: kind for kind in kinds.list_planned()})
    text = render(propose(account))
    assert "method: CORS preflight" in text
    assert {result.status for result in run_file(tmp_path, text, account)} == {AccessStatus.PASSED}


def test_proposed_tests_fail_after_most_changes_of_access_and_after_no_other_change() -> None:
    failures = Counter(failing for seed in range(60) for failing in list_failures(seed))
    assert failures["unchanged", True] == 0
    for verdict in (Verdict.WIDENS, Verdict.LOCKS_OUT, Verdict.CLOSES):
        assert failures[verdict, True] > failures[verdict, False]


def list_failures(seed: int) -> Iterator[tuple[str, bool]]:
    """The certain verdicts of a random edit, and whether a test fails that was proposed before it."""
    one, other = random_pair(Random(seed), exact=True)
    builder = Builder()
    before, after = Account(read_resources(one), builder), Account(read_resources(other), builder)
    tests = [
        AccessTest(found.sources, target, found.expect, Position("f", 1, 1), tests.binding, found.caller)
        for tests in propose(before)
        for target in tests.targets
        for found in tests.expectations
    ]
    has_failed = any(result.status is AccessStatus.FAILED for result in run_tests(tests, after).results)
    differences = compare(before, after)
    if not differences:
        yield "unchanged", has_failed
    for verdict in {change.verdict for change in differences if change.is_certain}:
        yield verdict, has_failed
