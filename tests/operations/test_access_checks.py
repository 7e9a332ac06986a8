"""Access tests of a project block plans and applies, on an emulated platform with objects of other stacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import Selection, Status, Workspace
from reconciler.model.plan import Plan
from reconciler.operations.access_checks import load_tests, with_results
from reconciler.operations.applying.plan_files import write_plan
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.project_openers import open_with_plan
from reconciler.operations.runtime import Runtime
from reconciler.project.settings.config import load_config
from reconciler.testing import Sandbox
from tests.harness.workspaces import domain, open_on, write_project

Document = dict[str, Any]
ANSWER = {"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}
OFFICE = {"actions": [{"type": "restrict-ips", "config": {"allow": ["203.0.113.0/24"]}}]}
DENY = "- {from: 198.51.100.7, to: 'https://%s.example.com/admin', expect: deny}\n"
ALLOW = "- {from: 203.0.113.9, to: 'https://%s.example.com/admin', expect: allow}\n"


def endpoint(name: str, *rules: Document) -> Document:
    spec = {"url": f"https://{name}.example.com", "traffic_policy": {"on_http_request": [*rules, ANSWER]}}
    return {"kind": "CloudEndpoint", "name": name, "spec": spec}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def add_domains(*documents: Document) -> Iterator[Any]:
    """The endpoints, each with its domain."""
    for document in documents:
        yield from (domain(document["name"]), document)


def project_with(root: Path, tests: str, *documents: Document) -> Path:
    write_project(root, *add_domains(*documents))
    (root / "tests").mkdir(exist_ok=True)
    (root / "tests/access.yaml").write_text(tests)
    return root


def source_of(sandbox: Sandbox, root: Path) -> ProjectSource:
    return ProjectSource(root, runtime=Runtime(environ=sandbox.environ, platform=sandbox))


def list_problems(plan: Plan) -> list[str]:
    return [f"{problem.position}: {problem.code}" for problem in plan.errors]


async def test_a_failed_test_blocks_the_plan_and_the_apply_until_it_passes(sandbox: Sandbox, tmp_path: Path) -> None:
    tests = ALLOW % "shop" + DENY % "shop"
    project_with(tmp_path, tests, endpoint("shop", OFFICE))
    assert (await open_on(sandbox, tmp_path).apply()).status is Status.APPLIED
    write_project(tmp_path, *add_domains(endpoint("shop")))
    planned = await open_on(sandbox, tmp_path).plan()
    assert list_problems(planned.plan) == ["tests/access.yaml:2:3: access-test"]
    assert [result.status for result in planned.plan.access_tests] == ["passed", "failed"]
    assert "203.0.113.0/24 → everyone (CloudEndpoint/shop)" in planned.plan.errors[0].text
    for given in (None, planned):
        result = await open_on(sandbox, tmp_path).apply(given)
        assert (result.status, result.exit_code, result.outcomes) == (Status.BLOCKED, 4, ())
    (tmp_path / "tests/access.yaml").write_text(ALLOW % "shop")
    assert (await open_on(sandbox, tmp_path).apply()).status is Status.APPLIED


async def test_a_test_with_severity_warning_does_not_block(sandbox: Sandbox, tmp_path: Path) -> None:
    project_with(tmp_path, (DENY % "shop").replace("}", ", severity: warning}"), endpoint("shop"))
    result = await open_on(sandbox, tmp_path).apply()
    assert result.status is Status.APPLIED
    assert [problem.severity for problem in result.plan.problems if problem.code == "access-test"] == ["warning"]


async def test_an_apply_that_closes_what_was_opened_on_the_platform_is_not_blocked(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    project_with(tmp_path / "a", DENY % "shop", endpoint("shop", OFFICE))
    await open_on(sandbox, tmp_path / "a").apply()
    write_project(tmp_path / "b", *add_domains(endpoint("shop")))
    await open_on(sandbox, tmp_path / "b").apply()  # the same stack, from elsewhere and without tests
    result = await open_on(sandbox, tmp_path / "a").apply()
    assert (result.status, len(result.outcomes)) == (Status.APPLIED, 1)


async def test_validate_skips_hosts_of_other_stacks_and_the_plan_tests_them(sandbox: Sandbox, tmp_path: Path) -> None:
    other = write_project(tmp_path / "other", *add_domains(endpoint("ledger")))
    (other / "reconciler.yaml").write_text("stack: other\n")
    assert (await open_on(sandbox, other).apply()).status is Status.APPLIED
    project_with(tmp_path / "shop", DENY % "ledger" + DENY % "nowhere", endpoint("shop"))
    (validated,) = Workspace.validate(tmp_path / "shop")
    assert validated.is_valid
    assert [result.status for result in validated.tests] == ["skipped", "skipped"]
    plan = (await open_on(sandbox, tmp_path / "shop").plan()).plan
    assert [result.status for result in plan.access_tests] == ["failed", "passed"]
    assert "who gets through: gates of stack other;" in str(plan.errors[0])


async def test_a_plan_of_a_part_is_tested_as_the_part_leaves_the_account(sandbox: Sandbox, tmp_path: Path) -> None:
    project_with(tmp_path, DENY % "shop", endpoint("shop"), endpoint("more"))
    workspace = open_on(sandbox, tmp_path)
    assert list_problems((await workspace.plan()).plan) == ["tests/access.yaml:1:3: access-test"]
    part = await workspace.plan(selection=Selection(targets=("*/more",)))
    assert not part.plan.errors
    assert (await workspace.apply(part)).status is Status.APPLIED


async def test_destroying_the_stack_needs_no_request_to_get_through(sandbox: Sandbox, tmp_path: Path) -> None:
    project_with(tmp_path, ALLOW % "shop", endpoint("shop"))
    workspace = open_on(sandbox, tmp_path)
    assert (await workspace.apply()).status is Status.APPLIED
    approved = Workspace.of(workspace.select(allow={("delete", "ReservedDomain"): 1}))
    assert (await approved.destroy()).status is Status.APPLIED


def test_results_in_a_plan_file_of_other_manifests_count_unless_the_tests_changed(tmp_path: Path) -> None:
    root = project_with(tmp_path, DENY % "shop")
    tests = load_tests(load_config(root, {}))
    plan = Plan("prod", problems=(), judged={})
    assert [problem.remedy for problem in with_results(plan, tests, None).errors] == ["plan again"]
    kept = replace(plan, judged=with_results(plan, tests, None).judged)
    assert with_results(kept, tests, None) == kept
    project_with(tmp_path, ALLOW % "shop")
    assert with_results(kept, load_tests(load_config(root, {})), None).errors


async def test_the_results_of_a_written_plan_are_read_back(sandbox: Sandbox, tmp_path: Path) -> None:
    from reconciler.rendering.wire import plan_json

    project_with(tmp_path, ALLOW % "shop" + DENY % "shop", endpoint("shop"))
    plan = (await open_on(sandbox, tmp_path).plan()).plan
    read = plan_json.read_plan(plan_json.write_plan(plan), lambda *_: None)  # type: ignore[arg-type]
    assert read.access_tests == plan.access_tests
    assert len(read.access_tests) == 2


def office(cidr: str) -> Iterator[Any]:
    """An edge that only the office reaches; its rule is of another kind than the edge."""
    yield domain("ledger")
    yield {"kind": "TunnelGroupBackend", "name": "web", "spec": {"labels": {"app": "web"}}}
    yield {"kind": "IPPolicy", "name": "office", "spec": {"description": "Office"}}
    rule = {"ip_policy_id": {"ref": "IPPolicy/office"}, "cidr": cidr, "action": "allow"}
    yield {"kind": "IPPolicyRule", "name": "office", "spec": rule}
    edge = {
        "hostports": ["ledger.example.com:443"],
        "backend": {"backend_id": {"ref": "TunnelGroupBackend/web"}},
        "ip_restriction": {"ip_policy_ids": [{"ref": "IPPolicy/office"}]},
    }
    yield {"kind": "TLSEdge", "name": "ledger", "spec": edge}


@pytest.mark.parametrize(
    ("source", "status"), [("198.51.100.7", Status.APPLIED), ("192.0.2.7", Status.BLOCKED)], ids=["passes", "fails"]
)
async def test_a_plan_file_is_tested_on_the_whole_account_and_not_only_on_the_kinds_that_it_changes(
    sandbox: Sandbox, tmp_path: Path, source: str, status: Status
) -> None:
    write_project(tmp_path, *office("203.0.113.0/24"))
    assert (await open_on(sandbox, tmp_path).apply()).status is Status.APPLIED
    write_project(tmp_path, *office("198.51.100.0/24"))
    planned = await open_on(sandbox, tmp_path).plan()
    assert [str(change.address) for change in planned.plan.changes] == ["IPPolicyRule/office"]
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/access.yaml").write_text(
        f"- {{from: {source}, to: 'tls://ledger.example.com', expect: allow}}\n"
    )
    result = await open_on(sandbox, tmp_path).apply(planned)
    assert (result.status, [test.status for test in result.plan.access_tests]) == (
        status,
        ["passed" if status is Status.APPLIED else "failed"],
    )


async def test_a_part_of_a_plan_file_is_tested_as_the_part_leaves_the_account(sandbox: Sandbox, tmp_path: Path) -> None:
    project_with(tmp_path, "[]", endpoint("shop"), endpoint("staff"))
    assert (await open_on(sandbox, tmp_path).apply()).status is Status.APPLIED
    project_with(tmp_path, DENY % "shop", endpoint("shop", OFFICE), endpoint("staff", OFFICE))
    planned = await open_on(sandbox, tmp_path).plan()
    (shop,) = (found for found in sandbox.get("/endpoints")["endpoints"] if "shop" in found["url"])
    policy = {"on_http_request": [{"actions": [{"type": "log"}]}, ANSWER]}
    sandbox.patch(f"/endpoints/{shop['id']}", {"traffic_policy": json.dumps(policy)})
    part = await open_on(sandbox, tmp_path).apply(planned, partial=True)
    assert (part.status, [result.status for result in part.plan.access_tests]) == (Status.BLOCKED, ["failed"])
    project_with(tmp_path, DENY % "staff", endpoint("shop", OFFICE), endpoint("staff", OFFICE))
    part = await open_on(sandbox, tmp_path).apply(planned, partial=True)
    assert (part.status, [result.status for result in part.plan.access_tests]) == (Status.PARTIAL, ["passed"])


async def test_a_plan_file_that_deletes_an_addition_is_tested_without_it(sandbox: Sandbox, tmp_path: Path) -> None:
    documents = [
        {**one, "lifecycle": {"unmanaged_children": "delete"}} if one["kind"] == "IPPolicy" else one
        for one in office("203.0.113.0/24")
    ]
    write_project(tmp_path, *documents)
    assert (await open_on(sandbox, tmp_path).apply()).status is Status.APPLIED
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.post("/ip_policy_rules", {"ip_policy_id": policy["id"], "cidr": "0.0.0.0/0", "action": "allow"})
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/access.yaml").write_text("- {from: 192.0.2.7, to: 'tls://ledger.example.com', expect: deny}\n")
    planned = await open_on(sandbox, tmp_path).plan(allow={("delete", "IPPolicyRule"): 1})
    assert [result.status for result in planned.plan.access_tests] == ["passed"]
    file = tmp_path / "plan.json"
    write_plan(file, planned.plan, {})
    opened, read = open_with_plan(source_of(sandbox, tmp_path), file)
    result = await Workspace.of(opened).apply(read)
    assert (result.status, [test.status for test in result.plan.access_tests]) == (Status.APPLIED, ["passed"])


async def test_a_plan_file_that_destroys_the_stack_is_judged_by_the_tests_that_expect_deny(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    project_with(tmp_path, ALLOW % "shop" + DENY % "shop", endpoint("shop", OFFICE))
    assert (await open_on(sandbox, tmp_path).apply()).status is Status.APPLIED
    planned = await open_on(sandbox, tmp_path).to_destroy().plan()
    file = tmp_path / "plan.json"
    write_plan(file, planned.plan, {})
    opened, read = open_with_plan(source_of(sandbox, tmp_path), file)
    allowed = opened.select(allow={("delete", "ReservedDomain"): 1})
    result = await Workspace.of(allowed).apply(read)
    assert (result.status, [str(problem) for problem in result.problems]) == (Status.APPLIED, [])


async def test_a_policy_about_access_judges_a_plan_file_by_the_whole_account(sandbox: Sandbox, tmp_path: Path) -> None:
    write_project(tmp_path, *office("203.0.113.0/24"))
    assert (await open_on(sandbox, tmp_path).apply()).status is Status.APPLIED
    write_project(tmp_path, *office("0.0.0.0/0"))
    planned = await open_on(sandbox, tmp_path).plan()
    (tmp_path / "policies").mkdir()
    check = "!access.exists(e, e.public && e.host == 'ledger.example.com')"
    policy = f'policy: no-public-ledger\ncheck: "{check}"\nmessage: the ledger is public\n'
    (tmp_path / "policies/access.yaml").write_text(policy)
    result = await open_on(sandbox, tmp_path).apply(planned)
    assert (result.status, [problem.rule for problem in result.problems]) == (Status.BLOCKED, ["no-public-ledger"])
