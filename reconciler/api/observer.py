"""The interface of an observer of requests, for telemetry: duration and status of each, never its content."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


class Exchange(Protocol):
    """One request that is observed."""

    def on_response(self, status: int) -> None: ...

    def on_failure(self, failure: Exception) -> None: ...


class Observer(Protocol):
    """Notified of every request, list and wait."""

    def watch_request(self, method: str, path: str) -> AbstractContextManager[Exchange]:
        """A context around one request, from sending to response. The path has no query."""

    def watch_list(self, path: str) -> AbstractContextManager[None]:
        """A context around the reading of all pages of a collection."""

    def on_wait(self, seconds: float) -> None:
        """Called when all requests wait for the budget."""
