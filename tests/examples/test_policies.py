"""The starter set of policies: a good resource or plan satisfies each policy, and a bad one violates it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import main
from reconciler.model.manifest import Declaration
from reconciler.model.problem import Problem, Severity
from reconciler.planning.policies import evaluate as judge
from reconciler.planning.policies.rule import Rule
from reconciler.project.policies.load import load_policies
from reconciler.project.settings.config import load_config
from tests.harness.builders import KINDS, build_account, declare, make_plan, manifest, secret

EXAMPLE = Path(__file__).parents[2] / "examples/policies"
THURSDAY, FRIDAY = (datetime(2026, 11, day, 23, 59, tzinfo=UTC).timestamp() for day in (19, 20))


@pytest.fixture(scope="module")
def starters() -> dict[str, Rule]:
    return {rule.name: rule for rule in load_policies(load_config(EXAMPLE, {}))}


def of(rule: Rule, *declared: Declaration) -> tuple[Problem, ...]:
    return judge.check_manifest([rule], manifest(*declared), KINDS, THURSDAY)


def with_actions(*actions: str, **config: Any) -> dict[str, Any]:
    return {"on_http_request": [{"actions": [{"type": action, "config": config} for action in actions]}]}


MODULE = {"enabled": True, "ip_policy_ids": ["ipp_1"]}
ENDPOINT = {"url": "https://a.example.com"}
ROUTE = {"edge_id": "edghts_1", "match": "/", "match_type": "path_prefix"}

RESOURCES = [
    ("credentials-have-an-acl", "TunnelCredential/a", {"acl": ["bind:a.example.com"]}, {}),
    ("credentials-have-an-acl", "SSHCredential/a", {"acl": ["bind:a.example.com"]}, {"acl": ["bind:a", "*"]}),
    (
        "nobody-is-let-in-from-everywhere",
        "IPPolicyRule/a",
        {"cidr": "0.0.0.0/0", "action": "deny"},
        {"cidr": "::/0", "action": "allow"},
    ),
    ("restrictions-are-enforced", "IPRestriction/a", {"type": "api", "enforced": True}, {"type": "api"}),
    (
        "secrets-stay-out-of-git",
        "Secret/a",
        {"value": secret("x", "env:X")},
        {"value": secret("x", "manifest:Secret/a.value")},
    ),
    (
        "public-endpoints-are-guarded",
        "CloudEndpoint/a",
        {**ENDPOINT, "traffic_policy": with_actions("log", "restrict-ips")},
        {**ENDPOINT, "traffic_policy": with_actions("log")},
    ),
    (
        "public-endpoints-are-guarded",
        "CloudEndpoint/a",
        {**ENDPOINT, "traffic_policy": with_actions("log"), "bindings": ["internal"]},
        {**ENDPOINT, "traffic_policy": "on_http_response:\n  - actions: [{type: restrict-ips}]"},
    ),
    (
        "routes-are-guarded",
        "HTTPSEdgeRoute/a",
        {**ROUTE, "ip_restriction": MODULE},
        {**ROUTE, "ip_restriction": {**MODULE, "enabled": False}},
    ),
    ("edges-are-guarded", "TCPEdge/a", {"ip_restriction": MODULE}, {}),
    ("edges-are-guarded", "TLSEdge/a", {"mutual_tls": {"certificate_authority_ids": ["ca_1"]}}, {}),
    ("tls-1.2-or-newer", "TLSEdge/a", {"tls_termination": {}}, {"tls_termination": {"min_version": "1.1"}}),
    ("tls-1.2-or-newer", "HTTPSEdge/a", {}, {"tls_termination": {"min_version": "1.0"}}),
    (
        "no-passwords-in-traffic-policies",
        "CloudEndpoint/a",
        {**ENDPOINT, "traffic_policy": with_actions("oauth")},
        {**ENDPOINT, "traffic_policy": with_actions("oauth", "basic-auth")},
    ),
    ("no-passwords-in-traffic-policies", "TLSEdge/a", {}, {"traffic_policy": {"value": with_actions("basic-auth")}}),
]


@pytest.mark.parametrize(("name", "address", "good", "bad"), RESOURCES)
def test_a_good_resource_satisfies_a_policy_and_a_bad_one_violates_it(
    starters: dict[str, Rule], name: str, address: str, good: dict[str, Any], bad: dict[str, Any]
) -> None:
    assert of(starters[name], declare(address, good)) == ()
    (problem,) = of(starters[name], declare(address, bad))
    assert (problem.rule, problem.subject, "no answer" in problem.text) == (name, address, False)


def test_a_domain_must_be_protected(starters: dict[str, Rule]) -> None:
    rule = starters["domains-and-addresses-are-protected"]
    spec = {"domain": "a.example.com"}
    assert of(rule, declare("ReservedDomain/a", spec, protect=True)) == ()
    (problem,) = of(rule, declare("ReservedDomain/a", spec))
    assert problem.text.startswith("is deleted if its declaration is removed")


@pytest.mark.parametrize(("day", "messages"), [(THURSDAY, []), (FRIDAY, ["would be deleted on a Friday (UTC)"])])
def test_nothing_is_deleted_on_a_friday(starters: dict[str, Rule], day: float, messages: list[str]) -> None:
    kept, gone = (declare(f"IPPolicy/{name}", {"description": name}) for name in "ab")
    world = build_account(kept, gone)
    plan = make_plan(kept, seen=world.snapshot())
    assert [str(change.action) for change in plan.changes] == ["delete"]
    problems = judge.check_plan([starters["no-deletes-on-friday"]], plan, KINDS, day, manifest(kept))
    assert [problem.text.partition(" (policy")[0] for problem in problems] == messages


def test_an_irreversible_delete_beside_other_changes_is_a_warning(starters: dict[str, Rule]) -> None:
    rule = starters["nothing-irretrievable-beside-other-changes"]
    domain, office = declare("ReservedDomain/a", {"domain": "a.example.com"}), declare("IPPolicy/a", {})
    seen = build_account(domain, office).snapshot()
    alone, beside = make_plan(office, seen=seen), make_plan(seen=seen)
    assert judge.check_plan([rule], alone, KINDS, THURSDAY, manifest(office)) == ()
    (problem,) = judge.check_plan([rule], beside, KINDS, THURSDAY, manifest())
    assert (problem.subject, problem.severity) == ("ReservedDomain/a", Severity.WARNING)


@pytest.mark.parametrize(("changes", "number"), [(50, 0), (51, 1)])
def test_a_plan_too_large_to_review_is_a_warning(starters: dict[str, Rule], changes: int, number: int) -> None:
    declared = [declare(f"IPPolicy/{number}", {}) for number in range(changes)]
    found = judge.check_plan(
        [starters["plans-can-be-reviewed"]], make_plan(*declared), KINDS, THURSDAY, manifest(*declared)
    )
    assert len(found) == number


def test_every_policy_of_the_set_is_tested(starters: dict[str, Rule]) -> None:
    names = {name for name, *_ in RESOURCES}
    plans = {
        "domains-and-addresses-are-protected",
        "no-deletes-on-friday",
        "nothing-irretrievable-beside-other-changes",
        "plans-can-be-reviewed",
    }
    assert starters.keys() == names | plans


def test_the_example_satisfies_its_own_policies(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["validate", "--project", str(EXAMPLE)])
    assert (code, *capsys.readouterr()) == (0, "Valid: 8 resources in 1 file, under 13 policies.\n", "")
