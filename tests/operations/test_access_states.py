"""After an apply, the sandbox lets in exactly who the plan said: with targets, replacements and refused calls."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from reconciler import Selection, Status, Workspace, kinds
from reconciler.access.account import Account, Resource
from reconciler.access.compare import analyze, compare, program_text
from reconciler.access.programs import Builder
from reconciler.planning import planner
from reconciler.testing import Sandbox
from tests.harness.workspaces import open_on, write_project

Document = dict[str, Any]


def declare(kind: str, name: str, **spec: Any) -> Document:
    return {"kind": kind, "name": name, "spec": spec}


def ref(address: str) -> dict[str, str]:
    return {"ref": address}


def allow(name: str, policy: str, cidr: str, action: str = "allow") -> Document:
    return declare("IPPolicyRule", name, ip_policy_id=ref(f"IPPolicy/{policy}"), cidr=cidr, action=action)


def route(name: str, path: str, **modules: Any) -> Document:
    backend = {"backend_id": ref("TunnelGroupBackend/web")}
    where = {"edge_id": ref("HTTPSEdge/shop"), "match_type": "path_prefix", "match": path}
    return declare("HTTPSEdgeRoute", name, **where, backend=backend, **modules)


RESTRICTED = {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/office")]}}
ANSWER = {"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}
SHOP = [
    declare("ReservedDomain", "shop", domain="shop.example.com"),
    declare("ReservedDomain", "rest", domain="*.example.com"),
    declare("IPPolicy", "office"),
    allow("office", "office", "203.0.113.0/24"),
    declare("TunnelGroupBackend", "web", labels={"app": "web"}),
    declare("HTTPSEdge", "shop", hostports=["shop.example.com:443"]),
    route("all", "/"),
    route("admin", "/admin", **RESTRICTED),
    declare(
        "CloudEndpoint",
        "rest",
        url="https://*.example.com",
        traffic_policy={
            "on_http_request": [{"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}]
        },
    ),
]
EDITED = [
    *(document for document in SHOP if document["name"] not in ("office", "admin")),
    declare("IPPolicy", "office"),
    allow("office", "office", "198.51.100.0/24"),
    allow("home", "office", "192.0.2.1/32", "deny"),
    route("admin", "/admins", **RESTRICTED),
    route("new", "/admin/new"),
]


async def list_states(workspace: Workspace) -> tuple[tuple[Resource, ...], tuple[Resource, ...]]:
    snapshot = await workspace.take_snapshot()
    return planner.list_states(workspace.manifest, snapshot, kinds.list_planned(), workspace.options)


def find_differences(one: Iterable[Resource], other: Iterable[Resource]) -> list[str]:
    builder = Builder()
    return [f"{change.verdict} {change.region}" for change in compare(Account(one, builder), Account(other, builder))]


def list_entry_points(resources: Iterable[Resource]) -> dict[str, str]:
    return {str(entry.region): program_text(entry.program) for entry in analyze(Account(resources))}


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection(targets=("IPPolicyRule/*",)),
        Selection(targets=("HTTPSEdgeRoute/*",)),
        Selection(replace=("IPPolicy/office",)),
    ],
    ids=["all", "rules", "routes", "replaced"],
)
async def test_the_account_is_as_predicted_after_an_apply(
    sandbox: Sandbox, tmp_path: Path, selection: Selection
) -> None:
    assert (await open_on(sandbox, write_project(tmp_path, *SHOP)).apply()).status is Status.APPLIED
    edited = open_on(sandbox, write_project(tmp_path, *EDITED))
    selected = edited.select(selection)
    before, predicted = await list_states(selected)
    assert find_differences(before, predicted) != []
    await selected.apply()
    live, _ = await list_states(edited)
    assert find_differences(predicted, live) == []
    assert list_entry_points(predicted) == list_entry_points(live)


async def test_the_account_is_as_predicted_for_the_changes_that_were_done(sandbox: Sandbox, tmp_path: Path) -> None:
    """A refused call leaves its resource as it was, and those that wait for it."""
    assert (await open_on(sandbox, write_project(tmp_path, *SHOP)).apply()).status is Status.APPLIED
    edited = open_on(sandbox, write_project(tmp_path, *EDITED))
    snapshot = await edited.take_snapshot()
    sandbox.fault("POST /ip_policy_rules", then="status", status=400, times=0)
    assert (await edited.apply()).status is Status.PARTIAL
    sandbox.delete("/_sandbox/faults")
    remaining = tuple(sorted(str(change.address) for change in (await edited.plan()).plan.changes))
    assert remaining
    options = edited.select(Selection(excludes=remaining)).options
    before, predicted = planner.list_states(edited.manifest, snapshot, kinds.list_planned(), options)
    live, _ = await list_states(edited)
    assert find_differences(before, live) != []
    assert find_differences(predicted, live) == []
