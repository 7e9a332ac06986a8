"""The state of a stack: sync, health, what comes due, and what name servers answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.health import Actor, Health, State
from reconciler.model.history import DriftCheck, DriftedResource
from reconciler.model.status import Synced
from reconciler.operations.drift import record_drift
from reconciler.operations.opening.stores import open_drift_history
from reconciler.operations.results import Status
from reconciler.operations.status import join_health
from reconciler.operations.workspace import Workspace
from reconciler.rendering import status as rendering
from reconciler.testing import Sandbox
from tests.harness.name_server import free_port, name_server
from tests.harness.project import Project, resource
from tests.harness.workspaces import Document, open_on, policy, write_project

DAY = 86_400.0


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def domain_with_policy(name: str) -> Document:
    """A domain with a certificate that the platform obtains."""
    spec = {"domain": f"{name}.example.com", "certificate_management_policy": {"authority": "letsencrypt"}}
    return {"kind": "ReservedDomain", "name": name, "spec": spec}


async def apply(sandbox: Sandbox, root: Path, *documents: Document, settings: str = "") -> Workspace:
    workspace = open_on(sandbox, write_project(root, *documents, settings=settings))
    assert (await workspace.apply()).status is Status.APPLIED
    return workspace


async def test_a_status_has_sync_health_and_dates(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.provision({"host": "bad.*", "error_code": "DNS_ERROR", "retry_after": DAY})
    soon = datetime.now(UTC).date().isoformat()
    settings = f"drift: {{ignore: [{{match: IPPolicy/none, until: {soon}, reason: x}}]}}\n"
    workspace = await apply(sandbox, tmp_path, policy("office"), domain_with_policy("bad"), settings=settings)
    status = await workspace.status()
    assert (status.sync.state, status.sync.is_now, status.exit_code) == (Synced.YES, True, 7)
    assert [(row.address, row.health.state) for row in status.health] == [("ReservedDomain/bad", State.DEGRADED)]
    assert ("IPPolicy/none", "is no longer known drift") in [(due.subject, due.event) for due in status.dates]
    (office,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{office['id']}", {"description": "by hand"})
    assert (await workspace.status()).sync.drifted == ("IPPolicy/office",)


async def test_sync_is_last_known_if_a_list_is_incomplete(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = await apply(sandbox, tmp_path, policy("office"))
    sandbox.fault("GET /ip_policies*", then="status", status=400, times=0)
    status = await workspace.status()
    assert (status.sync.state, status.sync.at, status.exit_code) == (Synced.UNKNOWN, None, 2)
    sandbox.reset()
    workspace = await apply(sandbox, tmp_path, policy("office"))
    await record_drift(workspace, await workspace.drift())
    sandbox.fault("GET /ip_policies*", then="status", status=400, times=0)
    status = await workspace.status()
    assert (status.sync.state, status.sync.is_now, status.exit_code) == (Synced.YES, False, 2)
    assert "last known from the drift check of" in rendering.render_text(status, 80)


async def test_sync_is_last_known_of_the_newest_check_that_read_the_whole_account(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """A check that could not read a list says neither that there is drift nor that there is none."""
    workspace = await apply(sandbox, tmp_path, policy("office"))
    sandbox.fault("GET /ip_policies*", then="status", status=400, times=0)
    now = workspace.runtime.now()
    drifted = DriftedResource(Address("IPPolicy", "office"), Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM)
    pending = replace(drifted, changed_by=ChangedBy.GIT)
    expected = None
    for place, (complete, moved) in enumerate(
        [(False, (drifted,)), (True, ()), (False, (drifted,)), (True, (drifted, pending)), (False, ())]
    ):
        check = DriftCheck(now - 60 + place, 1, moved=moved, complete=complete)
        async with open_drift_history(workspace.config) as history:
            await history.record("prod", check)
        expected = check if complete else expected
        sync = (await workspace.status()).sync
        assert (sync.at, sync.is_now) == (expected and expected.at, False)
        if expected is None:
            assert (sync.state, sync.drifted, sync.pending) == (Synced.UNKNOWN, (), ())
        else:
            assert sync.state is (Synced.DRIFT if expected.drift else Synced.YES)
            assert [len(sync.drifted), len(sync.pending)] == [len(expected.drift), len(expected.git_changes)]


async def test_an_empty_project_is_healthy(sandbox: Sandbox, tmp_path: Path) -> None:
    status = await open_on(sandbox, write_project(tmp_path)).status()
    assert (status.health, status.exit_code) == ((), 0)
    assert "no resource has health" in rendering.render_text(status, 80)


def test_the_worse_of_platform_and_dns_counts() -> None:
    degraded = Health(State.DEGRADED, "DNS_ERROR since 14:02: points to old.example.net", actor=Actor.ZONE_OWNER)
    waits = Health(State.DEGRADED, "the certificate waits for DNS", due=5.0)
    healthy = Health(State.HEALTHY)
    assert join_health(waits, [healthy, degraded]).reason == degraded.reason
    assert join_health(waits, [degraded]).due == 5.0
    assert join_health(healthy, [Health(State.UNKNOWN, "no answer")]).state is State.UNKNOWN
    assert join_health(waits, [Health(State.UNKNOWN), healthy]) == waits
    assert join_health(healthy, []) == healthy


async def test_verification_joins_platform_and_dns_in_one_sentence(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.provision({"host": "shop.*", "error_code": "DNS_ERROR", "retry_after": DAY})
    workspace = await apply(sandbox, tmp_path, domain_with_policy("shop"), settings="dns: {zones: [example.com]}\n")
    zone, port = tmp_path / "zone", free_port()
    with name_server("127.0.0.1", port, {"example.com.": zone}):
        zone.write_text("shop.example.com. 60 IN CNAME old.example.net.\n")
        (found,) = (await workspace.status(verify=True, name_server=f"127.0.0.1:{port}")).health
    assert found.health.reason.startswith("DNS_ERROR since ")
    assert "shop.example.com CNAME points to old.example.net" in found.health.reason
    assert "the platform retries at" in found.health.reason
    assert found.health.actor is Actor.ZONE_OWNER


def test_the_command_prints_one_screen_in_utc(
    sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    monkeypatch.setenv("NO_COLOR", "1")
    project = Project(tmp_path / "project", capsys)
    project.use(sandbox)
    project.write("reconciler.yaml", "version: 1\nstack: prod\nlimits: {requests_per_minute: 100000}\n")
    project.declare(resource("IPPolicy", "office"), resource("ReservedDomain", "shop", domain="shop.example.com"))
    project("apply", "-y")
    result = project("status")
    assert result.code == 2
    assert "UTC" in result.out
    assert "Sync: in sync (read now)" in result.out
    assert "~ ReservedDomain/shop" in result.out
    assert json.loads(project("status", "--format", "json", "--target", "IPPolicy/*").out)["health"] == []
    assert project("status", "--nameserver", "127.0.0.1").code == 64
