"""The Python API: an open project, with its settings, manifests and account, and the operations on it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine.observe import observe
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Listing
from reconciler.operations.errors import UnusablePlan
from reconciler.operations.open_project import Allow, OpenProject, Selection
from reconciler.operations.opening.stores import open_existing_store
from reconciler.operations.reporting import Note, OnEvent, ignore_event
from reconciler.operations.results import ApplyResult, DriftResult, PlanResult, ValidationResult
from reconciler.operations.runtime import Runtime
from reconciler.operations.selection import check_selection
from reconciler.project.documents.resolve import Variable

if TYPE_CHECKING:
    from reconciler.model.dns import DNSRecords
    from reconciler.operations.accept_drift import Acceptance
    from reconciler.operations.access import AccessResult
    from reconciler.operations.account_listing import AccountListing
    from reconciler.operations.applying.apply import Approve
    from reconciler.operations.applying.plan_files import PlanFile
    from reconciler.operations.applying.reviewed import Reviewed
    from reconciler.operations.authoring.import_proposal import Proposal
    from reconciler.operations.dns_records import DNSReport
    from reconciler.operations.status import StatusResult
    from reconciler.planning.importing.survey import Selects
    from reconciler.store.reading import RecordedCall


class Workspace(OpenProject):
    """An open project, and the operations on it. Immutable; created by `open`.

    Operations raise InvalidProject, WrongAccount or NothingSelected if no plan is possible, an engine `Failure` if the
    platform cannot be read, and StoreError if the store cannot be used. Several workspaces may be used in one event
    loop.
    """

    @classmethod
    def open(
        cls,
        project: str | Path = ".",
        *,
        environment: str | None = None,
        variables: Mapping[str, Variable] | None = None,
        parallelism: int | None = None,
        runtime: Runtime | None = None,
        assumes_secrets: bool = False,
    ) -> Self:
        """Opens the project in a directory. Reads files and environment variables; sends no request.

        environment      name of a file in `environments/`
        variables        values for `${{ var.NAME }}`
        parallelism      requests at a time; None: as in the project file
        assumes_secrets  secrets that cannot be read are assumed to be as last applied; such a workspace can plan, and
                         applies nothing if there are any

        Raises InvalidProject.
        """
        from reconciler.operations.opening.source import ProjectSource
        from reconciler.operations.project_openers import open_project

        source = ProjectSource(
            Path(project), environment, variables or {}, parallelism, runtime or Runtime(), assumes_secrets
        )
        return cls.of(open_project(source))

    @classmethod
    def of(cls, project: OpenProject) -> Self:
        """The operations on a project that is open."""
        return cls(**vars(project))

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
        whole: bool = True,
        on_event: OnEvent = ignore_event,
    ) -> PlanResult:
        """Reads the account and plans its changes, with the API calls. Changes nothing. Parameters as in `select`.

        whole  reads every list, also those that the selection does not need. The page of the plan shows all
        base   a branch, tag or commit: its rules hold beside those of the project, and the plan tells the changes since
               that commit from pending ones and drift. Raises UnusableBase
        """
        chosen = self.select(selection, allow=allow, adopt=adopt).judge_by(base)
        read = chosen.take_snapshot if whole else chosen.take_selected_snapshot
        snapshot = await read(on_event=on_event)
        check_selection(chosen.options, chosen.manifest, snapshot, on_event)
        if len(snapshot.listings) < (total := len(kinds.every())):
            text = f"read {len(snapshot.listings)} of {total} kinds, which the selected resources need"
            on_event(Note(text, is_detail=True))
        findings = chosen.with_policy_findings(chosen.plan_for(snapshot), snapshot)
        plan = replace(chosen.with_access_tests(findings, snapshot), created=chosen.runtime.now())
        if chosen.base is not None:
            from reconciler.operations.base_plan import attribute_changes

            plan = attribute_changes(chosen, plan, snapshot)
        return PlanResult(plan, snapshot, chosen)

    async def apply(
        self,
        planned: PlanResult | PlanFile | Reviewed | None = None,
        *,
        approve: Approve | None = None,
        on_event: OnEvent = ignore_event,
        stop: asyncio.Event | None = None,
        partial: bool = False,
        wait: float | None = None,
        command: str = "apply",
    ) -> ApplyResult:
        """Applies a plan: a new one, or the given one if the platform has not changed since.

        A PlanResult is applied with its own selection and manifests. Raises WrongAccount if the plan is of another
        stack or account. With a Reviewed, a new plan is applied if all its changes were reviewed.

        approve   called with the plan before the first call; None approves
        on_event  called with events, as they happen
        stop      set it to start no further call; running calls are finished
        partial   apply the remaining part of a plan of which a part is stale or was not reviewed
        wait      seconds for which to wait, after the calls, until what was changed is healthy; `stop` ends it
        command   the name of the run in the history

        Raises UnusablePlan if secrets were not read, but assumed.
        """
        from reconciler.operations.applying import apply, plan_files

        workspace, plan_file = (
            plan_files.from_plan_result(planned, self) if isinstance(planned, PlanResult) else (self, planned)
        )
        if workspace.options.unread:
            sources = ", ".join(sorted(workspace.options.unread))
            raise UnusablePlan(
                f"secrets are assumed and were not read: {sources}; apply with a workspace that reads them"
            )
        return await apply.apply(
            workspace,
            plan_file,
            approve=approve,
            on_event=on_event,
            stop=stop,
            partial=partial,
            wait=wait,
            command=command,
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

    async def drift(
        self, *, ignore: Sequence[str] = (), health: bool = False, on_event: OnEvent = ignore_event
    ) -> DriftResult:
        """Finds what changed on the platform since the last apply, among the selected resources. Changes nothing.

        ignore  globs `Kind/name.field` of known drift, in addition to those of the project file
        health  also judge whether the objects work, by the same reading of the account
        """
        from reconciler.operations.drift import find_drift, with_access_tests

        return with_access_tests(self, await find_drift(self, ignore, on_event, health=health), ignore)

    async def status(
        self, *, verify: bool = False, name_server: str | None = None, on_event: OnEvent = ignore_event
    ) -> StatusResult:
        """Reads whether the selected resources are in sync and work, and what comes due. Changes nothing.

        verify       also ask name servers which DNS records are set; needs the extra `dns`
        name_server  `HOST:PORT` of a server to ask instead of those of each zone
        """
        from reconciler.operations.status import read_status

        return await read_status(self, verify=verify, name_server=name_server, on_event=on_event)

    async def access(self, *, declared: bool = False, on_event: OnEvent = ignore_event) -> AccessResult:
        """Finds who can reach what: every way into the account. Changes nothing.

        declared  only what the manifests declare; needs no network and no key
        """
        from reconciler.operations.access import find_access

        return await find_access(self, declared=declared, on_event=on_event)

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
        targets: Sequence[str] = (),
        both: bool = False,
        ignore: Sequence[str] = (),
        on_event: OnEvent = ignore_event,
    ) -> Acceptance:
        """Changes the manifests in memory to the live values of fields that changed on the platform. Writes nothing.

        targets  the resources whose values are accepted, as globs `Kind/name`; empty: all
        both     also fields that Git changed too, or of which it is unknown what changed them
        ignore   as in `drift`

        Raises NothingSelected if a target matches no resource, and InvalidProject if the changed manifests are invalid.
        """
        from reconciler.operations.accept_drift import accept_drift

        return await accept_drift(self, targets, ignore, on_event, both=both)

    async def history(self, limit: int = 100) -> Sequence[RecordedCall]:
        """The last `limit` calls of earlier runs, newest first."""
        from reconciler.operations.history import read_calls

        return await read_calls(self.config, limit)

    async def list_objects(self, kind: Kind, *, on_event: OnEvent = ignore_event) -> Listing:
        """Lists the objects of one kind, which may be one that cannot be declared."""
        async with self.open_reader(on_event) as reader:
            snapshot = await observe(reader, [kind], concurrency=self.parallelism)
        return snapshot.of(kind.name)

    async def list_account(self, *, on_event: OnEvent = ignore_event) -> AccountListing:
        """Lists the objects of all kinds, also of kinds that cannot be declared, with the owner of each."""
        from reconciler.operations.account_listing import list_account

        async with open_existing_store(self.config) as store, self.open_reader(on_event) as reader:
            return await list_account(self, reader, store)

    async def dns_records(self, *, on_event: OnEvent = ignore_event) -> DNSRecords:
        """The DNS records that the account needs, by zone of the project (`dns.zones`)."""
        from reconciler.operations.dns_records import find_records

        return await find_records(self, on_event)

    async def verify_dns(self, name_server: str | None = None, *, on_event: OnEvent = ignore_event) -> DNSReport:
        """Compares the DNS records that the account needs with what name servers answer. Needs the extra `dns`.

        name_server  `HOST:PORT` of a server to ask instead of those of each zone
        """
        from reconciler.operations.dns_records import verify_records

        return await verify_records(self, name_server, on_event)

    def judge_by(self, ref: str | None) -> Self:
        """The workspace whose plans the rules of a base judge too: a branch, tag or commit. None: the same workspace.

        Raises UnusableBase or InvalidProject.
        """
        if ref is None:
            return self
        from reconciler.operations.judging import judge_by_base

        return judge_by_base(self, ref)
