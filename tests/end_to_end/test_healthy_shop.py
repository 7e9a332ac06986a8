"""From `init` to a shop that answers: a sandbox, a name server and an agent, each in a process of its own."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.testing import AgentProcess
from tests.harness.name_server import free_port, name_server
from tests.harness.platform import SandboxProcess
from tests.harness.project import Project

ZONE = """\
@ IN SOA ns1.example.com. hostmaster.example.com. 1 3600 600 86400 60
@ IN NS ns1.example.com.
ns1 IN A 192.0.2.53
"""
MANIFEST = """\
kind: ReservedDomain
name: shop
spec:
  domain: shop.example.com
  certificate_management_policy: {authority: letsencrypt}
---
kind: HTTPSEdge
name: shop
spec:
  hostports: ["shop.example.com:443"]
---
kind: HTTPSEdgeRoute
name: shop
spec:
  edge_id: {ref: HTTPSEdge/shop}
  match: /
  match_type: path_prefix
  backend: {backend_id: {ref: TunnelGroupBackend/shop}}
---
kind: TunnelGroupBackend
name: shop
spec:
  labels: {app: shop}
---
kind: TunnelCredential
name: shop
spec:
  acl: ["bind:app=shop"]
deliver: {token: {to_file: secrets/shop.token}}
---
kind: AgentConfig
name: shop
spec:
  credential: {ref: TunnelCredential/shop}
  tunnels:
    shop: {labels: ["app=shop"], addr: "8080"}
"""
SETTINGS = "dns: {zones: [example.com]}\n"


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    file = tmp_path / "db.example.com"
    file.write_text(ZONE)
    return file


@pytest.fixture
def address(zone: Path) -> Iterator[str]:
    """The address of the name server of the zone."""
    port = free_port()
    with name_server("127.0.0.1", port, {"example.com": zone}):
        yield f"127.0.0.1:{port}"


@pytest.fixture
def sandbox(address: str) -> Iterator[SandboxProcess]:
    with SandboxProcess(nameserver=address) as running:
        yield running


def read_until(applying: subprocess.Popen[str], start: str) -> str:
    """The next line of standard error that begins so."""
    assert applying.stderr is not None
    for line in applying.stderr:
        if line.startswith(start):
            return line.rstrip("\n")
    raise AssertionError(f"no line begins with {start!r}")


def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within ten seconds")


def test_a_new_project_is_applied_until_its_shop_answers(
    project: Project, sandbox: SandboxProcess, zone: Path, address: str
) -> None:
    project.use(sandbox)
    assert project("init", "--auto-approve", "--base-url", sandbox.base_url, "--stack", "shop").code == 0
    settings = project.root / "reconciler.yaml"
    settings.write_text(settings.read_text() + SETTINGS)
    project.write("manifests/shop.yaml", MANIFEST)

    sandbox.move_clock(days=-1)
    applying = project.start("apply", "-y", "--wait", "--wait-timeout", "3m")
    waiting = read_until(applying, "waiting: ReservedDomain/shop: the certificate waits for DNS")
    record = re.search(r"set (shop\.example\.com) CNAME (\S+)\)$", waiting)
    assert record is not None

    assert project("dns", "--format", "bind", "--out", "dns").code == 0
    assert record[2] in (project.root / "dns/example.com.zone").read_text()
    unset = project("dns", "--verify", "--nameserver", address)
    assert (unset.code, "shop.example.com has no CNAME" in unset.out) == (7, True)
    zone.write_text(f"{ZONE}$INCLUDE {project.root}/dns/example.com.zone\n")  # the owner of the zone publishes it
    sandbox.move_clock()  # a day later, the platform tries again
    out, err = applying.communicate(timeout=60)
    assert (applying.returncode, out.splitlines()[-1]) == (0, "Healthy: 2 objects.")
    assert "healthy: ReservedDomain/shop" in err.splitlines()
    assert "not waited for: HTTPSEdge/shop: none of its routes serves" in err
    assert project("dns", "--verify", "--nameserver", address).code == 0

    assert project("status").code == 7  # no agent serves the edge
    assert project("agent", "config", "shop", "--out", "secrets/agent.yml").code == 0
    with AgentProcess(sandbox.base_url, config=project.root / "secrets/agent.yml") as agent:
        assert project("status").code == 0
        agent.kill()
        wait_for(lambda: not sandbox.get("/tunnel_sessions")["tunnel_sessions"])
        killed = project("status")
        assert (killed.code, "start an agent that opens a tunnel with the labels app=shop" in killed.out) == (7, True)
        agent.restart()
        assert project("status").code == 0
