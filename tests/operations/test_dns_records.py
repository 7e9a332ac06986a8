"""DNS records of an account through the Python API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.api import dns
from reconciler.model.dns import Evidence
from reconciler.model.health import Actor, Health, State
from reconciler.operations import dns_records
from reconciler.operations.errors import OperationError, UnreadableAccount, UnusableOutput
from reconciler.operations.results import Status
from reconciler.operations.workspace import Workspace
from reconciler.rendering import dns as rendering
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


async def test_an_incomplete_list_is_never_healthy_and_the_records_that_are_known_are_judged(
    workspace: Workspace, sandbox: Sandbox, tmp_path: Path
) -> None:
    (record,) = (await workspace.dns_records()).records
    zone, port = tmp_path / "zone", free_port()
    server = f"127.0.0.1:{port}"
    sandbox.fault("GET /agent_ingresses*", then="status", status=400, times=0)
    with name_server("127.0.0.1", port, {"example.com.": zone}):
        for target, state, whole in (
            ("old.example.net", State.DEGRADED, State.DEGRADED),
            (record.value, State.HEALTHY, State.UNKNOWN),
        ):
            zone.write_text(f"shop.example.com. 60 IN CNAME {target}.\n")
            report = await workspace.verify_dns(server)
            assert [finding.health.state for finding in report.findings] == [state]
            assert report.state is whole
        report = await workspace.verify_dns(server)
    assert list(report.unread) == ["AgentIngress"]
    text = rendering.render_findings(report.findings, report.records, report.unread)
    assert text.startswith("DNS, as far as the account could be read: 1 set.\n")
    assert "? AgentIngress\n    its list is incomplete, so that more records may be needed: " in text
    listed = json.loads(rendering.render_findings_json(report.findings, report.records, report.unread))
    assert [row["kind"] for row in listed["unread"]] == ["AgentIngress"]
    with pytest.raises(UnreadableAccount, match="the list of AgentIngress is incomplete"):
        await workspace.dns_records()
    sandbox.fault("GET /reserved_domains*", then="status", status=400, times=0)
    with pytest.raises(UnreadableAccount, match="no list of objects that need records could be read"):
        await workspace.verify_dns(server)


Edit = Callable[[list[str]], Iterable[str]]


def without(*words: str) -> Edit:
    """A zone that lacks the records in which all of these words stand."""
    return lambda lines: [line for line in lines if not all(word in line for word in words)]


def without_servers(*names: str) -> Edit:
    return lambda lines: [line for line in lines if not any(name in line for name in names)]


def with_more(*more: str) -> Edit:
    return lambda lines: [*lines, *(f"{line}\n" for line in more)]


def point_elsewhere(lines: list[str]) -> Iterable[str]:
    return ["shop.example.com. 60 IN CNAME old.example.net.\n" if line.startswith("shop.") else line for line in lines]


FAULTS: dict[str, tuple[Edit, str, str]] = {
    "absent": (without("shop."), "shop.example.com", "shop.example.com has no CNAME"),
    "another target": (point_elsewhere, "shop.example.com", "shop.example.com CNAME points to old.example.net"),
    "partly delegated": (without("agents.", "ns-1."), "agents.example.com", "has 3 of 4 NS records"),
    "half delegated": (without_servers("ns-1.", "ns-2."), "agents.example.com", "has 2 of 4 NS records"),
    "CAA": (with_more('example.com. 60 IN CAA 0 issue "ca.example"'), "shop.example.com", "forbid letsencrypt.org"),
    "no challenge": (without("_acme-challenge."), "_acme-challenge.apps.example.com", "apps.example.com gets no certi"),
}


async def test_each_fault_of_a_zone_is_found_at_its_name_server(sandbox: Sandbox, tmp_path: Path) -> None:
    policy: dict[str, Any] = {"certificate_management_policy": {}}
    names = {"shop": "shop.example.com", "apps": "*.apps.example.com"}
    documents: list[Document] = [
        {"kind": "ReservedDomain", "name": name, "spec": {"domain": host, **policy}} for name, host in names.items()
    ]
    documents.append({"kind": "AgentIngress", "name": "agents", "spec": {"domain": "agents.example.com", **policy}})
    opened = open_on(sandbox, write_project(tmp_path / "project", *documents, settings=ZONES))
    assert (await opened.apply()).status is Status.APPLIED
    records = (await opened.dns_records()).records
    lines = [f"{record.owner}. 60 IN {record.type} {record.value}.\n" for record in records]
    zone, port, crowded = tmp_path / "zone", free_port(), free_port()
    zone.write_text("".join(lines))
    with name_server("127.0.0.1", crowded, {"example.com.": zone}, "--crowded"):
        found = await find_degraded(opened, crowded)
    assert found["shop.example.com"].reason == "shop.example.com has TXT records beside its CNAME"
    with name_server("127.0.0.1", port, {"example.com.": zone}):
        assert await find_degraded(opened, port) == {}
        for fault, (edit, owner, reason) in FAULTS.items():
            zone.write_text("".join(edit(lines)))
            found = await find_degraded(opened, port)
            assert reason in found[owner].reason, fault
            assert (found[owner].actor, bool(found[owner].advice)) == (Actor.ZONE_OWNER, True), fault


async def find_degraded(workspace: Workspace, port: int) -> dict[str, Health]:
    """What is wrong by the name of the record."""
    report = await workspace.verify_dns(f"127.0.0.1:{port}")
    found = {item.need.owner: item.health for item in report.findings if item.health.state is not State.HEALTHY}
    assert {health.state for health in found.values()} <= {State.DEGRADED}
    assert report.state is (State.DEGRADED if found else State.HEALTHY)
    return found


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


async def test_files_of_former_zones_are_removed_and_no_file_of_a_user(workspace: Workspace, sandbox: Sandbox) -> None:
    root = workspace.config.root
    folder, settings = root / "dns", "dns: {zones: [example.com, example.org]}\n"
    both = open_on(sandbox, write_project(root, domain("shop"), settings=settings))
    for form in rendering.SUFFIXES:
        dns_records.write_zones(both, await both.dns_records(), form, folder)
    former = {form: folder / f"example.org.{suffix}" for form, suffix in rendering.SUFFIXES.items()}
    own = {folder / name: text for name, text in files_of_user(former).items()}
    for file, text in own.items():
        file.write_text(text)
    (folder / "link.yaml").symlink_to(former["octodns"])
    (folder / "example.edu.yaml").mkdir()
    records = await workspace.dns_records()
    for form, file in former.items():
        assert dns_records.compare_files(records, form, folder) == dns_records.ZoneFiles({}, (file,))
        assert file.exists()
        assert dns_records.write_zones(workspace, records, form, folder).stale == (file,)
        assert dns_records.compare_files(records, form, folder).is_current
    assert {file: file.read_text() for file in own} == own
    assert {file.name for file in folder.iterdir()} == {
        *(file.name for file in own),
        *(f"example.com.{suffix}" for suffix in rendering.SUFFIXES.values()),
        *("link.yaml", "example.edu.yaml"),
    }


def files_of_user(former: Mapping[str, Path]) -> dict[str, str]:
    """Files that look like files of former zones, and are not."""
    yaml = former["octodns"].read_text()
    return {
        "example.net.yaml": "---\n'': {type: A, value: 192.0.2.1}\n",
        "copy.example.org.yaml": yaml,
        "notes.yaml": f"# ours, not theirs\n{yaml}",
        "example.net.zone": "@ IN SOA ns.example.net. admin.example.net. 1 60 60 60 60\n",
        "example.net.json": '{"zone": "example.net", "records": [{"name": "a"}]}\n',
        "deep.json": "[" * 100_000,
        "list.json": "[]\n",
        "example.net.txt": "example.net\n  no records\n",
        "example.org.md": yaml,
    }


async def test_the_file_of_a_named_zone_without_records_remains(workspace: Workspace, sandbox: Sandbox) -> None:
    """octoDNS and BIND refuse a configuration that names a file which is absent."""
    folder = workspace.config.root / "dns"
    dns_records.write_zones(workspace, await workspace.dns_records(), "octodns", folder)
    [found] = sandbox.get("/reserved_domains")["reserved_domains"]
    sandbox.delete(f"/reserved_domains/{found['id']}")
    empty = await workspace.dns_records()
    file = folder / "example.com.yaml"
    assert [*dns_records.compare_files(empty, "octodns", folder).outdated] == [file]
    dns_records.write_zones(workspace, empty, "octodns", folder)
    assert file.read_text().endswith("---\n{}\n")
