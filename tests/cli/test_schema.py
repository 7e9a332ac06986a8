"""`schema`: the JSON Schemas for editors."""

from __future__ import annotations

from tests.harness.project import Shell


def test_schemas_for_editors_are_written_to_the_folder(shell: Shell) -> None:
    assert shell("schema", "--all", ".reconciler/schemas").code == 0
    names = sorted(path.name for path in (shell.root / ".reconciler/schemas").iterdir())
    assert names == ["access-tests.json", "environment.json", "fleet.json", "manifest.json", "project.json"]
    assert shell("schema").code == 64
