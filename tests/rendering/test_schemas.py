"""The JSON Schemas are valid, accept valid documents and refuse invalid ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml import reader as yaml
from reconciler.model.address import Address
from reconciler.model.fields.field import fields_of
from reconciler.model.kind import Kind, PartOf
from reconciler.project.fleets.fleet_file import FleetFile
from reconciler.project.settings.project_file import ProjectFile
from reconciler.rendering.schemas import fleet, policy
from reconciler.rendering.schemas import manifest as manifest_schema
from reconciler.rendering.schemas import project as project_schema
from reconciler.rendering.schemas.access_tests import access_tests_schema
from reconciler.rendering.schemas.fleet import fleet_schema
from tests.harness.golden import compare_golden
from tests.harness.schemas import check_schema
from tests.kinds import manifests
from tests.rendering.made_up_kinds import KINDS, PLAIN, SILENT, WHOLE, Provider

ROOT = Path(__file__).parents[2]
EVERY = kinds.every()
MANIFEST = Draft202012Validator(manifest_schema.manifest_schema(EVERY))
FLEET = Draft202012Validator(fleet_schema(FleetFile))
PROJECT = Draft202012Validator(project_schema.project_schema(ProjectFile, EVERY))

each_kind = pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)


def edge(**spec: Any) -> dict[str, Any]:
    return {"kind": "TLSEdge", "name": "payments", "spec": spec}


@each_kind
def test_the_schema_of_a_kind_is_valid_and_accepts_its_example(kind: Kind) -> None:
    schema = manifest_schema.kind_schema(kind)
    check_schema(schema)
    assert [*Draft202012Validator(schema).iter_errors(manifests.document(kind))] == []


@each_kind
def test_the_manifest_schema_accepts_every_example_and_refuses_unknown_keys(kind: Kind) -> None:
    document = manifests.document(kind)
    assert MANIFEST.is_valid(document)
    assert not MANIFEST.is_valid({**document, "spec": {**document["spec"], "surprise": 1}})
    assert not MANIFEST.is_valid({**document, "surprise": 1})


def test_the_manifest_schema_is_valid() -> None:
    check_schema(manifest_schema.manifest_schema(EVERY))


@pytest.mark.parametrize(
    "document",
    [
        edge(),
        edge(description="x" * 255),
        edge(description="${{ var.text }}" * 100),
        edge(
            hostports=["a.example.com:443", {"ref": "ReservedDomain/app.domain"}, "${{ ReservedDomain/a.domain }}:443"]
        ),
        edge(backend=None, tls_termination={"terminate_at": "upstream", "min_version": None}),
        edge(tls_termination={"terminate_at": {"from_env": "WHERE"}}),
        edge(traffic_policy={"value": "on_http_request: []"}),
        edge(traffic_policy={"value": {"from_file": "policy.yaml"}}),
        edge(traffic_policy={"value": {"on_http_request": [{"actions": [{"type": "brand-new"}]}]}}),
        {"kind": "TLSEdge", "name": "gone", "ensure": "absent"},
        {"kind": "BotUser", "name": "gone", "ensure": "forgotten"},
        {"kind": "IPPolicy", "name": "office"},
        {**edge(), "id": "edgtls_1", "lifecycle": {"protect": True, "ignore": ["description"]}, "moved": "TLSEdge/old"},
        {**edge(), "moved": ["TLSEdge/old", "TLSEdge/older"]},
        {"kind": "HTTPSEdgeRoute", "name": "r", "id": "edghtsrt_1", "spec": {"edge_id": "edghts_1"}},
        {
            "kind": "HTTPResponseBackend",
            "name": "r",
            "spec": {"status_code": "${{ var.status }}", "headers": {"a": "b"}},
        },
        {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": {"token": {"to_file": "secrets/t"}}},
    ],
)
def test_a_valid_document_is_accepted(document: dict[str, Any]) -> None:
    assert [*MANIFEST.iter_errors(document)] == []


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"kind": "TLSEdge"},
        {"kind": "Nothing", "name": "a"},
        {"kind": "TLSEdge", "name": "no spaces"},
        edge(description="x" * 256),
        edge(description=7),
        edge(hostports="a.example.com:443"),
        edge(hostports=[7]),
        edge(hostports=[{"ref": "not an address"}]),
        edge(backend={"backend_id": {"ref": "TLSEdge/b"}}),
        edge(backend={"backend_id": "${{ IPPolicy/b }}"}),
        edge(ip_restriction={"ip_policy_ids": [{"ref": "IPPolicyRule/b"}]}),
        {
            "kind": "IPPolicyRule",
            "name": "r",
            "spec": {"ip_policy_id": {"ref": "TLSEdge/${{ each.key }}"}, "cidr": "a"},
        },
        edge(hostports=[{"ref": "ReservedDomain/app", "from_env": "X"}]),
        edge(backend={}),
        edge(backend={"backend_id": "b", "surprise": 1}),
        edge(tls_termination={"terminate_at": "nowhere"}),
        edge(traffic_policy={"value": {"on_http_request": [{"name": "no actions"}]}}),
        {"kind": "BotUser", "name": "b"},
        {"kind": "BotUser", "name": "b", "spec": {}},
        {"kind": "HTTPSEdgeRoute", "name": "r", "spec": {"edge_id": "edghts_1"}},
        {"kind": "HTTPResponseBackend", "name": "r", "spec": {"status_code": 600}},
        {**edge(), "ensure": "gone"},
        {**edge(), "lifecycle": {"protect": "yes"}},
        {**edge(), "deliver": {"token": {"to_file": "x"}}},
        {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": {"secret": {"to_file": "x"}}},
    ],
)
def test_an_invalid_document_is_refused(document: dict[str, Any]) -> None:
    assert not MANIFEST.is_valid(document)


def test_an_error_is_about_the_kind_that_the_document_names() -> None:
    (only,) = MANIFEST.iter_errors(edge(description=7, hostports=[]))
    assert [*only.absolute_path] == ["spec", "description"]


PROJECT_FILE: dict[str, Any] = {
    "version": 1,
    "stack": "prod",
    "platform": {"base_url": "https://api.example.com", "api_key": {"from_env": "KEY"}},
    "manifests": ["manifests/"],
    "limits": {"requests_per_minute": 120, "concurrency": 16, "settle_seconds": 10},
    "guards": {"max_delete_percent": 30, "max_update_percent": 30},
    "variables": {"REGION": "eu"},
    "store": "state/reconciler.db",
}


def test_the_project_schema_is_valid_and_accepts_a_project() -> None:
    check_schema(project_schema.project_schema(ProjectFile, EVERY))
    assert [*PROJECT.iter_errors(PROJECT_FILE)] == []


@pytest.mark.parametrize(
    "more",
    [
        {"version": 2},
        {"surprise": 1},
        {"platform": {"key": "x"}},
        {"limits": {"concurrency": 0}},
        {"guards": {"max_delete_percent": 101}},
        {"variables": ["REGION"]},
    ],
)
def test_an_invalid_project_is_refused(more: dict[str, Any]) -> None:
    assert not PROJECT.is_valid({**PROJECT_FILE, **more})


ENVIRONMENT = Draft202012Validator(project_schema.environment_schema(ProjectFile, EVERY))


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "IPPolicy", "name": "x-${{ each.key }}", "for_each": ["a", 1, {"n": 1}]},
        {"kind": "IPPolicy", "name": "${{ each.value.name }}", "for_each": {"a": {"name": "b"}}},
        {"kind": "IPPolicy", "name": "x-${{ each.key }}", "for_each": "${{ var.offices }}"},
        edge(hostports="${{ var.hostports }}", tls_termination="${{ each.value.tls }}"),
        edge(backend={"backend_id": {"ref": "FailoverBackend/pay-${{ each.key }}"}}),
        edge(backend={"backend_id": "${{ StaticBackend/web.id }}"}),
        edge(backend={"backend_id": "${{ var.backend }}"}, ip_restriction={"ip_policy_ids": ["${{ each.value }}"]}),
        edge(
            backend={"backend_id": {"from_env": "BACKEND"}},
            ip_restriction={"ip_policy_ids": [{"ref": "IPPolicy/a.id"}]},
        ),
    ],
)
def test_a_document_with_for_each_is_accepted(document: dict[str, Any]) -> None:
    assert [*MANIFEST.iter_errors(document)] == []


def test_a_reference_offers_and_accepts_only_the_resources_of_the_kinds_that_its_field_takes() -> None:
    names = [Address.parse(text) for text in ("IPPolicy/office", "StaticBackend/web", "TLSEdge/shop")]
    schema = manifest_schema.manifest_schema(EVERY, names)
    check_schema(schema)
    choices = {
        name: [*arms["properties"]["ref"]["anyOf"][0]["enum"]]
        for name, definition in schema["$defs"].items()
        if name.startswith("reference-")
        for arms in definition["anyOf"]
        if "ref" in arms["properties"]
    }
    assert choices["reference-IPPolicy"] == ["IPPolicy/office"]
    assert choices["reference-HTTPSEdge"] == []
    assert [found for name, found in choices.items() if "StaticBackend" in name] == [["StaticBackend/web"]]
    validator = Draft202012Validator(schema)
    refs = {"StaticBackend/web": True, "StaticBackend/web.id": True, "StaticBackend/web.address": False}
    refs |= {"StaticBackend/wob": False, "IPPolicy/office": False, "StaticBackend/w-${{ each.key }}": True}
    for ref, is_valid in refs.items():
        assert validator.is_valid(edge(backend={"backend_id": {"ref": ref}})) is is_valid


def test_an_environment_may_be_partial_and_remove_values() -> None:
    check_schema(ENVIRONMENT.schema)
    good = {
        "stack": "shop-prod",
        "guards": {"max_delete_percent": 5, "max_update_percent": None},
        "platform": {"api_key": {"from_env": "KEY"}},
        "variables": {"region": "us", "offices": ["a"]},
        "IPPolicyRule/a": {"spec": {"cidr": "10.0.0.0/8", "description": None}, "lifecycle": {"protect": True}},
        "TLSEdge/pay": {"spec": {"backend": None, "tls_termination": {"min_version": None}}},
        "IPPolicy/office": None,
    }
    assert [*ENVIRONMENT.iter_errors(good)] == []


@pytest.mark.parametrize(
    "document",
    [{"stak": "x"}, {"TLSEdg/a": {}}, {"TLSEdge/a": {"name": "b"}}, {"TLSEdge/a": {"spec": {"hostport": []}}}],
)
def test_an_invalid_environment_is_refused(document: dict[str, Any]) -> None:
    assert not ENVIRONMENT.is_valid(document)


MEMBERS: dict[str, Any] = {"fleet": "shops", "members": "m.csv", "api_key": {"from_env": "KEY_${{ member.name }}"}}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"members": [{"name": "a", "labels": {"tier": "gold"}, "variables": {"size": 3}}]},
        {"projects": [{"name": "a", "path": "a", "after": ["b"], "select": {"tier": ["gold"], "name": "x*"}}]},
        {"waves": [{"name": "a", "percent": 5, "max_failures": "5%", "min_success_time": "10m", "approve": True}]},
        {"guards": {"max_changed": 3, "max_deletes": 0}, "limits": {"members_at_once": 4, "start_spread": "30s"}},
        {"workers": [{"select": {"region": "eu"}, "needs": "keys-eu"}], "store": "state/fleet.db"},
        {"api_key": {"from_vault": {"path": "a/${{ member.name }}"}}},
    ],
)
def test_the_fleet_schema_accepts_a_valid_file(more: dict[str, Any]) -> None:
    check_schema(fleet_schema(FleetFile))
    assert [*FLEET.iter_errors(MEMBERS | more)] == []


@pytest.mark.parametrize(
    "more",
    [
        {"wave": []},
        {"members": "members.txt"},
        {"members": [{"nmae": "a"}]},
        {"projects": [{"name": "A"}]},
        {"waves": [{"name": "a", "percent": 0}]},
        {"waves": [{"name": "a", "max_failures": "200%"}]},
        {"waves": [{"name": "a", "min_success_time": "10"}]},
        {"api_key": "abc"},
        {"api_key": {}},
        {"workers": [{"select": {"region": 3}, "needs": "x"}]},
    ],
)
def test_the_fleet_schema_refuses_an_invalid_file(more: dict[str, Any]) -> None:
    assert not FLEET.is_valid(MEMBERS | more)


# --- access tests

ACCESS_TESTS = Draft202012Validator(access_tests_schema())
MISTAKES = ROOT / "tests/project/mistakes/access-tests"
FOUND_BY_SCHEMA = {"misspelled-choices", "misspelled-providers", "not-a-list", "unknown-keys", "wrong-types"}


def read_tests(text: str) -> Any:
    return yaml.read(text.encode(), "f").documents[0].value


def test_the_schema_of_access_tests_accepts_the_examples_of_the_page() -> None:
    page = (ROOT / "docs/access.md").read_text(encoding="utf-8")
    for text in re.findall(r"```yaml\n(# tests/access.yaml\n.*?)```", page, re.DOTALL):
        ACCESS_TESTS.validate(read_tests(text))
    ACCESS_TESTS.validate(None)  # an empty file


@pytest.mark.parametrize("file", sorted(MISTAKES.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_schema_of_access_tests_finds_typos_and_wrong_types(file: Path) -> None:
    value = read_tests(file.read_text(encoding="utf-8").partition("# ")[0])
    assert ACCESS_TESTS.is_valid(value) != (file.stem in FOUND_BY_SCHEMA)


def test_the_schema_of_a_kind_with_every_trait_is_as_reviewed() -> None:
    found = {
        "document": manifest_schema.document(WHOLE),
        "entry": manifest_schema._entry(replace(WHOLE, part_of=PartOf("TLSEdge", "url"))),
        "references": manifest_schema.reference_definitions([WHOLE, PLAIN]),
        "spec of a file": manifest_schema.document(KINDS["file"])["properties"].keys() - {"spec"},
        "undescribed": manifest_schema.document(SILENT)["description"],
        "defaults": project_schema._defaults_of(WHOLE),
        "patch": project_schema._patch(PLAIN),
        "policy or file": [shape(fields_of(Provider)) for shape in (policy._object, fleet._object)],
    }
    text = json.dumps(found, indent=1, ensure_ascii=False, default=sorted)
    compare_golden(Path(__file__).parent / "pages" / "made-up-schemas.json", text + "\n")
