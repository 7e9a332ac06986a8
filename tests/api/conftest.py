from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.api import secret_store
from tests.harness.secret_stores import GitHubServer, VaultServer, run_server


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A retry of a request to a secret store follows at once."""

    async def pause(*_: Any) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(secret_store.SecretStore, "pause", pause)


@pytest.fixture
def vault() -> Iterator[VaultServer]:
    server = VaultServer()
    with run_server(server):
        yield server


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    server = GitHubServer()
    with run_server(server):
        yield server
