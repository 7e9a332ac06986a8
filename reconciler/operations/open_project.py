"""An open project: what every operation takes, and the reading and planning that they share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.engine.observe import observe
from reconciler.engine.ports import Reader
from reconciler.model.event import Waited
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import Secret
from reconciler.operations import access_checks, policy_checks
from reconciler.operations.opening.account_reading import AccountReading
from reconciler.operations.opening.source import invalid_project
from reconciler.operations.opening.stores import open_existing_store
from reconciler.operations.reporting import OnEvent, ReadRetried, ignore_event
from reconciler.operations.runtime import Runtime
from reconciler.operations.selection import resources_to_replace
from reconciler.planning import planner
from reconciler.planning.deciding.options import PlanOptions
from reconciler.project.documents.resolve import Variable
from reconciler.project.settings.config import Config

if TYPE_CHECKING:
    from reconciler.access.account import Account as ResolvedAccount
    from reconciler.model.access_test import AccessTest
    from reconciler.operations.base_side import BaseSide
    from reconciler.planning.judging.rules import Rules
    from reconciler.planning.policies.rule import Rule

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


class FoundAccounts:
    """The accounts that were found last: policies, access tests and the page of a plan ask for the same ones."""

    def __init__(self) -> None:
        self._asked: tuple[object, ...] = ()
        self._found: tuple[ResolvedAccount, ResolvedAccount] | None = None

    def find(self, project: OpenProject, snapshot: Snapshot) -> tuple[ResolvedAccount, ResolvedAccount]:
        """As `OpenProject.find_accounts`."""
        asked = project.manifest, snapshot, project.options
        if self._found is None or any(one is not other for one, other in zip(asked, self._asked, strict=True)):
            self._found = planner.find_accounts(project.manifest, snapshot, kinds.list_planned(), project.options)
            self._asked = asked
        return self._found


@dataclass(frozen=True)
class OpenProject:
    """A project, its declarations, and what the caller allows. Immutable.

    warnings       of the manifests
    options        selection, approvals and guards of plans
    parallelism    requests at a time
    variables      values that the caller gave for `${{ var.NAME }}`
    base           the base whose rules hold too
    base_policies  policies of the base that hold beside the project's own
    base_tests     access tests of the base that hold too
    sealed         secrets of a snapshot file, by source
    found          the answer that `find_accounts` gave last
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
    base_tests: tuple[AccessTest, ...] = field(default=(), repr=False)
    sealed: Mapping[str, Secret] = field(default_factory=dict, repr=False)
    found: FoundAccounts = field(default_factory=FoundAccounts, repr=False, compare=False)

    def select(
        self, selection: Selection | None = None, *, allow: Allow | None = None, adopt: bool | None = None
    ) -> Self:
        """The project with another selection, approvals or adoption; None keeps what is set. Raises NothingSelected.

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

    def to_destroy(self) -> Self:
        """The project with no declarations, whose plan deletes every object of the stack."""
        nothing = Manifest(self.manifest.stack, {})
        return dataclasses.replace(self, manifest=nothing, warnings=(), options=replace(self.options, destroy=True))

    @property
    def account_reading(self) -> AccountReading:
        """How the account is read."""
        return AccountReading(self.config, self.manifest, self.account, self.runtime, self.parallelism)

    @property
    def account_name(self) -> str:
        """The account: base URL, and the name that the project gives it."""
        return self.account_reading.account_name

    async def take_snapshot(self, *, only: frozenset[str] | None = None, on_event: OnEvent = ignore_event) -> Snapshot:
        """Reads the account with a client that cannot write. `only`: names of kinds; None: all."""
        async with open_existing_store(self.config) as store, self.open_reader(on_event) as reader:
            return await self.account_reading.read(reader, store, only=only, on_event=on_event)

    async def take_selected_snapshot(self, on_event: OnEvent = ignore_event) -> Snapshot:
        """Reads only the lists that a plan of the selected resources needs, if others would change nothing in it."""
        from reconciler.planning.selected_kinds import find_needed_kinds, is_independent

        whole = self.base is not None or self.load_rules() or self.load_tests()
        needed = None if whole else find_needed_kinds(self.manifest, kinds.list_planned(), self.options)
        if needed is None:
            return await self.take_snapshot(on_event=on_event)
        async with open_existing_store(self.config) as store, self.open_reader(on_event) as reader:
            snapshot = await self.account_reading.read(reader, store, within=needed, on_event=on_event)
            if is_independent(self._draft(snapshot), snapshot):
                return snapshot
            return await self.account_reading.read(reader, store, on_event=on_event)

    async def take_survey(
        self, *, also: Collection[str] = (), on_event: OnEvent = ignore_event
    ) -> tuple[Snapshot, Snapshot]:
        """Reads the account as `take_snapshot`, and the kinds that cannot be declared as a second snapshot.

        also   kinds of an agent to read although the project does not use them
        """
        from reconciler.kinds import read_only

        async with open_existing_store(self.config) as store, self.open_reader(on_event) as reader:
            snapshot = await self.account_reading.read(reader, store, also=also, on_event=on_event)
            return snapshot, await observe(reader, read_only.KINDS, concurrency=self.parallelism)

    def open_reader(self, on_event: OnEvent = ignore_event) -> AbstractAsyncContextManager[Reader]:
        """A client that cannot write."""
        return self.runtime.platform.open_reader(
            self.account,
            on_wait=lambda seconds: on_event(Waited(seconds)),
            on_retry=lambda seconds, why: on_event(ReadRetried(seconds, why)),
        )

    def plan_for(self, snapshot: Snapshot) -> Plan:
        """Plans the changes for a snapshot. Without findings of project policies."""
        plan = self._draft(snapshot)
        if self.runtime.observer is not None:
            self.runtime.observer.on_plan(plan)
        return plan

    def _draft(self, snapshot: Snapshot) -> Plan:
        return self._complete(planner.plan(self.manifest, snapshot, kinds.list_planned(), self.options))

    def find_drift_of(self, snapshot: Snapshot, hide: Callable[[Plan], Plan]) -> Plan:
        """As `plan_for`; its `access` says what the platform changed. `hide` removes known drift."""
        planned = kinds.list_planned()
        plan = planner.plan_drift(
            self.manifest, snapshot, planned, self.options, lambda plan: hide(self._complete(plan))
        )
        if self.runtime.observer is not None:
            self.runtime.observer.on_plan(plan)
        return plan

    def _complete(self, plan: Plan) -> Plan:
        """A plan with the warnings of the manifests and the names of the account and environment."""
        environment = self.config.environment.name if self.config.environment is not None else ""
        problems = (*self.warnings, *plan.problems)
        return replace(plan, problems=problems, account=self.account_name, environment=environment)

    def find_accounts(self, snapshot: Snapshot) -> tuple[ResolvedAccount, ResolvedAccount]:
        """The account of a snapshot as it is, and as the plan leaves it, for questions about access."""
        return self.found.find(self, snapshot)

    def with_policy_findings(self, plan: Plan, snapshot: Snapshot) -> Plan:
        """The plan for a snapshot with the findings of the project's policies."""
        return policy_checks.with_policy_findings(
            plan, self.load_rules(), self.options.now, self.manifest, lambda: self.find_accounts(snapshot)[1]
        )

    def with_access_tests(self, plan: Plan, snapshot: Snapshot) -> Plan:
        """The plan of a snapshot with the results of the project's access tests."""
        return access_checks.with_results(plan, self.load_tests(), lambda: self.find_accounts(snapshot))

    def read_rules(self) -> Rules:
        """The rules that judge a plan: settings, policies, access tests, and what manifests protect and exempt."""
        from reconciler.operations.project_rules import read_rules

        return read_rules(self.config, self.load_rules(), self.manifest, self.load_tests())

    def load_rules(self) -> tuple[Rule, ...]:
        """Loads the project's policies, and adds those of the base that hold too; raises InvalidProject."""
        with invalid_project():
            return (*policy_checks.load_rules(self.config), *self.base_policies)

    def load_tests(self) -> tuple[AccessTest, ...]:
        """Loads the project's access tests, and adds those of the base that hold too; raises InvalidProject.

        If the whole stack is destroyed, no request is expected to get through any more.
        """
        with invalid_project():
            tests = (*access_checks.load_tests(self.config), *self.base_tests)
        return access_checks.select_for_destroy(tests) if self.options.destroy else tests
