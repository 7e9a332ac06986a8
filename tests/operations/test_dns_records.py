"""DNS records of an account through the Python API."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.api import dns
from reconciler.model.dns import Evidence
from reconciler.model.health import State
from reconciler.operations import dns_records
from reconciler.operations.errors import OperationError, UnusableOutput
from reconciler.operations.results import Status
from reconciler.operations.workspace import Workspace
from tests.harness.name_server import free_port, name_server
from tests.harness.platform import Sandbox
from tests.harness.workspaces import Document, domain, open_on, write_project

ZONES = "dns: {zones: [example.com]}\n"


@pytest.fixture
async def workspace(sandbox: Sandbox, tmp_path: Path) -> Workspace:
    """The project of the reserved domain `shop.example.com`, applied."""
    opened = open_on(sandbox, write_project(tmp_path, domain("shop"), settings=ZONES))
    assert (await opened.apply()).status is Status.APPLIED
    return opened


async def test_only_the_lists_that_name_records_are_read(workspace: Workspace, sandbox: Sandbox) -> None:
    before = len(sandbox.log())
    records = await workspace.dns_records()
    assert [record.owner for record in records.records] == ["shop.example.com"]
    lists = sorted(call["path"].partition("?")[0] for call in sandbox.log()[before:])
    assert lists == ["/agent_ingresses", "/reserved_domains"]


async def test_plan_and_apply_ask_no_name_server(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Evidence:
        raise AssertionError("a name server was asked")

    monkeypatch.setattr(dns, "observe", refuse)
    assert (await workspace.apply()).status is Status.UNCHANGED
    assert not (await workspace.drift()).plan.has_drift


async def test_verification_compares_with_the_answers_of_name_servers(workspace: Workspace, tmp_path: Path) -> None:
    (record,) = (await workspace.dns_records()).records
    zone, port = tmp_path / "zone", free_port()
    with name_server("127.0.0.1", port, {"example.com.": zone}):
        for target, state in ((record.value, State.HEALTHY), ("old.example.net", State.DEGRADED)):
            zone.write_text(f"shop.example.com. 60 IN CNAME {target}.\n")
            assert (await workspace.verify_dns(f"127.0.0.1:{port}")).state is state
    assert (await workspace.verify_dns(f"127.0.0.1:{port}")).state is State.UNKNOWN
    with pytest.raises(OperationError, match="write HOST or HOST:PORT"):
        await workspace.verify_dns("127.0.0.1:0")


async def test_a_record_that_cannot_be_set_is_degraded(workspace: Workspace, sandbox: Sandbox) -> None:
    apex: Document = {"kind": "ReservedDomain", "name": "apex", "spec": {"domain": "example.com"}}
    opened = open_on(sandbox, write_project(workspace.config.root, domain("shop"), apex, settings=ZONES))
    assert (await opened.apply()).status is Status.APPLIED
    report = await opened.verify_dns(f"127.0.0.1:{free_port()}")
    assert [item.record.owner for item in report.records.misplaced] == ["example.com"]
    assert report.state is State.DEGRADED


async def test_files_are_not_written_over_those_of_the_project(workspace: Workspace) -> None:
    records = await workspace.dns_records()
    with pytest.raises(UnusableOutput, match="name another folder"):
        dns_records.write_zones(workspace, records, "octodns", workspace.config.root / "manifests")
