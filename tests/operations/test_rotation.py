"""Rotation of credentials over time: what drift and an apply say of it, on the emulated platform in process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler import Runtime, Status
from reconciler.operations.applying import plan_files
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.project_openers import open_with_plan
from reconciler.operations.reporting import CallsEnded, Note, OperationEvent
from reconciler.operations.workspace import Workspace
from reconciler.testing import Sandbox
from tests.harness.builders import at
from tests.harness.workspaces import Document, open_on, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def credential(**more: Any) -> Document:
    return {"kind": "TunnelCredential", "name": "c", "deliver": {"token": {"to_file": "secrets/c"}}, **more}


def make_older(sandbox: Sandbox, created: Document, **edited: Any) -> None:
    """The credential was created 90 minutes earlier, and then edited."""
    moment = datetime.fromisoformat(created["created_at"]) - timedelta(minutes=90)
    sandbox.delete(f"/credentials/{created['id']}")
    sandbox.plant("credentials", {**created, **edited, "created_at": moment.isoformat()})


def in_hours(hours: float) -> float:
    return time.time() + hours * 3600


@pytest.mark.parametrize("rotate", [{"rotate": {"after": "24h", "overlap": "2h"}}, {}], ids=["ended", "removed"])
async def test_the_end_of_an_overlap_is_no_drift(sandbox: Sandbox, tmp_path: Path, rotate: Document) -> None:
    root = write_project(tmp_path, credential(rotate={"after": "1h", "overlap": "2h"}))
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    (first,) = sandbox.get("/credentials")["credentials"]
    make_older(sandbox, first)
    rotated = await open_on(sandbox, root).apply()
    assert [change.reason for change in rotated.plan.changes] == ["rotation"]
    assert rotated.status is Status.APPLIED
    assert (await open_on(sandbox, root).drift()).plan.is_empty
    write_project(tmp_path, credential(**rotate))
    found = await open_on(sandbox, root, now=lambda: in_hours(3.5)).drift()
    assert [change.reason for change in found.plan.changes] == ["superseded"]
    assert (found.has_drift, found.plan.has_pending) == (False, True)
    assert found.plan.changes[0].id == first["id"]
    make_older(sandbox, first, acl=["bind:*"])
    assert (await open_on(sandbox, root, now=lambda: in_hours(3.5)).drift()).has_drift
    make_older(sandbox, first)
    assert (await open_on(sandbox, root, now=lambda: in_hours(3.5)).apply()).status is Status.APPLIED
    assert len(sandbox.get("/credentials")["credentials"]) == 1


@pytest.mark.parametrize("command", ["apply", "adopt"])
async def test_a_credential_that_is_due_is_adopted_and_rotated_by_the_next_apply(
    sandbox: Sandbox, tmp_path: Path, command: str
) -> None:
    created = sandbox.post("/credentials", {})
    adopted = credential(id=created["id"], lifecycle={"adopt": True}, rotate={"after": "1h", "overlap": "1h"})
    workspace, notes = open_on(sandbox, write_project(tmp_path, adopted), now=lambda: in_hours(1.5)), list[str]()

    def note(event: OperationEvent) -> None:
        if isinstance(event, Note):
            notes.append(event.text)

    if command == "adopt":
        result = await workspace.adopt([at("TunnelCredential/c")], on_event=note)
    else:
        result = await workspace.apply(on_event=note)
    assert ([change.action for change in result.plan.changes], result.status) == (["adopt"], Status.APPLIED)
    due = "note: TunnelCredential/c: its one-time secret is due for rotation; the next apply will replace "
    dropped = "removed `id` of TunnelCredential/c from manifests/all.yaml: its owner record identifies the object now"
    assert notes == [due + created["id"] if command == "apply" else dropped]
    following = (await workspace.plan()).plan
    assert [(change.action, change.reason) for change in following.changes] == [("replace", "rotation")]


async def test_a_credential_that_is_still_due_after_its_replacement_is_an_error(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    root = write_project(tmp_path, credential(rotate={"after": "1h", "overlap": "1h"}))
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    result = await open_on(sandbox, root, now=lambda: in_hours(1.5)).apply()  # the platform's clock is behind
    assert [change.reason for change in result.remaining] == ["superseded", "rotation"]
    assert result.status is Status.FAILED


async def test_a_credential_that_became_due_after_its_plan_is_rotated_by_the_next_apply(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    rotate = {"after": "1h", "overlap": "1h"}
    root, file = write_project(tmp_path, credential(rotate=rotate)), tmp_path / "plan.json"
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    write_project(tmp_path, credential(rotate=rotate, spec={"acl": ["bind:*.example.com"]}))
    plan_files.write_plan(file, (await open_on(sandbox, root).plan()).plan, {})
    runtime = Runtime(environ=sandbox.environ, platform=sandbox, now=lambda: in_hours(1.5))
    opened, planned = open_with_plan(ProjectSource(root, runtime=runtime), file)
    workspace = Workspace.of(opened)
    result = await workspace.apply(planned)
    assert ([change.action for change in result.plan.changes], result.status) == (["update"], Status.APPLIED)


async def test_a_field_that_still_differs_is_an_error_while_a_rotation_is_due(sandbox: Sandbox, tmp_path: Path) -> None:
    created = sandbox.post("/credentials", {})
    more = {"id": created["id"], "lifecycle": {"adopt": True}, "spec": {"description": "new"}}
    root = write_project(tmp_path, credential(**more, rotate={"after": "1h", "overlap": "1h"}))

    def edit(event: OperationEvent) -> None:
        if isinstance(event, CallsEnded):
            sandbox.patch(f"/credentials/{created['id']}", {"description": "by hand"})

    result = await open_on(sandbox, root, now=lambda: in_hours(1.5)).apply(on_event=edit)
    assert [field.path for change in result.remaining for field in change.fields] == ["description"]
    assert result.status is Status.FAILED
