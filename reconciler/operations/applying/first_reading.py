"""Reads the account at the start of an apply, and settles creates of earlier runs whose result was never stored."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine import recovery
from reconciler.engine.ports import Intent, Reader
from reconciler.model.snapshot import Snapshot
from reconciler.operations.applying import staleness
from reconciler.operations.reporting import Note, OnEvent

if TYPE_CHECKING:
    from reconciler.operations.applying.plan_files import PlanFile
    from reconciler.operations.open_project import OpenProject
    from reconciler.store.journal import StoreJournal
    from reconciler.store.store import Store


async def read_for_apply(
    project: OpenProject,
    store: Store,
    journal: StoreJournal,
    reader: Reader,
    planned: PlanFile | None,
    on_event: OnEvent,
    *,
    is_whole: bool,
) -> Snapshot:
    """A snapshot of the whole account, or of the kinds of a plan file. Settles open intents; waits for late creates.

    is_whole   the whole account, also for a plan file: what decides about access is of other kinds than the changes
    """
    intents = await store.find_open_intents(project.manifest.stack)
    only, by_id = None, None
    if planned is not None and not is_whole:
        only = staleness.kinds_of(planned.plan) | {intent.address.kind for intent in intents}
        by_id = staleness.by_id(planned.plan)
    began = time.time()
    snapshot = await project.account_reading.read(reader, store, only=only, by_id=by_id, on_event=on_event)
    if await _wait_for(recovery.find_unsettled(intents, snapshot, kinds.list_planned()), began, project, on_event):
        snapshot = await project.account_reading.read(reader, store, only=only, by_id=by_id, on_event=on_event)
    bound = await recovery.settle(intents, snapshot, kinds.list_planned(), journal)
    return replace(snapshot, bindings={**snapshot.bindings, **bound})


async def _wait_for(unsettled: Sequence[Intent], began: float, project: OpenProject, on_event: OnEvent) -> bool:
    """Waits for creates of an earlier run, which may take effect after its process died. Returns whether the account
    has to be read again: the reading that began at `began` may have been too early, even if its time is over now."""
    if not unsettled:
        return False
    latest = max(unsettled, key=lambda intent: intent.opened)
    limit = project.config.limits.settle_seconds
    due = latest.opened + limit  # by the wall clock, with which the store's times were written
    if began >= due:
        return False
    remaining = min(due - time.time(), limit)
    if remaining <= 0:
        return True
    text = f"waiting {remaining:.0f} s: the create of {latest.address} was interrupted and may still take effect"
    on_event(Note(text))
    await project.runtime.clock.sleep(remaining)
    return True
