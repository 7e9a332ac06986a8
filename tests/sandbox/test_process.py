"""The process: its first line, its signals, its restarts."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.harness.platform import HEADERS, SandboxProcess

Start = Callable[..., SandboxProcess]


@pytest.mark.usefixtures("over_socket")
def test_the_first_line_is_the_base_url(sandbox: SandboxProcess) -> None:
    assert httpx.get(f"{sandbox.base_url}/bot_users", headers=HEADERS).status_code == 200


def test_sigterm_ends_the_process_with_success(start_sandbox: Start) -> None:
    assert start_sandbox().stop() == 0


def test_a_confirmed_object_survives_a_kill(start_sandbox: Start, tmp_path: Path) -> None:
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


def test_a_reset_restores_the_budget_of_the_start(start_sandbox: Start) -> None:
    sandbox = start_sandbox(requests_per_minute=2)
    for limits in ({}, {"limit": 1}):
        sandbox.put("/_sandbox/budget", limits)
        sandbox.reset()
        assert [sandbox.request("GET", "/bot_users").status_code for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize("fault", [{"then": "hang"}, {"then": "commit-then-hang"}, {"delay": 60.0}])
def test_an_interrupt_ends_the_process_during_waiting_requests(
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
