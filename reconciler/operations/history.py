"""Reads earlier runs and drift checks from the store. Needs no API key and no manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconciler.model.history import Past
from reconciler.operations.opening.stores import open_existing_store
from reconciler.project.settings.config import Config

if TYPE_CHECKING:
    from reconciler.store.reading import RecordedCall


async def read_calls(config: Config, limit: int) -> Sequence[RecordedCall]:
    """The last `limit` calls of earlier runs, newest first."""
    async with open_existing_store(config) as store:
        return await store.history(config.stack, limit=limit) if store else ()


async def read_past(config: Config, since: float) -> Past:
    """Recorded drift checks and runs; `since` is in seconds since 1970."""
    async with open_existing_store(config) as store:
        if store is None:
            return Past()
        history = store.drift_history
        checks = await history.list_drift_checks(config.stack, since)
        applied = await history.find_applied(config.stack, checks[-1].at) if checks else {}
        return Past(checks, await history.list_runs(config.stack, since), applied)
