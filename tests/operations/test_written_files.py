"""Operations that write files: imports, snapshots, new projects. Nothing that exists is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.operations import drift
from reconciler.operations.authoring import agent_config, import_files, init_project, snapshot_files
from reconciler.operations.errors import IncompleteAgentConfig, InvalidProject, UnwritableProposal
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.runtime import Runtime
from reconciler.testing import Sandbox
from tests.harness.workspaces import open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


async def test_an_import_writes_nothing_where_a_file_says_something_else(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/ip_policies", {"description": "office"})
    root = write_project(tmp_path / "project")
    proposal = await open_on(sandbox, root).propose_import(folder="manifests/new")
    (path,) = proposal.files
    assert (proposal.is_read, proposal.owners) == (True, {})
    assert import_files.write(root, proposal) == {path}
    assert import_files.write(root, proposal) == frozenset()
    (root / path).write_text("kind: IPPolicy\nname: other\nspec: {}\n")
    with pytest.raises(UnwritableProposal, match=f"{path} exists with other content"):
        import_files.write(root, proposal)


async def test_a_plan_from_a_snapshot_file_is_the_plan_of_the_account(sandbox: Sandbox, tmp_path: Path) -> None:
    root, file = write_project(tmp_path / "project", policy("a")), tmp_path / "snapshot.json"
    workspace = open_on(sandbox, root)
    written = await snapshot_files.write_snapshot(workspace, file, None)
    assert (written.objects, written.is_signed, written.incomplete) == (0, False, {})
    source = ProjectSource(root, runtime=Runtime(environ={}))
    opened = snapshot_files.open_with_snapshot(source, file, max_age=60)
    plan = snapshot_files.plan_offline(opened.workspace, opened.snapshot_file)
    assert (opened.is_verified, plan.changes) == (False, (await workspace.plan()).plan.changes)
    late = ProjectSource(root, runtime=Runtime(environ={}, now=lambda: opened.snapshot_file.at + 61))
    with pytest.raises(InvalidProject, match="old"):
        snapshot_files.open_with_snapshot(late, file, max_age=60)


async def test_what_no_stack_manages_has_the_address_that_an_import_gives_it(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/ip_policies", {"description": "office"})
    workspace = open_on(sandbox, write_project(tmp_path / "project"))
    found = await workspace.drift()
    unmanaged = drift.list_unmanaged(found.plan, found.snapshot, workspace.manifest)
    assert ([str(address) for address, _ in unmanaged.objects], unmanaged.stacks) == (["IPPolicy/office"], {})


async def test_an_agent_that_is_not_declared_has_no_configuration(tmp_path: Path) -> None:
    source = ProjectSource(write_project(tmp_path / "project"), runtime=Runtime(environ={}))
    with pytest.raises(IncompleteAgentConfig, match="there is no AgentConfig/berlin in the manifests"):
        await agent_config.render_agent_config(source, ["berlin"], with_token=False)


def test_a_new_project_keeps_what_exists(tmp_path: Path) -> None:
    choices = init_project.ProjectChoices("prod", "specification", None, "none", "")
    (tmp_path / ".gitignore").write_text("/state/\n")
    first = init_project.write_project(tmp_path, choices, example=True)
    assert (first.files[".gitignore"], first.files["reconciler.yaml"]) == (False, True)
    assert "/secrets/" in first.unignored
    assert (tmp_path / ".gitignore").read_text() == "/state/\n"
    assert not any(init_project.write_project(tmp_path, choices, example=True).files.values())
