"""The emulated platform in process: its options, its log, and the clock of its caller."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from reconciler import kinds
from reconciler.engine.observe import observe
from reconciler.engine.ports import Gone, NotSent, Refused, Transient
from reconciler.model.value import Secret
from reconciler.testing import Sandbox

OFFICE = {"path": "/ip_policies", "body": {"description": "office"}}
EPHEMERAL = {"collection": "endpoints", "object": {"type": "ephemeral", "url": "https://a.sandbox.test"}}


class ManualClock:
    """Time passes only in sleep."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def test_a_sandbox_is_read_and_changed_without_an_event_loop() -> None:
    with Sandbox(seed=[OFFICE, EPHEMERAL]) as sandbox:
        (office,) = sandbox.collection("/ip_policies", "ip_policies")
        sandbox.patch(f"/ip_policies/{office['id']}", {"description": "the office"})
        assert sandbox.get(f"/ip_policies/{office['id']}")["description"] == "the office"
        assert [endpoint["type"] for endpoint in sandbox.get("/endpoints")["endpoints"]] == ["ephemeral"]
        sandbox.reset()
        assert sandbox.refusal("GET", f"/ip_policies/{office['id']}") == (404, "")
        with pytest.raises(AssertionError, match="GET https://sandbox/nothing: 404"):
            sandbox.get("/nothing")


def test_a_seed_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "seed.yaml"
    file.write_text("- {path: /bot_users, body: {name: berlin}}\n")
    with Sandbox(seed=file) as sandbox:
        assert [user["name"] for user in sandbox.get("/bot_users")["bot_users"]] == ["berlin"]
    with pytest.raises(ValueError, match="item 1: POST /weather is not supported"):
        Sandbox(seed=[{"path": "/weather"}])


async def test_the_log_has_requests_of_the_client_and_not_of_the_test() -> None:
    async with Sandbox() as sandbox, sandbox.open_platform() as platform:
        sandbox.post("/bot_users", {"name": "by hand"})
        await platform.send("POST", "/bot_users", {"name": "by port"})
        with pytest.raises(Gone):
            await platform.get("/bot_users/bot_000000000000000000000000000")
        assert sandbox.calls() == ["POST /bot_users"]
        assert [call["status"] for call in sandbox.log()] == [201, 404]


async def test_a_reader_is_opened_and_before_write_can_refuse_writes() -> None:
    async def refuse() -> None:
        raise PermissionError

    async with Sandbox() as sandbox:
        async with sandbox.open_reader() as reader:
            snapshot = await observe(reader, kinds.every())
            assert all(listing.complete for listing in snapshot.listings.values())
        async with sandbox.open_platform(before_write=refuse) as platform:
            with pytest.raises(NotSent):
                await platform.send("POST", "/bot_users", {"name": "a"})
        wrong = sandbox.account(key=Secret("wrong", "test"))
        async with sandbox.open_reader(wrong) as reader:
            with pytest.raises(Refused) as failed:
                await reader.get("/bot_users")
            assert failed.value.is_permission


async def test_another_address_is_not_reached() -> None:
    clock = ManualClock()
    async with Sandbox(clock=clock) as sandbox:
        elsewhere = sandbox.account(base_url="https://api.example.com")
        async with sandbox.open_platform(elsewhere) as platform:
            with pytest.raises(Transient, match=r"cannot reach https://api\.example\.com"):
                await platform.send("POST", "/bot_users", {"name": "a"})


async def test_latency_faults_budget_and_retries_use_the_clock_of_the_caller() -> None:
    clock, waits, retries = ManualClock(), list[float](), list[str]()
    async with Sandbox(clock=clock, latency=1.0, requests_per_minute=2) as sandbox:
        sandbox.fault("GET /bot_users", then="answer", delay=1000.0)
        opening = sandbox.open_platform(
            sandbox.account(requests_per_minute=2),
            on_wait=waits.append,
            on_retry=lambda seconds, why: retries.append(why),
        )
        async with opening as platform:
            await platform.send("POST", "/bot_users", {"name": "a"})
            assert clock.seconds == 1.0
            await platform.get("/bot_users")
            assert clock.seconds == 1002.0
            sandbox.fault("GET /vaults", then="status", status=503)
            await platform.get("/vaults")
        assert [sandbox.request("GET", "/vaults").status_code for _ in range(2)] == [200, 429]
    assert len(retries) == 1
    assert waits


async def test_a_hook_sees_each_request_before_it_is_served() -> None:
    async def between(method: str, path: str) -> None:
        if method == "PATCH":
            sandbox.delete(path)

    async with Sandbox(on_request=between) as sandbox, sandbox.open_platform() as platform:
        user = sandbox.post("/bot_users", {"name": "a"})
        with pytest.raises(Gone):
            await platform.send("PATCH", f"/bot_users/{user['id']}", {"name": "b"})


async def test_an_agent_runs_beside_a_sandbox() -> None:
    async with Sandbox(agent=True) as sandbox, sandbox.open_platform() as platform:
        await platform.send("POST", "/api/tunnels", {"name": "web", "proto": "http", "addr": "8080"})
        assert [tunnel["name"] async for page in platform.pages("/api/tunnels", "tunnels") for tunnel in page] == [
            "web"
        ]
        assert len(sandbox.get("/tunnel_sessions")["tunnel_sessions"]) == 1


async def test_a_sandbox_needs_no_thread_and_no_descriptor() -> None:
    def count_resources() -> tuple[int, int]:
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    before = count_resources()
    async with Sandbox() as sandbox, sandbox.open_platform() as platform:
        await platform.send("POST", "/bot_users", {"name": "a"})
        assert count_resources() == before
