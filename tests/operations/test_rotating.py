"""Rotation of credentials over time: what drift and an apply say of it, on the emulated platform in process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler import Status
from reconciler.testing import Sandbox
from tests.operations.projects import Document, open_on, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def credential(**more: Any) -> Document:
    return {"kind": "TunnelCredential", "name": "c", "deliver": {"token": {"to_file": "secrets/c"}}, **more}


def make_older(sandbox: Sandbox, created: Document, **edited: Any) -> None:
    """The credential was created 90 minutes earlier, and then edited."""
    moment = datetime.fromisoformat(created["created_at"]) - timedelta(minutes=90)
    sandbox.delete(f"/credentials/{created['id']}")
    sandbox.plant("credentials", {**created, **edited, "created_at": moment.isoformat()})


def at(hours: float) -> float:
    return time.time() + hours * 3600


@pytest.mark.parametrize("rotate", [{"rotate": {"after": "24h", "overlap": "2h"}}, {}], ids=["ended", "removed"])
async def test_the_end_of_an_overlap_is_no_drift(sandbox: Sandbox, tmp_path: Path, rotate: Document) -> None:
    root = write_project(tmp_path, credential(rotate={"after": "1h", "overlap": "2h"}))
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    (first,) = sandbox.get("/credentials")["credentials"]
    make_older(sandbox, first)
    rotated = await open_on(sandbox, root).apply()
    assert [change.reason for change in rotated.plan.changes] == ["rotation"]
    assert rotated.status is Status.APPLIED
    assert (await open_on(sandbox, root).drift()).plan.is_empty
    write_project(tmp_path, credential(**rotate))
    found = await open_on(sandbox, root, now=lambda: at(3.5)).drift()
    assert [change.reason for change in found.plan.changes] == ["superseded"]
    assert (found.has_drift, found.plan.has_pending) == (False, True)
    assert found.plan.changes[0].id == first["id"]
    make_older(sandbox, first, acl=["bind:*"])
    assert (await open_on(sandbox, root, now=lambda: at(3.5)).drift()).has_drift
    make_older(sandbox, first)
    assert (await open_on(sandbox, root, now=lambda: at(3.5)).apply()).status is Status.APPLIED
    assert len(sandbox.get("/credentials")["credentials"]) == 1
