"""Invalid manifests hold themselves and what refers to them; the rest of the stack is planned and applied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler import Selection, Status, Workspace
from reconciler.model import exit_codes
from reconciler.operations.applying import plan_files
from reconciler.operations.errors import InvalidProject, NothingSelected
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.project_openers import open_partial_project, open_with_plan
from reconciler.operations.runtime import Runtime
from reconciler.testing import Sandbox
from tests.harness.workspaces import domain, policy, write_project

EDGE: dict[str, Any] = {
    "kind": "TLSEdge",
    "name": "shop",
    "spec": {"hostports": ["shop.example.com:443"], "ip_restriction": {"ip_policy_ids": [{"ref": "IPPolicy/a"}]}},
}
BROKEN = {
    "a wrong value": "kind: IPPolicy\nname: wrong\nspec: {description: [1]}\n",
    "an unknown kind": "kind: IPPolizei\nname: wrong\nspec: {}\n",
    "no YAML": "kind: IPPolicy\nname: [wrong\n",
    "no name": "kind: IPPolicy\nspec: {}\n",
    "an unset variable": "kind: IPPolicy\nname: wrong\nspec: {description: {from_env: NOT_SET_ANYWHERE}}\n",
    "an unknown reference": "kind: TLSEdge\nname: wrong\nspec: {description: '${{ IPPolicy/nobody.id }}'}\n",
    "a wrong for_each": "kind: IPPolicy\nname: wrong\nfor_each: 3\nspec: {}\n",
    "an address twice": "kind: IPPolicy\nname: wrong\nspec: {}\n---\nkind: IPPolicy\nname: wrong\nspec: {}\n",
    "a circular reference": (
        "kind: FailoverBackend\nname: x\nspec: {backends: [{ref: FailoverBackend/y}]}\n---\n"
        "kind: FailoverBackend\nname: y\nspec: {backends: [{ref: FailoverBackend/x}]}\n"
    ),
    "one object twice": (
        "kind: ReservedDomain\nname: x\nspec: {domain: x.example.com}\n---\n"
        "kind: ReservedDomain\nname: y\nspec: {domain: x.example.com}\n"
    ),
}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def open_partial(sandbox: Sandbox, root: Path) -> Workspace:
    source = ProjectSource(root, runtime=Runtime(environ=sandbox.environ, platform=sandbox))
    return Workspace.of(open_partial_project(source))


def descriptions(sandbox: Sandbox) -> set[str]:
    return {found["description"] for found in sandbox.get("/ip_policies")["ip_policies"]}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_the_rest_is_applied_and_the_exit_code_is_an_error(sandbox: Sandbox, tmp_path: Path, broken: str) -> None:
    root = write_project(tmp_path, policy("a"), domain("shop"), EDGE)
    (root / "manifests" / "broken.yaml").write_text(broken)
    with pytest.raises(InvalidProject):
        Workspace.open(root, runtime=Runtime(environ=sandbox.environ, platform=sandbox))
    workspace = open_partial(sandbox, root)
    planned = (await workspace.plan()).plan
    assert {str(change.address) for change in planned.changes} == {"IPPolicy/a", "ReservedDomain/shop", "TLSEdge/shop"}
    assert (planned.blocking_errors, planned.confined_errors != ()) == ((), True)
    result = await workspace.apply()
    assert (result.status, result.exit_code) == (Status.PARTIAL, exit_codes.ERROR)
    assert len(sandbox.get("/edges/tls")["tls_edges"]) == 1
    again = await open_partial(sandbox, root).plan()
    assert again.plan.changes == ()


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_nothing_is_deleted_for_its_absence_while_a_manifest_is_invalid(
    sandbox: Sandbox, tmp_path: Path, broken: str
) -> None:
    root = write_project(tmp_path, policy("a"), policy("former"), domain("shop"), EDGE)
    assert (await open_partial(sandbox, root).apply()).status is Status.APPLIED
    write_project(tmp_path, policy("a", "changed"))
    (root / "manifests" / "broken.yaml").write_text(broken)
    workspace = open_partial(sandbox, root)
    planned = (await workspace.plan()).plan
    assert [str(change.address) for change in planned.changes] == ["IPPolicy/a"]
    assert "manifests-incomplete" in {problem.code for problem in planned.problems}
    await workspace.apply()
    assert descriptions(sandbox) == {"changed", "former"}
    (root / "manifests" / "broken.yaml").unlink()
    assert len((await open_partial(sandbox, root).plan()).plan.changes) == 3  # now they are deleted


async def test_a_referrer_of_an_invalid_declaration_is_skipped_only_if_it_would_change(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    root = write_project(tmp_path, policy("a"), domain("shop"), EDGE)
    assert (await open_partial(sandbox, root).apply()).status is Status.APPLIED
    wrong: dict[str, Any] = {**policy("a"), "spec": {"description": [1]}}
    write_project(tmp_path, wrong, domain("shop"), EDGE)
    planned = (await open_partial(sandbox, root).plan()).plan
    assert (planned.changes, [problem.code for problem in planned.errors]) == ((), ["wrong-type"])
    write_project(
        tmp_path, wrong, domain("shop"), {**EDGE, "spec": {**EDGE["spec"], "description": "new"}}, policy("b")
    )
    planned = (await open_partial(sandbox, root).plan()).plan
    assert [str(change.address) for change in planned.changes] == ["IPPolicy/b"]
    assert [problem.code for problem in planned.errors] == ["wrong-type", "refers-to-skipped"]


async def test_a_former_address_that_an_invalid_file_may_declare_is_not_moved(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, policy("old"))
    assert (await open_partial(sandbox, root).apply()).status is Status.APPLIED
    write_project(tmp_path, {**policy("new", "old"), "moved": "IPPolicy/old"}, policy("other"))
    (root / "manifests" / "broken.yaml").write_text(BROKEN["no YAML"])
    planned = (await open_partial(sandbox, root).plan()).plan
    assert [str(change.address) for change in planned.changes] == ["IPPolicy/other"]
    (root / "manifests" / "broken.yaml").write_text(BROKEN["a wrong value"])
    planned = (await open_partial(sandbox, root).plan()).plan
    assert sorted(str(change.action) for change in planned.changes) == ["create", "move"]


async def test_a_parent_of_an_invalid_declaration_is_not_deleted(sandbox: Sandbox, tmp_path: Path) -> None:
    rule = {
        "kind": "IPPolicyRule",
        "name": "office",
        "spec": {"ip_policy_id": {"ref": "IPPolicy/a"}, "cidr": "192.0.2.0/24", "action": "allow"},
    }
    root = write_project(tmp_path, policy("a"), policy("b"), rule)
    assert (await open_partial(sandbox, root).apply()).status is Status.APPLIED
    absent = {"kind": "IPPolicy", "name": "a", "ensure": "absent"}
    write_project(tmp_path, absent, {**policy("b"), "ensure": "absent"}, {**rule, "spec": {"cidr": "nonsense"}})
    planned = (await open_partial(sandbox, root).plan()).plan
    assert [str(change.address) for change in planned.changes] == ["IPPolicy/b"]
    assert "used-by-skipped" in {problem.code for problem in planned.errors}


@pytest.mark.parametrize(
    "settings", ["guards: {max_delete_percent: nonsense}\n", "manifests: [missing/]\n", "variables: {x: {type: odd}}\n"]
)
def test_nothing_is_planned_with_invalid_settings(sandbox: Sandbox, tmp_path: Path, settings: str) -> None:
    root = write_project(tmp_path, policy("a"), settings=settings)
    with pytest.raises(InvalidProject):
        open_partial(sandbox, root)


async def test_a_problem_of_a_field_is_not_one_of_a_resource_with_a_similar_name(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """`IPPolicy/a.description` is a field of one resource, and the address of another."""
    root = write_project(tmp_path, policy("a", "one"), policy("a.description", "two"))
    assert (await open_partial(sandbox, root).apply()).status is Status.APPLIED
    wrong: dict[str, Any] = {**policy("a"), "spec": {"description": [1]}}
    write_project(tmp_path, wrong, policy("a.description", "changed"), policy("b"))
    planned = (await open_partial(sandbox, root).plan()).plan
    assert [str(change.address) for change in planned.changes] == ["IPPolicy/b"]
    assert (await open_partial(sandbox, root).apply()).status is Status.PARTIAL
    assert descriptions(sandbox) == {"one", "two", "b"}


CREDENTIAL: dict[str, Any] = {
    "kind": "TunnelCredential",
    "name": "agent",
    "spec": {"description": "agent"},
    "deliver": {"token": {"to_file": "secrets/agent"}},
}


async def test_a_plan_file_of_valid_declarations_is_applied_while_others_are_invalid(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    root = write_project(tmp_path, policy("a"), CREDENTIAL)
    (root / "manifests" / "broken.yaml").write_text(BROKEN["an unset variable"])
    source = ProjectSource(root, runtime=Runtime(environ=sandbox.environ, platform=sandbox))
    plan_files.write_plan(
        file := tmp_path / "plan.json", (await Workspace.of(open_partial_project(source)).plan()).plan, {}
    )
    opened, planned = open_with_plan(source, file)
    workspace = Workspace.of(opened)
    result = await workspace.apply(planned)
    assert (result.status, result.exit_code) == (Status.PARTIAL, exit_codes.ERROR)
    assert sandbox.deliveries.keys() == {"secrets/agent"}
    assert (await Workspace.of(open_partial_project(source)).plan()).plan.changes == ()


async def test_a_token_of_a_plan_file_is_not_issued_if_its_declaration_became_invalid(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    root = write_project(tmp_path, policy("a"), CREDENTIAL)
    source = ProjectSource(root, runtime=Runtime(environ=sandbox.environ, platform=sandbox))
    plan_files.write_plan(
        file := tmp_path / "plan.json", (await Workspace.of(open_partial_project(source)).plan()).plan, {}
    )
    write_project(tmp_path, policy("a"), {**CREDENTIAL, "spec": {"description": [1]}})
    opened, planned = open_with_plan(source, file)
    workspace = Workspace.of(opened)
    with pytest.raises(InvalidProject, match="issues a token, and the manifests, which declare its delivery, cannot"):
        await workspace.apply(planned)
    assert sandbox.get("/credentials")["credentials"] == []


async def test_a_target_that_an_invalid_manifest_declares_is_not_unknown(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, policy("a"))
    (root / "manifests" / "broken.yaml").write_text(BROKEN["a wrong value"])
    chosen = await open_partial(sandbox, root).plan(selection=Selection(targets=("IPPolicy/wrong",)))
    assert (chosen.plan.changes, [problem.subject for problem in chosen.plan.errors]) == (
        (),
        ["IPPolicy/wrong.description"],
    )
    with pytest.raises(NothingSelected, match="cannot be replaced, because its manifest is invalid"):
        await open_partial(sandbox, root).plan(selection=Selection(replace=("IPPolicy/wrong",)))
    (root / "manifests" / "broken.yaml").write_text(BROKEN["no YAML"])
    with pytest.raises(NothingSelected, match="an invalid manifest may declare it"):
        await open_partial(sandbox, root).plan(selection=Selection(targets=("IPPolicy/wrong",)))


async def test_nothing_is_planned_after_the_manifests_exceed_a_limit(sandbox: Sandbox, tmp_path: Path) -> None:
    """The texts after the one that exceeds the limit are not read: their fields would be sent without them."""
    root = write_project(tmp_path, policy("a"))
    (root / "text.txt").write_text("x" * 900_000)
    (root / "manifests" / "large.yaml").write_text(
        "".join(
            f"---\nkind: HTTPResponseBackend\nname: b{number}\nspec: {{body: {{from_file: text.txt}}}}\n"
            for number in range(70)
        )
    )
    with pytest.raises(InvalidProject) as refused:
        open_partial(sandbox, root)
    assert [problem.code for problem in refused.value.problems if problem.is_error] == ["limit-exceeded"]


async def test_a_bot_without_a_binding_is_found_by_its_name_unless_an_invalid_manifest_may_declare_a_bot(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    bot = {"kind": "BotUser", "name": "ci", "spec": {"name": "ci"}}
    root = write_project(tmp_path / "first", policy("a"), bot)
    assert (await open_partial(sandbox, root).apply()).status is Status.APPLIED
    fresh = write_project(tmp_path / "second", policy("a"), bot)  # as in a job without a lasting store
    (fresh / "manifests" / "broken.yaml").write_text(BROKEN["a wrong value"])
    planned = (await open_partial(sandbox, fresh).plan()).plan
    assert [problem.subject for problem in planned.errors] == ["IPPolicy/wrong.description"]
    for broken in ("kind: BotUser\nname: wrong\nspec: {name: [1]}\n", BROKEN["no YAML"]):
        (fresh / "manifests" / "broken.yaml").write_text(broken)
        planned = (await open_partial(sandbox, fresh).plan()).plan
        assert [problem.code for problem in planned.errors if problem.subject == "BotUser/ci"] == [
            "manifests-incomplete"
        ]
