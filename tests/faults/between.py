"""A client that stands between the platform's port and the real client, and changes what passes."""

from __future__ import annotations

from typing import Any

from reconciler.api.client import Client


class Between(Client):
    """All that a subclass does not say itself is as the client behind it has it."""

    def __init__(self, client: Client) -> None:
        self._to = client
        self.has_been_answered = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._to, name)
