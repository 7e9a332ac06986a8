"""Reads the state of a stack: sync, health, what name servers say, and the next dates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler import kinds
from reconciler.health.dates import list_dates
from reconciler.model.dns import clean_name
from reconciler.model.health import DAY, WORST_FIRST, Actor, Health, HealthRow, State
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.status import StackStatus, Sync, Synced
from reconciler.operations.drift import describe_unread, find_drift
from reconciler.operations.health import build_facts, find_health
from reconciler.operations.opening.stores import open_existing_store
from reconciler.operations.reporting import OnEvent, ignore_event

if TYPE_CHECKING:
    from reconciler.operations.open_project import OpenProject

DAYS = 30
_REMEMBERED = 90 * DAY


class StatusResult(StackStatus, frozen=True):
    """The state of a stack, which renders itself."""

    def markdown(self) -> str:
        """As `reconciler status --format markdown`."""
        from reconciler.rendering import status

        return status.render_markdown(self)

    def html(self) -> str:
        """As `reconciler status --format html`."""
        from reconciler.rendering.html import status_page

        return status_page.render_page(self)

    def to_json(self) -> str:
        """As `reconciler status --format json`."""
        from reconciler.rendering import status

        return status.render_json(self)


async def read_status(
    project: OpenProject, *, verify: bool = False, name_server: str | None = None, on_event: OnEvent = ignore_event
) -> StatusResult:
    """See `Workspace.status`."""
    drift = await find_drift(project, (), on_event)
    rows = await find_health(project, drift.snapshot, on_event)
    if verify:
        rows = await _verify(project, drift.snapshot, rows, name_server)
    now, config = project.runtime.now(), project.config
    return StatusResult(
        project.manifest.stack,
        project.account_name,
        now,
        await _find_sync(project, drift.plan, now),
        rows,
        list_dates(rows, project.options.approved, config.known_drift, now, DAYS),
        DAYS,
        config.environment.name if config.environment is not None else "",
        is_verified=verify,
    )


async def _find_sync(project: OpenProject, plan: Plan, now: float) -> Sync:
    """Of the plan, or of the last recorded drift check if the plan may lack drift."""
    why = describe_unread(plan)
    drifted = {str(change.address) for change in plan.changes if not change.is_pending}
    drifted |= {str(addition.address) for addition in plan.additions}
    pending = sorted({str(change.address) for change in plan.changes if change.is_pending})
    state = Synced.DRIFT if drifted else Synced.UNKNOWN if why else Synced.YES
    sync = Sync(state, now, drifted=tuple(sorted(drifted)), pending=tuple(pending), why=why)
    if sync.state is not Synced.UNKNOWN:
        return sync
    return await _read_last(project, now, why) or replace(sync, at=None, is_now=False)


async def _read_last(project: OpenProject, now: float, why: str) -> Sync | None:
    """What the last recorded drift check found; None without one that read the whole account."""
    async with open_existing_store(project.config) as store:
        since = now - _REMEMBERED
        checks = await store.drift_history.list_drift_checks(project.manifest.stack, since) if store is not None else ()
    check = next((check for check in reversed(checks) if check.complete), None)
    if check is None:
        return None
    drifted, pending = (
        tuple(str(resource.address) for resource in resources if project.options.selects(resource.address))
        for resources in (check.drift, check.git_changes)
    )
    return Sync(Synced.DRIFT if drifted else Synced.YES, check.at, False, drifted, pending, why)


# --- what name servers say --------------------------------------------------------------------------------------------


async def _verify(
    project: OpenProject, snapshot: Snapshot, rows: Sequence[HealthRow], name_server: str | None
) -> tuple[HealthRow, ...]:
    """The rows with what name servers say about the records of each object."""
    from reconciler.operations.dns_records import verify_facts

    owners = {row: _list_owners(snapshot, row) for row in rows}
    wanted = frozenset(name for names in owners.values() for name in names)
    report = await verify_facts(project, build_facts(project, snapshot), name_server, only=wanted)
    found: dict[str, list[Health]] = defaultdict(list)
    for finding in report.findings:
        found[finding.need.owner].append(finding.health)
    for item in report.records.misplaced:
        found[item.record.owner].append(Health(State.DEGRADED, item.why, item.remedy, Actor.YOU))
    return tuple(
        replace(row, health=join_health(row.health, [health for name in owners[row] for health in found[name]]))
        for row in rows
    )


def _list_owners(snapshot: Snapshot, row: HealthRow) -> frozenset[str]:
    """The names of the DNS records that the object of a row needs."""
    name = row.address.partition("/")[0]
    kind = kinds.find(name)
    if kind is None or kind.records is None:
        return frozenset()
    records = [record for live in snapshot.of(name).objects if live.id == row.id for record in kind.records(live.body)]
    return frozenset(clean_name(record.owner) or record.owner for record in records)


def join_health(health: Health, findings: Iterable[Health]) -> Health:
    """The health that the platform shows, or what name servers say if that is as bad or worse."""
    worst = min(findings, key=lambda found: WORST_FIRST.index(found.state), default=health)
    if worst.state is State.HEALTHY or WORST_FIRST.index(worst.state) > WORST_FIRST.index(health.state):
        return health
    return replace(worst, due=health.due)
