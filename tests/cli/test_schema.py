"""`schema`: the JSON Schemas for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from tests.harness.project import Shell
from tests.harness.schemas import check_schema


def test_schemas_for_editors_are_written_to_the_folder(shell: Shell) -> None:
    assert shell("schema", "--all", ".reconciler/schemas").code == 0
    names = sorted(path.name for path in (shell.root / ".reconciler/schemas").iterdir())
    assert names == [
        "access-tests.json",
        "component.json",
        "environment.json",
        "fleet.json",
        "manifest.json",
        "policy.json",
        "project.json",
    ]
    assert shell("schema").code == 64


def test_each_schema_is_valid_with_and_without_components(shell: Shell) -> None:
    """An editor checks nothing with a schema that is not."""
    without = write_schemas(shell)
    shell.write("components/service.yaml", "inputs: {}\n---\nkind: IPPolicy\nname: a\nspec: {}\n")
    with_component = write_schemas(shell)
    differing = {name: schema for name, schema in with_component.items() if schema != without[name]}
    assert "manifest.json" in differing
    for name, schema in (*without.items(), *differing.items()):
        check_schema(schema)
        assert list(find_empty_lists(schema)) == [], name


def write_schemas(shell: Shell) -> dict[str, Any]:
    """All schemas as the command writes them, without the comment that tells the names of the project."""
    folder = shell.root / ".reconciler/schemas"
    assert shell("schema", "--all", str(folder)).code == 0
    found = {file.name: json.loads(file.read_text()) for file in folder.iterdir()}
    return {name: {key: value for key, value in schema.items() if key != "$comment"} for name, schema in found.items()}


def find_empty_lists(schema: object, path: str = "") -> Iterator[str]:
    """Where a word that takes schemas has none."""
    entries = schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ()
    for key, value in entries:
        if key in ("allOf", "anyOf", "oneOf") and value == []:
            yield f"{path}/{key}"
        yield from find_empty_lists(value, f"{path}/{key}")


def test_manifests_are_checked_for_the_components_of_the_project(shell: Shell) -> None:
    shell.write(
        "components/service.yaml",
        "inputs:\n  host: {type: string, description: The host.}\n  paths: {type: map, default: {}}\n",
    )
    shell.write("components/broken.yaml", "inputs: [\n")
    assert shell("schema", "--all", ".reconciler/schemas").code == 0
    schema = json.loads((shell.root / ".reconciler/schemas/manifest.json").read_text())
    validator = Draft202012Validator(schema)
    wrong: list[dict[str, object]] = [{}, {"paths": {}}, {"host": 7}, {"host": "a", "x": 1}, {"host": "a", "paths": []}]
    use = {"component": "service", "name": "shop"}
    assert schema["properties"]["component"]["enum"] == ["service"]
    assert validator.is_valid({**use, "with": {"host": "a", "paths": {"x": 1}}})
    assert validator.is_valid({**use, "with": {"host": {"ref": "TLSEdge/payments"}, "paths": "${{ var.paths }}"}})
    for values in wrong:
        assert not validator.is_valid({**use, "with": values})
    assert not validator.is_valid(use)


RULE = "kind: IPPolicyRule\nname: lan\nspec: {ip_policy_id: {ref: %s}, cidr: 203.0.113.0/24, action: allow}\n"


def is_known(shell: Shell, reference: str) -> bool:
    """Whether the schema of manifests accepts the reference."""
    schema = json.loads((shell.root / ".reconciler/schemas/manifest.json").read_text())
    return Draft202012Validator(schema).is_valid(yaml.safe_load(RULE % reference))


def test_the_schemas_of_a_project_know_the_names_of_its_resources(shell: Shell) -> None:
    assert shell("schema", "--all", ".reconciler/schemas").code == 0
    known = {name: is_known(shell, name) for name in ("IPPolicy/office", "IPPolicy/office.id", "IPPolicy/ofice")}
    assert known == {"IPPolicy/office": True, "IPPolicy/office.id": True, "IPPolicy/ofice": False}
    assert is_known(shell, '"IPPolicy/${{ each.key }}"')


def test_validate_updates_the_names_in_the_schemas(shell: Shell) -> None:
    """Also of a new project, whose schemas check the form of references only."""
    assert shell("init", "-y", "--no-check").code == 0
    assert is_known(shell, "IPPolicy/ofice")
    assert shell("validate").code == 0
    assert not is_known(shell, "IPPolicy/ofice")
    shell.write("manifests/new.yaml", "kind: IPPolicy\nname: ofice\n")
    file = shell.root / ".reconciler/schemas/manifest.json"
    assert shell("validate").code == 0
    assert is_known(shell, "IPPolicy/ofice")
    before = file.stat().st_ino
    shell.write("manifests/wrong.yaml", "kind: IPPolicy\nname: [\n")
    assert shell("validate").code == 1  # what a project that is not valid declares is not known
    (shell.root / "manifests/wrong.yaml").unlink()
    assert shell("validate").code == 0
    assert file.stat().st_ino == before


def test_the_schemas_of_an_invalid_project_check_the_form_of_references_only(shell: Shell) -> None:
    shell.write("manifests/wrong.yaml", "kind: IPPolicy\nname: [\n")
    result = shell("schema", "--all", ".reconciler/schemas")
    assert result.code == 0
    assert "references are checked by their form only, because the project is not valid" in result.err
    assert is_known(shell, "IPPolicy/ofice")


def test_a_schema_is_indented_by_two_spaces(shell: Shell) -> None:
    for words in (("schema", "BotUser"), ("sandbox", "openapi")):
        result = shell(*words)
        assert (result.code, result.out) == (0, json.dumps(json.loads(result.out), indent=2) + "\n"), words
