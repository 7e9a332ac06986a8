"""Runs one task of a fleet: acquires its lease, opens the member's project, plans or applies, and stores the result.

No ended task is run again. If a worker dies, the next one runs its task.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.observer import Exchange
from reconciler.engine.ports import Failure, Refused
from reconciler.fleet import reviews, shapes
from reconciler.fleet.assignments import (
    Assignment,
    FileCache,
    refuse_files,
    refuse_shared_key,
    refuse_shared_targets,
)
from reconciler.fleet.keys import KeyNotFound, find_key
from reconciler.model import exit_codes
from reconciler.model.event import Outcome
from reconciler.model.fleet import Fleet, Member, Run, RunVerb, Shape, Task, TaskRecord, TaskState
from reconciler.model.health import HealthRow, State
from reconciler.model.history import CheckedHealth
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Rejected
from reconciler.model.value import Json, Secret
from reconciler.operations.errors import OperationError
from reconciler.operations.results import ApplyResult, Status
from reconciler.operations.runtime import Runtime
from reconciler.operations.workspace import Workspace
from reconciler.planning import reviewed_changes
from reconciler.project.fleets.load import load_fleet
from reconciler.project.settings.variables import settle_variables
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.wire import plan_json
from reconciler.store.errors import Locked, StoreError, Unavailable
from reconciler.store.fleets.records import FleetRecords, task_lease
from reconciler.store.fleets.requests import HEARTBEAT_SECONDS

_LOCK_PATIENCE = 90.0  # seconds; the lock of a holder that died expires earlier
_LOCK_PAUSE = 2.0  # seconds between attempts to lock a stack
_GRACE = 60.0  # seconds for running calls to finish after the deadline of a task
_LONGEST_REASON = 500  # characters
_READS_AT_ONCE = 8  # requests at a time of a plan or drift check
_OWN_VARIABLES = ("RECONCILER_ENV", "RECONCILER_STORE", "RECONCILER_API_KEY")
"""Variables of the worker that the project of a member must not read."""


class WorkerContext(Struct, frozen=True):
    """The context that the tasks of a process share.

    records     the fleet store, open
    store       path or URL of the fleet store; the stores of members are next to it, or on the same server
    cache       folder of checkouts
    runtime     environment variables, clocks and platform for the members' projects
    commit      of files that are not checked out, for reports
    name        host and process, for users
    files       the cache of the fleet's files
    stops       one event for each running task
    """

    records: FleetRecords
    store: str
    cache: Path
    runtime: Runtime = field(default_factory=Runtime)
    commit: str = ""
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    files: FileCache = field(default_factory=FileCache)
    stops: set[asyncio.Event] = field(default_factory=set)

    def stop(self) -> None:
        """Starts no further calls; running ones finish. The tasks remain unfinished, and can be resumed."""
        for stop in self.stops:
            stop.set()

    def load_fleet(self, folder: Path, file: str) -> Fleet:
        """The fleet of a checkout, read once."""
        key = (folder, file)
        if key not in self.files.fleets:
            self.files.fleets[key] = load_fleet(folder, file)
        return self.files.fleets[key]

    @property
    def is_on_server(self) -> bool:
        """Whether the stores are on a server. Those in files count requests in `requests.db` next to them."""
        return "://" in self.store

    def runtime_of(
        self, task: Task, key: Secret, spent: tuple[tuple[float, int], ...], observer: _RequestCounter
    ) -> Runtime:
        """The runtime of a member's project, with its key and a separate store."""
        member, project = task.member, task.project
        environ = {name: value for name, value in self.runtime.environ.items() if name not in _OWN_VARIABLES}
        environ |= {"RECONCILER_API_KEY": key.reveal(), "FLEET_MEMBER": member}
        file = Path(self.store).absolute().parent / "members" / member / f"{project}.db"
        return dataclasses.replace(
            self.runtime,
            environ=environ,
            store=self.store if self.is_on_server else str(file),
            store_scope=f"{member}/{project}" if self.is_on_server else "",
            requests_spent=spent,
            observer=observer,
            commit=task.commit or self.commit,
        )


async def run_task(task: Task, context: WorkerContext) -> None:
    """Runs a task, unless it has ended, another worker has its lease, or the fleet is paused.

    Raises StoreError. A failure of the member is the result of the task.
    """
    records, runtime = context.records, context.runtime
    if await records.pause_of(task.fleet) is not None:
        return
    stop = asyncio.Event()
    context.stops.add(stop)
    try:
        async with records.lock(task_lease(task.key), on_loss=lambda _: stop.set()):
            record = await records.claim(task.run, task.member, task.project, context.name)
            if record.state.is_final:
                return
            began = runtime.clock.now()
            spent = await records.find_spent_requests(record) if context.is_on_server else ()
            attempt = _Attempt(task, record, context, spent, stop)
            async with attempt.send_heartbeats():
                result = await attempt.run()
            if result is not None:
                seconds, requests = runtime.clock.now() - began, attempt.requests
                await records.finish(replace(result, seconds=seconds, requests=requests))
    except Locked:
        return
    finally:
        context.stops.discard(stop)


def _find_folder(task: Task, context: WorkerContext) -> Path:
    if not task.commit:
        return Path(task.source)
    from reconciler.fleet.checkouts import fetch_checkout

    return fetch_checkout(task.source, task.commit, context.cache)


def _with_few_reads(workspace: Workspace) -> Workspace:
    """The workspace with fewer requests at a time: each member has connections of its own, beside those of others."""
    return dataclasses.replace(workspace, parallelism=min(workspace.parallelism, _READS_AT_ONCE))


def _first_of(problems: Sequence[Problem]) -> str:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else "invalid"


def _resolve_variables(member: Member, workspace: Workspace) -> Member:
    """The member with the variables of the project as they are resolved: a default counts as if the member had it."""
    settled = settle_variables(workspace.config.settings, workspace.variables, [])
    return replace(member, variables={name: setting.value for name, setting in settled.items()})


def _one_line(text: str) -> str:
    line = sanitize(" ".join(text.split()))
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"


class _Attempt(Struct, frozen=True):
    """One attempt of a task by this worker.

    spent    requests of the last minute by other workers for the account; see `Account.spent`
    stop     set when no further call may start
    counter  the requests of this attempt
    begun    set when this attempt of an apply may have sent changes
    """

    task: Task
    record: TaskRecord
    context: WorkerContext
    spent: tuple[tuple[float, int], ...]
    stop: asyncio.Event
    counter: _RequestCounter = field(default_factory=lambda: _RequestCounter())
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def requests(self) -> int:
        """The requests of all attempts."""
        return self.record.requests + self.counter.count

    @asynccontextmanager
    async def send_heartbeats(self) -> AsyncIterator[None]:
        """Sends heartbeats during the block. Stops the attempt if another worker claimed the task."""

        async def repeat() -> None:
            while True:
                await asyncio.sleep(HEARTBEAT_SECONDS)
                with suppress(StoreError):  # the lease decides whether this worker may continue
                    if not await self.context.records.store_heartbeat(replace(self.record, requests=self.requests)):
                        self.stop.set()

        task = asyncio.create_task(repeat())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def run(self) -> TaskRecord | None:
        """The record of the ended task; None if it was interrupted. Raises Unavailable."""
        clock = self.context.runtime.clock
        patience = clock.now() + _LOCK_PATIENCE
        while True:
            try:
                return await self._run_once()
            except Locked as locked:  # by a worker that died, or by another run, which may take long
                if self.stop.is_set():
                    return None
                if clock.now() > patience:
                    return self._fail(str(locked))
            await clock.sleep(_LOCK_PAUSE)

    async def _run_once(self) -> TaskRecord | None:
        try:
            return await self._run_until_deadline(await self._load())
        except Rejected as rejected:
            errors = [problem for problem in rejected.problems if problem.is_error]
            return self._fail(_first_of(errors))
        except (OperationError, KeyNotFound) as error:
            return self._fail(str(error))
        except Refused as refusal:
            return self._fail(str(refusal), exit_codes.AUTH if refusal.is_permission else exit_codes.ERROR)
        except (Locked, Unavailable):
            raise  # both may be temporary
        except (Failure, StoreError, OSError) as error:
            return self._fail(str(error))

    def _fail(self, reason: str, code: int = exit_codes.ERROR) -> TaskRecord:
        """The record of a task without a result: partly applied, if an attempt may have sent changes."""
        if self.begun.is_set() or self.record.changes:
            code = exit_codes.PARTLY
        return replace(self.record, state=TaskState.FAILED, exit_code=code, reason=_one_line(reason))

    async def _load(self) -> Assignment:
        task = self.task
        folder = await asyncio.to_thread(_find_folder, task, self.context)
        fleet = self.context.load_fleet(folder, task.file)
        if task.member not in fleet.members or task.project not in fleet.projects:
            raise OperationError(f"{task.file} has no member {task.member} with project {task.project}")
        base = folder / Path(task.file).parent
        return Assignment(base, fleet, fleet.members[task.member], fleet.projects[task.project])

    async def _run_until_deadline(self, assigned: Assignment) -> TaskRecord | None:
        """An apply starts no further call after the deadline of its wave, and is cancelled some time later."""
        if self.task.verb is not RunVerb.APPLY:
            return await self._run(assigned)
        run = await self.context.records.find_run(self.task.fleet, self.task.run)
        assert run is not None
        deadline = run.wave_at(self.record.wave).progress_deadline
        if deadline is None:
            return await self._run(assigned, run)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(deadline, self.stop.set)
        try:
            async with asyncio.timeout(deadline + _GRACE):
                result = await self._run(assigned, run)
        except TimeoutError:
            result = None
        finally:
            timer.cancel()
        if loop.time() >= timer.when() and (result is None or result.state is not TaskState.SUCCEEDED):
            return self._fail(f"it did not finish within progress_deadline ({deadline:.0f} s)")
        return result

    async def _run(self, assigned: Assignment, applied: Run | None = None) -> TaskRecord | None:
        """`applied`: the run of an apply."""
        fleet, member, environ = assigned.fleet, assigned.member, self.context.runtime.environ
        key = await find_key(fleet.api_key, member, assigned.base, environ)
        refuse_shared_key(key, assigned, self.context.files, self.context.runtime.environ)
        workspace = self._open(assigned, self.context.runtime_of(self.task, key, self.spent, self.counter))
        if self.task.commit:
            refuse_files(workspace)
        refuse_shared_targets(workspace, assigned, self.context.files)
        if applied is not None:
            return await self._apply(workspace, applied)
        reading = _with_few_reads(workspace)
        if self.task.verb is RunVerb.PLAN:
            return await self._record_plan((await reading.plan()).plan, assigned, workspace)
        plan = (await reading.drift(health=self.task.health)).plan
        return await self._record_drift(plan, assigned, workspace)

    def _open(self, assigned: Assignment, runtime: Runtime) -> Workspace:
        project, member, files = assigned.project, assigned.member, self.context.files
        stack, names = files.read_settings(assigned.base, project, runtime)
        for other in assigned.fleet.projects.values():
            is_assigned = other.name != project.name and member.matches(other.select)
            if is_assigned and files.read_settings(assigned.base, other, runtime)[0] == stack:
                both = f"projects {project.name} and {other.name}"  # each would delete the objects of the other
                raise OperationError(f"{both} have the same stack {stack}; give each its own")
        variables: dict[str, Json] = {name: value for name, value in member.variables.items() if name in names}
        return Workspace.open(
            assigned.base / project.path, environment=project.environment, variables=variables, runtime=runtime
        )

    async def _record_plan(self, plan: Plan, assigned: Assignment, workspace: Workspace) -> TaskRecord:
        """The record of a plan."""
        if plan.errors:
            failed = self._fail(_first_of(plan.errors))
            is_policy = all(problem.rule for problem in plan.errors)
            return replace(failed, state=TaskState.BLOCKED, exit_code=exit_codes.BLOCKED) if is_policy else failed
        record = await self._store_shape(plan, assigned, workspace)
        return replace(record, exit_code=exit_codes.DONE if plan.is_empty else exit_codes.CHANGES)

    async def _record_drift(self, plan: Plan, assigned: Assignment, workspace: Workspace) -> TaskRecord:
        """The record of a drift check."""
        if plan.errors:
            return self._fail(_first_of(plan.errors))
        record = await self._store_shape(
            replace(plan, health=None), assigned, workspace
        )  # members with one shape differ in it
        health = _check_health(plan.health) if plan.health is not None else None
        is_degraded = any(row.health.state is State.DEGRADED for row in plan.health or ())
        code = exit_codes.CHANGES if plan.has_drift else exit_codes.DEGRADED if is_degraded else exit_codes.DONE
        return replace(record, exit_code=code, health=health)

    async def _store_shape(self, plan: Plan, assigned: Assignment, workspace: Workspace) -> TaskRecord:
        """Stores the shape of a plan, and returns the record of the task."""
        ended = replace(self.record, state=TaskState.SUCCEEDED)
        if plan.is_empty and not plan.additions:
            return ended
        member, project, files = _resolve_variables(assigned.member, workspace), assigned.project, self.context.files
        literal = files.read_literal_addresses(workspace.config.root, workspace.config.manifests)
        guards = _describe_guards(assigned.fleet)
        digest = shapes.shape_of(plan, project.name, member, workspace.read_rules(), guards, literal)
        async with files.saving:  # concurrent plans often have the same shape
            if digest not in files.shapes:
                shape = Shape(digest, member.name, project.name, plan_json.write_plan(plan))
                await self.context.records.save_shape(assigned.fleet.name, shape)
                files.shapes.add(digest)
        return replace(ended, counts=_count(plan), changes=reviewed_changes.digest_changes(plan), shape=digest)

    async def _apply(self, workspace: Workspace, run: Run) -> TaskRecord | None:
        """Applies the reviewed changes only."""
        records = self.context.records
        reviewed = await records.task(run.reviewed, self.task.member, self.task.project)
        if reviewed is None or reviewed.state is not TaskState.SUCCEEDED:
            reason = "it was not planned" if reviewed is None else f"its plan {reviewed.state}: {reviewed.reason}"
            return replace(self.record, state=TaskState.SKIPPED, reason=reason)
        if reviewed.shape and reviewed.shape not in run.approved_shapes:
            return replace(
                self.record,
                state=TaskState.BLOCKED,
                exit_code=exit_codes.BLOCKED,
                reason=f"shape {reviewed.shape} is not approved",
            )
        shape = (await records.shapes(run.fleet, [reviewed.shape])).get(reviewed.shape)
        allow = reviews.approvals_of(shape) if shape is not None else {}

        async def approve(plan: Plan) -> bool:
            if reviewed_changes.find_unreviewed(plan, reviewed.changes, has_begun=bool(self.record.changes)):
                return False
            self.begun.set()
            return await records.begin_apply(replace(self.record, changes=reviewed_changes.digest_changes(plan)))

        result = await workspace.select(allow=allow).apply(approve=approve, stop=self.stop)
        if result.status is Status.INTERRUPTED or result.failure or result.lost_store:
            return None  # without its store, the applied changes are unknown
        return self._record_apply(result, reviewed)

    def _record_apply(self, result: ApplyResult, reviewed: TaskRecord) -> TaskRecord:
        """The record of an apply."""
        changes, done = reviewed_changes.digest_changes(result.plan), _find_done(result)
        record = replace(
            self.record,
            exit_code=result.exit_code,
            counts=_count(result.plan, done),
            changes={address: digest for address, digest in changes.items() if address in done},
            shape=reviewed.shape,
            reason=_one_line(_describe_failure(result)),
        )
        match result.status:
            case Status.UNCHANGED | Status.APPLIED:
                if self.record.changes:  # an earlier worker applied a part, and died
                    record = replace(record, counts=reviewed.counts, changes=reviewed.changes)
                return replace(record, state=TaskState.SUCCEEDED, reason="")
            case Status.DECLINED | Status.STALE:
                reason = "it changed since the plan that was reviewed; plan again"
                return replace(record, state=TaskState.STALE, exit_code=exit_codes.STALE, reason=reason)
            case Status.BLOCKED:
                return replace(record, state=TaskState.BLOCKED)
        if self.record.changes:  # as above
            record = replace(record, exit_code=exit_codes.PARTLY)
        return replace(record, state=TaskState.FAILED)


def _check_health(rows: Sequence[HealthRow]) -> CheckedHealth:
    """What a fleet shows of the health of a member: the objects that are not healthy."""
    ill = (row for row in rows if row.health.state is not State.HEALTHY)
    return CheckedHealth(len(rows), tuple(map(_shorten, ill)))


def _shorten(row: HealthRow) -> HealthRow:
    health = row.health
    return replace(row, health=replace(health, reason=_one_line(health.reason), advice=_one_line(health.advice)))


def _describe_guards(fleet: Fleet) -> Json:
    guards = fleet.guards
    return [str(guards.max_changed) if guards.max_changed is not None else None, guards.max_deletes]


def _count(plan: Plan, done: Collection[str] | None = None) -> Mapping[str, int]:
    """Changes by action; with `done`, those at these addresses."""
    counts = Counter(str(change.action) for change in plan.changes if done is None or str(change.address) in done)
    if plan.additions and done is None:
        counts["added"] = len(plan.additions)
    return counts


def _find_done(result: ApplyResult) -> Collection[str]:
    """The addresses whose changes were applied completely."""
    everywhere = {str(change.address) for change in result.plan.changes}
    if result.status in (Status.UNCHANGED, Status.APPLIED):
        return everywhere
    done = {ended.call.id for ended in result.with_outcome(Outcome.DONE, Outcome.ALREADY)}
    called = {str(call.address) for call in result.plan.calls}
    return called - {str(call.address) for call in result.plan.calls if call.id not in done}


def _describe_failure(result: ApplyResult) -> str:
    """The first reason why an apply did not succeed."""
    return next(iter(result.reasons), str(result.status))


class _RequestCounter:
    """Counts the requests of a task."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def watch_request(self, method: str, path: str) -> Iterator[Exchange]:
        self.count += 1
        yield _Unwatched()

    @contextmanager
    def watch_list(self, path: str) -> Iterator[None]:
        yield

    def on_wait(self, seconds: float) -> None:
        pass

    def on_plan(self, plan: Plan) -> None:
        pass


class _Unwatched:
    def on_response(self, status: int) -> None:
        pass

    def on_failure(self, failure: Exception) -> None:
        pass
