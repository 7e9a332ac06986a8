"""The Python API: an open project, with its settings, manifests and account, and the operations on it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

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
from reconciler.model.value import Secret
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
    from reconciler.operations.account_listing import AccountListing
    from reconciler.operations.applying.apply import Approve
    from reconciler.operations.applying.plan_files import PlanFile
    from reconciler.operations.applying.reviewed import Reviewed
    from reconciler.operations.authoring.import_proposal import Proposal
    from reconciler.operations.base_plan import BaseSide
    from reconciler.planning.importing.survey import Selects
    from reconciler.planning.judging.rules import Rules
    from reconciler.planning.policies.rule import Rule
    from reconciler.store.store import RecordedCall

Allow = Mapping[tuple[str, str], int]
"""Approvals given in advance: (rule, kind) → maximum count, for example ("delete", "ReservedDomain") → 1."""


class Selection(Struct, frozen=True):
    """The resources that an operation covers.

    targets   globs of addresses `Kind/name`; empty: all
    excludes  globs of addresses to leave out
    replace   addresses of resources to replace, even if they are in sync
    """

    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workspace:
    """A project, its declarations, and what the caller allows. Immutable; created by `open`.

    Operations raise InvalidProject, WrongAccount or NothingSelected if no plan is possible, an engine `Failure` if the
    platform cannot be read, and StoreError if the store cannot be used. Several workspaces may be used in one event
    loop.

    warnings     of the manifests
    options      selection, approvals and guards of plans
    parallelism  requests at a time
    variables    values that the caller gave for `${{ var.NAME }}`
    base         the base whose rules hold too; see `judge_by`
    base_policies  policies of the base that hold beside the project's own
    sealed       secrets of a snapshot file, by source
    """

    config: Config
    manifest: Manifest = field(repr=False)
    warnings: tuple[Problem, ...]
    options: PlanOptions
    account: Account
    parallelism: int
    variables: Mapping[str, Variable] = field(default_factory=dict, repr=False)
    runtime: Runtime = field(default_factory=Runtime)
    base: BaseSide | None = field(default=None, repr=False)
    base_policies: tuple[Rule, ...] = field(default=(), repr=False)
    sealed: Mapping[str, Secret] = field(default_factory=dict, repr=False)

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
        """Opens the project in a directory. Reads files and environment variables; sends no request.

        environment  name of a file in `environments/`
        variables    values for `${{ var.NAME }}`
        parallelism  requests at a time; None: as in the project file

        Raises InvalidProject.
        """
        from reconciler.operations.opening.project import open_project
        from reconciler.operations.opening.source import ProjectSource

        return open_project(
            ProjectSource(Path(project), environment, variables or {}, parallelism, runtime or Runtime())
        )

    def select(
        self, selection: Selection | None = None, *, allow: Allow | None = None, adopt: bool | None = None
    ) -> Workspace:
        """The workspace with another selection, approvals or adoption; None keeps what is set. Raises NothingSelected.

        adopt  whether existing objects that no stack manages may be adopted if their natural key matches
        """
        options = self.options
        if allow is not None:
            options = replace(options, allow=allow)
        if adopt is not None:
            options = replace(options, adopt=adopt)
        if selection is not None:
            options = replace(options, targets=selection.targets, excludes=selection.excludes)
            options = replace(options, to_replace=resources_to_replace(selection.replace, self.manifest, options))
        return dataclasses.replace(self, options=options)

    # --- operations ---------------------------------------------------------------------------------------------------

    @staticmethod
    def validate(
        project: str | Path = ".",
        *,
        environment: str | None = None,
        variables: Mapping[str, Variable] | None = None,
        runtime: Runtime | None = None,
    ) -> tuple[ValidationResult, ...]:
        """Validates manifests and policies, in every environment or in one. Needs no network and no secrets.

        Problems of the project are part of the results; they raise no exception.
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
        """Reads the account and plans its changes, with the API calls. Changes nothing. Parameters as in `select`.

        base  a branch, tag or commit: its rules hold beside those of the project, and the plan tells the changes since
              that commit from pending ones and drift. Raises UnusableBase
        """
        chosen = self.select(selection, allow=allow, adopt=adopt).judge_by(base)
        snapshot = await chosen.take_snapshot(on_event=on_event)
        check_selection(chosen.options, chosen.manifest, snapshot, on_event)
        plan = replace(chosen.with_policy_findings(chosen.plan_for(snapshot)), created=chosen.runtime.now())
        return PlanResult(chosen.attribute_changes(plan, snapshot), snapshot, chosen)

    async def apply(
        self,
        planned: PlanResult | PlanFile | Reviewed | None = None,
        *,
        approve: Approve | None = None,
        on_event: OnEvent = ignore_event,
        stop: asyncio.Event | None = None,
        partial: bool = False,
        command: str = "apply",
    ) -> ApplyResult:
        """Applies a plan: a new one, or the given one if the platform has not changed since.

        A PlanResult is applied with its own selection and manifests. Raises WrongAccount if the plan is of another
        stack or account. With a Reviewed, a new plan is applied if all its changes were reviewed.

        approve   called with the plan before the first call; None approves
        on_event  called with events, as they happen
        stop      set it to start no further call; running calls are finished
        partial   apply the remaining part of a plan of which a part is stale or was not reviewed
        command   the name of the run in the history
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
        """Deletes every selected object of the stack, and nothing else. Parameters as in `apply`."""
        return await self.to_destroy().apply(approve=approve, on_event=on_event, stop=stop, command="destroy")

    def to_destroy(self) -> Workspace:
        """The workspace with no declarations, whose plan deletes every object of the stack."""
        nothing = Manifest(self.manifest.stack, {})
        return dataclasses.replace(self, manifest=nothing, warnings=(), options=replace(self.options, destroy=True))

    async def drift(self, *, ignore: Sequence[str] = (), on_event: OnEvent = ignore_event) -> DriftResult:
        """Finds what changed on the platform since the last apply, among the selected resources. Changes nothing.

        ignore  globs `Kind/name.field` of known drift, in addition to those of the project file
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
        """Adopts the objects of these declarations, and changes nothing else.

        id  the object's id, for one address whose manifest has none

        Raises InvalidProject if an address is not declared.
        """
        from reconciler.operations.adopt import adopt

        return await adopt(self, addresses, id, approve=approve, on_event=on_event, stop=stop)

    async def propose_import(
        self,
        *,
        folder: str | None = None,
        only: Collection[str] = (),
        selects: Selects = lambda *addresses: True,
        from_other_stacks: bool = False,
        append: bool = False,
        on_event: OnEvent = ignore_event,
    ) -> Proposal:
        """Proposes manifests for live objects that are not declared, verified by a plan of them. Writes nothing.

        folder             of the manifests, below the project's root; None: the project's first folder of manifests
        only               the kinds to import; empty: all
        selects            whether to import an object, by its future address, followed by its address by id
        from_other_stacks  also objects that other stacks manage
        append             add to existing manifests of the folder
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
        """Changes the manifests in memory to the live values of fields that changed on the platform. Writes nothing.

        both    also fields that Git changed too, or of which it is unknown what changed them
        ignore  as in `drift`
        """
        from reconciler.operations import accept_drift

        found = await self.drift(ignore=ignore, on_event=on_event)
        return accept_drift.accept(self, found.plan, found.snapshot, selects=selects, both=both)

    async def history(self, limit: int = 100) -> Sequence[RecordedCall]:
        """The last `limit` calls of earlier runs, newest first."""
        from reconciler.operations.history import read_calls

        return await read_calls(self.config, limit)

    # --- reading the account ------------------------------------------------------------------------------------------

    async def take_snapshot(self, *, only: frozenset[str] | None = None, on_event: OnEvent = ignore_event) -> Snapshot:
        """Reads the account with a client that cannot write. `only`: names of kinds; None: all."""
        async with open_existing_store(self.config) as store, self._open_reader(on_event) as reader:
            return await read_account(self, reader, store, only=only, on_event=on_event)

    async def take_survey(self, *, on_event: OnEvent = ignore_event) -> tuple[Snapshot, Snapshot]:
        """Reads the account as `take_snapshot`, and the kinds that cannot be declared as a second snapshot."""
        from reconciler.kinds import read_only

        async with open_existing_store(self.config) as store, self._open_reader(on_event) as reader:
            snapshot = await read_account(self, reader, store, on_event=on_event)
            return snapshot, await observe(reader, read_only.KINDS, concurrency=self.parallelism)

    async def list_objects(self, kind: Kind, *, on_event: OnEvent = ignore_event) -> Listing:
        """Lists the objects of one kind, which may be one that cannot be declared."""
        async with self._open_reader(on_event) as reader:
            snapshot = await observe(reader, [kind], concurrency=self.parallelism)
        return snapshot.of(kind.name)

    async def list_account(self, *, on_event: OnEvent = ignore_event) -> AccountListing:
        """Lists the objects of all kinds, also of kinds that cannot be declared, with the owner of each."""
        from reconciler.operations.account_listing import list_account

        async with open_existing_store(self.config) as store, self._open_reader(on_event) as reader:
            return await list_account(self, reader, store)

    def _open_reader(self, on_event: OnEvent) -> AbstractAsyncContextManager[Reader]:
        return self.runtime.platform.open_reader(
            self.account,
            on_wait=lambda seconds: on_event(Waited(seconds)),
            on_retry=lambda seconds, why: on_event(ReadRetried(seconds, why)),
        )

    # --- planning -----------------------------------------------------------------------------------------------------

    @property
    def account_name(self) -> str:
        """The account: base URL, and the name that the project gives it."""
        return account_identity.account_of(self.account.base_url, self.config.account)

    def plan_for(self, snapshot: Snapshot) -> Plan:
        """Plans the changes for a snapshot. Without findings of project policies."""
        plan = planner.plan(self.manifest, snapshot, kinds.list_planned(), self.options)
        if self.runtime.observer is not None:
            self.runtime.observer.on_plan(plan)
        environment = self.config.environment.name if self.config.environment is not None else ""
        problems = (*self.warnings, *plan.problems)
        return replace(plan, problems=problems, account=self.account_name, environment=environment)

    def with_policy_findings(self, plan: Plan) -> Plan:
        """The plan with the findings of the project's policies."""
        return policy_checks.with_policy_findings(plan, self.load_rules(), self.options.now, self.manifest)

    def read_rules(self) -> Rules:
        """The rules that judge a plan: settings, policies, and what manifests protect and exempt."""
        from reconciler.operations.project_rules import read_rules

        return read_rules(self.config, self.load_rules(), self.manifest)

    def judge_by(self, ref: str | None) -> Workspace:
        """The workspace whose plans the rules of a base judge too: a branch, tag or commit. None: the same workspace.

        Raises UnusableBase or InvalidProject.
        """
        if ref is None:
            return self
        from reconciler.operations.base_plan import read_base
        from reconciler.operations.judging import judge

        return judge(self, read_base(self, ref))

    def attribute_changes(self, plan: Plan, snapshot: Snapshot) -> Plan:
        """The plan with the cause of each change: commits since the base, earlier commits, or the platform."""
        if self.base is None:
            return plan
        from reconciler.operations.base_plan import attribute_changes

        return attribute_changes(self, self.base, plan, snapshot)

    def load_rules(self) -> tuple[Rule, ...]:
        """Loads the project's policies, and adds those of the base that hold too; raises InvalidProject."""
        from reconciler.operations.opening.source import invalid_project

        with invalid_project():
            return (*policy_checks.load_rules(self.config), *self.base_policies)
