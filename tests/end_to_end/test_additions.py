"""Objects that are added on the platform below managed objects, from the first drift check to the approved delete."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

OFFICE = resource("IPPolicy", "office", description="Office")
RULE = resource("IPPolicyRule", "desk", ip_policy_id={"ref": "IPPolicy/office"}, cidr="192.0.2.0/24", action="allow")


@pytest.fixture
def opened(on_sandbox: Project, sandbox: Sandbox) -> Project:
    """Applied, and then opened to everyone by hand."""
    on_sandbox.declare(OFFICE, RULE)
    assert on_sandbox("apply", "-y", "-q").code == 0
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.post("/ip_policy_rules", {"ip_policy_id": policy["id"], "cidr": "0.0.0.0/0", "action": "allow"})
    return on_sandbox


def rules(sandbox: Sandbox) -> list[str]:
    return sorted(rule["cidr"] for rule in sandbox.get("/ip_policy_rules")["ip_policy_rules"])


def lifecycle(children: str) -> dict[str, Any]:
    return {**OFFICE, "lifecycle": {"unmanaged_children": children}}


def test_an_added_rule_is_drift_in_every_form_and_is_recorded(opened: Project) -> None:
    result = opened("drift", "--record", *_forms()).number_ids()
    assert result.code == 2
    assert result.out == (
        "Differences: - on the platform, + in the manifests\n"
        "\n"
        "Added on the platform, not declared:\n"
        "\n"
        "  - IPPolicyRule/ipr_1  manifests/all.yaml:1\n"
        "      added to IPPolicy/office on the platform, not declared (ipr_1)\n"
        "      ! added on the platform, outside Git\n"
        '      - cidr: "0.0.0.0/0"\n'
        '      - action: "allow"\n'
        "\n"
        "Additions are not changed without approval. To manage one, run `reconciler import`; to remove one,\n"
        "delete it on the platform, or set `lifecycle.unmanaged_children: delete` on its parent and approve\n"
        "its deletion.\n"
        "\n"
        "Drift: 1 resource added on the platform.\n"
    )
    for name in ("md", "html", "sarif", "json"):
        text = (opened.root / f"drift.{name}").read_text(encoding="utf-8")
        assert "0.0.0.0/0" in text, name
        assert "IPPolicy/office" in text, name
    report = opened("report", "--out", "report.html")
    assert report.code == 0
    assert "IPPolicyRule/ipr_" in (opened.root / "report.html").read_text(encoding="utf-8")


def _forms() -> list[str]:
    forms = {"markdown": "md", "html": "html", "sarif": "sarif", "json": "json"}
    named = [word for form, name in forms.items() for word in ("--format", f"{form}=drift.{name}")]
    return ["--format", "text", *named]


def test_a_plan_with_additions_only_reports_them_and_has_no_changes(opened: Project, sandbox: Sandbox) -> None:
    result = opened("plan", "--detailed-exitcode").number_ids()
    assert result.code == 0
    assert "  ! IPPolicyRule/ipr_1" in result.out
    assert "No changes. 2 resources match the manifests." in result.out
    result = opened("apply", "-y", "-q").number_ids()
    assert (result.code, result.out) == (0, "")
    assert result.err == (
        "not managed: IPPolicyRule/ipr_1: added to IPPolicy/office on the platform, not declared; "
        "declare it, or delete it on the platform\n"
    )
    assert rules(sandbox) == ["0.0.0.0/0", "192.0.2.0/24"]


def test_a_delete_waits_for_its_approval_and_nothing_else_waits_with_it(opened: Project, sandbox: Sandbox) -> None:
    opened.declare({**lifecycle("delete"), "spec": {"description": "New"}}, RULE)
    result = opened("apply", "-y", "-q").number_ids()
    assert (result.code, "delete it with --allow delete:IPPolicyRule=1" in result.err) == (0, True)
    assert sandbox.get("/ip_policies")["ip_policies"][0]["description"] == "New"
    assert rules(sandbox) == ["0.0.0.0/0", "192.0.2.0/24"]
    result = opened("plan", "--allow", "delete:IPPolicyRule=1", "--detailed-exitcode", "--out", "plan.json")
    assert (result.code, "1 to delete" in result.out) == (2, True)
    assert json.loads((opened.root / "plan.json").read_text(encoding="utf-8"))["changes"][0]["risks"]
    assert opened("apply", "plan.json", "-y").code == 0
    assert rules(sandbox) == ["192.0.2.0/24"]
    assert opened("drift").code == 0


def test_an_addition_that_was_taken_over_since_the_plan_is_not_deleted(opened: Project, sandbox: Sandbox) -> None:
    """By another stack, or by this one: only what bears no record at all is an addition."""
    opened.declare(lifecycle("delete"), RULE)
    assert opened("plan", "--allow", "delete:IPPolicyRule=1", "--out", "plan.json").code == 0
    adopted = resource("IPPolicyRule", "all", ip_policy_id={"ref": "IPPolicy/office"}, cidr="0.0.0.0/0", action="allow")
    opened.declare(lifecycle("delete"), RULE, adopted)
    assert opened("apply", "-y", "--adopt").code == 0
    opened.declare(lifecycle("delete"), RULE)
    assert opened("apply", "plan.json", "-y").code != 0
    assert rules(sandbox) == ["0.0.0.0/0", "192.0.2.0/24"]


def test_a_notice_and_an_acceptance_name_it(opened: Project) -> None:
    result = opened("accept").number_ids()
    assert result.code == 2
    why = "added to IPPolicy/office on the platform; `reconciler import` writes its manifest"
    assert f"not accepted: IPPolicyRule/ipr_1: {why}" in result.err


def test_unmanaged_children_can_be_ignored_only_for_kinds_with_children(opened: Project) -> None:
    opened.declare(lifecycle("ignore"), RULE)
    assert opened("drift").code == 0
    opened.declare(OFFICE, {**RULE, "lifecycle": {"unmanaged_children": "ignore"}})
    result = opened("validate")
    assert result.code == 1
    assert "IPPolicyRule has no children; use it for EventSubscription, HTTPSEdge, IPPolicy or Vault" in result.err


def test_an_added_event_source_and_an_added_secret_are_drift(on_sandbox: Project, sandbox: Sandbox) -> None:
    """The one has no metadata, the other no value that could be read."""
    on_sandbox.declare(resource("EventSubscription", "audit"), resource("Vault", "pay", name="pay"))
    assert on_sandbox("apply", "-y", "-q").code == 0
    (subscription,) = sandbox.get("/event_subscriptions")["event_subscriptions"]
    (vault,) = sandbox.get("/vaults")["vaults"]
    sandbox.post(f"/event_subscriptions/{subscription['id']}/sources", {"type": "vault_created.v0"})
    sandbox.post("/vault_secrets", {"vault_id": vault["id"], "name": "stray", "value": "hunter2"})
    result = on_sandbox("drift").number_ids()
    assert result.code == 2
    assert "EventSource/audit-vault_created.v0" in result.out
    assert "Secret/secret_1" in result.out
    assert "hunter2" not in result.out
    assert "Drift: 2 resources added on the platform." in result.out


def test_import_takes_the_addresses_that_drift_and_lists_show(opened: Project, sandbox: Sandbox) -> None:
    visitors = [sandbox.post("/ip_policies", {"description": "Visitors"})["id"] for _ in range(2)]
    (addition,) = json.loads(opened("drift", "--format", "json").out)["additions"]
    listed = opened("drift", "--unmanaged").out.partition("\nNot managed:\n")[2].split()
    assert sorted(listed[1::2]) == sorted(visitors)
    for target, cidr_or_id in ((addition["address"], "0.0.0.0/0"), *zip(listed[::2], listed[1::2], strict=True)):
        result = opened("import", "--dry-run", "--format", "json", "--target", target)
        found = json.loads(result.out)
        assert len(found["resources"]) == 1, target
        assert cidr_or_id in json.dumps(found)
    for id in visitors:
        assert (
            len(json.loads(opened("import", "--dry-run", "--format", "json", "--target", f"*/{id}").out)["resources"])
            == 1
        )
    left = json.loads(opened("import", "--dry-run", "--format", "json", "--exclude", f"IPPolicy/{visitors[0]}").out)
    assert visitors[0] not in json.dumps(left["resources"])
    assert len(left["resources"]) == 2


def test_import_takes_the_address_of_an_added_event_source(on_sandbox: Project, sandbox: Sandbox) -> None:
    """The ids of event sources are unique within their subscription only."""
    on_sandbox.declare(resource("EventSubscription", "audit", description="Audit"))
    assert on_sandbox("apply", "-y", "-q").code == 0
    (subscription,) = sandbox.get("/event_subscriptions")["event_subscriptions"]
    sandbox.post(f"/event_subscriptions/{subscription['id']}/sources", {"type": "ip_policy_created.v0"})
    (addition,) = json.loads(on_sandbox("drift", "--format", "json").out)["additions"]
    result = on_sandbox("import", "--dry-run", "--format", "json", "--target", addition["address"])
    assert len(json.loads(result.out)["resources"]) == 1
