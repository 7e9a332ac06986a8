"""What `import` would write: surveyed, spelt, read back as the project's own manifests, and planned, all in memory.

What would not come out as it is on the platform is left out, and the rest is proposed anew without it. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.owner_record import Owner
from reconciler.model.problem import Rejected
from reconciler.model.snapshot import Snapshot
from reconciler.operations.authoring import import_files
from reconciler.operations.errors import InvalidProject
from reconciler.operations.reporting import Note, OnEvent
from reconciler.operations.workspace import Workspace
from reconciler.planning.importing import survey
from reconciler.planning.importing.survey import Imported, LeftOut
from reconciler.planning.planner import PlanOptions
from reconciler.project.manifests import write as write_manifests
from reconciler.project.manifests.load import load_manifests_with


@dataclass(frozen=True)
class Proposal:
    """Texts by path below the project's root: manifests, and what they include.

    folder  where the manifests are to be; `is_read`: the project reads manifests from there
    owners  of the imported objects that other stacks own: those stacks must release them first
    """

    imported: tuple[Imported, ...]
    left_out: tuple[LeftOut, ...]
    manifests: Mapping[str, str]
    included: Mapping[str, str]
    folder: str
    is_read: bool = True
    owners: Mapping[Address, Owner] = field(default_factory=dict)

    @property
    def files(self) -> Mapping[str, str]:
        return {**self.manifests, **self.included}

    def file_of(self, each: Imported) -> str:
        """The manifest it stands in."""
        return write_manifests.file_of(each, {kind.name: kind for kind in kinds.every()}, self.folder)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing that could have been imported."""
        return not any(left_out.wrong for left_out in self.left_out)


async def find_proposal(
    workspace: Workspace,
    folder: str,
    only: Collection[str],
    selects: Callable[[Address], bool],
    on_event: OnEvent,
    *,
    from_other_stacks: bool,
    append: bool,
) -> Proposal:
    """See `Workspace.propose_import`."""
    snapshot, read_only = await workspace.take_survey(on_event=on_event)
    if snapshot.doubt:
        on_event(Note(f"warning: {snapshot.doubt}"))
    proposal = propose(
        workspace,
        survey.drop_foreign_owners(workspace.manifest, snapshot) if from_other_stacks else snapshot,
        folder=folder,
        selects=lambda address: (not only or address.kind in only) and selects(address),
        present=import_files.read_manifests(workspace.config.root, folder) if append else None,
    )
    left_out = (*proposal.left_out, *survey.find_transient_objects(read_only))
    return replace(
        proposal,
        left_out=tuple(out for out in left_out if not only or out.kind in only),
        is_read=import_files.is_read(workspace.config, folder),
        owners=_other_owners(workspace.manifest.stack, proposal.imported, snapshot),
    )


def _other_owners(stack: str, imported: tuple[Imported, ...], snapshot: Snapshot) -> dict[Address, Owner]:
    addresses = {(each.live.kind, each.live.locator): each.address for each in imported}
    every = (live for listing in snapshot.listings.values() for live in listing.objects)
    return {
        addresses[live.kind, live.locator]: live.owner
        for live in every
        if (live.kind, live.locator) in addresses and live.owner is not None and live.owner.stack != stack
    }


def propose(
    workspace: Workspace,
    snapshot: Snapshot,
    *,
    folder: str,
    selects: Callable[[Address], bool],
    present: Mapping[str, str] | None = None,
) -> Proposal:
    """Everything selected that can be declared as it is. `present` are texts of manifests that are added to."""
    refused: dict[survey.Key, str] = {}
    while True:
        found = survey.survey(workspace.manifest, snapshot, kinds.list_planned(), selects=selects, refused=refused)
        texts, included = write_manifests.render_files(
            found.imported, {kind.name: kind for kind in kinds.every()}, folder
        )
        texts = {path: write_manifests.append((present or {}).get(path, ""), text) for path, text in texts.items()}
        # What is there stays there: a new text counts beside it, unless it is the old one with something added.
        read = {path if present is not None else f"{path} (new)": text for path, text in texts.items()}
        objections = _objections(workspace, snapshot, found.imported, read, included)
        if not objections:
            return Proposal(found.imported, found.left_out, texts, included, folder)
        refused |= objections


def _objections(
    workspace: Workspace,
    snapshot: Snapshot,
    imported: tuple[Imported, ...],
    texts: Mapping[str, str],
    included: Mapping[str, str],
) -> dict[survey.Key, str]:
    """What keeps each from being declared. Rejected, if it is about none of them."""
    if unspellable := survey.find_unencodable(imported):
        return unspellable
    try:
        loaded = load_manifests_with(
            workspace.config, workspace.runtime.environ, workspace.variables, _encode(texts), _encode(included)
        )
    except Rejected as rejected:
        blamed = survey.find_rejected([problem for problem in rejected.problems if problem.is_error], imported)
        if not blamed:
            raise InvalidProject(rejected.problems) from rejected
        return blamed
    policy = PlanOptions(adopt=True, now=workspace.options.now)
    made = replace(workspace, manifest=loaded.manifest, warnings=(), options=policy).plan_for(snapshot)
    return survey.find_objections(made, imported)


def _encode(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in texts.items()}
