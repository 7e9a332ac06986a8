"""Finds what changed on the platform since the last apply, lists unmanaged objects, and records drift checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.health import HealthRow, State
from reconciler.model.history import CheckedHealth, DriftCheck, DriftedResource, Opening
from reconciler.model.known_drift import KnownDrift
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Severity
from reconciler.model.snapshot import Snapshot
from reconciler.operations import access_checks
from reconciler.operations.drift_state import IN_SYNC, DriftState, find_state, follow_states
from reconciler.operations.errors import InvalidProject
from reconciler.operations.opening.stores import open_drift_history, open_existing_store, store_location
from reconciler.operations.reporting import Note, OnEvent, ignore_event
from reconciler.operations.results import DriftResult
from reconciler.operations.selection import check_selection
from reconciler.planning.importing.survey import choose_names
from reconciler.planning.known_drift import ignore_known
from reconciler.planning.planner import find_drift_accounts
from reconciler.store.errors import MEMORY

if TYPE_CHECKING:
    from reconciler.operations.open_project import OpenProject


_NIGHTS = 30  # drift checks that tell whether an object was degraded before its health became unknown


async def find_drift(
    project: OpenProject, ignore: Sequence[str], on_event: OnEvent, *, health: bool = False
) -> DriftResult:
    """See `Workspace.drift`. Without access tests."""
    snapshot = await project.take_snapshot(on_event=on_event)
    check_selection(project.options, project.manifest, snapshot, on_event)
    plan = project.find_drift_of(snapshot, lambda plan: without_known_drift(project, plan, ignore))
    if health:
        from reconciler.operations.health import find_health

        plan = replace(plan, health=await find_health(project, snapshot, on_event))
    return DriftResult(plan, snapshot, project)


def with_access_tests(project: OpenProject, drift: DriftResult, ignore: Sequence[str]) -> DriftResult:
    """The drift with the results of the access tests on the account as it is; of selected resources without them.

    Invalid tests are warnings: what changed on the platform is reported all the same.
    """
    if project.options.is_limited:
        return drift
    try:
        tests = project.load_tests()
    except InvalidProject as invalid:
        problems = (replace(problem, severity=Severity.WARNING) for problem in invalid.problems)
        return replace(drift, plan=replace(drift.plan, problems=(*drift.plan.problems, *problems)))
    plan = access_checks.with_drift_results(
        drift.plan,
        tests,
        lambda: find_drift_accounts(
            project.manifest,
            drift.snapshot,
            kinds.list_planned(),
            project.options,
            lambda plan: without_known_drift(project, plan, ignore),
        ),
    )
    return replace(drift, plan=plan)


def without_known_drift(project: OpenProject, plan: Plan, ignore: Sequence[str]) -> Plan:
    """The plan without known drift: the differences that the project file or `ignore` (globs) declares."""
    today = datetime.fromtimestamp(project.options.now, UTC).date().isoformat()
    known = (*project.config.known_drift, *(KnownDrift(glob, reason="--ignore") for glob in ignore))
    return ignore_known(plan, known, today)


class UnmanagedObjects(Struct, frozen=True):
    """Live objects that the stack does not manage.

    objects  objects of no stack: the address that an import would use, and the id
    stacks   other stacks, with the number of objects that each manages
    """

    objects: tuple[tuple[Address, str], ...]
    stacks: Mapping[str, int]


def list_unmanaged(plan: Plan, snapshot: Snapshot, manifest: Manifest) -> UnmanagedObjects:
    """The objects of a snapshot that the plan's stack does not manage."""
    every = {live.key: live for listing in snapshot.listings.values() for live in listing.objects}
    names = choose_names(manifest, snapshot, kinds.list_planned()) if plan.unmanaged else {}
    objects = tuple((names.get(key) or Address(*key), key[1]) for key in plan.unmanaged if key in every)
    stacks = Counter(live.owner.stack for live in every.values() if live.owner is not None)
    stacks.update({stack: len(found) for stack, found in plan.elsewhere.items()})
    del stacks[plan.stack]
    return UnmanagedObjects(objects, dict(sorted(stacks.items())))


def describe_unread(plan: Plan) -> str:
    """Why a plan may lack drift; empty if it lacks none."""
    if plan.errors:
        return "the plan has errors"
    if any(problem.code == "additions-unknown" for problem in plan.problems):
        return "the account was not read completely"
    return ""


def keeps_history(project: OpenProject) -> bool:
    """Whether the store of the project outlives the process."""
    return store_location(project.config) != MEMORY


async def read_state(project: OpenProject) -> DriftState | None:
    """The state after the last drift check that judged health; None if the store has none."""
    async with open_existing_store(project.config) as store:
        if store is None:
            return None
        checks = await store.drift_history.list_judged(project.manifest.stack, _NIGHTS)
    return follow_states(checks)


def is_news(project: OpenProject, found: DriftResult, earlier: DriftState | None) -> bool:
    """Whether to notify: if there is drift; with health, if drift or health changed since the check of `earlier`.

    earlier  None: it is not known, and what is good now is no news
    """
    plan = found.plan
    if plan.health is None or plan.failed_tests:  # of which no check keeps a record
        return plan.has_drift
    state = find_state(build_check(project, found), earlier or IN_SYNC)
    if state.is_good and (earlier is None or describe_unread(plan)):
        return False
    return state != earlier


def build_check(project: OpenProject, found: DriftResult) -> DriftCheck:
    """A drift check as it is stored: addresses, field paths, health, and who got through where; no values of fields."""
    from reconciler.rendering.plan import outline, phrases

    plan = found.plan
    rows = outline.build_outline(plan)
    drifted = tuple(
        DriftedResource(
            change.address,
            change.action,
            change.reason,
            phrases.find_cause(row),
            tuple(field.path for field in change.fields),
        )
        for change, row in zip((*plan.additions, *plan.changes), (*rows.additions, *rows.changes), strict=True)
    )
    return DriftCheck(
        project.options.now,
        len(project.manifest.declarations),
        plan.commit,
        drifted,
        all(listing.complete or not listing.is_offered for listing in found.snapshot.listings.values()),
        tuple(_list_openings(plan)),
        None if plan.health is None else CheckedHealth(len(plan.health), tuple(_list_worth_keeping(plan.health))),
    )


async def record_drift(project: OpenProject, found: DriftResult, on_event: OnEvent = ignore_event) -> None:
    """Stores the result of a drift check, see `build_check`. Creates the store if there is none.

    Records nothing if the account was not read completely: what could not be read would count as in sync.
    """
    if why := describe_unread(found.plan):
        on_event(Note(f"note: drift check not recorded, because {why}"))
        return
    async with open_drift_history(project.config) as history:
        await history.record(project.manifest.stack, build_check(project, found))


def _list_openings(plan: Plan) -> Iterator[Opening]:
    """The entry points that drift opens, without those of other stacks."""
    for entry in plan.access:
        if entry.verdict.opens and not entry.is_concealed:
            yield Opening(entry.entry_point, entry.verdict, entry.before, entry.after, entry.is_certain)


def _list_worth_keeping(rows: Sequence[HealthRow]) -> Iterator[HealthRow]:
    """What a report shows: objects that are not healthy, or for which something comes due."""
    return (row for row in rows if row.health.state is not State.HEALTHY or row.health.due is not None)
