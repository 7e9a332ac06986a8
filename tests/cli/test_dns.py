"""`reconciler dns`: records of a sandbox account as files, and compared with what a name server process answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.name_server import free_port, name_server
from tests.harness.platform import Sandbox
from tests.harness.project import Project

ZONES = "dns: {zones: [example.com, example.org]}\n"
SHOP = {"kind": "ReservedDomain", "name": "shop", "spec": {"domain": "Shop.Example.com"}}
APPS = {"kind": "ReservedDomain", "name": "apps", "spec": {"domain": "*.apps.example.com"}}
AGENTS = {"kind": "AgentIngress", "name": "agents", "spec": {"domain": "agents.example.com"}}
SOA = "example.com. 60 IN SOA ns.example.com. admin.example.com. 1 60 60 60 60\n"


@pytest.fixture
def domains(on_sandbox: Project) -> Project:
    """A project with a hostname, a wildcard and an agent ingress, applied."""
    file = on_sandbox.root / "reconciler.yaml"
    file.write_text(file.read_text() + ZONES)
    on_sandbox.declare(SHOP, APPS, AGENTS)
    applied = on_sandbox("apply", "--auto-approve")
    assert applied.code == 0, applied.err
    return on_sandbox


def test_the_records_of_the_account_are_listed_by_zone(domains: Project) -> None:
    text = domains("dns", "--format", "json")
    assert text.code == 0, text.err
    first, second = json.loads(text.out)["zones"]
    assert [(row["name"], row["type"], row["needed_by"]) for row in first["records"]] == [
        *[("agents.example.com", "NS", ["AgentIngress/agents"])] * 4,
        ("*.apps.example.com", "CNAME", ["ReservedDomain/apps"]),
        ("_acme-challenge.apps.example.com", "CNAME", ["ReservedDomain/apps"]),
        ("shop.example.com", "CNAME", ["ReservedDomain/shop"]),
    ]
    assert second == {"zone": "example.org", "records": []}


def test_files_are_written_once_and_checked(domains: Project) -> None:
    words = ("dns", "--format", "octodns", "--out", "dns")
    missing = domains(*words, "--check")
    assert (missing.code, missing.out) == (
        2,
        "dns/example.com.yaml is out of date\ndns/example.org.yaml is out of date\n",
    )
    written = domains(*words)
    assert (written.code, written.err) == (0, "Wrote 2 files to dns, 0 unchanged.\n")
    assert domains(*words).err == "Wrote 0 files to dns, 2 unchanged.\n"
    assert domains(*words, "--check").code == 0
    domains.declare(SHOP, AGENTS)
    domains("apply", "--auto-approve", "--allow", "delete:ReservedDomain=1")
    outdated = domains(*words, "--check")
    assert (outdated.code, outdated.out) == (2, "dns/example.com.yaml is out of date\n")
    assert "apps" in (domains.root / "dns/example.com.yaml").read_text(), "--check writes nothing"


def test_files_of_zones_that_are_no_longer_named_are_found_and_removed(domains: Project) -> None:
    words = ("dns", "--format", "bind", "--out", "dns")
    assert domains(*words).code == 0
    (domains.root / "dns/own.zone").write_text("; mine\n")
    file = domains.root / "reconciler.yaml"
    file.write_text(file.read_text().replace(ZONES, "dns: {zones: [example.com]}\n"))
    stale = domains(*words, "--check")
    assert (stale.code, stale.out) == (2, "dns/example.org.zone is of no zone of reconciler.yaml\n")
    assert domains(*words).err == (
        "Wrote 0 files to dns, 1 unchanged.\nRemoved dns/example.org.zone: it is of no zone of reconciler.yaml.\n"
    )
    assert domains(*words, "--check").code == 0
    assert sorted(item.name for item in (domains.root / "dns").iterdir()) == ["example.com.zone", "own.zone"]


def test_records_that_no_file_contains_are_reported(domains: Project) -> None:
    domains.declare(SHOP, APPS, AGENTS, {"kind": "ReservedDomain", "name": "net", "spec": {"domain": "a.example.net"}})
    domains("apply", "--auto-approve")
    text = domains("dns", "--format", "bind")
    assert text.code == 0
    assert text.err.startswith("warning: in no zone of reconciler.yaml: a.example.net CNAME ")
    assert "a.example.net" not in text.out
    assert "a.example.net" in domains("dns").out


def test_domains_of_the_platform_need_no_record(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare({"kind": "ReservedDomain", "name": "own", "spec": {"domain": "shop.sandbox.test"}})
    on_sandbox("apply", "--auto-approve")
    text = on_sandbox("dns", "--format", "json")
    assert text.code == 0, text.err
    own = [row for row in sandbox.collection("/reserved_domains", "reserved_domains") if row["cname_target"] is None]
    assert len(own) == 1, "the domain is not one of the platform's own"
    assert json.loads(text.out)["unzoned"] == []


def test_files_need_zones(on_sandbox: Project) -> None:
    for words in (("--format", "bind"), ("--out", "dns")):
        refused = on_sandbox("dns", *words)
        assert (refused.code, refused.out) == (1, "")
        assert "dns: {zones: [example.com]}" in refused.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--check",), "--check needs --out DIR"),
        (("--verify", "--out", "dns"), "--verify prints a report"),
        (("--verify", "--format", "bind"), "--verify prints a report"),
        (("--nameserver", "127.0.0.1"), "--nameserver needs --verify"),
        (("--out", "-"), "name a folder"),
    ],
)
def test_options_that_exclude_each_other_are_rejected(domains: Project, words: tuple[str, ...], text: str) -> None:
    refused = domains("dns", *words)
    assert refused.code == 64
    assert text in refused.err


def test_nothing_is_written_if_a_list_is_incomplete(domains: Project, sandbox: Sandbox) -> None:
    sandbox.fault("GET /reserved_domains", then="status", status=403, times=0)
    refused = domains("dns", "--format", "bind", "--out", "dns")
    assert refused.code == 1
    assert "the list of ReservedDomain is incomplete" in refused.err
    assert not (domains.root / "dns").exists()


# --- name servers -----------------------------------------------------------------------------------------------------


@pytest.fixture
def served(domains: Project, tmp_path: Path) -> Iterator[tuple[Project, Path, str]]:
    """The project, the zone file that a name server answers from, and the address of the server."""
    zone, port = tmp_path / "served.zone", free_port()
    zone.write_text(SOA + domains("dns", "--format", "bind").out)
    with name_server("127.0.0.1", port, {"example.com.": zone}):
        yield domains, zone, f"127.0.0.1:{port}"


def test_a_zone_that_has_the_written_records_is_verified(served: tuple[Project, Path, str]) -> None:
    project, _, server = served
    verified = project("dns", "--verify", "--nameserver", server)
    assert (verified.code, verified.out) == (0, "DNS: 4 set.\n"), verified.err


def test_a_wrong_record_is_reported_with_the_server_and_what_must_be_set(served: tuple[Project, Path, str]) -> None:
    project, zone, server = served
    lines = zone.read_text().splitlines(keepends=True)
    changed = [line for line in lines if "ns-3." not in line and not line.startswith("_acme")]
    zone.write_text("".join(changed).replace("shop.example.com. 300 IN CNAME ", "shop.example.com. 300 IN CNAME x."))
    verified = project("dns", "--verify", "--nameserver", server)
    assert verified.code == 7
    head, *blocks = verified.out.split("\n\n")
    assert head == "DNS: 1 set, 3 wrong."
    assert f"agents.example.com has 3 of 4 NS records ({server})" in blocks[0]
    assert "gets no certificate" in blocks[1]
    assert "shop.example.com CNAME points to x." in blocks[2]
    assert f"({server}), must be " in blocks[2]
    report = json.loads(project("dns", "--verify", "--nameserver", server, "--format", "json").out)
    assert [row["state"] for row in report["findings"]] == ["degraded", "healthy", "degraded", "degraded"]


def test_a_server_that_cannot_be_reached_is_unknown(domains: Project) -> None:
    verified = domains("dns", "--verify", "--nameserver", f"127.0.0.1:{free_port()}")
    assert verified.code == 2
    assert verified.out.startswith("DNS: 4 unknown.\n")


def test_verification_without_the_library_names_the_extra(domains: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dns", "dns.asyncquery"):
        monkeypatch.setitem(sys.modules, name, None)
    refused = domains("dns", "--verify")
    assert (refused.code, refused.out) == (1, "")
    assert "install the extra `reconciler[dns]`" in refused.err
    assert domains("dns").code == 0, "the records are listed without the library"


def test_an_invalid_name_server_is_reported(domains: Project) -> None:
    refused = domains("dns", "--verify", "--nameserver", "127.0.0.1:dns")
    assert refused.code == 1
    assert "write HOST or HOST:PORT" in refused.err
