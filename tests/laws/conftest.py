from __future__ import annotations

import pytest

from tests.harness.platform import SandboxProcess


@pytest.fixture
def sandbox(over_socket: SandboxProcess) -> SandboxProcess:
    return over_socket
