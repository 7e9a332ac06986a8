"""A rehearsal on an emulated platform delivers one-time secrets to memory: the project and what it delivers to stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler import Runtime, Status, Workspace
from reconciler.testing import Sandbox
from tests.harness.workspaces import Document, write_project


def credential(name: str, deliver: Document) -> Document:
    return {"kind": "TunnelCredential", "name": name, "deliver": {"token": deliver}, "spec": {}}


COMMAND = {"run": ["./deliver", "token"], "check": ["./deliver", "check"]}
DELIVERIES: dict[str, Document] = {
    "file": {"to_file": "secrets/file"},
    "entry": {"to_dotenv": {"file": ".env", "name": "TOKEN"}},
    "kubernetes": {"to_kubernetes_secret": {"file": "secret.yaml", "name": "agent", "key": "token"}},
    "command": {"to_command": COMMAND},
    "github": {"to_github_secret": {"repository": "octo/infra", "name": "AGENT"}},
    "vault": {"to_vault": {"path": "agents/berlin", "key": "token"}},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with the places of all ways of delivery, which have content of their own."""
    root = write_project(tmp_path / "project", *(credential(name, ways) for name, ways in DELIVERIES.items()))
    (root / "secrets").mkdir()
    (root / "secrets/file").write_text("the real token")
    (root / ".env").write_text("TOKEN=real\n")
    (root / "deliver").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (root / "deliver").chmod(0o755)
    return root


def read_all(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_rehearsal_changes_no_file_and_runs_no_delivery_command(root: Path, tmp_path: Path) -> None:
    before = read_all(tmp_path)
    with Sandbox() as sandbox:
        # The address of Vault would be asked whether the entry exists.
        runtime = sandbox.runtime(environ={"VAULT_ADDR": "http://127.0.0.1:1", "VAULT_TOKEN": "x"})
        workspace = Workspace.open(root, runtime=runtime)
        assert [approval.what for approval in (await workspace.plan()).plan.missing_approvals] == []
        assert (await workspace.apply()).status is Status.APPLIED
        files, others = {"secrets/file", ".env:TOKEN", "secret.yaml:token"}, {"octo/infra:AGENT", "./deliver"}
        assert sandbox.deliveries.keys() == files | others | {"secret/agents/berlin:token"}
        assert (await workspace.apply()).status is Status.UNCHANGED
        issued = {item["id"] for item in sandbox.get("/credentials")["credentials"]}
        assert len(set(sandbox.deliveries.values())) == len(issued) == len(DELIVERIES)
    assert read_all(tmp_path) == before


async def test_a_token_of_the_sandbox_is_written_to_no_file(root: Path) -> None:
    (root / "manifests/all.yaml").write_text(json.dumps(credential("berlin", {"to_file": "secrets/berlin"})))
    with Sandbox() as sandbox:
        runtime = Runtime(environ=sandbox.environ, platform=sandbox)
        assert (await Workspace.open(root, runtime=runtime).apply()).status is Status.APPLIED
        assert (list(sandbox.deliveries), (root / "secrets/berlin").exists()) == (["secrets/berlin"], False)
