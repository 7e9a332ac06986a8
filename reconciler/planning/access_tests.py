"""Runs the access tests of a project on a state of the account, and reports those that fail."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.access.account import Account
from reconciler.access.conditions import ANY_METHOD, OPTIONS, PREFLIGHT, Person
from reconciler.access.destinations import read_destination
from reconciler.access.entering import NOT_DECLARED
from reconciler.access.networks import Networks, parse_networks
from reconciler.access.outcomes import Outcomes, find_outcomes
from reconciler.access.people import find_unknown_issuer, list_providers
from reconciler.access.places import Region
from reconciler.access.questions import Outcome, Visitor
from reconciler.model.access import Authority
from reconciler.model.access_test import AccessResult, AccessStatus, AccessTest, Caller, Expected
from reconciler.model.problem import Position, Problem, Severity
from reconciler.model.suggestions import did_you_mean

RULE: Final = "access tests"
"""The rule of the problems. No policy can have a name with a space."""
_OUTCOMES: Final = {Expected.ALLOW: Outcome.PASS, Expected.DENY: Outcome.REFUSE, Expected.UNKNOWN: Outcome.UNKNOWN}
_WORDS: Final = {
    Expected.ALLOW: "gets through",
    Expected.DENY: "is refused",
    Expected.UNKNOWN: "may get through or not",
}
_MOST_NAMES: Final = 6  # of resources that decide, and of facts that are not known


class AccessReport(Struct, frozen=True):
    """The results of tests, and the problems of those that fail or that could not be decided."""

    results: tuple[AccessResult, ...] = ()
    problems: tuple[Problem, ...] = ()


def run_tests(tests: Iterable[AccessTest], after: Account, before: Account | None = None) -> AccessReport:
    """Runs tests on the account after a plan, or on the one of the manifests alone.

    before  the account before the plan: it says whether the plan causes a failure
    """
    done = _run(tests, after, before)
    skipped = [result for result, _ in done if result.status is AccessStatus.SKIPPED]
    problems = (problem for _, problem in done if problem is not None)
    return AccessReport(tuple(result for result, _ in done), (*problems, *_report_skipped(skipped, len(done))))


def run_drift_tests(
    tests: Sequence[AccessTest], settled: Account, live: Account, others: Sequence[Account]
) -> AccessReport:
    """Runs tests on the account as it is. A failure is drift, and a warning: no plan is blocked.

    settled   the account without drift
    others    without known drift too, and as an apply leaves it. A test that fails on `settled` and passes on one of
              them fails because of known drift, or of what Git changed and is not applied yet
    """
    ended: list[tuple[AccessResult, Problem | None]] = []
    for test, (result, problem) in zip(tests, _run(tests, live, settled), strict=True):
        is_failure = result.status is AccessStatus.FAILED
        if is_failure and _fails(test, settled) and not all(_fails(test, other) for other in others):
            why = f"fails because of known drift, or of what is not applied yet: {result.decides}"
            result, problem = replace(result, status=AccessStatus.SKIPPED, decides=why), None
        ended.append((result, problem and replace(problem, severity=Severity.WARNING)))
    problems = tuple(problem for _, problem in ended if problem is not None)
    return AccessReport(tuple(result for result, _ in ended), problems)


def _run(
    tests: Iterable[AccessTest], after: Account, before: Account | None = None
) -> list[tuple[AccessResult, Problem | None]]:
    list_known = functools.cache(lambda: list_providers(after))
    return [_Test(test, after, before, list_known).run() for test in tests]


def _fails(test: AccessTest, account: Account) -> bool:
    ((result, _),) = _run([test], account)
    return result.status is AccessStatus.FAILED


class _Test(Struct, frozen=True):
    """One test, and the states that it is run on."""

    test: AccessTest
    after: Account
    before: Account | None
    list_known: Callable[[], Iterable[str]]  # the providers of the account after the plan

    def run(self) -> tuple[AccessResult, Problem | None]:
        region, sources = read_destination(self.test.target, self.test.binding), parse_networks(self.test.sources)
        expect = self.test.expect
        if (problem := self._find_unknown_authority() or self._find_unknown_issuer()) is not None:
            if self.after.is_partial:
                return self._end(AccessStatus.SKIPPED, expect, problem.text), None
            return self._end(AccessStatus.FAILED, Expected.UNKNOWN, problem.text), problem
        visitor = to_visitor(self.test.caller)
        found = find_outcomes(self.after, region, visitor, sources)
        if (why := self._find_undecidable(found, region)) is not None:
            return self._end(AccessStatus.SKIPPED, expect, why), None
        earlier = find_outcomes(self.before, region, visitor, sources) if self.before is not None else None
        wrong = sources - found.find(_OUTCOMES[expect])
        decides = self._describe_deciding(region, found, earlier)
        if not wrong:
            return self._end(AccessStatus.PASSED, expect, decides), None
        outcome, where = _choose_wrong(found, wrong)
        return self._end(AccessStatus.FAILED, outcome, decides), self._report(outcome, where, decides)

    def _end(self, status: AccessStatus, outcome: Expected, decides: str) -> AccessResult:
        test = self.test
        return AccessResult(test.name, status, test.expect, outcome, decides, test.position, test.base, test.severity)

    def _find_unknown_authority(self) -> Problem | None:
        name = self.test.caller.certificate
        if not name or self.after.find_authority(name) is not None:
            return None
        resources = self.after.resources.values()
        known = {resource.name for resource in resources if isinstance(resource.kind.access, Authority)}
        known |= {text.partition("/")[2] for text in known}
        remedy = did_you_mean(name, known) or "name a CertificateAuthority of the account"
        return self._make_problem(f"no certificate authority is named {name!r}", remedy)

    def _find_unknown_issuer(self) -> Problem | None:
        provider = self.test.caller.provider
        remedy = find_unknown_issuer(provider, self.list_known)
        return self._make_problem(f"no entry point asks for {provider!r}", remedy) if remedy else None

    def _find_undecidable(self, found: Outcomes, region: Region) -> str | None:
        """Why what the manifests declare does not decide about the requests; None if it does."""
        if not self.after.is_partial:
            return None
        if found.entry is None:
            return f"no declared resource serves {region.origin}"
        undeclared = [fact for fact in found.depends_on if fact.startswith(NOT_DECLARED)]
        return "; ".join(undeclared[:_MOST_NAMES]) if undeclared else None

    def _describe_deciding(self, region: Region, found: Outcomes, earlier: Outcomes | None) -> str:
        """`203.0.113.0/24 → everyone (HTTPSEdgeRoute/shop-admin)`"""
        now = _describe_side(self.after, region, found)
        before = _describe_side(self.before, region, earlier) if self.before and earlier else now
        text = now if before == now else f"{before} → {now}"
        uses = _list_visible_uses(self.after, region, found)
        return f"{text} ({_join(uses)})" if uses else text

    def _report(self, outcome: Expected, where: Networks, decides: str) -> Problem:
        text = f"{_WORDS[outcome]}, and the test expects {self.test.expect}; who gets through: {decides}"
        if where != parse_networks(self.test.sources):
            text = f"{text}; for example from {where.first()}"
        return self._make_problem(text, "correct these resources, or the test if the access is intended")

    def _make_problem(self, text: str, remedy: str) -> Problem:
        test = self.test
        of = f" of {test.base}" if test.base else ""
        values = {"test": test.name}
        name = f"access test{of} failed: {test.name}"
        return Problem(
            f"{name} {text}" if not text.startswith("no ") else f"{name}: {text}",
            remedy,
            "",
            test.position,
            test.severity,
            RULE,
            code="access-test",
            values=values,
        )


def to_visitor(caller: Caller) -> Visitor:
    """Who sends the requests of a test, from any address."""
    method = caller.method if caller.method in (OPTIONS, PREFLIGHT) else ANY_METHOD
    person = Person(caller.provider, caller.attribute, caller.value) if caller.provider else None
    return Visitor("", method, caller.certificate, person, caller.has_token)


def _choose_wrong(found: Outcomes, wrong: Networks) -> tuple[Expected, Networks]:
    """The gravest outcome of the wrong addresses, and those that have it."""
    by_outcome = {expected: wrong & found.find(outcome) for expected, outcome in _OUTCOMES.items()}
    order = (Expected.ALLOW, Expected.DENY, Expected.UNKNOWN)
    return next((expected, by_outcome[expected]) for expected in order if by_outcome[expected])


def _describe_side(account: Account, region: Region, found: Outcomes) -> str:
    """Who gets through, in words; of objects of another stack only that they have gates."""
    if found.entry is None:
        return "no way in"
    stacks = {resource.stack for resource in account.list_ways_in(region)}
    if stacks and "" not in stacks:
        return f"gates of stack {', '.join(sorted(stacks))}"
    facts = f", depending on {_join(found.depends_on, '; ')}" if found.depends_on else ""
    return f"{found.entry.admits}{facts}"


def _list_visible_uses(account: Account, region: Region, found: Outcomes) -> list[str]:
    """The resources that decide, without those that only decide about entry points of other stacks."""
    stacks = {resource.stack for resource in account.list_ways_in(region)}
    if found.entry is None or (stacks and "" not in stacks):
        return []
    return sorted(found.entry.uses)


def _join(names: Sequence[str], comma: str = ", ") -> str:
    more = len(names) - _MOST_NAMES
    return comma.join([*names[:_MOST_NAMES], *([f"{more} more"] if more > 0 else [])])


def _report_skipped(skipped: Sequence[AccessResult], total: int) -> Iterator[Problem]:
    """One note about all tests that the declared resources do not decide."""
    if not skipped:
        return
    first = skipped[0]
    others = f", and {len(skipped) - 1} more" if len(skipped) > 1 else ""
    yield Problem(
        f"{len(skipped)} of {total} access tests not run, since the manifests alone do not decide: "
        f"{first.test} ({first.decides}){others}",
        "`plan` runs them with the other objects of the account",
        position=first.position,
        severity=Severity.NOTE,
        code="access-test-not-run",
    )


def report_unavailable(position: Position) -> Problem:
    """The problem of a plan file whose tests changed, and that was created from other manifests."""
    return Problem(
        "the access tests cannot be run again: the manifests changed after the plan was created",
        "plan again",
        position=position,
        rule=RULE,
        code="access-test",
    )
