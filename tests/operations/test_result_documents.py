"""Results render themselves, as the commands do."""

from __future__ import annotations

import json
import re
from pathlib import Path

from reconciler import Workspace
from reconciler.testing import Sandbox
from tests.harness.workspaces import policy, write_project


async def test_every_result_renders_itself_as_the_commands_do(tmp_path: Path) -> None:
    root = write_project(tmp_path / "project", policy("office"))
    with Sandbox() as sandbox:
        workspace = Workspace.open(root, runtime=sandbox.runtime())
        planned, applied = await workspace.plan(), await workspace.apply()
        drift, status, access = await workspace.drift(), await workspace.status(), await workspace.access()
        (valid,) = Workspace.validate(root, runtime=sandbox.runtime())
    for result in (planned, applied, drift, status, access, valid):
        assert isinstance(json.loads(result.to_json()), dict | list)
        assert result.html().startswith("<!doctype html>")
        assert re.search("^#+ .", result.markdown(), re.MULTILINE)
    assert "IPPolicy/office" in planned.markdown()
    assert json.loads(planned.to_json())["stack"] == "prod"
    assert json.loads(applied.to_json())["status"] == "applied"
