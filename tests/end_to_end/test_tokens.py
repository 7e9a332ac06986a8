"""A credential's token: in its file, for its owner only, and nowhere else."""

from __future__ import annotations

import stat

from tests.end_to_end.project import Project
from tests.platform import Sandbox

CREDENTIAL = {
    "kind": "TunnelCredential",
    "name": "agent",
    "spec": {"acl": ["bind:*.example.com"]},
    "deliver": {"token": {"to_file": "secrets/agent.token"}},
}


def test_the_token_is_in_its_file_for_its_owner_only_and_nowhere_else(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(CREDENTIAL)
    said = [
        on_sandbox("plan", "--out", "before.json"),
        on_sandbox("apply", "-y", "--events", "events.ndjson"),
        on_sandbox("plan", "--out", "after.json", "--format", "json"),
        on_sandbox("drift"),
        on_sandbox("history"),
    ]
    assert [each.code for each in said] == [0, 0, 0, 0, 0]
    file = on_sandbox.root / "secrets" / "agent.token"
    (credential,) = sandbox.get("/credentials")["credentials"]
    identity, _, secret = file.read_text().strip().rpartition("_")
    assert identity == credential["id"].removeprefix("cr_")
    assert len(secret) == 21
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    assert all(secret not in each.out + each.err for each in said)
    files = [each for each in on_sandbox.root.rglob("*") if each.is_file()]
    assert [each for each in files if secret.encode() in each.read_bytes()] == [file]
    assert {"before.json", "after.json", "events.ndjson", "reconciler.db"} <= {each.name for each in files}


def test_a_credential_is_not_made_where_its_token_cannot_go(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(CREDENTIAL)
    on_sandbox.write("secrets", "a file where the folder should be")
    said = on_sandbox("apply", "-y", "--quiet")
    assert said.code == 1
    assert "create TunnelCredential/agent" in said.err
    assert sandbox.get("/credentials")["credentials"] == []
