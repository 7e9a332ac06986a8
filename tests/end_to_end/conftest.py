"""Hosts that commands write to, as servers on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.code_hosts import CodeHost
from tests.end_to_end.webhook import Hook


@pytest.fixture
def host() -> Iterator[CodeHost]:
    with CodeHost() as running:
        yield running


@pytest.fixture
def hook() -> Iterator[Hook]:
    running = Hook()
    yield running
    running.server.shutdown()
    running.server.server_close()
