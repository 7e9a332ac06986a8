"""An adoption takes over exactly the named objects; any other change of its plan is an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler import InvalidProject, Selection, Status, Workspace
from reconciler.model import owner_record as owners
from reconciler.model.plan import Plan
from reconciler.operations.reporting import Note, OperationEvent, Planned
from reconciler.operations.results import ApplyResult
from reconciler.testing import Sandbox
from tests.harness.builders import at
from tests.harness.workspaces import bot, domain, open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def owners_of(sandbox: Sandbox) -> dict[str, str]:
    """The address of each policy's owner, by description."""
    policies = sandbox.get("/ip_policies")["ip_policies"]
    found = {policy["description"]: owners.read(policy["metadata"])[1] for policy in policies}
    return {description: str(owner.address) for description, owner in found.items() if owner is not None}


async def adopt(workspace: Workspace, *addresses: str, id: str | None = None) -> ApplyResult:
    return await workspace.adopt([at(address) for address in addresses], id=id)


async def test_an_object_is_adopted_by_its_id_and_no_other_is_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    ids = {name: sandbox.post("/ip_policies", {"description": name})["id"] for name in "ab"}
    workspace = open_on(sandbox, write_project(tmp_path, policy("a"), policy("b"), policy("c")))
    result = await adopt(workspace, "IPPolicy/a", id=ids["a"])
    assert (result.status, result.recorded_in_store, owners_of(sandbox)) == (Status.APPLIED, (), {"a": "IPPolicy/a"})
    assert (await adopt(workspace, "IPPolicy/a")).status is Status.UNCHANGED
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == 2


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (
            "IPPolicy/new",
            "does not exist on the platform, so there is nothing to adopt; give the object's id with --id, or",
        ),
        ("IPPolicy/ours", "is already managed by this stack, and differs; run apply"),
        ("IPPolicy/renamed", "is already managed by this stack at another address; declare the former address with"),
        ("ReservedDomain/unlike", "would be adopted and changed: description; declare the live values, or adopt and"),
        ("ReservedDomain/replaced", "cannot only be adopted: the plan is to replace it; run apply"),
    ],
)
async def test_an_adoption_that_changes_the_object_is_refused(
    sandbox: Sandbox, tmp_path: Path, address: str, text: str
) -> None:
    root = tmp_path / "project"
    await open_on(sandbox, write_project(root, policy("ours"), policy("former", "same"), domain("replaced"))).apply()
    sandbox.post("/reserved_domains", {"domain": "unlike.example.com", "description": "live"})
    sandbox.forget_log()
    renamed = {**policy("renamed", "same"), "moved": ["IPPolicy/former"]}
    unlike = {**domain("unlike"), "spec": {"domain": "unlike.example.com", "description": "declared"}}
    replaced = {**domain("replaced"), "spec": {"domain": "other.example.com"}}
    write_project(root, policy("new"), policy("ours", "differs"), renamed, unlike, replaced)
    result = await adopt(open_on(sandbox, root), address)
    assert (result.status, sandbox.calls()) == (Status.FAILED, [])
    (problem,) = [problem for problem in result.problems if problem.code == "adoption-with-changes"]
    assert str(problem).startswith(
        f"manifests/all.yaml:{problem.position.line if problem.position else 0}:1: {address}: {text}"
    )


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({**policy("a"), "ensure": "absent"}, "IPPolicy/a: is declared absent; remove `ensure:` to adopt it"),
        ({**policy("a"), "ensure": "forgotten"}, "IPPolicy/a: is declared forgotten; remove `ensure:` to adopt it"),
        (
            policy("b"),
            "IPPolicy/a: is not declared; `reconciler import --target IPPolicy/a` writes a manifest for it if it",
        ),
    ],
)
async def test_only_resources_that_are_declared_present_are_adopted(
    sandbox: Sandbox, tmp_path: Path, document: Any, text: str
) -> None:
    with pytest.raises(InvalidProject) as refused:
        await adopt(open_on(sandbox, write_project(tmp_path, document)), "IPPolicy/a")
    (problem,) = refused.value.problems
    assert text in str(problem)
    assert (problem.code, problem.position is None) == ("not-adoptable", "not declared" in text)


async def test_a_remedy_names_the_place_where_the_id_was_set(sandbox: Sandbox, tmp_path: Path) -> None:
    missing = "ipp_" + "0" * 27
    workspace = open_on(sandbox, write_project(tmp_path, policy("a")))
    (problem,) = (await adopt(workspace, "IPPolicy/a", id=missing)).plan.errors
    assert "omit --id" in problem.remedy
    declared = open_on(sandbox, write_project(tmp_path, {**policy("a"), "id": missing}))
    (problem,) = (await adopt(declared, "IPPolicy/a")).plan.errors
    assert ("--id" in problem.remedy, "remove it" in problem.remedy) == (False, True)


async def test_an_adoption_without_owner_record_is_reported_once_the_store_has_it(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    for name in ("ci", "cd"):
        sandbox.post("/bot_users", {"name": name})
    workspace = open_on(sandbox, write_project(tmp_path, bot("ci"), bot("cd"), policy("a")))
    events: list[OperationEvent] = []

    async def decline(_: Plan) -> bool:
        return False

    first = await workspace.adopt([at("BotUser/ci"), at("BotUser/cd")], on_event=events.append)
    assert (first.status, first.recorded_in_store) == (Status.UNCHANGED, ("BotUser/cd", "BotUser/ci"))
    assert [type(event) for event in events].count(Planned) == 1
    assert (await adopt(workspace, "BotUser/ci")).recorded_in_store == ()
    office = sandbox.post("/ip_policies", {"description": "a"})["id"]
    declined = await workspace.adopt([at("IPPolicy/a")], id=office, approve=decline)
    assert (declined.status, owners_of(sandbox)) == (Status.DECLINED, {})


async def test_several_objects_are_adopted_at_once_with_the_approvals_of_the_caller(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    for name in "abc":
        sandbox.post("/reserved_domains", {"domain": f"{name}.example.com"})
    workspace = open_on(sandbox, write_project(tmp_path, *(domain(name) for name in "abc")))
    workspace = workspace.select(allow={("delete", "IPPolicy"): 1})
    assert (await adopt(workspace, "ReservedDomain/a", "ReservedDomain/b")).status is Status.APPLIED
    found = {
        domain["domain"]: owners.read(domain["metadata"])[1]
        for domain in sandbox.get("/reserved_domains")["reserved_domains"]
    }
    assert sorted(str(owner.address) for owner in found.values() if owner) == ["ReservedDomain/a", "ReservedDomain/b"]


async def test_an_id_that_the_owner_record_replaces_is_removed_from_the_manifest(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    made = sandbox.post("/ip_policies", {"description": "a"})
    root = write_project(tmp_path, policy("b"))
    text = f"# ours\nkind: IPPolicy\nname: a\nid: {made['id']}  # of the import\nspec: {{description: a}}\n"
    (root / "manifests" / "a.yaml").write_text(text)
    events: list[OperationEvent] = []
    workspace = open_on(sandbox, root)
    result = await workspace.adopt([at("IPPolicy/a")], on_event=events.append)
    assert result.status is Status.APPLIED
    assert (root / "manifests" / "a.yaml").read_text() == ("# ours\nkind: IPPolicy\nname: a\nspec: {description: a}\n")
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes == ["removed `id` of IPPolicy/a from manifests/a.yaml: its owner record identifies the object now"]
    plan = (await open_on(sandbox, root).plan(selection=Selection(targets=("IPPolicy/a",)))).plan
    assert (plan.changes, plan.problems) == ((), ())


async def test_a_stale_id_is_removed_except_for_kinds_without_owner_records(sandbox: Sandbox, tmp_path: Path) -> None:
    robot = sandbox.post("/bot_users", {"name": "ci"})
    gone = f"ipp_{'0' * 27}"
    root = write_project(tmp_path, policy("a"))
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    write_project(tmp_path, {**policy("a"), "id": gone}, {**bot("ci"), "id": robot["id"]})
    result = await open_on(sandbox, root).adopt([at("IPPolicy/a"), at("BotUser/ci")])
    assert result.status in (Status.APPLIED, Status.UNCHANGED)
    text = (root / "manifests" / "all.yaml").read_text()
    assert (gone in text, robot["id"] in text) == (False, True)


async def test_an_id_that_cannot_be_removed_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    made = sandbox.post("/ip_policies", {"description": "a"})
    root = write_project(tmp_path, policy("b"))
    lines = (
        "kind: IPPolicy",
        "name: ${{ each.key }}",
        "for_each: {a: {}}",
        f"id: {made['id']}",
        "spec: {description: a}",
    )
    text = "\n".join(lines) + "\n"
    (root / "manifests" / "a.yaml").write_text(text)
    events: list[OperationEvent] = []
    assert (await open_on(sandbox, root).adopt([at("IPPolicy/a")], on_event=events.append)).status is Status.APPLIED
    assert (root / "manifests" / "a.yaml").read_text() == text
    (note,) = [event.text for event in events if isinstance(event, Note)]
    assert "no longer needed, and was not removed: manifests/a.yaml:4:" in note
