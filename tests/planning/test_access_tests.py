"""Access tests on states of an account: what fails, and what a failure says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler import kinds
from reconciler.access.account import Account
from reconciler.access.compare import analyze
from reconciler.access.conditions import METHODS
from reconciler.model.access_test import AccessTest, Caller, Expected
from reconciler.model.problem import Position, Severity
from reconciler.planning import planner
from reconciler.planning.access import declare_account
from reconciler.planning.access_proposals import propose_tests
from reconciler.planning.access_tests import run_tests
from reconciler.planning.planner import PlanOptions
from tests.access.single_edits import AT_CONNECTION, AT_HANDSHAKE, AT_REQUEST
from tests.harness.builders import KINDS, build_account, declare, manifest, ref

AT = Position("tests/access.yaml", 1, 3)
ADMIN, OPEN = "https://shop.example.com/admin", "https://open.example.com"
OFFICE = "203.0.113.0/24"
ANSWER = {"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}
RULES = (
    declare("IPPolicy/office", {"description": "office"}),
    declare("IPPolicyRule/office", {"ip_policy_id": ref("IPPolicy/office"), "cidr": OFFICE, "action": "allow"}),
)


def endpoint(name: str, *rules: dict[str, Any]) -> Any:
    spec = {"url": f"https://{name}.example.com", "traffic_policy": {"on_http_request": [*rules, ANSWER]}}
    return declare(f"CloudEndpoint/{name}", spec)


def action(kind: str, **config: Any) -> dict[str, Any]:
    return {"actions": [{"type": kind, "config": config}]}


RESTRICTED = endpoint("shop", action("restrict-ips", allow=[OFFICE]))
DOUBTFUL = endpoint("shop", {"expressions": ["req.headers['x'] == '1'"], **action("deny")})
SIGNED_IN = endpoint("shop", action("oauth", provider="google"))


def validate_tokens(*issuers: str) -> dict[str, Any]:
    return action(
        "jwt-validation",
        issuer={"allow_list": [{"value": value} for value in issuers]},
        http={"tokens": [{"type": "jwt", "method": "header", "name": "authorization", "prefix": "Bearer "}]},
        jws={"allowed_algorithms": ["RS256"], "keys": {"sources": {"additional_jkus": ["https://idp/jwks"]}}},
    )


IDP, OTHER = "https://idp/", "https://other/"
ONE_ISSUER_FOR_BOTH = endpoint("shop", validate_tokens(OTHER), validate_tokens(IDP, OTHER))
NO_ISSUER_FOR_BOTH = endpoint("shop", validate_tokens(OTHER), validate_tokens(IDP))
PUBLIC = endpoint("shop")


def expect(outcome: str, to: str = ADMIN, *sources: str, **more: Any) -> AccessTest:
    caller = Caller(**more.pop("caller", {}))
    return AccessTest(sources or ("192.0.2.1",), to, Expected(outcome), AT, caller=caller, **more)


def alone(*declarations: Any) -> Account:
    return declare_account(manifest(*declarations), {kind.name: kind for kind in kinds.list_planned()})


def plan_from(before: list[Any], after: list[Any]) -> tuple[Account, Account]:
    world = build_account(*before)
    return planner.find_accounts(manifest(*after), world.snapshot(), KINDS, PlanOptions())


@pytest.mark.parametrize(
    ("state", "test", "status"),
    [
        (RESTRICTED, expect("deny"), "passed"),
        (RESTRICTED, expect("allow"), "failed"),
        (RESTRICTED, expect("allow", ADMIN, "203.0.113.9"), "passed"),
        (RESTRICTED, expect("allow", ADMIN, OFFICE), "passed"),
        (RESTRICTED, expect("allow", ADMIN, "203.0.112.0/23"), "failed"),
        (RESTRICTED, expect("deny", ADMIN, "203.0.112.0/23"), "failed"),
        (RESTRICTED, expect("deny", ADMIN, "198.51.100.0/24", "2001:db8::/32"), "passed"),
        (DOUBTFUL, expect("deny"), "failed"),
        (DOUBTFUL, expect("allow"), "failed"),
        (DOUBTFUL, expect("unknown"), "passed"),
        (RESTRICTED, expect("unknown"), "failed"),
        (SIGNED_IN, expect("deny"), "passed"),
        (SIGNED_IN, expect("allow", caller={"provider": "google"}), "passed"),
        (SIGNED_IN, expect("deny", caller={"provider": "github"}), "passed"),
        (ONE_ISSUER_FOR_BOTH, expect("allow", caller={"has_token": True}), "passed"),
        (ONE_ISSUER_FOR_BOTH, expect("deny"), "passed"),
        (NO_ISSUER_FOR_BOTH, expect("deny", caller={"has_token": True}), "passed"),
        (endpoint("shop", action("basic-auth", credentials=[])), expect("deny", caller={"has_token": True}), "passed"),
    ],
)
def test_a_test_passes_if_all_of_its_addresses_have_the_expected_outcome(
    state: Any, test: AccessTest, status: str
) -> None:
    before, after = plan_from([], [state])
    (result,) = run_tests([test], after, before).results
    assert result.status == status
    (declared,) = run_tests([test], alone(state)).results
    assert declared.status == status


def empty_parts(value: Any) -> Iterator[Any]:
    """The value with each list, map or text in it emptied, one at a time."""
    if isinstance(value, dict | list | str):
        yield type(value)()
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        for emptied in empty_parts(part):
            copy = value.copy()
            copy[key] = emptied
            yield copy


@pytest.mark.parametrize("phase", ["on_tcp_connect", "on_http_request"])
def test_an_action_with_an_empty_setting_is_decided_for_every_request(phase: str) -> None:
    gates = {**AT_CONNECTION, **AT_HANDSHAKE} if phase == "on_tcp_connect" else AT_REQUEST
    values = [value for gate in gates.values() for value in gate.values if value is not None]
    callers = [{"has_token": has_token, "method": method} for has_token in (False, True) for method in METHODS]
    tests = [expect("unknown", caller=caller) for caller in callers]
    for value in values:
        for config in empty_parts(value["config"]):
            rule = {"actions": [{"type": value["type"], "config": config}]}
            policy = {phase: [rule], "on_http_request": [*([rule] if phase == "on_http_request" else []), ANSWER]}
            shop = declare("CloudEndpoint/shop", {"url": "https://shop.example.com", "traffic_policy": policy})
            account = alone(shop)
            assert {result.status for result in run_tests(tests, account).results} <= {"passed", "failed", "skipped"}
            assert all(found.targets for found in propose_tests(account, analyze(account)))


def test_a_failure_reports_access_before_and_after_and_the_deciding_resources() -> None:
    before, after = plan_from([*RULES, RESTRICTED], [*RULES, PUBLIC])
    report = run_tests([expect("deny")], after, before)
    (problem,) = report.problems
    assert str(problem) == (
        "tests/access.yaml:1:3: access test failed: GET https://shop.example.com/admin from 192.0.2.1 gets through, "
        "and the test expects deny; who gets through: 203.0.113.0/24 → everyone (CloudEndpoint/shop); "
        "correct these resources, or the test if the access is intended"
    )
    assert (problem.code, problem.rule) == ("access-test", "access tests")


def test_a_failure_for_a_part_of_a_network_names_an_address_of_that_part() -> None:
    _, after = plan_from([], [RESTRICTED])
    (problem,) = run_tests([expect("deny", ADMIN, "203.0.112.0/23")], after).problems
    assert "; for example from 203.0.113.1;" in str(problem)


def test_an_unknown_outcome_names_what_it_depends_on() -> None:
    _, after = plan_from([], [DOUBTFUL])
    (problem,) = run_tests([expect("deny")], after, after).problems
    assert "may get through or not, and the test expects deny" in problem.text
    assert "depending on req.headers['x'] == '1'" in problem.text


def test_a_host_that_nothing_serves_refuses_requests_on_the_account_and_is_undecided_by_manifests() -> None:
    test = expect("deny", OPEN)
    _, after = plan_from([], [PUBLIC])
    assert [result.status for result in run_tests([test], after).results] == ["passed"]
    report = run_tests([test, expect("allow", OPEN), expect("allow")], alone(PUBLIC))
    assert [result.status for result in report.results] == ["skipped", "skipped", "passed"]
    (note,) = report.problems
    assert note.severity is Severity.NOTE
    assert str(note) == (
        "tests/access.yaml:1:3: note: 2 of 3 access tests not run, since the manifests alone do not decide: "
        "GET https://open.example.com from 192.0.2.1 (no declared resource serves https://open.example.com), "
        "and 1 more; `plan` runs them with the other objects of the account"
    )


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (action("restrict-ips", ip_policies=["ipp_of_another_stack"]), "the IP policy ipp_of_another_stack"),
        (action("forward-internal", url="https://api.internal"), "the endpoint https://api.internal"),
    ],
)
def test_references_to_objects_of_other_stacks_are_undecided_by_manifests(rule: dict[str, Any], why: str) -> None:
    state = declare(
        "CloudEndpoint/shop",
        {"url": "https://shop.example.com", "traffic_policy": {"on_http_request": [rule, action("deny")]}},
    )
    if rule["actions"][0]["type"] == "restrict-ips":
        state = endpoint("shop", rule)
    (result,) = run_tests([expect("allow")], alone(state)).results
    assert (result.status, result.decides) == ("skipped", f"not declared here: {why}")


@pytest.mark.parametrize("part", ["api", "dashboard", "agent"])
def test_a_part_of_the_account_is_decided_by_its_restriction(part: str) -> None:
    restriction = declare(
        f"IPRestriction/{part}", {"type": part, "enforced": True, "ip_policy_ids": [ref("IPPolicy/office")]}
    )
    tests = [expect("deny", part), expect("allow", part, "203.0.113.7")]
    for account in (alone(*RULES, restriction), plan_from([], [*RULES, restriction])[1]):
        assert [result.status for result in run_tests(tests, account).results] == ["passed", "passed"]
    _, without = plan_from([], [*RULES])
    assert [result.status for result in run_tests(tests, without).results] == ["failed", "passed"]
    assert [result.status for result in run_tests(tests, alone(*RULES)).results] == ["skipped", "skipped"]


def test_an_issuer_that_no_sign_in_has_fails_the_test_whatever_it_expects() -> None:
    issuer = "https://login.example.com"
    state = endpoint("shop", action("openid-connect", issuer_url=issuer, client_id="a", client_secret="b"))
    _, after = plan_from([], [state])
    known, misspelled = (expect("deny", caller={"provider": name}) for name in (issuer, f"{issuer}s"))
    report = run_tests([expect("allow", caller={"provider": issuer}), misspelled], after)
    assert [result.status for result in report.results] == ["passed", "failed"]
    assert report.problems[0].text.endswith(f"no entry point asks for '{issuer}s'")
    assert report.problems[0].remedy == f"did you mean {issuer}?"
    assert [result.status for result in run_tests([misspelled, known], alone(state)).results] == ["skipped", "failed"]


def test_an_authority_that_does_not_exist_fails_the_test_whatever_it_expects() -> None:
    test = expect("deny", caller={"certificate": "partner"})
    authority = declare("CertificateAuthority/partners", {"ca_pem": "x"})
    _, after = plan_from([], [RESTRICTED, authority])
    report = run_tests([test], after)
    assert [result.status for result in report.results] == ["failed"]
    assert report.problems[0].remedy == "did you mean partners?"
    assert [result.status for result in run_tests([test], alone(RESTRICTED)).results] == ["skipped"]


def test_a_test_with_severity_warning_fails_as_a_warning() -> None:
    _, after = plan_from([], [PUBLIC])
    report = run_tests([expect("deny", severity=Severity.WARNING)], after)
    assert [problem.severity for problem in report.problems] == ["warning"]
    assert [result.status for result in report.results] == ["failed"]
