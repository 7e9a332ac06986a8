"""The JSON Schema of components: the file with inputs, and the documents that use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from reconciler import kinds
from reconciler.languages.yaml import reader as yaml
from reconciler.model.address import Address
from reconciler.rendering.schemas import component
from reconciler.rendering.schemas.component import InputForm
from reconciler.rendering.schemas.manifest import definitions, manifest_schema, reference_definitions
from tests.harness.golden import compare_golden
from tests.harness.schemas import check_schema

FORMS = {
    "service": {
        "host": InputForm("string", "The host name.", is_required=True),
        "paths": InputForm("map", default={}),
        "is_open": InputForm("boolean"),
    },
    "plain": {},
}
MANIFEST = component.add_uses(manifest_schema(kinds.declarable()), FORMS)
EXAMPLES = Path(__file__).parents[2] / "examples" / "components"
USE: dict[str, Any] = {"component": "service", "name": "shop", "with": {"host": "a.example.com"}}


@pytest.fixture(scope="module")
def manifests() -> Draft202012Validator:
    check_schema(MANIFEST)
    return Draft202012Validator(MANIFEST)


@pytest.fixture(scope="module")
def components() -> Draft202012Validator:
    """A validator that finds manifest.json, as an editor does beside component.json."""
    registry = Registry().with_resource("manifest.json", Resource.from_contents(MANIFEST))
    check_schema(component.component_schema())
    return Draft202012Validator(component.component_schema(), registry=registry)


@pytest.mark.parametrize(
    "document",
    [
        USE,
        {**USE, "for_each": ["a"], "when": "${{ var.on }}", "moved": ["store"]},
        {**USE, "for_each": {"a": 1}, "moved": {"a": "b"}},
        {"component": "plain", "name": "a"},
        {"component": "plain", "name": "a", "with": None},
        {"kind": "IPPolicy", "name": "a", "when": False, "spec": {}},
        {"kind": "IPPolicy", "name": "${{ each.key }}", "for_each": ["a"], "moved": {"a": "IPPolicy/b"}, "spec": {}},
    ],
)
def test_uses_and_manifests_are_accepted(manifests: Draft202012Validator, document: dict[str, Any]) -> None:
    assert [error.message for error in manifests.iter_errors(document)] == []


@pytest.mark.parametrize(
    "document",
    [
        {"component": "plain"},
        {"component": "servise", "name": "a"},
        {**USE, "spec": {}},
        {**USE, "with": {"host": "a", "is_open": 1}},
        {"component": "plain", "name": "a", "with": {"host": "a"}},
        {"name": "a"},
    ],
)
def test_wrong_uses_are_refused(manifests: Draft202012Validator, document: dict[str, Any]) -> None:
    assert not manifests.is_valid(document)


def test_the_components_of_the_example_are_valid() -> None:
    registry = Registry().with_resource("manifest.json", Resource.from_contents(_with_any_component()))
    validator = Draft202012Validator(component.component_schema(), registry=registry)
    for file in sorted((EXAMPLES / "components").glob("*.yaml")):
        for document in yaml.read(file.read_bytes(), file.name).documents:
            assert [error.message for error in validator.iter_errors(document.value)] == []


def _with_any_component() -> dict[str, Any]:
    return component.add_uses(manifest_schema(kinds.declarable()), {})


@pytest.mark.parametrize(
    "document",
    [
        {"inputs": {"a": {}}},
        {"inputs": {"a": {"type": "text"}}},
        {"inputs": {"a b": {"type": "string"}}},
        {"inputs": {}, "outputs": {}},
        {"kind": "IPPolicy"},
        {"kind": "IPPolicy", "name": "a", "spec": {"descriptoin": "x"}},
    ],
)
def test_a_wrong_document_of_a_component_is_refused(components: Draft202012Validator, document: dict[str, Any]) -> None:
    assert not components.is_valid(document)


def test_the_resources_and_components_of_a_project_are_in_its_schemas() -> None:
    """References to its resources, and uses of its components."""
    names = [Address.parse(text) for text in ("TLSEdge/shop", "IPPolicy/office", "IPPolicy/a.b")]
    edges = [kind for kind in kinds.declarable() if kind.name in ("TLSEdge", "HTTPSEdge")]
    policies = component.add_uses(manifest_schema([kinds.get("IPPolicy")]), FORMS)
    parts = {
        "value": definitions(names)["value"],
        "no value": definitions([])["value"],
        "references": reference_definitions(edges, iter(names)),
        "uses": {key: value for key, value in policies.items() if key != "$defs"},
        "use": policies["$defs"]["use"],
        "any use": _with_any_component()["$defs"]["use"]["properties"]["component"],
    }
    alone = component.add_uses(manifest_schema([]), {"a": {"b": InputForm("list", default=0)}})
    text = json.dumps({**parts, "optional": alone["$defs"]["use"]["allOf"]}, indent=1)
    compare_golden(Path(__file__).parent / "pages" / "project-schemas.json", text + "\n")
