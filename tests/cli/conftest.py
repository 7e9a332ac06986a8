from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import SETTINGS, Shell

MANIFESTS = """\
kind: IPPolicy
name: office
spec:
  description: Office
---
kind: TLSEdge
name: payments
spec:
  hostports: ["pay.example.com:443"]
  ip_restriction:
    ip_policy_ids:
      - ref: IPPolicy/office
---
kind: ReservedDomain
name: pay
spec:
  domain: pay.example.com
"""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs commands in the folder of a project."""
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    project = Shell(tmp_path, capsys)
    project.write("reconciler.yaml", "version: 1\nstack: prod\n")
    project.write("manifests/payments.yaml", MANIFESTS)
    return project


@pytest.fixture
def sandbox(sandbox: Sandbox, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """The empty platform of the shell's project."""
    for name, value in sandbox.environ.items():
        monkeypatch.setenv(name, value)
    shell.reach(sandbox)
    return sandbox
