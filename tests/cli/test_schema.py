"""`schema`: the JSON Schemas for editors."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from tests.harness.project import Shell


def test_schemas_for_editors_are_written_to_the_folder(shell: Shell) -> None:
    assert shell("schema", "--all", ".reconciler/schemas").code == 0
    names = sorted(path.name for path in (shell.root / ".reconciler/schemas").iterdir())
    assert names == [
        "access-tests.json",
        "component.json",
        "environment.json",
        "fleet.json",
        "manifest.json",
        "project.json",
    ]
    assert shell("schema").code == 64


def test_manifests_are_checked_for_the_components_of_the_project(shell: Shell) -> None:
    shell.write(
        "components/service.yaml",
        "inputs:\n  host: {type: string, description: The host.}\n  paths: {type: map, default: {}}\n",
    )
    shell.write("components/broken.yaml", "inputs: [\n")
    assert shell("schema", "--all", ".schemas").code == 0
    schema = json.loads((shell.root / ".schemas/manifest.json").read_text())
    validator = Draft202012Validator(schema)
    wrong: list[dict[str, object]] = [{}, {"paths": {}}, {"host": 7}, {"host": "a", "x": 1}, {"host": "a", "paths": []}]
    use = {"component": "service", "name": "shop"}
    assert schema["properties"]["component"]["enum"] == ["service"]
    assert validator.is_valid({**use, "with": {"host": "a", "paths": {"x": 1}}})
    assert validator.is_valid({**use, "with": {"host": {"ref": "TLSEdge/a"}, "paths": "${{ var.paths }}"}})
    for values in wrong:
        assert not validator.is_valid({**use, "with": values})
    assert not validator.is_valid(use)
