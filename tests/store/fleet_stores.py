"""Stores for the tests of fleets: a file, or a database on the PostgreSQL server of `make test-postgres`."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

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
