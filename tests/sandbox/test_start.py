"""The process: its first line, its signals, its memory."""

import re
import socket
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from cryptography import x509

from reconciler.kinds import read_only
from reconciler.sandbox.base import certificates, derive, seeds
from reconciler.sandbox.base.database import Database
from reconciler.sandbox.operations.objects import Objects
from tests.harness.platform import HEADERS, SandboxProcess

Start = Callable[..., SandboxProcess]
PLANTED = '{"collection": "bot_users", "object": {"id": "bot_1"}}'


@pytest.mark.usefixtures("over_socket")
def test_the_first_line_is_the_base_url(sandbox: SandboxProcess) -> None:
    assert httpx.get(f"{sandbox.base_url}/bot_users", headers=HEADERS).status_code == 200


def test_sigterm_ends_it_with_success(start_sandbox: Start) -> None:
    assert start_sandbox().stop() == 0


def test_what_was_answered_survives_a_kill(start_sandbox: Start, tmp_path: Path) -> None:
    sandbox = start_sandbox(db=tmp_path / "platform.db")
    made = sandbox.post("/bot_users", {"name": "berlin"})
    sandbox.kill()
    sandbox.restart()
    assert sandbox.get(f"/bot_users/{made['id']}") == made


def test_ids_keep_growing_after_a_restart(start_sandbox: Start, tmp_path: Path) -> None:
    sandbox = start_sandbox(db=tmp_path / "platform.db")
    first = sandbox.post("/bot_users", {"name": "a"})["id"]
    sandbox.stop()
    sandbox.restart()
    assert first < sandbox.post("/bot_users", {"name": "b"})["id"]


def test_a_seed_is_replayed_and_planted(start_sandbox: Start, tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text(
        """
        - path: /bot_users
          body: {name: berlin}
        - collection: endpoints
          object: {type: ephemeral, url: "https://a.sandbox.test", proto: https}
        """
    )
    sandbox = start_sandbox(seed=seed)
    assert [user["name"] for user in sandbox.get("/bot_users")["bot_users"]] == ["berlin"]
    assert [endpoint["type"] for endpoint in sandbox.get("/endpoints")["endpoints"]] == ["ephemeral"]


@pytest.mark.parametrize(("method", "body"), [("PATCH", {"description": "mine"}), ("DELETE", None)])
def test_ephemeral_endpoints_are_read_only(sandbox: SandboxProcess, method: str, body: object) -> None:
    sandbox.plant("endpoints", {"type": "ephemeral", "url": "https://a.sandbox.test"})
    [found] = sandbox.get("/endpoints")["endpoints"]
    assert sandbox.refusal(method, f"/endpoints/{found['id']}", body) == (400, "")
    assert sandbox.get(f"/endpoints/{found['id']}") == found


def test_the_budget_answers_429_with_the_time_to_wait(start_sandbox: Start) -> None:
    sandbox = start_sandbox(requests_per_minute=2)
    statuses = [sandbox.request("GET", "/bot_users") for _ in range(3)]
    assert [statuse.status_code for statuse in statuses] == [200, 200, 429]
    assert 0 < int(statuses[2].headers["Retry-After"]) <= 60
    assert statuses[2].json()["error_code"] == "ERR_NGROK_226"


def test_everything_gone_the_budget_is_what_it_was_started_with(start_sandbox: Start) -> None:
    sandbox = start_sandbox(requests_per_minute=2)
    for limits in ({}, {"limit": 1}):
        sandbox.put("/_sandbox/budget", limits)
        sandbox.reset()
        assert [sandbox.request("GET", "/bot_users").status_code for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize("fault", [{"then": "hang"}, {"then": "commit-then-hang"}, {"delay": 60.0}])
def test_an_interrupt_ends_it_quietly_whatever_is_still_waiting(
    start_sandbox: Start, capfd: pytest.CaptureFixture[str], fault: dict[str, object]
) -> None:
    sandbox = start_sandbox()
    sandbox.fault("* *", **fault)
    host, _, port = sandbox.base_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as waiting:
        waiting.sendall(b"GET /bot_users HTTP/1.1\r\nHost: a\r\n\r\n")
        while not sandbox.get("/_sandbox/faults")["faults"][0]["seen"]:
            time.sleep(0.01)
        assert sandbox.interrupt() == 0
    assert capfd.readouterr().err == ""


# --- seeds and databases ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[{"path": "/credentials", "body": []}]', "item 1: body: input should be a valid dictionary"),
        ('[{"path": "/credentials"}, {"path": 5}]', "item 2: path: input should be a valid string"),
        ('[{"path": "/weather"}]', "item 1: POST /weather is not supported"),
        ('[{"path": "/bot_users"}]', "item 1: name must not be empty."),
        ('[{"collection": 5, "object": {}}]', "item 1: collection: input should be a valid string"),
        ('[{"collection": "bot_users", "object": 5}]', "item 1: object: input should be a valid dictionary"),
        ("[{collection: bot_users, object: {created_at: 2024-01-01}}]", "item 1: object.created_at: input was not a"),
        (f"[{PLANTED}, {PLANTED}]", "item 2: An object with the id bot_1 already exists at /bot_users."),
        ("[5]", "item 1: it must be an object"),
        ("[{}]", "item 1: path: field required"),
        ("{}", "a seed file must be a list"),
        ("[}", "it is neither JSON nor YAML at line 1"),
        ("[" * 5000, "it has more than 100 levels"),
    ],
)
def test_a_seed_that_cannot_be_planted_is_told_with_its_item(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "seed.yaml"
    file.write_text(text)
    database = Database(":memory:")
    with pytest.raises(ValueError, match=re.escape(f"{file}: {why}")):
        seeds.load_seed(Objects(database, read_only.list_served()), file)
    database.close()


def test_the_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE mine (a)")
    other.close()
    before = file.read_bytes()
    with pytest.raises(sqlite3.DatabaseError, match="not a database of the sandbox; use another file"):
        Database(str(file))
    assert (file.read_bytes(), [path.name for path in tmp_path.iterdir()]) == (before, ["other.db"])


def test_an_empty_file_becomes_a_database_and_is_known_again(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    file.touch()
    for _ in range(2):
        Database(str(file)).close()


def test_certificates_are_issued_with_one_key_for_all() -> None:
    """To make one of RSA takes longer than anybody waits who reads a list of a hundred domains."""
    first, second = (
        x509.load_pem_x509_certificate(certificates.issue(domain, "rsa", derive.now()).encode()) for domain in "ab"
    )
    assert first.subject != second.subject
    assert first.public_key() == second.public_key()
