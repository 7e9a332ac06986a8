"""New stores, in a file or on the PostgreSQL server of `make test-postgres`, and a clock and records for them."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.model.fleet import Run, RunVerb, Shape, TaskRecord, TaskState

RUN = Run("20261123-101500-a1b2", "edge", RunVerb.APPLY, "/srv/fleet", "fleet.yaml", "c0ffee", 1000.0, actor="mara")
SHAPE = Shape("0123456789ab", "berlin", "shop", '{"plan": "…"}')
RUNS = {"r1": "core", "r2": "edge", "r3": "edge", "r4": "edge", "r5": "zone"}  # id → fleet
PLACES = [(member, project) for member in "abc" for project in ("base", "mid", "shop")]

STORES = [pytest.param("file"), pytest.param("server", marks=pytest.mark.postgres)]


def new_store(form: str, folder: Path) -> str:
    """The path or URL of a store that does not exist yet."""
    if form == "file":
        return str(folder / "fleet.db")
    from sqlalchemy import create_engine, make_url, text

    server = make_url(os.environ["RECONCILER_TEST_POSTGRES"])
    name = f"t{uuid.uuid4().hex}"
    engine = create_engine(server.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.set(database=name).render_as_string(hide_password=False)


class Now:
    """A clock whose time changes only if a test sets it."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


def tasks(*members: str, run: str = RUN.id) -> list[TaskRecord]:
    """Waiting tasks of a run, one for each member."""
    return [TaskRecord(run, member, "shop") for member in members]


def end_task(record: TaskRecord, state: TaskState = TaskState.SUCCEEDED, sent: int = 0) -> TaskRecord:
    """The record of a task that ended and sent so many requests."""
    return replace(record, state=state, exit_code=0, requests=record.requests + sent)
