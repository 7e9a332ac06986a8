"""A credential's token: in its file, for its owner only, and nowhere else."""

from __future__ import annotations

import json
import signal
import stat
import time
from pathlib import Path

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


def test_the_command_that_gets_a_token_is_shown_before_it_runs(on_sandbox: Project) -> None:
    run = ["sh", "-c", "cat > taken; exit 0", "an argument"]
    on_sandbox.declare({**CREDENTIAL, "deliver": {"token": {"to_command": {"run": run}}}})
    shown = "the command: sh -c 'cat > taken; exit 0' 'an argument'"
    on_sandbox.environ["COLUMNS"] = "200"
    for words in (
        ("plan", "--out", "plan.json"),
        ("show", "plan.json"),
        ("apply", "-y"),  # as it is shown before the question
        ("plan", "--replace", "TunnelCredential/agent"),
    ):
        assert shown in on_sandbox(*words).out, words
    change = json.loads((on_sandbox.root / "plan.json").read_text(encoding="utf-8"))["changes"][0]
    assert change["risks"] == ["runs a command", "token will be issued"]


def test_a_credential_is_not_made_where_its_token_cannot_go(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(CREDENTIAL)
    on_sandbox.write("secrets", "a file where the folder should be")
    said = on_sandbox("apply", "-y", "--quiet")
    assert said.code == 1
    assert "create TunnelCredential/agent" in said.err
    assert sandbox.get("/credentials")["credentials"] == []


def test_an_interrupt_kills_the_command_that_was_to_take_the_token(on_sandbox: Project, sandbox: Sandbox) -> None:
    run = ["sh", "-c", "sleep 300 & echo $! > child; wait"]
    on_sandbox.declare({**CREDENTIAL, "deliver": {"token": {"to_command": {"run": run}}}})
    with on_sandbox.started("apply", "-y") as process:
        child = on_sandbox.root / "child"
        deadline = time.monotonic() + 60
        while not (child.exists() and child.read_text().endswith("\n")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "sh was killed, because the run was interrupted" in err
    assert sandbox.get("/credentials")["credentials"] == []
    alive = Path("/proc", child.read_text().strip(), "stat")
    assert not alive.exists() or alive.read_text().rpartition(")")[2].split()[0] == "Z"
