"""Stacks in some state, for tests of what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.status import Due, StackStatus, Sync, Synced

DAY = 86_400.0
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()


def build_status(*rows: HealthRow, sync: Sync | None = None, dates: tuple[Due, ...] = ()) -> StackStatus:
    return StackStatus("prod", "https://api.example.com", NOW, sync or Sync(Synced.YES, NOW), rows, dates)


def row(name: str, state: State, reason: str = "", actor: Actor = Actor.NOBODY, advice: str = "") -> HealthRow:
    return HealthRow(f"ReservedDomain/{name}", "rd_1", Health(state, reason, advice, actor))
