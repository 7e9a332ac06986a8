"""Another tool writes an object's `metadata`, as docs/terraform.md describes it."""

from __future__ import annotations

import json

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

POLICY = resource("IPPolicy", "office", description="Office")
DOMAIN = resource("ReservedDomain", "shop", domain="shop.example.com")
LISTS = {"/ip_policies": "ip_policies", "/reserved_domains": "reserved_domains"}


@pytest.fixture
def applied(on_sandbox: Project, sandbox: Sandbox) -> Project:
    on_sandbox.declare(POLICY, DOMAIN)
    assert on_sandbox("apply", "-y").code == 0
    return on_sandbox


def objects(sandbox: Sandbox) -> dict[str, dict[str, str]]:
    """Our two objects, by path."""
    found = {}
    for path, key in LISTS.items():
        for each in sandbox.get(path)[key]:
            if each["description"] == "Office" or each.get("domain") == "shop.example.com":
                found[f"{path}/{each['id']}"] = each
    assert len(found) == 2
    return found


def actions(project: Project) -> dict[str, str]:
    project("plan", "--format", "json=plan.json")
    plan = json.loads((project.root / "plan.json").read_text())
    return {change["address"]: change["action"] for change in plan["changes"]}


def test_a_tool_that_sends_metadata_back_as_it_read_it_changes_nothing(applied: Project, sandbox: Sandbox) -> None:
    for path, each in objects(sandbox).items():
        sandbox.patch(path, {"metadata": each["metadata"]})
    assert actions(applied) == {}


def test_a_record_that_another_tool_removed_is_written_again_as_long_as_the_store_knows_the_object(
    applied: Project, sandbox: Sandbox
) -> None:
    before = objects(sandbox)
    for path in before:
        sandbox.patch(path, {"metadata": ""})
    assert actions(applied) == {"IPPolicy/office": "update", "ReservedDomain/shop": "update"}
    assert applied("apply", "-y").code == 0
    assert objects(sandbox).keys() == before.keys()
    assert actions(applied) == {}


def test_without_the_store_an_object_whose_record_was_removed_is_not_known_as_ours(
    applied: Project, sandbox: Sandbox
) -> None:
    for path in objects(sandbox):
        sandbox.patch(path, {"metadata": ""})
    applied.environ["RECONCILER_STORE"] = "memory:"
    assert actions(applied) == {"IPPolicy/office": "create", "ReservedDomain/shop": "adopt"}
    refused = applied("apply", "-y")
    assert refused.code == 4  # the domain is adopted with consent only, and nothing else is done meanwhile
    assert "adopt:ReservedDomain=1" in refused.err
