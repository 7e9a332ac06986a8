"""The process: its first line, its signals, its memory."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.platform import HEADERS, Sandbox

Start = Callable[..., Sandbox]


def test_the_first_line_is_the_base_url(sandbox: Sandbox) -> None:
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
    assert [each["name"] for each in sandbox.get("/bot_users")["bot_users"]] == ["berlin"]
    assert [each["type"] for each in sandbox.get("/endpoints")["endpoints"]] == ["ephemeral"]


@pytest.mark.parametrize(("method", "body"), [("PATCH", {"description": "mine"}), ("DELETE", None)])
def test_ephemeral_endpoints_are_read_only(sandbox: Sandbox, method: str, body: object) -> None:
    sandbox.plant("endpoints", {"type": "ephemeral", "url": "https://a.sandbox.test"})
    [found] = sandbox.get("/endpoints")["endpoints"]
    assert sandbox.refusal(method, f"/endpoints/{found['id']}", body) == (400, "")
    assert sandbox.get(f"/endpoints/{found['id']}") == found


def test_the_budget_answers_429_with_the_time_to_wait(start_sandbox: Start) -> None:
    sandbox = start_sandbox(requests_per_minute=2)
    statuses = [sandbox.request("GET", "/bot_users") for _ in range(3)]
    assert [each.status_code for each in statuses] == [200, 200, 429]
    assert 0 < int(statuses[2].headers["Retry-After"]) <= 60
    assert statuses[2].json()["error_code"] == "ERR_NGROK_226"
