"""Applies a plan: takes the lock, settles open intents of earlier runs, plans or compares, asks for approval, runs the
calls, and reads the account again to verify the result.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine import apply as engine
from reconciler.engine import recovery
from reconciler.engine.ports import Failure, Platform, Refused
from reconciler.engine.retry import RetryPolicy, sleep_until_stopped
from reconciler.model.change import Action, Change, Reason
from reconciler.model.event import Ended, Event, Outcome, Waited
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.operations import access_checks, policy_checks, unread_secrets
from reconciler.operations.applying import duplicates, first_reading, staleness
from reconciler.operations.applying.remaining_plan import RemainingPlan, find_remaining_plan, find_reviewed_part
from reconciler.operations.applying.reviewed import Reviewed
from reconciler.operations.errors import UnreadableAccount
from reconciler.operations.opening import account_identity
from reconciler.operations.opening.source import invalid_project
from reconciler.operations.opening.stores import open_project_store, store_location
from reconciler.operations.reporting import CallsBegan, CallsEnded, Note, OnEvent, Planned, ReadRetried, WaitBegan
from reconciler.operations.results import ApplyResult, Status
from reconciler.operations.run_context import read_run_context
from reconciler.operations.selection import check_selection
from reconciler.store.account import AccountMembership
from reconciler.store.errors import MEMORY, StoreError
from reconciler.store.journal import StoreJournal
from reconciler.store.store import Store

if TYPE_CHECKING:
    from reconciler.access.account import Account
    from reconciler.model.access_test import AccessTest
    from reconciler.operations.applying.plan_files import PlanFile
    from reconciler.operations.open_project import OpenProject
    from reconciler.planning.deciding.options import PlanOptions
    from reconciler.planning.policies.rule import Rule

FRESH = 60.0  # seconds after which an approval requires that the platform is read again

Approve = Callable[[Plan], Awaitable[bool]]
"""Called with the plan before the first call; returns whether to apply it."""


async def apply(
    project: OpenProject,
    planned: PlanFile | Reviewed | None,
    *,
    approve: Approve | None,
    on_event: OnEvent,
    stop: asyncio.Event | None,
    partial: bool,
    wait: float | None,
    command: str,
) -> ApplyResult:
    """Applies a new plan, the plan file `planned`, or the reviewed part of a new plan; see `Workspace.apply`."""
    file, reviewed = (None, planned) if isinstance(planned, Reviewed) else (planned, None)
    if reviewed is not None:
        from reconciler.operations.judging import judge_by_base

        project = unread_secrets.withhold(project, reviewed.unread)
        project = judge_by_base(project, reviewed.base)
    halt = _StopSignal(stop or asyncio.Event())
    stack = project.manifest.stack
    rules, tests = project.load_rules(), project.load_tests()
    if file is not None and file.is_destroy:
        tests = access_checks.select_for_destroy(tests)
    async with (
        open_project_store(project.config) as store,
        store.lock(stack, on_loss=halt.stop_for_store) as holder,
        store.journal(
            stack,
            command=command,
            plan=planned.digest if planned else "",
            holder=holder,
            commit=file.plan.commit if file else project.options.commit,
            actor=read_run_context(project.runtime.environ).author,
        ) as journal,
        project.runtime.platform.open_platform(
            project.account,
            on_wait=lambda seconds: on_event(Waited(seconds)),
            on_retry=lambda seconds, why: on_event(ReadRetried(seconds, why)),
            before_write=journal.check_lock,
        ) as platform,
    ):
        run = _Run(project, file, reviewed, store, journal, platform, halt, on_event, rules, tests, partial)
        result = await run.execute(approve)
        journal.outcome = str(result.status)
    if wait is None or run.before is None or result.status not in (Status.APPLIED, Status.PARTIAL):
        return result
    try:
        return await _wait(run, run.before, result, wait, stop)
    except (Failure, UnreadableAccount, StoreError) as failure:
        is_applied = result.status is Status.APPLIED
        why = f"applied, but whether it is healthy is not known: {failure}"
        return replace(result, status=Status.FAILED if is_applied else result.status, unverified=why)


async def _wait(
    run: _Run, before: Snapshot, result: ApplyResult, seconds: float, stop: asyncio.Event | None
) -> ApplyResult:
    """The result after what was changed has become healthy, or has not. Other runs may use the stack meanwhile."""
    from reconciler.operations.applying.waiting import Applied, wait_until_healthy

    after = run.after or await run.project.take_snapshot(on_event=run.on_event)
    run.on_event(WaitBegan(seconds))
    applied = Applied(before, after, result.plan, result.outcomes)
    health = await wait_until_healthy(run.project, applied, seconds, on_event=run.on_event, stop=stop)
    return replace(result, health=health)


class _StopSignal:
    """The engine's `Stop`: set if the caller asked for it, or if the store cannot be written any more.

    The caller's event is only read, since other runs may share it.
    """

    def __init__(self, requested: asyncio.Event) -> None:
        self._requested = requested
        self._store_failed = asyncio.Event()
        self.failure: StoreError | None = None

    def stop_for_store(self, failure: StoreError) -> None:
        self.failure = self.failure or failure
        self._store_failed.set()

    @property
    def is_interrupted(self) -> bool:
        return self._requested.is_set()

    def is_set(self) -> bool:
        return self._requested.is_set() or self._store_failed.is_set()

    async def wait(self) -> None:
        await sleep_until_stopped(self._requested.wait(), self._store_failed)


class _Run(Struct):
    """One apply: its parameters and ports, and how its calls ended."""

    project: OpenProject
    planned: PlanFile | None
    reviewed: Reviewed | None
    store: Store
    journal: StoreJournal
    platform: Platform
    halt: _StopSignal
    on_event: OnEvent
    rules: tuple[Rule, ...]
    tests: tuple[AccessTest, ...]
    partial: bool
    outcomes: list[Ended] = field(default_factory=list)
    done: frozenset[str] = frozenset()  # calls of the plan file that succeeded in earlier runs
    before: Snapshot | None = None  # the account before the first call; None if none was sent
    after: Snapshot | None = None  # and after the last one; None if it was not read

    async def execute(self, approve: Approve | None) -> ApplyResult:
        if (reason := await self._reason_applied()) is not None:
            return ApplyResult(Status.STALE, self._file_plan, changed=(reason,))
        snapshot = await first_reading.read_for_apply(
            self.project,
            self.store,
            self.journal,
            self.platform,
            self.planned,
            self.on_event,
            is_whole=self._judges_access and self._can_find_accounts,
        )
        if self.planned is None:
            check_selection(self.project.options, self.project.manifest, snapshot, self.on_event)
            remaining, plan = None, self.project.plan_for(snapshot)
            if self.reviewed is not None:
                remaining = await self._find_reviewed_part(plan, snapshot, self.reviewed)
                plan = remaining.plan
        else:
            remaining = await self._compare(self.planned, snapshot)
            plan = remaining.plan
            if self.project.runtime.observer is not None:
                self.project.runtime.observer.on_plan(plan)
        if remaining is not None:
            if remaining.changed and not (self.partial and plan.changes):
                reason = f"{remaining.reason}; {remaining.remedy}"
                return ApplyResult(Status.STALE, plan, changed=(*remaining.lines, reason))
            self._report_changes(remaining)
        find_accounts = functools.cache(functools.partial(self._find_accounts, plan, snapshot))
        plan = policy_checks.with_policy_findings(
            plan, self.rules, self.project.options.now, self._manifest, lambda: find_accounts()[1]
        )
        plan = access_checks.with_results(plan, self.tests, find_accounts if self._can_find_accounts else None)
        self.on_event(Planned(plan))
        if (refused := await self._refuse(plan, approve)) is not None:
            return refused
        return await self._apply(plan, snapshot, remaining)

    @property
    def _file_plan(self) -> Plan:
        assert self.planned is not None
        return self.planned.plan

    @property
    def _is_foreign(self) -> bool:
        """Whether the plan file was created from other manifests, so that the result cannot be verified."""
        return self.planned is not None and not self.planned.is_of_these_manifests

    @property
    def _judges_access(self) -> bool:
        """Whether access tests or policies judge who gets through after the plan."""
        return bool(self.tests) or any(rule.reads_access for rule in self.rules)

    @property
    def _can_find_accounts(self) -> bool:
        """Whether it is known how the plan leaves the account: by these manifests, or by none."""
        return not self._is_foreign or (self.planned is not None and self.planned.is_destroy)

    @property
    def _manifest(self) -> Manifest | None:
        return None if self._is_foreign else self.project.manifest

    async def _reason_applied(self) -> str | None:
        """Why the plan file counts as applied already; None if it does not."""
        if self.planned is None:
            return None
        name = self.planned.name
        if store_location(self.project.config) == MEMORY:
            text = f"the store is in memory, so only the account shows whether {name} was applied before"
            self.on_event(Note(f"note: {text}", is_detail=True))
        progress = await self.store.progress(self.planned.digest)
        calls = {call.id for call in self.planned.plan.calls}
        self.done = frozenset(progress.calls)
        if progress.complete is None and not (calls and calls <= self.done):
            return None
        moment = progress.complete
        when = "" if moment is None else datetime.fromtimestamp(moment, UTC).strftime(", on %Y-%m-%d at %H:%M UTC")
        return f"{name} was applied already{when}; plan again"

    async def _compare(self, planned: PlanFile, snapshot: Snapshot) -> RemainingPlan:
        with invalid_project():
            allow = self.project.options.allow
            return find_remaining_plan(planned, snapshot, self.project.config, allow, done=self.done)

    async def _find_reviewed_part(self, plan: Plan, snapshot: Snapshot, reviewed: Reviewed) -> RemainingPlan:
        """The reviewed part of a new plan, by the rules of the branch as it was before the push, too."""
        from reconciler.operations.base_plan import attribute_changes

        plan = attribute_changes(self.project, plan, snapshot)
        progress = await self.store.progress(reviewed.digest)
        has_begun = progress.has_begun and progress.complete is None
        texts = {secret.source: secret for secret in self.project.account.secrets}
        return find_reviewed_part(plan, reviewed, texts, has_begun=has_begun)

    def _find_accounts(self, plan: Plan, snapshot: Snapshot) -> tuple[Account, Account]:
        """The account before and after the changes of this plan, which may be a part of those of the manifests."""
        if plan.is_empty:
            before, _ = self.project.find_accounts(snapshot)
            return before, before
        if self.planned is None and self.reviewed is None:
            return self.project.find_accounts(snapshot)
        options = _options_of(plan, self.project.options)
        project = self.project
        if self.planned is not None and self.planned.is_destroy:
            project = project.to_destroy()
            options = replace(options, destroy=True)
        return dataclasses.replace(project, options=options).find_accounts(snapshot)

    def _report_changes(self, remaining: RemainingPlan) -> None:
        for line in remaining.lines:
            self.on_event(Note(line))
        if self.planned is None:
            return
        if self.planned.note:
            self.on_event(Note(self.planned.note, self.planned.problems))
        if self.done:
            calls = f"{len(self.done)} call{'' if len(self.done) == 1 else 's'}"
            text = f"note: {calls} of {self.planned.name} succeeded in an earlier run and will not be repeated"
            self.on_event(Note(text, is_detail=True))

    async def _refuse(self, plan: Plan, approve: Approve | None) -> ApplyResult | None:
        """The result if the plan is blocked, not approved or stale; None if it may be applied."""
        if plan.blocking_errors:
            is_policy = all(problem.rule for problem in plan.blocking_errors)
            return ApplyResult(Status.BLOCKED if is_policy else Status.FAILED, plan, problems=plan.blocking_errors)
        if plan.missing_approvals:
            return ApplyResult(Status.BLOCKED, plan)
        if approve is None or plan.is_empty:
            return None
        clock = self.project.runtime.clock
        asked_at = clock.now()
        if not await approve(plan):
            return ApplyResult(Status.DECLINED, plan)
        changed = await self._changes_meanwhile(plan) if clock.now() - asked_at > FRESH else []
        if not changed:
            return None
        reason = "the platform changed before the plan was approved; plan again"
        return ApplyResult(Status.STALE, plan, changed=(*changed, reason))

    async def _changes_meanwhile(self, plan: Plan) -> list[str]:
        """Reads the objects of the plan again; returns a line for each change since the approval was requested.

        Of a plan file that was applied in part, the whole file is compared, except what earlier runs wrote.
        """
        now = await self.project.account_reading.read(
            self.platform,
            self.store,
            only=staleness.kinds_of(plan),
            by_id=staleness.by_id(plan),
            on_event=self.on_event,
        )
        changed = staleness.find_changed_objects(plan if self.planned is None else self._file_plan, now, self.done)
        concerned = {change.address for change in plan.changes}
        lines = (line for address, lines in sorted(changed.items()) if address in concerned for line in lines)
        return list(dict.fromkeys(lines))

    async def _apply(self, plan: Plan, snapshot: Snapshot, remaining: RemainingPlan | None) -> ApplyResult:
        membership = await self._remember_account(
            plan, snapshot, await self.store.membership(self.project.manifest.stack)
        )
        self.before = snapshot
        await self._run_calls(plan)
        result = self._result(plan, remaining)
        if plan.is_empty or result.status not in (Status.APPLIED, Status.PARTIAL) or not result.is_complete:
            return result
        if remaining is None or not remaining.skipped:
            await self.journal.complete_plan()
        if self._is_foreign:
            return result
        is_part = self.planned is not None or (remaining is not None and remaining.changed)
        before = None if is_part else snapshot
        try:
            return await self._verify(result, before, membership)
        except (Failure, UnreadableAccount, StoreError) as failure:
            is_denied = isinstance(failure, Refused) and failure.is_permission
            status = Status.UNAUTHORIZED if is_denied else Status.FAILED
            why, lost = f"applied, but not verified: {failure}", isinstance(failure, StoreError)
            return replace(result, status=status, unverified=why, lost_store=lost)

    def _result(self, plan: Plan, remaining: RemainingPlan | None) -> ApplyResult:
        skipped = remaining.skipped if remaining is not None else ()
        changed = remaining.lines if remaining is not None else ()
        result = ApplyResult(
            Status.APPLIED,
            plan,
            tuple(self.outcomes),
            skipped=skipped,
            changed=changed,
            problems=plan.confined_errors,
            failure=str(self.halt.failure) if self.halt.failure is not None else "",
        )
        return replace(result, status=self._status(result))

    def _status(self, result: ApplyResult) -> Status:
        failed = result.with_outcome(Outcome.FAILED)
        if self.halt.is_interrupted and not result.plan.is_empty:
            return Status.INTERRUPTED
        if result.is_complete:
            if result.problems or result.changed:
                return Status.PARTIAL
            return Status.UNCHANGED if result.plan.is_empty else Status.APPLIED
        if result.with_outcome(Outcome.DONE, Outcome.ALREADY, Outcome.UNKNOWN):
            return Status.PARTIAL
        return Status.UNAUTHORIZED if failed and all(ended.denied for ended in failed) else Status.FAILED

    async def _run_calls(self, plan: Plan, *, is_cleanup: bool = False) -> None:
        """Runs the calls; passes events to the caller and results to the journal."""
        settling = await self._find_settling(plan)
        self.on_event(CallsBegan(len(plan.calls), is_cleanup))
        runtime = self.project.runtime
        events = engine.apply(
            plan,
            kinds=kinds.list_planned(),
            platform=self.platform,
            journal=self.journal,
            clock=runtime.clock,
            random=runtime.random,
            sinks=runtime.sinks(self.project.config, self.halt),
            stop=self.halt,
            concurrency=self.project.parallelism,
            retries=RetryPolicy(settle=self.project.config.limits.settle_seconds),
            settling=settling,
            on_checkpoint=runtime.on_checkpoint,
        )
        recording: list[asyncio.Task[None]] = []  # no call waits for the history
        try:
            async with aclosing(events):
                async for event in events:
                    self._handle_event(event, recording, is_cleanup=is_cleanup)
        except StoreError as failure:
            self.halt.stop_for_store(failure)
        finally:
            await asyncio.gather(*recording)
            self.on_event(CallsEnded())

    async def _find_settling(self, plan: Plan) -> Mapping[str, float]:
        """The objects that earlier runs created a moment ago, by path: the seconds for which the platform may not show
        them. Empty if the store cannot be read, which stops the run."""
        stack, settle = self.project.manifest.stack, self.project.config.limits.settle_seconds
        if not plan.calls or settle <= 0:
            return {}
        try:
            made = await self.store.find_made_objects(stack, settle)
            bindings = await self.store.bindings(stack) if made else {}
        except StoreError as failure:
            self.halt.stop_for_store(failure)
            return {}
        return recovery.find_settling_paths(made, bindings, kinds.list_planned(), settle)

    def _handle_event(self, event: Event, recording: list[asyncio.Task[None]], *, is_cleanup: bool) -> None:
        if isinstance(event, Ended):
            recording.append(asyncio.create_task(self._record(event)))
            if is_cleanup and event.outcome is Outcome.FAILED:
                self.on_event(Note(f"{event.outcome}: {event.call.id}: {event.why}"))
            elif not is_cleanup:
                self.outcomes.append(event)
        if not is_cleanup:
            self.on_event(event)

    async def _record(self, ended: Ended) -> None:
        """Stores how a call ended. If that fails the run is stopped, but its results are still reported."""
        if self.halt.failure is None:
            try:
                await self.journal.record(ended)
            except StoreError as failure:
                self.halt.stop_for_store(failure)

    async def _remember_account(
        self, plan: Plan, snapshot: Snapshot, known: AccountMembership | None
    ) -> AccountMembership | None:
        """Stores the account of the stack, identified by the objects that exist and that the plan does not delete."""
        if plan.is_empty and snapshot.doubt:
            return known  # no one approved the account
        membership = account_identity.membership_after(known, self.project.account_name, plan, snapshot)
        if membership != known:
            await self.journal.record_account(membership)
        return membership

    async def _verify(
        self, result: ApplyResult, before: Snapshot | None, known: AccountMembership | None
    ) -> ApplyResult:
        """Reads the account again and plans: what still differs is part of the result. With a plan file or a part
        of a plan, for which `before` is None, only its own objects count."""
        plan = result.plan
        # --replace is done, and must not be planned a second time.
        options = replace(self.project.options, to_replace=frozenset())
        project = dataclasses.replace(self.project, options=options)
        concerned = {change.address for change in plan.changes} if before is None else None
        after = self.after = await self._read_again(plan, before)
        await self._remember_account(replace(plan, calls=()), after, known)
        again = project.plan_for(after)
        if (cleanup := duplicates.cleanup_plan(again, self.on_event)) is not None:
            await self._run_calls(cleanup, is_cleanup=True)
            self.after = await self._read_again(plan, after)
            again = project.plan_for(self.after)
        # A problem of a whole kind has the kind as its subject.
        touched = {name for change in plan.changes for name in (str(change.address), change.address.kind)}
        before_run = plan.confined_errors
        errors = [
            problem
            for problem in again.errors
            if concerned is None or problem.subject in touched or problem in before_run
        ]
        wrong = tuple(problem for problem in errors if not problem.confined or problem.subject in touched)
        remaining = tuple(change for change in again.changes if concerned is None or change.address in concerned)
        due = _find_due(plan, remaining)
        remaining = tuple(change for change in remaining if change not in due)
        for change in due if not wrong else ():
            text = f"{change.address}: {change.reason.text}; the next apply will {change.action} {change.id}"
            self.on_event(Note(f"note: {text}", is_detail=True))
        if wrong or remaining:
            return replace(result, status=Status.FAILED, problems=wrong, remaining=() if wrong else remaining)
        is_partial = errors or (result.status is Status.PARTIAL and result.changed)
        status = Status.PARTIAL if is_partial else Status.APPLIED
        return replace(result, status=status, problems=tuple(errors))

    async def _read_again(self, plan: Plan, before: Snapshot | None) -> Snapshot:
        """The snapshot `before` with the changed kinds listed again; the whole account if there is none."""
        if before is None:
            return await self.project.account_reading.read(self.platform, self.store, on_event=self.on_event)
        touched = frozenset(call.address.kind for call in plan.calls)
        touched |= {
            kind.name for kind in kinds.list_planned() if kind.parent is not None and kind.parent.kind in touched
        }
        fresh = await self.project.account_reading.read(self.platform, self.store, only=touched, on_event=self.on_event)
        return replace(fresh, listings={**before.listings, **fresh.listings})


def _find_due(plan: Plan, remaining: Sequence[Change]) -> list[Change]:
    """The remaining changes that only time made due: rotations, and ends of overlaps.

    An apply does not rotate a credential that it adopts or whose delivery it confirms, and a plan file is older than
    its apply. A credential that the plan itself created or deleted is not due, nor is one with
    a field that still differs.
    """
    made = {
        change.address for change in plan.changes if change.action in (Action.CREATE, Action.REPLACE, Action.DELETE)
    }
    return [
        change
        for change in remaining
        if not change.fields
        and change.address not in made
        and (change.reason is Reason.ROTATION or (change.reason is Reason.SUPERSEDED and change.is_pending))
    ]


def _options_of(plan: Plan, options: PlanOptions) -> PlanOptions:
    """The options with which the manifests have the changes of a plan, and no others."""
    granted = {(approval.what, approval.kind): approval.count for approval in plan.approvals if approval.granted}
    return replace(
        options,
        targets=tuple(str(change.address) for change in plan.changes),
        excludes=(),
        allow={**options.allow, **granted},
        to_replace=frozenset(change.address for change in plan.changes if change.reason is Reason.REQUESTED),
    )
