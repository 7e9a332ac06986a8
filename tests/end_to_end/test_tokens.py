"""A credential's token is in its file, readable by its owner only, and nowhere else."""

from __future__ import annotations

import json
import signal
import stat
import time
from pathlib import Path

import pytest

from reconciler.model import owner_record as owners
from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies

CREDENTIAL = {
    "kind": "TunnelCredential",
    "name": "agent",
    "spec": {"acl": ["bind:*.example.com"]},
    "deliver": {"token": {"to_file": "secrets/agent.token"}},
}


def test_the_token_is_in_its_file_for_its_owner_only_and_nowhere_else(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(CREDENTIAL)
    results = [
        on_sandbox("plan", "--out", "before.json"),
        on_sandbox("apply", "-y", "--events", "events.ndjson"),
        on_sandbox("plan", "--out", "after.json", "--format", "json"),
        on_sandbox("drift"),
        on_sandbox("history"),
    ]
    assert [result.code for result in results] == [0, 0, 0, 0, 0]
    file = on_sandbox.root / "secrets" / "agent.token"
    (credential,) = sandbox.get("/credentials")["credentials"]
    identity, _, secret = file.read_text().strip().rpartition("_")
    assert identity == credential["id"].removeprefix("cr_")
    assert len(secret) == 21
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    assert all(secret not in result.out + result.err for result in results)
    files = [path for path in on_sandbox.root.rglob("*") if path.is_file()]
    assert [file for file in files if secret.encode() in file.read_bytes()] == [file]
    assert {"before.json", "after.json", "events.ndjson", "reconciler.db"} <= {file.name for file in files}


def test_the_command_that_gets_a_token_is_shown_before_it_runs(on_sandbox: Project) -> None:
    run = ["sh", "-c", "cat > taken; exit 0", "an argument"]
    on_sandbox.declare({**CREDENTIAL, "deliver": {"token": {"to_command": {"run": run}}}})
    command = "the command: sh -c 'cat > taken; exit 0' 'an argument'"
    on_sandbox.environ["COLUMNS"] = "200"
    for words in (
        ("plan", "--out", "plan.json"),
        ("show", "plan.json"),
        ("apply", "-y"),  # as it is shown before the prompt
        ("plan", "--replace", "TunnelCredential/agent"),
    ):
        assert command in on_sandbox(*words).out, words
    change = json.loads((on_sandbox.root / "plan.json").read_text(encoding="utf-8"))["changes"][0]
    assert change["risks"] == ["exposes", "runs_command", "issues_credential"]


def test_no_credential_is_created_if_its_token_cannot_be_delivered(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(CREDENTIAL)
    on_sandbox.write("secrets", "a file where the folder should be")
    result = on_sandbox("apply", "-y", "--quiet")
    assert result.code == 1
    assert "create TunnelCredential/agent" in result.err
    assert sandbox.get("/credentials")["credentials"] == []


@pytest.mark.usefixtures("over_socket")
def test_an_interrupt_kills_the_command_that_receives_the_token(on_sandbox: Project, sandbox: Sandbox) -> None:
    run = ["sh", "-c", "sleep 300 & echo $! > child; wait"]
    on_sandbox.declare({**CREDENTIAL, "deliver": {"token": {"to_command": {"run": run}}}})
    with on_sandbox.start("apply", "-y") as process:
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


def test_a_token_overwrites_an_unmanaged_file_only_with_approval(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare({**CREDENTIAL, "deliver": {"token": {"to_file": "precious.txt"}}})
    precious = on_sandbox.root / "precious.txt"
    precious.write_text("the only copy", encoding="utf-8")
    result = on_sandbox("apply", "-y")
    assert result.code == 4
    assert "--allow overwrite:TunnelCredential=1" in result.err
    assert "precious.txt exists" in result.out
    assert (precious.read_text(encoding="utf-8"), sandbox.get("/credentials")["credentials"]) == ("the only copy", [])
    assert on_sandbox("apply", "-y", "--allow", "overwrite:TunnelCredential=1").code == 0
    first = precious.read_text(encoding="utf-8")
    assert on_sandbox("apply", "-y", "--replace", "TunnelCredential/agent").code == 0  # the file is now managed
    assert precious.read_text(encoding="utf-8") not in (first, "the only copy")


def test_the_target_of_one_environment_is_not_another_s(on_sandbox: Project) -> None:
    on_sandbox.declare(CREDENTIAL)
    for name in ("staging", "production"):
        on_sandbox.write(f"environments/{name}.yaml", f"stack: {name}\n")
    assert on_sandbox("apply", "-y", "--env", "production").code == 0
    token = (on_sandbox.root / "secrets/agent.token").read_text(encoding="utf-8")
    result = on_sandbox("apply", "-y", "--env", "staging")
    assert (result.code, "overwrite:TunnelCredential=1" in result.err) == (4, True)
    assert (on_sandbox.root / "secrets/agent.token").read_text(encoding="utf-8") == token


def test_no_credential_is_created_if_its_file_appears_after_the_plan(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(CREDENTIAL)
    assert on_sandbox("plan", "--out", "plan.json").code == 0
    on_sandbox.write("secrets/agent.token", "theirs")
    result = on_sandbox("apply", "-y", "plan.json")
    assert result.code == 1
    assert "nothing was created" in result.err
    assert "was not written by this project" in result.err
    assert sandbox.get("/credentials")["credentials"] == []
    assert (on_sandbox.root / "secrets/agent.token").read_text(encoding="utf-8") == "theirs"


def test_a_missing_delivered_file_is_a_note_in_plan_and_drift(
    on_sandbox: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_sandbox.declare(CREDENTIAL)
    assert on_sandbox("apply", "-y").code == 0
    assert "not there any more" not in on_sandbox("drift").out
    (on_sandbox.root / "secrets/agent.token").unlink()
    note = "note: TunnelCredential/agent: its token was delivered to secrets/agent.token on this machine"
    for words in (("plan", "--detailed-exitcode"), ("drift",)):
        result = on_sandbox(*words)
        assert (result.code, note in result.out.replace("\n  ", " ")) == (0, True), result
        assert "--replace TunnelCredential/agent" in result.out
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("socket.gethostname", lambda: "another")
        assert "not there any more" not in on_sandbox("plan").out
    on_sandbox.environ["RECONCILER_STORE"] = "memory:"  # as on a fresh runner
    assert "not there any more" not in on_sandbox("plan").out


@pytest.mark.parametrize(
    ("delivery", "shared"),
    [
        ({"to_file": "secrets/agent.token"}, "secrets/agent.token"),
        ({"to_dotenv": {"file": "secrets/.env", "name": "A"}}, "the entry A of secrets/.env"),
        (
            {"to_kubernetes_secret": {"file": "secrets/it.yaml", "name": "it", "key": "token"}},
            "the key token of the Kubernetes Secret it",
        ),
        ({"to_command": {"run": ["vault", "kv", "put", "it"]}}, "the command vault kv put it"),
        ({"to_vault": {"path": "agents/a"}}, "the key token of secret/agents/a in Vault"),
        (
            {"to_github_secret": {"repository": "acme/web", "name": "A"}},
            "the secret A of the GitHub repository acme/web",
        ),
    ],
)
def test_a_target_that_environments_share_is_a_warning(
    on_sandbox: Project, delivery: dict[str, object], shared: str
) -> None:
    on_sandbox.declare({**CREDENTIAL, "deliver": {"token": delivery}})
    for name in ("production", "staging"):
        on_sandbox.write(f"environments/{name}.yaml", f"stack: {name}\n")
    warning = f"warning: TunnelCredential/agent.deliver.token: delivered to {shared} in several environments"
    for words in (("validate",), ("validate", "--env", "staging")):
        result = on_sandbox(*words)
        assert (result.code, warning in result.err) == (0, True), result
        assert "(the project without an environment, production, staging)" in result.err
    remedy = on_sandbox("validate").err.partition("as in `")[2].partition("`")[0]
    for name in ("production", "staging"):
        patch = remedy.replace("NAME", name)
        on_sandbox.write(f"environments/{name}.yaml", f"stack: {name}\n{patch}\n")
    result = on_sandbox("validate")
    assert (result.code, result.err) == (0, "")


def test_a_file_that_is_an_entry_in_one_environment_and_the_token_in_another_is_a_warning(on_sandbox: Project) -> None:
    on_sandbox.declare({**CREDENTIAL, "deliver": {"token": {"to_dotenv": {"file": "secrets/it", "name": "A"}}}})
    patch = "TunnelCredential/agent: {deliver: {token: {to_dotenv: null, to_file: secrets/it}}}"
    on_sandbox.write("environments/staging.yaml", f"stack: staging\n{patch}\n")
    result = on_sandbox("validate")
    assert (result.code, result.err.count("in several environments")) == (0, 1), result
    assert "(the project without an environment, staging)" in result.err


def test_a_credential_that_was_created_twice_stops_nothing_else_and_is_resolved_by_a_line_in_git(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    on_sandbox.declare(CREDENTIAL, *policies("a"))
    assert on_sandbox("apply", "-y").code == 0
    for path, key, body in (("/credentials", "credentials", {}), ("/ip_policies", "ip_policies", {"description": "a"})):
        (made,) = sandbox.get(path)[key]
        text, owner = owners.read(made["metadata"])
        assert owner is not None
        sandbox.post(path, {**body, "metadata": owners.write(text, owner._replace(intent="of-another-store"))})
    on_sandbox.declare(CREDENTIAL, *policies("a", "b"))
    result = on_sandbox("apply", "-y")
    ids = sorted(credential["id"] for credential in sandbox.get("/credentials")["credentials"])
    assert (result.code, len(ids)) == (1, 2)
    assert f"set `id: {ids[0]}` or `id: {ids[1]}` in its manifest" in result.err
    assert sorted(policy["description"] for policy in sandbox.get("/ip_policies")["ip_policies"]) == ["a", "b"]
    assert on_sandbox("apply", "-y", "--quiet").code == 1
    on_sandbox.declare({**CREDENTIAL, "id": ids[1]}, *policies("a", "b"))
    assert on_sandbox("apply", "-y", "--target", "TunnelCredential/agent").code == 0
    assert [credential["id"] for credential in sandbox.get("/credentials")["credentials"]] == [ids[1]]
    assert on_sandbox("plan", "--detailed-exitcode").code == 0
