"""`explain Kind/name` shows no secret, whichever way it entered a declaration and whatever overrides it."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.problem import Rejected
from reconciler.project.manifests import trace as value_trace
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings import variables
from reconciler.project.settings.config import load_config
from reconciler.rendering import provenance
from tests.harness.tiers import examples

CANARY = "hunter2-S3CR3T"
REFERS = {
    "Vault": {"name": "vault"},
    "HTTPSEdge": {"hostports": ["a.example.com:443"]},
}
SPECS: dict[str, Any] = {  # a valid one of each kind that has something sensitive and takes plain text there
    "Secret": {"vault_id": {"ref": "Vault/other"}, "name": "n", "value": CANARY},
    "EventDestination": {
        "target": {"logs": {"log_group_arn": "g", "auth": {"creds": {
            "cloud_access_key_id": "id", "cloud_secret_access_key": CANARY}}}},
    },
    "HTTPSEdgeRoute": {
        "edge_id": {"ref": "HTTPSEdge/other"}, "match_type": "path_prefix", "match": "/",
        "webhook_verification": {"provider": "github", "secret": CANARY},
        "traffic_policy": {"value": {"on_http_request": []}},
        "oidc": {"issuer": "https://i.example.com", "client_id": "c", "client_secret": CANARY},
    },
    "AgentConfig": {"authtoken": CANARY, "tunnels": {"web": {"proto": "http", "addr": "80"}}},
}  # fmt: skip


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of a spec's maps and of the values in them."""
    inside = [found for key, item in value.items() for found in places(item, (*path, key))] if is_map(value) else []
    return [path, *inside] if path else inside


def is_map(value: Any) -> bool:
    return isinstance(value, dict) and "ref" not in value


def put(value: Any, path: tuple[str, ...], new: Any) -> Any:
    if not path:
        return new
    return {**value, path[0]: put(value.get(path[0], {}), path[1:], new)}


def at(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        value = value[part]
    return value


ELSEWHERE = st.sampled_from(["here", "variable", "item", "item of a variable", "key"])
COVERS = st.sampled_from(["nothing", "null", "text", "the same", "forgotten"])


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_origin_shows_a_secret(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(SPECS)))
    spec: Any = SPECS[kind]
    path = data.draw(st.sampled_from(places(spec)))
    moved, how = at(spec, path), data.draw(ELSEWHERE)
    project: dict[str, Any] = {"stack": "s"}
    manifest: dict[str, Any] = {"kind": kind, "name": "it"}
    name = "it"
    if how != "here":
        written = "${{ each.key }}" if how == "key" else "${{ each.value.it }}"
        spec = put(spec, path, "${{ var.it }}" if how == "variable" else written)
        if how == "variable":
            project["variables"] = {"it": {"type": "map" if isinstance(moved, dict) else "string", "default": moved}}
        else:
            name = "it-it"
            items = {"it": {"it": moved}}
            manifest = {"kind": kind, "name": "it-${{ each.key }}", "for_each": items}
            if how == "item of a variable":
                project["variables"] = {"all": {"type": "map", "default": items}}
                manifest["for_each"] = "${{ var.all }}"
    if data.draw(st.booleans()):  # what no kind has is wrong only where nothing takes it away
        spec = spec | {"unknown": CANARY, "misplaced": {"value": CANARY}}
    if data.draw(st.booleans()):
        project["defaults"] = {kind: {"spec": SPECS[kind] | {"unknown too": {"value": CANARY}}}}
    manifest["spec"] = spec
    patch: Any = {"unknown": None, "misplaced": None, "unknown too": None}
    cover = data.draw(COVERS)
    if cover == "forgotten":
        environment = {"ensure": "forgotten", "spec": None}
    else:
        covered = data.draw(st.sampled_from(places(SPECS[kind])))
        if cover != "nothing":
            patch = put(patch, covered, {"null": None, "text": "text", "the same": at(SPECS[kind], covered)}[cover])
        environment = {"spec": patch}
    documents = [manifest, *({"kind": refer, "name": "other", "spec": REFERS[refer]} for refer in REFERS)]
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for part in ("manifests", "environments"):
            (root / part).mkdir()
        (root / "reconciler.yaml").write_text(json.dumps(project))
        (root / "manifests/a.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
        (root / "environments/prod.yaml").write_text(json.dumps({f"{kind}/{name}": environment}))
        try:
            read = load_config(root, {}, "prod")
            loaded = load_manifests(read, {}, {})
        except Rejected:
            return
        declared = {**loaded.manifest.declarations, **loaded.rendered}
        settled = variables.settle_variables(read.settings, {}, [])
        for below in ((), *places(SPECS[kind])):
            traces = value_trace.trace_values(declared[Address(kind, name)], below, read, settled, declared)
            assert CANARY not in repr(traces)
            assert CANARY not in provenance.render_provenance("it", traces, [None] * len(traces), 10_000)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("EventDestination", ("target",)),
        ("EventDestination", ("target", "logs", "auth")),
        ("HTTPSEdgeRoute", ("oidc",)),
    ],
)
@pytest.mark.parametrize("value", [CANARY, [CANARY], {"key": CANARY}])
def test_a_value_in_the_place_of_an_object_with_a_secret_is_hidden(
    kind: str, path: tuple[str, ...], value: Any
) -> None:
    """The file is invalid, and the secret may have been written one level too high."""
    assert CANARY not in str(value_trace.show_value(kind, path, value))
