"""The health of the objects of a stack: which rows there are, and which lists are read for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.model.health import HealthRow, State
from reconciler.model.snapshot import Binding
from reconciler.operations.health import find_health, judge_known
from reconciler.operations.open_project import Selection
from reconciler.operations.results import Status
from reconciler.operations.workspace import Workspace
from reconciler.rendering.html.plan_page import render_page
from reconciler.testing import Sandbox
from tests.harness.builders import live, record, snapshot
from tests.harness.workspaces import Document, domain, open_on, policy, write_project

DAY = 86_400.0


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def domain_with_policy(name: str) -> Document:
    """A domain with a certificate that the platform obtains."""
    spec = {"domain": f"{name}.example.com", "certificate_management_policy": {"authority": "letsencrypt"}}
    return {"kind": "ReservedDomain", "name": name, "spec": spec}


def backend(name: str) -> Document:
    return {"kind": "TunnelGroupBackend", "name": name, "spec": {"labels": {"app": name}}}


async def apply(sandbox: Sandbox, root: Path, *documents: Document, settings: str = "") -> Workspace:
    workspace = open_on(sandbox, write_project(root, *documents, settings=settings))
    assert (await workspace.apply()).status is Status.APPLIED
    sandbox.forget_log()
    return workspace


async def judge(workspace: Workspace, *, others: bool = False) -> tuple[HealthRow, ...]:
    return await find_health(workspace, await workspace.take_snapshot(), others=others)


def states(rows: tuple[HealthRow, ...]) -> dict[str, State]:
    return {row.address: row.health.state for row in rows}


async def test_objects_of_the_stack_have_health_by_address(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.provision({"host": "bad.*", "error_code": "DNS_ERROR", "retry_after": DAY})
    workspace = await apply(sandbox, tmp_path, policy("office"), domain_with_policy("bad"), domain_with_policy("good"))
    sandbox.post("/reserved_domains", {"domain": "other.example.com"})
    rows = await judge(workspace)
    assert states(rows) == {"ReservedDomain/bad": State.DEGRADED, "ReservedDomain/good": State.HEALTHY}
    (other,) = await judge(workspace, others=True)
    assert (other.address, other.health.state) == ("", State.PROGRESSING)


async def test_lists_of_tunnels_are_read_only_if_something_needs_them(sandbox: Sandbox, tmp_path: Path) -> None:
    await judge(await apply(sandbox, tmp_path, domain("shop")))
    assert not [entry for entry in sandbox.log() if entry["path"].startswith("/tunnel")]
    rows = await judge(await apply(sandbox, tmp_path, domain("shop"), backend("web")))
    assert states(rows)["TunnelGroupBackend/web"] is State.PROGRESSING
    assert "/tunnels" in {entry["path"].partition("?")[0] for entry in sandbox.log()}


async def test_health_is_unknown_if_a_list_is_incomplete(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = await apply(sandbox, tmp_path, domain("shop"), backend("web"))
    sandbox.fault("GET /reserved_domains*", then="status", status=400, times=0)
    sandbox.fault("GET /tunnels*", then="status", status=403, times=0)
    rows = await judge(workspace)
    assert states(rows) == {"ReservedDomain/shop": State.UNKNOWN, "TunnelGroupBackend/web": State.UNKNOWN}
    assert "the list of ReservedDomain could not be read" in rows[0].health.reason


async def test_the_page_of_a_plan_has_the_health_of_what_changes_without_further_requests(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.provision({"host": "bad.*", "error_code": "DNS_ERROR", "retry_after": DAY})
    await apply(sandbox, tmp_path, domain_with_policy("bad"), backend("web"))
    changed = {**domain_with_policy("bad"), "spec": {**domain_with_policy("bad")["spec"], "description": "new"}}
    planned = await open_on(sandbox, write_project(tmp_path, changed, backend("web"))).plan()
    sandbox.forget_log()
    rows = judge_known(planned.project, planned.snapshot)
    page = render_page(planned.plan, health=rows)
    assert "Health before the change: degraded: the certificate waits for DNS" in page
    assert "Health before the change" not in render_page(planned.plan)
    assert states(rows)["TunnelGroupBackend/web"] is State.UNKNOWN
    assert sandbox.log() == []


async def test_only_selected_resources_have_health(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = await apply(sandbox, tmp_path, domain("shop"), backend("web"))
    chosen = workspace.select(Selection(targets=("ReservedDomain/*",)))
    assert list(states(await judge(chosen))) == ["ReservedDomain/shop"]
    assert not [entry for entry in sandbox.log() if entry["path"].startswith("/tunnel")]


async def test_the_time_before_an_expiry_can_be_set(sandbox: Sandbox, tmp_path: Path) -> None:
    authority = {"kind": "SSHCertificateAuthority", "name": "ca", "spec": {}}
    spec = {
        "ssh_certificate_authority_id": {"ref": "SSHCertificateAuthority/ca"},
        "principals": ["host.example.com"],
        "valid_after": "2020-01-01T00:00:00Z",
        "valid_until": "2030-01-01T00:00:00Z",
        "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqYjn6VvlHBzBkZrkKqzyOvvGzaZzRmVzvM0Zk3tQ8u",
    }
    certificate = {"kind": "SSHHostCertificate", "name": "host", "spec": spec}
    await apply(sandbox, tmp_path, authority, certificate)
    now = datetime(2029, 1, 1, tzinfo=UTC).timestamp
    assert states(await judge(open_on(sandbox, tmp_path, now=now)))["SSHHostCertificate/host"] is State.HEALTHY
    write_project(tmp_path, authority, certificate, settings="health: {expires_within: 999w}\n")
    rows = await judge(open_on(sandbox, tmp_path, now=now))
    assert states(rows)["SSHHostCertificate/host"] is State.DEGRADED


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize(
    "owner", [None, ("prod", "ReservedDomain/shop"), ("prod", "ReservedDomain/renamed"), ("dev", "ReservedDomain/shop")]
)
async def test_an_object_is_that_of_the_stack_in_its_owner_record_and_else_of_the_one_that_is_bound_to_it(
    sandbox: Sandbox, tmp_path: Path, bound: bool, owner: tuple[str, str] | None
) -> None:
    """It is judged once: as one of the stack, or among the others if another stack took it over."""
    workspace = open_on(sandbox, write_project(tmp_path))
    written = None if owner is None else record(owner[1], {}, stack=owner[0])
    bindings = {"ReservedDomain/shop": Binding("rd_1")} if bound else {}
    gone = {"ReservedDomain/gone": Binding("rd_9")}  # whose object no list shows
    seen = snapshot(live("ReservedDomain", "rd_1", {}, owner=written), bindings={**bindings, **gone})
    own = judge_known(workspace, seen)
    others = await find_health(workspace, seen, others=True)
    address = "ReservedDomain/shop" if bound else ""
    if owner is not None:
        address = owner[1] if owner[0] == "prod" else ""
    assert [row.address for row in own] == ([address] if address else [])
    assert [(row.address, row.id) for row in (*own, *others)] == [(address, "rd_1")]
