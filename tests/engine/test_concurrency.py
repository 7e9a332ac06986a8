"""How many calls run and how many requests are sent at once."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler import kinds
from reconciler.engine.ports import Check
from reconciler.model.event import Ended, Started
from reconciler.model.plan import Call, Plan
from reconciler.model.value import Json
from tests.harness.engine import EngineHarness, MemoryPlatform, create


@pytest.fixture
def world() -> EngineHarness:
    return EngineHarness(MemoryPlatform(kinds.every()))


def plan(*calls: Call) -> Plan:
    return Plan("prod", calls=calls)


async def test_at_most_the_allowed_number_of_calls_run_at_once(world: EngineHarness) -> None:
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(20)]
    running = most = 0
    for event in await world.apply(plan(*calls), concurrency=3):
        running += isinstance(event, Started) - isinstance(event, Ended)
        most = max(most, running)
    assert most == 3


async def test_twice_as_many_calls_run_as_requests(world: EngineHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    send, requests, most_requests, running, most_running = world.platform.send, 0, 0, 0, 0

    async def send_counted(
        method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        nonlocal requests, most_requests
        requests += 1
        most_requests = max(most_requests, requests)
        try:
            return await send(method, path, body, check=check)
        finally:
            requests -= 1

    monkeypatch.setattr(world.platform, "send", send_counted)
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(40)]
    for event in await world.apply(plan(*calls), concurrency=8):
        running += isinstance(event, Started) - isinstance(event, Ended)
        most_running = max(most_running, running)
    assert (most_requests, most_running) == (8, 16)


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (3, 3), (4, 8)])
async def test_fewer_than_four_requests_at_once_allow_no_further_calls(
    world: EngineHarness, concurrency: int, most: int
) -> None:
    calls = [create(f"TLSEdge/e{n}", "/edges/tls") for n in range(12)]
    running, counts = 0, []
    for event in await world.apply(plan(*calls), concurrency=concurrency):
        running += isinstance(event, Started) - isinstance(event, Ended)
        counts.append(running)
    assert max(counts) == most
