"""Permissions of what commands write: plan files and the store are for their owner, whatever the umask."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

OUTPUTS = {
    "out/plan.json": ("plan", "--out", "out/plan.json"),
    "out/p.json": ("plan", "--format", "json=out/p.json"),
    "out/p.html": ("plan", "--format", "html=out/p.html"),
    "out/p.md": ("plan", "--format", "markdown=out/p.md"),
    "out/p.sarif": ("plan", "--format", "sarif=out/p.sarif"),
    "out/x.ndjson": ("apply", "-y", "--events", "out/x.ndjson"),
    "out/snapshot.json": ("snapshot", "--out", "out/snapshot.json"),
    "out/report.html": ("report", "--out", "out/report.html"),
    "manifests/ip-policy.yaml": ("import", "--out", "manifests"),
}

PRIVATE = ("out/plan.json", "out/p.json", "state/reconciler.db")


@pytest.fixture(params=[0o022, 0o077], ids=oct)
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_umask")
def test_plan_files_and_the_store_are_for_their_owner_and_documents_for_all(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    (on_sandbox.root / "out").mkdir()
    on_sandbox.declare(resource("IPPolicy", "home", description="Home"))
    sandbox.post("/ip_policies", {"description": "Office"})
    before = set(on_sandbox.root.rglob("*"))
    for file, words in OUTPUTS.items():
        assert on_sandbox(*words).code == 0, file
    written = {file for file in on_sandbox.root.rglob("*") if file.is_file()} - before
    modes = {file.relative_to(on_sandbox.root).as_posix(): file.stat().st_mode & 0o777 for file in written}
    assert {name: oct(mode) for name, mode in modes.items() if name in PRIVATE} == dict.fromkeys(PRIVATE, "0o600")
    assert [name for name, mode in modes.items() if mode & ~0o644] == []
    assert {*OUTPUTS, *PRIVATE} <= modes.keys()
