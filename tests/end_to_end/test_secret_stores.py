"""A token of a credential in Vault or in a secret of GitHub: exactly one, also after a kill, and never shown."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.kills import launch
from tests.harness.platform import Sandbox
from tests.harness.project import Project
from tests.harness.secret_stores import GitHubServer, VaultServer, run_server
from tests.harness.tiers import first_of_each

ROOT = Path(__file__).parents[2]
STORES = {
    "vault": {"to_vault": {"path": "agents/berlin"}},
    "github": {"to_github_secret": {"repository": "acme/web", "name": "AGENT", "environment": "prod"}},
}
POINTS = ["before check", "after check", "before deliver", "after deliver", "after receipt"]


def credential(store: str) -> dict[str, Any]:
    return {
        "kind": "TunnelCredential",
        "name": "agent",
        "spec": {"acl": ["bind:*.example.com"]},
        "deliver": {"token": STORES[store]},
    }


@pytest.fixture
def vault() -> Iterator[VaultServer]:
    server = VaultServer()
    with run_server(server):
        yield server


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    server = GitHubServer()
    with run_server(server):
        yield server


@pytest.fixture
def delivering(on_sandbox: Project, vault: VaultServer, github: GitHubServer) -> Project:
    on_sandbox.environ |= vault.environ | github.environ
    return on_sandbox


def read_stored(vault: VaultServer, github: GitHubServer) -> list[str]:
    return [*(vault.value("secret/agents/berlin") or {}).values(), *github.secrets.values()]


@pytest.mark.parametrize("store", STORES)
def test_the_token_is_in_the_store_and_nowhere_else(
    delivering: Project, sandbox: Sandbox, vault: VaultServer, github: GitHubServer, store: str
) -> None:
    delivering.declare(credential(store))
    results = [
        delivering("validate"),
        delivering("plan", "--out", "plan.json", "--format", "html=plan.html"),
        delivering("apply", "-y", "--events", "events.ndjson"),
        delivering("plan", "--detailed-exitcode"),
        delivering("apply", "-y", "--replace", "TunnelCredential/agent"),  # the entry is known to be of this stack
        delivering("drift"),
        delivering("history"),
    ]
    assert [result.code for result in results] == [0] * len(results), results
    targets = {
        "vault": "the key token of secret/agents/berlin in Vault",
        "github": "the secret AGENT of the environment",
    }
    assert targets[store] in " ".join(results[2].out.split())
    (live,) = sandbox.get("/credentials")["credentials"]
    (token,) = read_stored(vault, github)
    assert token.startswith(live["id"].removeprefix("cr_"))
    for secret in (token, vault.token, github.token):
        assert all(secret not in result.out + result.err for result in results)
        assert not [
            file for file in delivering.root.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()
        ]


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("store", STORES)
def test_no_credential_is_created_for_a_store_that_cannot_be_written(
    delivering: Project, sandbox: Sandbox, vault: VaultServer, github: GitHubServer, store: str
) -> None:
    delivering.declare(credential(store))
    vault.policy, github.rights = {"default": []}, "read"
    result = delivering("apply", "-y", "--quiet")
    assert (result.code, "nothing was created, because its secret cannot be delivered" in result.err) == (1, True)
    for name in (*vault.environ, *github.environ):
        del delivering.environ[name]
    result = delivering("apply", "-y", "--quiet")
    assert (result.code, "is not set; set it to" in result.err) == (1, True)
    assert sandbox.get("/credentials")["credentials"] == []
    assert read_stored(vault, github) == []


@pytest.mark.parametrize("store", STORES)
def test_a_credential_is_revoked_if_the_store_fails_after_the_check(
    delivering: Project, sandbox: Sandbox, vault: VaultServer, github: GitHubServer, store: str
) -> None:
    delivering.declare(credential(store))
    vault.faults, github.faults = [("POST", "/data/", 403)], [("PUT", "/AGENT", 422)]
    result = delivering("apply", "-y", "--quiet")
    assert (result.code, "created and deleted again" in result.err) == (1, True)
    assert (sandbox.get("/credentials")["credentials"], read_stored(vault, github)) == ([], [])
    assert delivering("apply", "-y").code == 0
    assert len(read_stored(vault, github)) == 1


@pytest.mark.parametrize("store", STORES)
def test_overwriting_an_unmanaged_value_needs_approval(
    delivering: Project, sandbox: Sandbox, vault: VaultServer, github: GitHubServer, store: str
) -> None:
    delivering.declare(credential(store))
    vault.set("secret/agents/berlin", {"token": "of somebody else"})
    github.secrets["prod", "AGENT"] = "of somebody else"
    result = delivering("apply", "-y")
    assert (result.code, "--allow overwrite:TunnelCredential=1" in result.err) == (4, True)
    del delivering.environ["VAULT_TOKEN"], delivering.environ["GITHUB_TOKEN"]
    assert delivering("plan", "--out", "plan.json").code == 0  # without credentials nothing is known of it
    delivering.environ |= vault.environ | github.environ
    result = delivering("apply", "plan.json", "-y", "--quiet")
    assert (result.code, "exists and was not written by this project" in result.err) == (1, True)
    assert (sandbox.get("/credentials")["credentials"], set(read_stored(vault, github))) == ([], {"of somebody else"})
    assert delivering("apply", "-y", "--allow", "overwrite:TunnelCredential=1").code == 0
    assert len(set(read_stored(vault, github))) == 2


@pytest.mark.usefixtures("over_socket")
@pytest.mark.parametrize(
    ("store", "point"),
    first_of_each([(store, point) for point in reversed(POINTS[:4]) for store in STORES], lambda case: case[0]),
)
def test_one_rerun_is_enough_after_a_kill(
    delivering: Project, sandbox: Sandbox, vault: VaultServer, github: GitHubServer, store: str, point: str
) -> None:
    delivering.declare(credential(store))
    spec = {"point": point, "what": "create TunnelCredential/agent", "nth": 1, "signal": signal.SIGKILL}
    environ = {**delivering.process_environ(), "PYTHONPATH": str(ROOT)}
    process = launch.start(spec, ["apply", "-y", "--quiet"], cwd=delivering.root, env=environ, stderr=subprocess.PIPE)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, err
    result = delivering("apply", "-y")
    assert result.code == 0, result.err
    (live,) = sandbox.get("/credentials")["credentials"]
    (token,) = read_stored(vault, github)
    assert token.startswith(live["id"].removeprefix("cr_"))
    assert delivering("plan", "--detailed-exitcode").code == 0


def test_a_token_that_is_delivered_to_a_file_on_a_runner_is_a_warning(delivering: Project) -> None:
    delivering.declare({**credential("vault"), "deliver": {"token": {"to_file": "secrets/agent"}}})
    delivering.environ["CI"] = "true"
    result = delivering("validate")
    assert (result.code, "delivered to secrets/agent on a CI runner" in result.out + result.err) == (0, True)
    delivering.declare(credential("vault"))
    assert "CI runner" not in delivering("validate").out + delivering("validate").err
