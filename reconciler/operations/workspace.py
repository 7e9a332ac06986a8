"""A project that is open: its settings, what it declares, and the account that it is about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.engine.observe import observe
from reconciler.engine.ports import Reader
from reconciler.model.address import Address
from reconciler.model.event import Waited
from reconciler.model.kind import Kind
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Listing, Snapshot
from reconciler.operations import policy_checks
from reconciler.operations.opening import account_identity
from reconciler.operations.opening.account_reading import read_account
from reconciler.operations.opening.stores import open_existing_store
from reconciler.operations.reporting import OnEvent, ReadRetried, ignore_event
from reconciler.operations.results import ApplyResult, DriftResult, PlanResult, ValidationResult
from reconciler.operations.runtime import Runtime
from reconciler.operations.selection import check_selection, resources_to_replace
from reconciler.planning import planner
from reconciler.planning.deciding.options import PlanOptions
from reconciler.project.documents.resolve import Variable
from reconciler.project.settings.config import Config

if TYPE_CHECKING:
    from reconciler.operations.accept_drift import Acceptance
    from reconciler.operations.applying.apply import Approve
    from reconciler.operations.applying.plan_files import PlanFile
    from reconciler.operations.authoring.import_proposal import Proposal
    from reconciler.planning.policies.rule import Rule
    from reconciler.store.store import RecordedCall

Allow = Mapping[tuple[str, str], int]
"""Approvals given in advance: ("delete", "ReservedDomain") → at most how many."""


@dataclass(frozen=True)
class Selection:
    """Which resources an operation covers, as globs over `Kind/name`, and which of them are to be replaced."""

    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workspace:
    """A project, what it declares, and what the caller allows. To be made by `open`; never changes.

    Operations raise InvalidProject, WrongAccount or NothingSelected if there can be no plan, an engine `Failure` if the
    platform cannot be read, and StoreError if the store cannot be used. Several workspaces may work in one event loop.

    variables  variables that the caller set, beside those of the project file
    options  what may be planned: selection, approvals, guards
    """

    config: Config
    manifest: Manifest
    warnings: tuple[Problem, ...]
    options: PlanOptions
    account: Account
    parallelism: int
    variables: Mapping[str, Variable] = field(default_factory=dict, repr=False)
    runtime: Runtime = field(default_factory=Runtime)

    @classmethod
    def open(
        cls,
        project: str | Path = ".",
        *,
        environment: str | None = None,
        variables: Mapping[str, Variable] | None = None,
        parallelism: int | None = None,
        runtime: Runtime | None = None,
    ) -> Workspace:
        """The project in a folder. Reads files and environment variables, sends nothing.

        variables    values for `${{ var.NAME }}`
        parallelism  requests at a time instead of the project's number
        """
        from reconciler.operations.opening.project import open_project
        from reconciler.operations.opening.source import ProjectSource

        return open_project(
            ProjectSource(Path(project), environment, variables or {}, parallelism, runtime or Runtime())
        )

    def select(
        self, selection: Selection | None = None, *, allow: Allow | None = None, adopt: bool | None = None
    ) -> Workspace:
        """The same workspace for a part of its resources, with approvals. Raises NothingSelected.

        What is not given stays as it is: a second call never widens the selection of the first.

        adopt  existing objects that no stack manages may be adopted where the natural key matches
        """
        options = self.options
        if allow is not None:
            options = replace(options, allow=allow)
        if adopt is not None:
            options = replace(options, adopt=adopt)
        if selection is not None:
            options = replace(options, targets=selection.targets, excludes=selection.excludes)
            options = replace(options, to_replace=resources_to_replace(selection.replace, self.manifest, options))
        return replace(self, options=options)

    # --- operations ---------------------------------------------------------------------------------------------------

    @staticmethod
    def validate(
        project: str | Path = ".",
        *,
        environment: str | None = None,
        variables: Mapping[str, Variable] | None = None,
        runtime: Runtime | None = None,
    ) -> tuple[ValidationResult, ...]:
        """What is wrong with manifests and policies, in every environment or in one. Needs no network and no secrets.

        Never raises for a project that is wrong: the problems say so.
        """
        from reconciler.operations.opening.source import ProjectSource
        from reconciler.operations.validate import validate_project

        source = ProjectSource(Path(project), environment, variables or {}, runtime=runtime or Runtime())
        return validate_project(source)

    async def plan(
        self,
        *,
        selection: Selection | None = None,
        allow: Allow | None = None,
        adopt: bool | None = None,
        base: str | None = None,
        on_event: OnEvent = ignore_event,
    ) -> PlanResult:
        """What an apply would change, and the exact API calls. Changes nothing. Parameters as in `select`.

        base  a branch, tag or commit: the plan tells the changes since that commit from pending ones and drift.
              Raises UnusableBase
        """
        chosen = self.select(selection, allow=allow, adopt=adopt)
        snapshot = await chosen.take_snapshot(on_event=on_event)
        check_selection(chosen.options, chosen.manifest, snapshot, on_event)
        plan = replace(chosen.with_policy_findings(chosen.plan_for(snapshot)), created=chosen.runtime.now())
        if base is not None:
            plan = chosen.compare_with_base(plan, snapshot, base)
        return PlanResult(plan, snapshot, chosen)

    async def apply(
        self,
        planned: PlanResult | PlanFile | None = None,
        *,
        approve: Approve | None = None,
        on_event: OnEvent = ignore_event,
        stop: asyncio.Event | None = None,
        partial: bool = False,
        command: str = "apply",
    ) -> ApplyResult:
        """Carries out a plan: the one given if the platform has not changed since, or a fresh one.

        A plan of this process is applied with the selection and manifests that it was made with. Raises WrongAccount if
        it is of another stack or account.

        approve  called with the plan before the first call; None approves
        stop     set it to start no further call; running calls are finished
        partial  of a plan that is stale in part: carry out the rest
        command  under which the history shows the run
        """
        from reconciler.operations.applying import apply, plan_files

        workspace, plan_file = (
            plan_files.from_plan_result(planned, self) if isinstance(planned, PlanResult) else (self, planned)
        )
        return await apply.apply(
            workspace, plan_file, approve=approve, on_event=on_event, stop=stop, partial=partial, command=command
        )

    async def destroy(
        self,
        *,
        approve: Approve | None = None,
        on_event: OnEvent = ignore_event,
        stop: asyncio.Event | None = None,
    ) -> ApplyResult:
        """Deletes every object that the stack owns, of those that `select` chose, and nothing else."""
        return await self.to_destroy().apply(approve=approve, on_event=on_event, stop=stop, command="destroy")

    def to_destroy(self) -> Workspace:
        """The workspace of a stack that is to own nothing."""
        nothing = Manifest(self.manifest.stack, {})
        return replace(self, manifest=nothing, warnings=(), options=replace(self.options, destroy=True))

    async def drift(self, *, ignore: Sequence[str] = (), on_event: OnEvent = ignore_event) -> DriftResult:
        """What changed on the platform since the last apply, of what `select` chose.

        ignore  globs `Kind/name.field` of known drift, beside those of the project file
        """
        from reconciler.operations.drift import find_drift

        return await find_drift(self, ignore, on_event)

    async def adopt(
        self,
        addresses: Sequence[Address],
        *,
        id: str | None = None,
        approve: Approve | None = None,
        on_event: OnEvent = ignore_event,
        stop: asyncio.Event | None = None,
    ) -> ApplyResult:
        """Adopts exactly the objects that these declarations mean, and changes nothing else.

        id  of the object that the one address means, where its manifest does not say
        """
        from reconciler.operations.adopt import adopt

        return await adopt(self, addresses, id, approve=approve, on_event=on_event, stop=stop)

    async def propose_import(
        self,
        *,
        folder: str | None = None,
        only: Collection[str] = (),
        selects: Callable[[Address], bool] = lambda address: True,
        from_other_stacks: bool = False,
        append: bool = False,
        on_event: OnEvent = ignore_event,
    ) -> Proposal:
        """Manifests for what exists and is not declared, checked by a plan of them. Writes nothing.

        folder             where they will be, below the project's root; the project's first folder of manifests if None
        only               the kinds to import; all if empty
        selects            by the address that an object would get
        from_other_stacks  also objects that other stacks own
        append             manifests that exist in the folder are added to
        """
        from reconciler.operations.authoring import import_files, import_proposal
        from reconciler.project import files

        place = files.path_inside(folder or import_files.default_folder(self.config))
        return await import_proposal.find_proposal(
            self, place, only, selects, on_event, from_other_stacks=from_other_stacks, append=append
        )

    async def accept_drift(
        self,
        *,
        selects: Callable[[Address], bool] = lambda address: True,
        both: bool = False,
        ignore: Sequence[str] = (),
        on_event: OnEvent = ignore_event,
    ) -> Acceptance:
        """The manifests with the platform's values where the platform changed them. Writes nothing.

        both  also where Git changed the value too, or nobody knows who did
        """
        from reconciler.operations import accept_drift

        found = await self.drift(ignore=ignore, on_event=on_event)
        return accept_drift.accept(self, found.plan, found.snapshot, selects=selects, both=both)

    async def history(self, limit: int = 100) -> Sequence[RecordedCall]:
        """How the calls of earlier runs ended, the latest first."""
        from reconciler.operations.history import read_calls

        return await read_calls(self.config, limit)

    # --- reading the account ------------------------------------------------------------------------------------------

    async def take_snapshot(self, *, only: frozenset[str] | None = None, on_event: OnEvent = ignore_event) -> Snapshot:
        """The account at this moment, or these kinds of it, read with a client that cannot write."""
        async with open_existing_store(self.config) as store, self._open_reader(on_event) as reader:
            return await read_account(self, reader, store, only=only)

    async def take_survey(self, *, on_event: OnEvent = ignore_event) -> tuple[Snapshot, Snapshot]:
        """As `take_snapshot`, and beside it the kinds that can only be read."""
        from reconciler.kinds import read_only

        async with open_existing_store(self.config) as store, self._open_reader(on_event) as reader:
            snapshot = await read_account(self, reader, store)
            return snapshot, await observe(reader, read_only.KINDS, concurrency=self.parallelism)

    async def list_objects(self, kind: Kind, *, on_event: OnEvent = ignore_event) -> Listing:
        """The objects of one kind, which need not be one that manifests declare."""
        async with self._open_reader(on_event) as reader:
            snapshot = await observe(reader, [kind], concurrency=self.parallelism)
        return snapshot.of(kind.name)

    def _open_reader(self, on_event: OnEvent) -> AbstractAsyncContextManager[Reader]:
        return self.runtime.platform.open_reader(
            self.account,
            on_wait=lambda seconds: on_event(Waited(seconds)),
            on_retry=lambda seconds, why: on_event(ReadRetried(seconds, why)),
        )

    # --- planning -----------------------------------------------------------------------------------------------------

    @property
    def account_name(self) -> str:
        """The account in a few words: base address, and the name that the project gives it."""
        return account_identity.account_of(self.account.base_url, self.config.account)

    def plan_for(self, snapshot: Snapshot) -> Plan:
        """The plan for a snapshot, without what project policies say of it."""
        plan = planner.plan(self.manifest, snapshot, kinds.list_planned(), self.options)
        if self.runtime.observer is not None:
            self.runtime.observer.on_plan(plan)
        return replace(plan, problems=(*self.warnings, *plan.problems), account=self.account_name)

    def with_policy_findings(self, plan: Plan) -> Plan:
        """The plan with what the project's policies say of it."""
        return policy_checks.with_policy_findings(plan, self.load_rules(), self.options.now, self.manifest)

    def compare_with_base(self, plan: Plan, snapshot: Snapshot, ref: str) -> Plan:
        """The plan with the cause of each change: commits since `ref`, earlier commits, or the platform."""
        from reconciler.operations.base_plan import compare_with_base

        return compare_with_base(self, plan, snapshot, ref)

    def load_rules(self) -> tuple[Rule, ...]:
        """The project's policies; raises InvalidProject."""
        from reconciler.operations.opening.source import invalid_project

        with invalid_project():
            return policy_checks.load_rules(self.config)
