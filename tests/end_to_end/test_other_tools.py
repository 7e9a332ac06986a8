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
    """The two objects of the stack, by path."""
    found = {}
    for path, key in LISTS.items():
        for found_object in sandbox.get(path)[key]:
            if found_object["description"] == "Office" or found_object.get("domain") == "shop.example.com":
                found[f"{path}/{found_object['id']}"] = found_object
    assert len(found) == 2
    return found


def actions(project: Project) -> dict[str, str]:
    project("plan", "--format", "json=plan.json")
    plan = json.loads((project.root / "plan.json").read_text())
    return {change["address"]: change["action"] for change in plan["changes"]}


def test_a_tool_that_writes_metadata_unchanged_causes_no_drift(applied: Project, sandbox: Sandbox) -> None:
    for path, found_object in objects(sandbox).items():
        sandbox.patch(path, {"metadata": found_object["metadata"]})
    assert actions(applied) == {}


def test_a_removed_owner_record_is_written_again_if_the_store_has_the_object(
    applied: Project, sandbox: Sandbox
) -> None:
    before = objects(sandbox)
    for path in before:
        sandbox.patch(path, {"metadata": ""})
    assert actions(applied) == {"IPPolicy/office": "update", "ReservedDomain/shop": "update"}
    assert applied("apply", "-y").code == 0
    assert objects(sandbox).keys() == before.keys()
    assert actions(applied) == {}


def test_an_object_without_an_owner_record_is_unmanaged_without_the_store(applied: Project, sandbox: Sandbox) -> None:
    for path in objects(sandbox):
        sandbox.patch(path, {"metadata": ""})
    applied.environ["RECONCILER_STORE"] = "memory:"
    assert actions(applied) == {"IPPolicy/office": "create", "ReservedDomain/shop": "adopt"}
    refused = applied("apply", "-y")
    assert refused.code == 4  # the domain is adopted only with approval, and nothing else is changed
    assert "adopt:ReservedDomain=1" in refused.err
