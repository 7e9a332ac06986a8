"""Policies about entry points: what they read of the account as the plan leaves it, and what is not known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler import Selection, Status, Workspace
from reconciler.model.plan import Plan
from reconciler.planning.judging.rules import describe_policy
from reconciler.project.policies.load import load_policies
from reconciler.project.settings.config import load_config
from reconciler.testing import Sandbox
from tests.harness.workspaces import domain, open_on, policy, write_project

Document = Mapping[str, Any]
ANSWER = {"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}
OFFICE = {"actions": [{"type": "restrict-ips", "config": {"allow": ["203.0.113.0/24"]}}]}
CLOSED = "policy: closed\ncheck: '!entry.public'\nmessage: ${entry.entry_point} admits ${entry.admits}\n"
EXEMPTION = "exemptions: [{address: 'https://shop.*', reason: a shop, until: 2040-01-01}]\n"


def endpoint(name: str, *rules: Document) -> Document:
    spec = {"url": f"https://{name}.example.com", "traffic_policy": {"on_http_request": [*rules, ANSWER]}}
    return {"kind": "CloudEndpoint", "name": name, "spec": spec}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def write_files(root: Path, rules: str, *documents: Document) -> None:
    endpoints = [document for document in documents if document["kind"] == "CloudEndpoint"]
    write_project(root, *(domain(document["name"]) for document in endpoints), *documents)
    (root / "policies").mkdir(exist_ok=True)
    (root / "policies/access.yaml").write_text(rules)


def list_violations(plan: Plan) -> list[tuple[str, str]]:
    return [(problem.subject, problem.text) for problem in plan.problems if problem.rule]


async def plan_with(sandbox: Sandbox, root: Path, rules: str, *documents: Document) -> list[tuple[str, str]]:
    write_files(root, rules, *documents)
    return list_violations((await open_on(sandbox, root).plan()).plan)


async def test_a_policy_about_entry_points_judges_what_the_plan_opens(sandbox: Sandbox, tmp_path: Path) -> None:
    violations = await plan_with(sandbox, tmp_path, CLOSED, endpoint("shop"), endpoint("ledger", OFFICE))
    assert violations == [("CloudEndpoint/shop", "https://shop.example.com admits everyone (policy closed)")]
    result = await open_on(sandbox, tmp_path).apply()
    assert (result.status, result.outcomes) == (Status.BLOCKED, ())


async def test_a_policy_about_entry_points_is_satisfied_by_a_plan_that_closes_them(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    write_files(tmp_path, "", endpoint("shop"))
    assert (await open_on(sandbox, tmp_path).apply()).status is Status.APPLIED
    assert await plan_with(sandbox, tmp_path, CLOSED, endpoint("shop", OFFICE)) == []
    assert (await open_on(sandbox, tmp_path).apply()).status is Status.APPLIED


async def test_an_open_entry_point_violates_a_policy_although_nothing_changes(sandbox: Sandbox, tmp_path: Path) -> None:
    write_files(tmp_path, "", endpoint("shop"))
    assert (await open_on(sandbox, tmp_path).apply()).status is Status.APPLIED
    assert [subject for subject, _ in await plan_with(sandbox, tmp_path, CLOSED, endpoint("shop"))] == [
        "CloudEndpoint/shop"
    ]


async def test_a_plan_of_a_part_is_judged_by_the_entry_points_of_that_part(sandbox: Sandbox, tmp_path: Path) -> None:
    write_files(tmp_path, CLOSED, endpoint("shop"), endpoint("ledger", OFFICE))
    workspace = open_on(sandbox, tmp_path)
    part = await workspace.plan(selection=Selection(targets=("*/ledger",)))
    assert list_violations(part.plan) == []
    result = await workspace.apply(part)
    assert (result.status, list_violations(result.plan)) == (Status.APPLIED, [])


async def test_an_exemption_names_an_entry_point(sandbox: Sandbox, tmp_path: Path) -> None:
    assert await plan_with(sandbox, tmp_path, CLOSED + EXEMPTION, endpoint("shop")) == []
    (violation,) = await plan_with(sandbox, tmp_path, CLOSED + EXEMPTION, endpoint("shop"), endpoint("pay"))
    assert violation[0] == "CloudEndpoint/pay"


async def test_the_scope_of_a_policy_selects_entry_points_by_the_resources_that_decide_about_them(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    rules = f"{CLOSED}scope: {{addresses: ['*/pay']}}\n"
    violations = await plan_with(sandbox, tmp_path, rules, endpoint("shop"), endpoint("pay"))
    assert [subject for subject, _ in violations] == ["CloudEndpoint/pay"]


FIELDS = """\
policy: fields
check: >-
  !(entry.scheme == 'https' && entry.host == 'shop.example.com' && entry.port == 443 && entry.binding == 'public' &&
  entry.public && entry.unknown == [] && entry.stack == '' && refs(entry).exists(r, r.address == 'CloudEndpoint/shop'))
message: ${entry.host}:${entry.port} is decided by ${refs(entry).map(r, r.address).join(' and ')}
"""
ABOUT = "policy: about\ncheck: '!access.exists(e, e.public && e.host == resource.spec.domain)'\nmessage: is open\n"
COUNT = """\
policy: count
check: access.filter(e, e.public && e.binding == 'public').size() < 2
message: ${access.filter(e, e.public && e.binding == 'public').size()} open
"""


async def test_an_entry_point_has_the_fields_of_the_inventory_and_its_resources(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    (violation,) = await plan_with(sandbox, tmp_path, FIELDS, endpoint("shop"))
    assert (
        violation[1]
        == "https://shop.example.com: shop.example.com:443 is decided by CloudEndpoint/shop (policy fields)"
    )


async def test_policies_about_resources_and_the_plan_read_the_list_of_entry_points(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    rules, scope = f"{ABOUT}---\n{COUNT}", "scope: {kinds: [ReservedDomain]}\n"
    rules = rules.replace("message: is open\n", f"message: is open\n{scope}")
    violations = await plan_with(sandbox, tmp_path, rules, endpoint("shop"), endpoint("pay"), endpoint("back", OFFICE))
    assert sorted(violations) == [
        ("", "2 open (policy count)"),
        ("ReservedDomain/pay", "is open (policy about)"),
        ("ReservedDomain/shop", "is open (policy about)"),
    ]


async def test_objects_of_other_stacks_are_in_the_list_without_their_gates(sandbox: Sandbox, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write_files(other, "", endpoint("ledger", OFFICE))
    (other / "reconciler.yaml").write_text("stack: other\n")
    assert (await open_on(sandbox, other).apply()).status is Status.APPLIED
    words = "access.filter(e, e.stack != '').map(e, e.host + ' ' + e.admits + e.resources.join())"
    rules = f"policy: a\ncheck: access.size() == 0\nmessage: ${{{words}}}\n"
    (violation,) = await plan_with(sandbox, tmp_path / "own", rules, policy("office"))
    assert violation[1] == '["ledger.example.com gates of stack other"] (policy a)'
    assert await plan_with(sandbox, tmp_path / "own", CLOSED.replace("!", ""), policy("office")) == []


@pytest.mark.parametrize("about", ["access", "plan.resources", "refs(entry)", "refs(entry).map(r, referrers(r))"])
async def test_no_policy_reads_the_passwords_of_a_traffic_policy(sandbox: Sandbox, tmp_path: Path, about: str) -> None:
    secrets = ["admin:«do-not-show»", "«nor this»"]
    actions = [
        {"type": "basic-auth", "config": {"credentials": secrets[:1]}},
        {"type": "verify-webhook", "config": {"provider": "github", "secret": secrets[1]}},
    ]
    rules = f"policy: a\ncheck: 'false'\nmessage: ${{{about}}} ${{entry.admits}}\n"
    found = await plan_with(sandbox, tmp_path, rules, endpoint("shop", {"actions": actions}))
    assert "shop" in str(found)
    assert not any(secret in text for secret in secrets for _, text in found), found


# --- what is not known ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", ["'!access.exists(e, e.public)'", "access.exists(e, true)", "access == [] || true"])
async def test_a_list_of_entry_points_that_is_not_known_is_not_empty(
    sandbox: Sandbox, tmp_path: Path, check: str
) -> None:
    sandbox.fault("GET /edges/tcp", then="status", status=403, body={"msg": "for administrators"}, times=0)
    rules = f"policy: a\ncheck: {check}\nmessage: m\n"
    (violation,) = await plan_with(sandbox, tmp_path, rules, policy("office"))
    assert violation[1].startswith("policy a cannot be evaluated: not all ways in are known: TCPEdge (")
    result = await open_on(sandbox, tmp_path).apply()
    assert (result.status, result.outcomes) == (Status.BLOCKED, ())


async def test_known_entry_points_are_judged_beside_those_that_are_not_known(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.fault("GET /edges/tcp", then="status", status=403, body={"msg": "for administrators"}, times=0)
    violations = await plan_with(sandbox, tmp_path, CLOSED, endpoint("shop"), endpoint("pay", OFFICE))
    assert [subject for subject, _ in violations] == ["CloudEndpoint/shop", ""]


async def test_a_policy_that_reads_no_entry_points_needs_no_complete_account(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.fault("GET /edges/tcp", then="status", status=403, body={"msg": "for administrators"}, times=0)
    rules = "policy: a\ncheck: plan.resources.size() == 1\nmessage: m\n"
    assert await plan_with(sandbox, tmp_path, rules, policy("office")) == []


# --- the base ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "message", "about"),
    [
        ("'!access.exists(e, e.public)'", "m", "plan"),
        ("'!access.exists(e, e.public)'", "${entry.host}", "entry points"),
        ("'!access.exists(e, e.public)'", "${resource.name}", "resources"),
        ("'!access.exists(e, e.public)'", "${change.action}", "changes"),
        ("plan.resources.size() < 3", "${refs(entry).size()}", "entry points"),
    ],
)
def test_the_message_of_a_policy_counts_for_what_it_is_evaluated_for(
    tmp_path: Path, check: str, message: str, about: str
) -> None:
    write_files(tmp_path, f"policy: a\ncheck: {check}\nmessage: {message}\n")
    (rule,) = load_policies(load_config(tmp_path, {}))
    assert describe_policy(rule)["about"] == about


def test_validate_leaves_policies_about_entry_points_to_the_plan(tmp_path: Path) -> None:
    write_files(tmp_path, CLOSED, endpoint("shop"))
    (validated,) = Workspace.validate(tmp_path)
    assert validated.is_valid
