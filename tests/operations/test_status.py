"""The state of a stack: sync, health, what comes due, and how `reconciler status` shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.status import Due, StackStatus, Sync, Synced
from reconciler.operations.drift import record_drift
from reconciler.operations.results import Status
from reconciler.operations.status import join_health
from reconciler.operations.workspace import Workspace
from reconciler.rendering import status as rendering
from reconciler.rendering.html.status_page import render_page
from reconciler.testing import Sandbox
from tests.harness.name_server import free_port, name_server
from tests.harness.project import Project, resource
from tests.harness.workspaces import Document, open_on, policy, write_project

DAY = 86_400.0
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()


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


def build_status(*rows: HealthRow, sync: Sync | None = None, dates: tuple[Due, ...] = ()) -> StackStatus:
    return StackStatus("prod", "https://api.example.com", NOW, sync or Sync(Synced.YES, NOW), rows, dates)


def row(name: str, state: State, reason: str = "", actor: Actor = Actor.NOBODY, advice: str = "") -> HealthRow:
    return HealthRow(f"ReservedDomain/{name}", "rd_1", Health(state, reason, advice, actor))


ILL = build_status(
    row("shop", State.DEGRADED, "the certificate waits for DNS", Actor.ZONE_OWNER, "set shop.example.com CNAME x.test"),
    row("web", State.PROGRESSING, "the certificate is being obtained", Actor.PLATFORM),
    row("old", State.UNKNOWN, "the list of ReservedDomain could not be read"),
    row("good", State.HEALTHY),
    sync=Sync(Synced.DRIFT, NOW, drifted=("IPPolicy/office",), pending=("IPPolicy/new",)),
    dates=(Due(NOW + 3 * DAY, "TLSCertificate/shop", "expires"),),
)


@pytest.mark.parametrize(
    ("states", "sync", "code"),
    [
        ([], Sync(Synced.YES, NOW), 0),
        ([State.HEALTHY], Sync(Synced.YES, NOW), 0),
        ([State.HEALTHY, State.PROGRESSING], Sync(Synced.YES, NOW), 2),
        ([State.UNKNOWN], Sync(Synced.YES, NOW), 2),
        ([State.HEALTHY], Sync(Synced.DRIFT, NOW), 2),
        ([State.HEALTHY], Sync(Synced.YES, NOW, is_now=False), 2),
        ([State.HEALTHY], Sync(Synced.UNKNOWN), 2),
        ([State.PROGRESSING, State.DEGRADED, State.UNKNOWN], Sync(Synced.DRIFT, NOW), 7),
    ],
)
def test_the_exit_code_is_7_if_something_is_degraded_and_2_if_something_is_not_settled(
    states: list[State], sync: Sync, code: int
) -> None:
    assert build_status(*(row("a", state) for state in states), sync=sync).exit_code == code


def test_the_text_names_what_needs_a_person_first() -> None:
    assert rendering.render_text(ILL, 120) == (
        "Stack prod: https://api.example.com, 2026-06-01 12:00 UTC\n"
        "Sync: drift: 1 resource changed on the platform, 1 resource with unapplied changes in Git (read now)\n"
        "  changed on the platform: IPPolicy/office\n"
        "  unapplied: IPPolicy/new\n"
        "Health: 1 degraded, 1 progressing, 1 unknown, 1 healthy\n"
        "\n"
        "Needs a person:\n"
        "! ReservedDomain/shop: the certificate waits for DNS\n"
        "    zone owner: set shop.example.com CNAME x.test\n"
        "\n"
        "Progressing:\n"
        "~ ReservedDomain/web: the certificate is being obtained\n"
        "    platform\n"
        "\n"
        "Unknown:\n"
        "? ReservedDomain/old: the list of ReservedDomain could not be read\n"
        "\n"
        "In the next 30 days:\n"
        "  2026-06-04 12:00 UTC  TLSCertificate/shop expires\n"
    )


def test_the_text_fits_a_narrow_terminal() -> None:
    assert max(map(len, rendering.render_text(ILL, 40).splitlines())) <= 40


def test_text_of_the_platform_has_no_effect_in_any_format() -> None:
    status = build_status(row("shop", State.DEGRADED, "<script>|\x1b[31m`[x](y)\n::error::", advice="<b>"))
    assert "\x1b" not in rendering.render_text(status, 80) + rendering.render_markdown(status)
    assert "<script>|" not in render_page(status)
    assert json.loads(rendering.render_json(status))["health"][0]["advice"] == "<b>"


def test_every_format_has_reasons_and_dates() -> None:
    for text in (rendering.render_markdown(ILL), render_page(ILL), rendering.render_json(ILL)):
        for part in (
            "the certificate waits for DNS",
            "zone owner",
            "IPPolicy/office",
            "TLSCertificate/shop",
            "expires",
        ):
            assert part in text


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
