"""Two stacks in one account: neither changes objects of the other."""

from __future__ import annotations

import dataclasses

import pytest

from reconciler.model import owner_record
from reconciler.model.address import Address
from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies, resource

DOMAIN = resource("ReservedDomain", "app", domain="app.example.com")
SAME = [*policies("office"), resource("TunnelGroupBackend", "app", labels={"app": "one"})]


@pytest.fixture
def other(on_sandbox: Project) -> Project:
    """Another project on the same account."""
    made = dataclasses.replace(on_sandbox, root=on_sandbox.root.with_name("other"))
    made.write("reconciler.yaml", "stack: staging\nlimits: {requests_per_minute: 100000}\n")
    (made.root / "manifests").mkdir()
    return made


def stacks(sandbox: Sandbox, path: str, key: str) -> list[str]:
    records = [owner_record.read(found["metadata"])[1] for found in sandbox.get(path)[key]]
    return sorted(record.stack for record in records if record is not None)


def test_the_same_manifests_in_two_stacks_create_separate_objects(
    on_sandbox: Project, other: Project, sandbox: Sandbox
) -> None:
    for project in (on_sandbox, other):
        project.declare(*SAME)
        assert project("apply", "-y").code == 0
    assert stacks(sandbox, "/ip_policies", "ip_policies") == ["prod", "staging"]
    assert stacks(sandbox, "/backends/tunnel_group", "backends") == ["prod", "staging"]
    assert on_sandbox("drift").code == other("drift").code == 0


def test_objects_of_another_stack_remain_after_delete_and_destroy(
    on_sandbox: Project, other: Project, sandbox: Sandbox
) -> None:
    for project in (on_sandbox, other):
        project.declare(*SAME)
        project("apply", "-y")
    other.declare(*policies("office"))
    assert other("apply", "-y", "--quiet").out == "Applied: 1 deleted.\n"
    assert other("destroy", "-y", "--quiet").out == "Destroyed: 1 deleted.\n"
    assert other("destroy", "-y").out.startswith("No changes: this stack has no objects on the platform.\n")
    assert stacks(sandbox, "/ip_policies", "ip_policies") == ["prod"]
    assert stacks(sandbox, "/backends/tunnel_group", "backends") == ["prod"]
    assert on_sandbox("drift").code == 0


def test_objects_of_other_stacks_are_counted_by_stack_and_not_among_the_unmanaged(
    on_sandbox: Project, other: Project, sandbox: Sandbox
) -> None:
    """By the owner record, and for kinds without one by the binding in the store that both use."""
    other.write("reconciler.yaml", (other.root / "reconciler.yaml").read_text() + f"store: {on_sandbox.root}/both.db\n")
    settings = (on_sandbox.root / "reconciler.yaml").read_text()
    on_sandbox.write("reconciler.yaml", settings + f"store: {on_sandbox.root}/both.db\n")
    other.declare(*policies("office"), resource("BotUser", "robot", name="robot"))
    assert other("apply", "-y").code == 0
    sandbox.post("/bot_users", {"name": "stray"})
    on_sandbox.declare(*policies("home"))
    assert on_sandbox("apply", "-y").code == 0
    result = on_sandbox("drift", "--unmanaged").number_ids()
    assert result.code == 0
    assert "Not managed:\n  BotUser/stray  bot_1\nManaged by other stacks: staging (2 objects).\n" in result.out


def test_a_child_that_another_stack_of_the_store_is_bound_to_is_no_addition(
    on_sandbox: Project, other: Project, sandbox: Sandbox
) -> None:
    """An event source has no metadata for an owner record: only the store records its ownership."""
    for project in (on_sandbox, other):
        settings = (project.root / "reconciler.yaml").read_text()
        project.write("reconciler.yaml", settings + f"store: {on_sandbox.root}/both.db\n")
    on_sandbox.declare({**resource("EventSubscription", "audit"), "lifecycle": {"unmanaged_children": "delete"}})
    assert on_sandbox("apply", "-y").code == 0
    (subscription,) = sandbox.get("/event_subscriptions")["event_subscriptions"]
    other.declare(resource("EventSource", "vault", subscription_id=subscription["id"], type="vault_created.v0"))
    assert other("apply", "-y", "--adopt").code == 0
    assert on_sandbox("drift").code == 0
    assert on_sandbox("apply", "-y", "--allow", "delete:EventSource=1").code == 0
    assert other("drift").code == 0
    refused = on_sandbox("destroy", "-y")
    assert (refused.code, "--allow delete:EventSource=1" in refused.err) == (4, True)
    assert other("drift").code == 0


def test_an_event_source_is_not_deleted_if_another_stack_owns_its_subscription(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    source = resource(
        "EventSource", "vault", subscription_id={"ref": "EventSubscription/audit"}, type="vault_created.v0"
    )
    on_sandbox.declare(resource("EventSubscription", "audit"), source)
    assert on_sandbox("apply", "-y").code == 0
    on_sandbox.declare(resource("EventSubscription", "audit"))
    assert on_sandbox("plan", "--out", "plan.json").code == 0
    (subscription,) = sandbox.get("/event_subscriptions")["event_subscriptions"]
    theirs = owner_record.Owner("staging", Address("EventSubscription", "audit"), "intent-of-others")
    path = f"/event_subscriptions/{subscription['id']}"
    sandbox.patch(path, {"metadata": owner_record.write("", theirs)})
    refused = on_sandbox("apply", "plan.json", "-y")
    assert (refused.code, "its parent esb_" in refused.out + refused.err) == (1, True)
    assert len(sandbox.get(f"{path}/sources")["sources"]) == 1


def test_an_unmanaged_event_source_is_deleted_with_its_subscription_only_with_approval(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    """Like a rule below a policy. Sources that are declared inline are managed like those of manifests."""
    listed = {**resource("EventSubscription", "listed"), "sources": {"domain": {"type": "domain_created.v0"}}}
    on_sandbox.declare(resource("EventSubscription", "audit"), listed)
    assert on_sandbox("apply", "-y").code == 0
    (audit,) = (
        subscription
        for subscription in sandbox.get("/event_subscriptions")["event_subscriptions"]
        if not subscription["sources"]
    )
    sandbox.post(f"/event_subscriptions/{audit['id']}/sources", {"type": "vault_created.v0"})
    refused = on_sandbox("destroy", "-y")
    assert (refused.code, "--allow delete:EventSource=1" in refused.err) == (4, True)
    assert len(sandbox.get("/event_subscriptions")["event_subscriptions"]) == 2
    assert on_sandbox("destroy", "-y", "--allow", "delete:EventSource=1").code == 0


def test_a_forgotten_resource_can_be_adopted_by_another_stack(
    on_sandbox: Project, other: Project, sandbox: Sandbox
) -> None:
    on_sandbox.declare(DOMAIN)
    on_sandbox("apply", "-y")
    on_sandbox.declare(DOMAIN | {"ensure": "forgotten"})
    assert on_sandbox("apply", "-y").code == 0
    other.declare(DOMAIN)
    assert other("apply", "-y", "--adopt").code == 0
    assert stacks(sandbox, "/reserved_domains", "reserved_domains") == ["staging"]
    sandbox.forget_log()
    assert on_sandbox("apply", "-y").code == on_sandbox("drift").code == other("drift").code == 0
    assert sandbox.calls() == []


def test_a_reused_name_creates_an_object_beside_the_forgotten_one(on_sandbox: Project, sandbox: Sandbox) -> None:
    for declared in (
        resource("TLSEdge", "old", description="first"),
        resource("TLSEdge", "new", description="first") | {"moved": ["TLSEdge/old"]},
        resource("TLSEdge", "new", description="first") | {"ensure": "forgotten"},
        resource("TLSEdge", "old", description="second"),
    ):
        on_sandbox.declare(declared)
        assert on_sandbox("apply", "-y").code == 0
    edges = sandbox.get("/edges/tls")["tls_edges"]
    assert sorted(edge["description"] for edge in edges) == ["first", "second"]


def test_a_bot_which_another_stack_created_is_neither_changed_nor_deleted_without_approval(
    on_sandbox: Project, other: Project, sandbox: Sandbox
) -> None:
    on_sandbox.declare(resource("BotUser", "ci", name="ci"))
    on_sandbox("apply", "-y")
    other.declare(resource("BotUser", "ci", name="ci"), *policies("kept"))
    sandbox.forget_log()
    assert other("apply", "-y").code == 0
    other.declare(*policies("kept"))
    assert other("apply", "-y", "--allow", "delete:BotUser=1").code == 4
    assert other("destroy", "-y", "--allow", "delete:BotUser=1").code == 4
    assert sandbox.calls() == ["POST /ip_policies"]
