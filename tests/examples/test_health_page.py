"""docs/health.md: its table has every kind that has health, and its figures are those of a real account."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from reconciler import kinds
from reconciler.testing import Sandbox
from tests.harness.workspaces import open_on, policy, write_project

PAGE = (Path(__file__).parents[2] / "docs/health.md").read_text(encoding="utf-8")


def test_the_table_has_every_kind_that_has_health() -> None:
    table = PAGE.partition("## What healthy means")[2].partition("\n## ")[0]
    named = [name for line in table.splitlines() for name in re.findall(r"`([A-Z]\w+)`", line.partition(" | ")[0])]
    assert sorted(named) == sorted(kind.name for kind in kinds.list_planned() if kind.health is not None)


async def test_only_status_reads_more_lists_than_a_plan(tmp_path: Path) -> None:
    backend = {"kind": "TunnelGroupBackend", "name": "web", "spec": {"labels": {"app": "web"}}}
    with Sandbox() as sandbox:
        workspace = open_on(sandbox, write_project(tmp_path, backend, policy("office")))
        await workspace.apply()
        requests = {}
        for name, work in (("plan", workspace.plan), ("drift", workspace.drift), ("status", workspace.status)):
            sandbox.forget_log()
            await work()
            requests[name] = Counter(entry["path"].partition("?")[0] for entry in sandbox.log())
    assert requests["plan"] == requests["drift"]
    assert requests["status"] - requests["plan"] == Counter({"/tunnels": 1})
