"""Rows of fleets that are not valid."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from reconciler.store.errors import Damaged
from reconciler.store.fleets.records import open_fleet_records
from tests.store.stores import RUN, SHAPE, tasks


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE fleet_runs SET state = 'opem'",
        "UPDATE fleet_runs SET verb = 'destroy'",
        """UPDATE fleet_runs SET approved_shapes = '["0123456789ab"]'""",
        """UPDATE fleet_runs SET approved_waves = '{"approved": ["all"], "waves": []}'""",
        "UPDATE fleet_tasks SET state = 'runninf'",
        "UPDATE fleet_tasks SET counts = '{'",
        """UPDATE fleet_tasks SET changes = '{"BotUser/b": "1"}'""",
        "UPDATE fleet_tasks SET shape = 'x'",
        "UPDATE fleet_shapes SET plan = ''",
    ],
)
async def test_an_invalid_row_is_reported_as_damage(tmp_path: Path, change: str) -> None:
    file = tmp_path / "fleet.db"
    async with open_fleet_records(str(file)) as records:
        await records.create_run(RUN, tasks("a"))
        await records.save_shape("edge", SHAPE)
        connection = sqlite3.connect(file)
        connection.execute(change)
        connection.commit()
        connection.close()

        async def read_all() -> None:
            await records.find_run("edge")
            await records.tasks(RUN.id)
            await records.shapes("edge", [SHAPE.digest])

        with pytest.raises(Damaged):
            await read_all()
