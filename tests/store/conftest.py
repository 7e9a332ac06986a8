from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reconciler.store.fleets.records import FleetRecords, open_fleet_records
from tests.store.stores import STORES, Now, new_store


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture(params=STORES)
async def records(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[FleetRecords]:
    async with open_fleet_records(new_store(request.param, tmp_path)) as opened:
        yield opened


@pytest.fixture
async def timed(tmp_path: Path, now: Now) -> AsyncIterator[FleetRecords]:
    """Records in a file, by a clock that the test sets."""
    async with open_fleet_records(str(tmp_path / "fleet.db"), now=now) as opened:
        yield opened
