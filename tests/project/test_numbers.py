"""A number is spelled the same on each way into a manifest; a field of a number has the number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.model import owner_record
from reconciler.model.address import Address
from reconciler.model.value import json_text
from reconciler.planning.comparing.canonical_fields import body_value
from reconciler.project.fleets import members
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config

SPELLINGS = ("1.10", "1e3", "1.0", "007", "0x1F", "10", "-2.50")
HEAD = "version: 1\nstack: prod\n"
BACKEND = "kind: HTTPResponseBackend\nname: a\nspec: {body: %s, headers: {x: %s}}\n"
EACH = 'kind: HTTPResponseBackend\nname: "a-${{ each.key }}"\nfor_each: %s\nspec: {body: %s}\n'


def spec_of(root: Path, manifest: str, settings: str = HEAD, **variables: Any) -> dict[str, Any]:
    """The spec of the only declaration of a project."""
    (root / "manifests").mkdir(exist_ok=True)
    (root / "manifests/a.yaml").write_text(manifest, encoding="utf-8")
    (root / "reconciler.yaml").write_text(settings, encoding="utf-8")
    environment = "prod" if (root / "environments").exists() else None
    (declaration,) = load_manifests(load_config(root, {}, environment), {}, variables).manifest.declarations.values()
    return dict(declaration.spec)


@pytest.mark.parametrize("spelled", SPELLINGS)
@pytest.mark.parametrize(
    "text", ["${{ var.x }}", "v${{ var.x }}", "${{ format('{0}', var.x) }}", "${{ default('', var.x) }}"]
)
def test_a_variable_in_text_is_its_spelling(tmp_path: Path, spelled: str, text: str) -> None:
    spec = spec_of(tmp_path, BACKEND % (f'"{text}"', '"y"'), f"{HEAD}variables: {{x: {spelled}}}\n")
    assert spec["body"] == f"{'v' if text.startswith('v') else ''}{spelled}"


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_a_variable_of_the_command_line_and_of_an_environment_is_its_spelling(tmp_path: Path, spelled: str) -> None:
    settings = f"{HEAD}variables: {{x: {{type: number, default: 3}}}}\n"
    assert spec_of(tmp_path, BACKEND % ('"${{ var.x }}"', '"y"'), settings, x=spelled)["body"] == spelled
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text(f"variables: {{x: {spelled}}}\n", encoding="utf-8")
    assert spec_of(tmp_path, BACKEND % ('"${{ var.x }}"', '"y"'), settings)["body"] == spelled


@pytest.mark.parametrize("spelled", SPELLINGS)
@pytest.mark.parametrize(
    ("items", "text"),
    [
        ("{k: %s}", "${{ each.value }}"),
        ("{k: {v: %s}}", "x ${{ each.value.v }}"),
        ("{k: %s}", "${{ format('{0}', each.value) }}"),
        ("{k: %s}", "${{ format('{0}{1}', each.value, var.empty) }}"),
        ("[%s]", "${{ each.key }}"),
    ],
)
def test_a_value_of_for_each_is_its_spelling(tmp_path: Path, spelled: str, items: str, text: str) -> None:
    settings = f'{HEAD}variables: {{empty: ""}}\n'
    spec = spec_of(tmp_path, EACH % (items % spelled, f'"{text}"'), settings)
    assert str(spec["body"]).removeprefix("x ") == spelled


@pytest.mark.parametrize("spelled", ["0.50", "5e-1", ".5", "0.5"])
def test_a_field_that_takes_a_number_gets_the_number(tmp_path: Path, spelled: str) -> None:
    manifest = (
        "kind: HTTPSEdgeRoute\nname: r\nspec:\n  edge_id: edghts_x\n  match_type: exact_path\n  match: /\n"
        f"  circuit_breaker: {{error_threshold_percentage: {spelled}}}\n"
    )
    share = spec_of(tmp_path, manifest)["circuit_breaker"]["error_threshold_percentage"]
    assert (share, type(share)) == (0.5, float)


@pytest.mark.parametrize("spelled", ["1.10", "1e3", "-2.50"])
def test_a_number_in_a_patch_of_a_policy_has_its_spelling(tmp_path: Path, spelled: str) -> None:
    (tmp_path / "environments").mkdir()
    patch = f"{{on_http_request: [{{actions: [{{type: log, config: {{metadata: {{v: {spelled}}}}}}}]}}]}}"
    (tmp_path / "environments/prod.yaml").write_text(
        f"CloudEndpoint/a: {{spec: {{traffic_policy: {patch}}}}}\n", encoding="utf-8"
    )
    manifest = (
        "kind: CloudEndpoint\nname: a\nspec: {url: 'https://a.internal', traffic_policy: {on_http_request: []}}\n"
    )
    from reconciler import kinds

    policy = spec_of(tmp_path, manifest)["traffic_policy"]
    assert f'"v": {spelled}}}' in body_value(kinds.get("CloudEndpoint").by_name["traffic_policy"], policy)


def test_json_members_and_metadata_keep_the_spelling_of_a_number() -> None:
    [number] = members._read_json("[1.10]", "m.json").entries
    assert str(number) == "1.10"
    assert json_text(number) == "1.10"
    owner = owner_record.Owner("prod", Address("IPPolicy", "a"), "0" * 16)
    reformatted = owner_record.write('{"version":1.10}', owner).replace(",", ", ").replace(':"', ': "')
    assert owner_record.read(reformatted)[0] == '{"version":1.10}'
