"""Whoever wants to know of every request: how long it took and what came of it. Never of what is in it.

Observers only listen. Where there is none, nothing is spent on it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


class Exchange(Protocol):
    """One request under way."""

    def on_response(self, status: int) -> None: ...

    def on_failure(self, failure: Exception) -> None: ...


class Observer(Protocol):
    def watch_request(self, method: str, path: str) -> AbstractContextManager[Exchange]:
        """Around one request, from sending to answer. The path has no query."""

    def watch_list(self, path: str) -> AbstractContextManager[None]:
        """Around all pages of one collection."""

    def on_wait(self, seconds: float) -> None:
        """The budget makes everybody wait."""
