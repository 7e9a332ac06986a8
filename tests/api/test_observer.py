"""Events that an observer of requests receives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reconciler.api.platform import open_platform, open_reader
from reconciler.engine.ports import Gone, Lost
from tests.api.wire import CUT, answer, wire
from tests.harness.engine import VirtualClock


class Noting:
    """An observer that records its events."""

    def __init__(self) -> None:
        self.noted: list[Any] = []

    @contextmanager
    def watch_request(self, method: str, path: str) -> Iterator[Noting]:
        self.noted.append((method, path))
        yield self

    @contextmanager
    def watch_list(self, path: str) -> Iterator[None]:
        self.noted.append(f"list {path}")
        yield
        self.noted.append("end")

    def on_response(self, status: int) -> None:
        self.noted.append(status)

    def on_failure(self, failure: Exception) -> None:
        self.noted.append(type(failure))

    def on_wait(self, seconds: float) -> None:
        self.noted.append(f"wait {seconds:g}")


async def test_an_observer_receives_requests_and_waits_without_content() -> None:
    observer, clock, waits = Noting(), VirtualClock(), list[float]()
    answers = (answer({"bot_users": []}), answer({}, 404), answer({"id": "x"}), CUT)
    account = {"observer": observer, "requests_per_minute": 3}
    async with (
        wire(*answers) as there,
        open_platform(there.account(**account), clock=clock, on_wait=waits.append) as platform,
    ):
        assert [page async for page in platform.pages("/bot_users?limit=9", "bot_users")] == [[]]
        with pytest.raises(Gone):
            await platform.send("DELETE", "/x")
        await platform.send("POST", "/x", {"secret": 1})
        with pytest.raises(Lost):
            await platform.send("POST", "/x", {})
    assert observer.noted == [
        "list /bot_users", ("GET", "/bot_users"), 200, "end",
        ("DELETE", "/x"), 404, Gone,
        ("POST", "/x"), 200,
        "wait 60", ("POST", "/x"), Lost,
    ]  # fmt: skip
    assert waits == [60]


async def test_an_observer_receives_waits_without_a_callback() -> None:
    observer, clock = Noting(), VirtualClock()
    account = {"observer": observer, "requests_per_minute": 1}
    async with wire(answer({})) as there, open_reader(there.account(**account), clock=clock) as reader:
        for _ in range(2):
            await reader.get("/x")
    assert observer.noted == [("GET", "/x"), 200, "wait 60", ("GET", "/x"), 200]
