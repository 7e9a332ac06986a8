"""An `id:` in a manifest whose object somebody deleted: only this resource is affected, and it is created again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler import Status
from reconciler.testing import Sandbox
from tests.harness.workspaces import open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


async def test_the_object_of_an_import_that_was_deleted_is_drift_and_is_created_again(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    made = sandbox.post("/ip_policies", {"description": "a"})
    imported: dict[str, Any] = {**policy("a"), "id": made["id"], "lifecycle": {"adopt": True}}
    root = write_project(tmp_path, imported, policy("b"))
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    sandbox.delete(f"/ip_policies/{made['id']}")
    drift = (await open_on(sandbox, root).drift()).plan
    assert (drift.has_drift, drift.errors) == (True, ())
    assert [(str(change.address), str(change.reason)) for change in drift.changes] == [("IPPolicy/a", "vanished")]
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    assert (await open_on(sandbox, root).plan()).plan.changes == ()  # although the manifest still has the id


async def test_ownership_of_a_deleted_object_without_a_binding_is_found_in_the_history(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """A revert of a deletion: the binding is gone with the object, the id is in the manifest again."""
    made = sandbox.post("/ip_policies", {"description": "a"})
    imported: dict[str, Any] = {**policy("a"), "id": made["id"], "lifecycle": {"adopt": True}}
    root = write_project(tmp_path, imported, policy("b"))
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    write_project(tmp_path, policy("b"))
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    write_project(tmp_path, imported, policy("b"))
    plan = (await open_on(sandbox, root).plan()).plan
    assert [str(change.reason) for change in plan.changes] == ["vanished"]
    assert plan.missing_approvals == ()
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
