"""The starter set of policies: a good resource or plan satisfies each policy, and a bad one violates it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.access.inventory import list_entries, list_unread
from reconciler.cli.main import main
from reconciler.model.manifest import Declaration
from reconciler.model.problem import Problem, Severity
from reconciler.planning import planner
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.policies import evaluate as judge
from reconciler.planning.policies.rule import Rule
from reconciler.project.policies.load import load_policies
from reconciler.project.settings.config import load_config
from tests.harness.builders import KINDS, build_account, declare, make_plan, manifest, ref, secret, snapshot

EXAMPLE = Path(__file__).parents[2] / "examples/policies"
THURSDAY, FRIDAY = (datetime(2026, 11, day, 23, 59, tzinfo=UTC).timestamp() for day in (19, 20))


@pytest.fixture(scope="module")
def starters() -> dict[str, Rule]:
    return {rule.name: rule for rule in load_policies(load_config(EXAMPLE, {}))}


def of(rule: Rule, *declared: Declaration) -> tuple[Problem, ...]:
    return judge.check_manifest([rule], manifest(*declared), KINDS, THURSDAY)


def with_actions(*actions: str, **config: Any) -> dict[str, Any]:
    return {"on_http_request": [{"actions": [{"type": action, "config": config} for action in actions]}]}


ENDPOINT = {"url": "https://a.example.com"}

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


def judge_plan(rule: Rule, *declared: Declaration) -> list[str]:
    """The subjects of the violations of a rule by the account as a plan of these resources leaves it."""
    _, account = planner.find_accounts(manifest(*declared), snapshot(), KINDS, PlanOptions())
    access = judge.AccessList(tuple(list_entries(account)), list_unread(account))
    plan = make_plan(*declared)
    assert plan.errors == ()
    found = judge.check_plan([rule], plan, KINDS, THURSDAY, manifest(*declared), lambda: access)
    assert not any("cannot be evaluated" in problem.text for problem in found), found
    return [problem.subject for problem in found]


OFFICE = declare("IPPolicy/office", {"description": "office"})
IN_OFFICE = declare(
    "IPPolicyRule/office", {"ip_policy_id": ref("IPPolicy/office"), "cidr": "192.0.2.0/24", "action": "allow"}
)
FROM_OFFICE = {"ip_policy_ids": [ref("IPPolicy/office")]}
GROUP = declare("TunnelGroupBackend/app", {"labels": {"app": "app"}})
SERVED = {"backend": {"backend_id": ref("TunnelGroupBackend/app")}}
SITE = declare("HTTPSEdge/site", {"hostports": ["a.example.com:443"]})
DOMAIN = declare("ReservedDomain/a", {"domain": "a.example.com"})
ANSWER = {"type": "custom-response", "config": {"status_code": 200}}
FLOOR = {"min_version": "1.2"}


def edge(**spec: Any) -> tuple[Declaration, ...]:
    return (
        OFFICE,
        IN_OFFICE,
        GROUP,
        DOMAIN,
        declare("TLSEdge/a", {"hostports": ["a.example.com:443"], **SERVED, **spec}),
    )


def tcp_edge(**spec: Any) -> tuple[Declaration, ...]:
    address = declare("ReservedAddress/a", {"region": "us"})
    spec = {"hostports": ["${{ ReservedAddress/a.addr }}"], **SERVED, **spec}
    return OFFICE, IN_OFFICE, GROUP, address, declare("TCPEdge/a", spec)


def route(match: str = "/", site: Declaration = SITE, **spec: Any) -> tuple[Declaration, ...]:
    spec = {"edge_id": ref("HTTPSEdge/site"), "match": match, "match_type": "path_prefix", **SERVED, **spec}
    return OFFICE, IN_OFFICE, GROUP, DOMAIN, site, declare("HTTPSEdgeRoute/a", spec)


def endpoint(action: str = "", **more: Any) -> tuple[Declaration, ...]:
    actions = [{"type": action, "config": {"allow": ["192.0.2.0/24"]}}] if action else []
    traffic = {"on_http_request": [{"actions": [*actions, ANSWER]}]}
    return DOMAIN, declare("CloudEndpoint/a", {**ENDPOINT, "traffic_policy": traffic, **more})


def credential(*acl: str) -> tuple[Declaration, ...]:
    return *edge(), declare("TunnelCredential/a", {"acl": [*acl]})


SIGNED = {"provider": "github", "secret": secret("x", "env:X")}
RELATIONS = [
    ("ip-policies-are-used", edge(ip_restriction=FROM_OFFICE), (OFFICE, IN_OFFICE), "IPPolicy/office"),
    ("domains-are-served", edge(), (DOMAIN,), "ReservedDomain/a"),
    ("domains-are-served", endpoint(), (DOMAIN, *credential("bind:a.example.com")[:3]), "ReservedDomain/a"),
    ("public-ways-in-are-guarded", endpoint("restrict-ips"), endpoint(), "CloudEndpoint/a"),
    ("public-ways-in-are-guarded", edge(ip_restriction=FROM_OFFICE), edge(), "TLSEdge/a"),
    (
        "public-ways-in-are-guarded",
        edge(ip_restriction=FROM_OFFICE),
        edge(ip_restriction={**FROM_OFFICE, "enabled": False}),
        "TLSEdge/a",
    ),
    ("public-ways-in-are-guarded", tcp_edge(ip_restriction=FROM_OFFICE), tcp_edge(), "TCPEdge/a"),
    ("public-ways-in-are-guarded", route(ip_restriction=FROM_OFFICE), route(), "HTTPSEdgeRoute/a"),
    ("public-ways-in-have-a-tls-floor", edge(tls_termination=FLOOR), edge(), "TLSEdge/a"),
    (
        "public-ways-in-have-a-tls-floor",
        edge(ip_restriction=FROM_OFFICE),
        edge(tls_termination={"min_version": "1.1"}),
        "TLSEdge/a",
    ),
    (
        "public-ways-in-have-a-tls-floor",
        route(site=declare("HTTPSEdge/site", {"hostports": ["a.example.com:443"], "tls_termination": FLOOR})),
        route(),
        "HTTPSEdgeRoute/a",
    ),
    ("webhooks-have-a-secret", route("/webhook", webhook_verification=SIGNED), route("/webhook"), "HTTPSEdgeRoute/a"),
    ("webhooks-have-a-secret", route(), route("/api/webhooks", ip_restriction=FROM_OFFICE), "HTTPSEdgeRoute/a"),
    (
        "credentials-cannot-open-served-hosts",
        credential("bind:b.example.com"),
        credential("bind:*.example.com"),
        "TunnelCredential/a",
    ),
    ("credentials-cannot-open-served-hosts", credential("bind:*.b.example.com"), credential(), "TunnelCredential/a"),
    ("credentials-cannot-open-served-hosts", (declare("TunnelCredential/a"),), credential("*"), "TunnelCredential/a"),
]


@pytest.mark.parametrize(("name", "good", "bad", "subject"), RELATIONS)
def test_good_relations_satisfy_a_policy_and_bad_ones_violate_it(
    starters: dict[str, Rule], name: str, good: tuple[Declaration, ...], bad: tuple[Declaration, ...], subject: str
) -> None:
    assert judge_plan(starters[name], *good) == []
    assert judge_plan(starters[name], *bad) == [subject]


@pytest.mark.parametrize("name", ["ip-policies-are-used", "domains-are-served"])
def test_validate_evaluates_policies_about_references(starters: dict[str, Rule], name: str) -> None:
    assert len(of(starters[name], OFFICE, DOMAIN)) == 1


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
    names = {name for name, *_ in (*RESOURCES, *RELATIONS)}
    plans = {
        "domains-and-addresses-are-protected",
        "no-deletes-on-friday",
        "nothing-irretrievable-beside-other-changes",
        "plans-can-be-reviewed",
    }
    assert starters.keys() == names | plans


def test_the_example_satisfies_its_own_policies(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["validate", "--project", str(EXAMPLE)])
    assert (code, *capsys.readouterr()) == (0, "Valid: 8 resources in 1 file, under 16 policies.\n", "")
