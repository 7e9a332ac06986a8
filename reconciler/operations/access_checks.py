"""Runs the access tests of a project for manifests and plans. Imports nothing further in a project without tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler.model.value import Json, digest

if TYPE_CHECKING:
    from reconciler.access.account import Account
    from reconciler.model.access_test import AccessTest
    from reconciler.model.manifest import Manifest
    from reconciler.model.plan import Plan
    from reconciler.planning.access_tests import AccessReport
    from reconciler.project.settings.config import Config

Tests = tuple["AccessTest", ...]
PLACES = ("tests/access.yaml", "tests/access.yml", "tests/access")


def load_tests(config: Config) -> Tests:
    """The access tests of the project; raises Rejected with every problem of their files."""
    if not any(os.path.lexists(config.root / place) for place in PLACES):
        return ()
    from reconciler.project.access_tests import load_tests as load

    return load(config.root, config.environment.name if config.environment is not None else None)


def check_manifest(tests: Tests, manifest: Manifest) -> AccessReport | None:
    """The results of the tests on what the manifests declare; None without tests."""
    if not tests:
        return None
    from reconciler import kinds
    from reconciler.planning.access import declare_account
    from reconciler.planning.access_tests import run_tests

    return run_tests(tests, declare_account(manifest, {kind.name: kind for kind in kinds.list_planned()}))


def with_results(plan: Plan, tests: Tests, find_accounts: Callable[[], tuple[Account, Account]] | None) -> Plan:
    """The plan with the current results of the tests.

    find_accounts  the account before and after the plan. None if it is not available: then the results of unchanged
                   tests are kept, and changed tests are a problem of their own
    """
    if not tests and not plan.access_tests:
        return plan
    from reconciler.planning.access_tests import RULE, report_unavailable, run_tests

    now = _digest(tests)
    if find_accounts is None and plan.judged.get(RULE) == now:
        return plan
    others = tuple(problem for problem in plan.problems if problem.rule != RULE)
    judged = {**plan.judged, RULE: now}
    if find_accounts is None:
        problems = (*others, *(report_unavailable(test.position) for test in tests[:1]))
        return replace(plan, problems=problems, access_tests=(), judged=judged)
    before, after = find_accounts()
    report = run_tests(tests, after, before)
    return replace(plan, problems=(*others, *report.problems), access_tests=report.results, judged=judged)


def with_drift_results(
    plan: Plan, tests: Tests, find_accounts: Callable[[], tuple[Account, Account, Sequence[Account]]]
) -> Plan:
    """Drift with the results of the tests on the account as it is.

    find_accounts  the account without drift, and as it is; without known drift too, and as an apply leaves it
    """
    if not tests:
        return plan
    from reconciler.planning.access_tests import run_drift_tests

    report = run_drift_tests(tests, *find_accounts())
    return replace(plan, problems=(*plan.problems, *report.problems), access_tests=report.results)


def select_for_destroy(tests: Tests) -> Tests:
    """The tests that hold when everything that the stack serves is deleted: those that expect no request to pass."""
    return tuple(test for test in tests if test.expect == "deny")


def _digest(tests: Tests) -> str:
    """A digest of all that the tests expect."""
    described: Json = [
        [[*test.sources], test.target, str(test.expect), test.binding, str(test.severity), test.name] for test in tests
    ]
    return digest(described)
