"""The events that an observer of requests receives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reconciler.api.platform import open_platform, open_reader
from reconciler.engine.ports import Gone, Lost
from tests.api.wire import CUT, answer, wire
from tests.harness.engine import VirtualClock


class Recorder:
    """An observer that records its events."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    @contextmanager
    def watch_request(self, method: str, path: str) -> Iterator[Recorder]:
        self.events.append((method, path))
        yield self

    @contextmanager
    def watch_list(self, path: str) -> Iterator[None]:
        self.events.append(f"list {path}")
        yield
        self.events.append("end")

    def on_response(self, status: int) -> None:
        self.events.append(status)

    def on_failure(self, failure: Exception) -> None:
        self.events.append(type(failure))

    def on_wait(self, seconds: float) -> None:
        self.events.append(f"wait {seconds:g}")


async def test_an_observer_receives_requests_and_waits_without_content() -> None:
    observer, clock, waits = Recorder(), VirtualClock(), list[float]()
    answers = (answer({"bot_users": []}), answer({}, 404), answer({"id": "x"}), CUT)
    account = {"observer": observer, "requests_per_minute": 3}
    async with (
        wire(*answers) as server,
        open_platform(server.account(**account), clock=clock, on_wait=waits.append) as platform,
    ):
        assert [page async for page in platform.pages("/bot_users?limit=9", "bot_users")] == [[]]
        with pytest.raises(Gone):
            await platform.send("DELETE", "/x")
        await platform.send("POST", "/x", {"secret": 1})
        with pytest.raises(Lost):
            await platform.send("POST", "/x", {})
    assert observer.events == [
        "list /bot_users", ("GET", "/bot_users"), 200, "end",
        ("DELETE", "/x"), 404, Gone,
        ("POST", "/x"), 200,
        "wait 60", ("POST", "/x"), Lost,
    ]  # fmt: skip
    assert waits == [60]


async def test_an_observer_receives_waits_without_a_callback() -> None:
    observer, clock = Recorder(), VirtualClock()
    account = {"observer": observer, "requests_per_minute": 1}
    async with wire(answer({})) as server, open_reader(server.account(**account), clock=clock) as reader:
        for _ in range(2):
            await reader.get("/x")
    assert observer.events == [("GET", "/x"), 200, "wait 60", ("GET", "/x"), 200]
