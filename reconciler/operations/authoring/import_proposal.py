"""Proposes manifests for unmanaged objects: renders them, loads them as part of the project and plans, all in memory.

An object whose manifest would not be in sync with it is left out, and the others are proposed again. Writes nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.kind import Home
from reconciler.model.owner_record import Owner
from reconciler.model.problem import Rejected
from reconciler.model.snapshot import Snapshot
from reconciler.operations.authoring import import_files
from reconciler.operations.errors import InvalidProject
from reconciler.operations.open_project import OpenProject
from reconciler.operations.reporting import Note, OnEvent
from reconciler.planning.importing import survey
from reconciler.planning.importing.survey import Imported, LeftOut
from reconciler.planning.planner import PlanOptions
from reconciler.project.manifests import write as write_manifests
from reconciler.project.manifests.load import load_manifests_with


class Proposal(Struct, frozen=True):
    """The result of `propose_import`.

    imported   the objects with their future declarations
    left_out   objects that are not imported, with the reason
    manifests  texts by path below the project's root
    included   texts of files that the manifests include, by path
    folder     of the manifests; `is_read`: whether the project reads manifests from it
    owners     owner records of other stacks, which must release these objects first
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

    def file_of(self, imported: Imported) -> str:
        """The path of the manifest with an object's declaration."""
        return write_manifests.file_of(imported, {kind.name: kind for kind in kinds.list_planned()}, self.folder)

    @property
    def is_whole(self) -> bool:
        """Whether every object that can be imported is."""
        return not any(left_out.wrong for left_out in self.left_out)


async def find_proposal(
    project: OpenProject,
    folder: str,
    only: Collection[str],
    selects: survey.Selects,
    on_event: OnEvent,
    *,
    from_other_stacks: bool,
    append: bool,
) -> Proposal:
    """See `OpenProject.propose_import`."""
    snapshot, read_only = await project.take_survey(also=only, on_event=on_event)
    if snapshot.doubt:
        on_event(Note(f"warning: {snapshot.doubt}"))
    proposal = propose(
        project,
        survey.drop_foreign_owners(project.manifest, snapshot) if from_other_stacks else snapshot,
        folder=folder,
        only=only,
        selects=lambda address, *others: (not only or address.kind in only) and selects(address, *others),
        present=import_files.read_manifests(project.config.root, folder) if append else None,
    )
    transient = (out for out in survey.find_transient_objects(read_only) if selects(Address(out.kind, out.id)))
    left_out = (*proposal.left_out, *transient)
    return replace(
        proposal,
        left_out=tuple(out for out in left_out if not only or out.kind in only),
        is_read=import_files.is_read(project.config, folder),
        owners=_other_owners(project.manifest.stack, proposal.imported, snapshot),
    )


def _other_owners(stack: str, imported: tuple[Imported, ...], snapshot: Snapshot) -> dict[Address, Owner]:
    addresses = {(item.live.kind, item.live.locator): item.address for item in imported}
    every = (live for listing in snapshot.listings.values() for live in listing.objects)
    return {
        addresses[live.kind, live.locator]: live.owner
        for live in every
        if (live.kind, live.locator) in addresses and live.owner is not None and live.owner.stack != stack
    }


def propose(
    project: OpenProject,
    snapshot: Snapshot,
    *,
    folder: str,
    selects: survey.Selects,
    only: Collection[str] = (),
    present: Mapping[str, str] | None = None,
) -> Proposal:
    """Proposes every selected object whose manifest would be in sync with it.

    only     names of kinds; those of an agent are imported only if they are named
    selects  whether to import an object, as in `survey`
    present  texts of existing manifests to add to, by path; None: new files
    """
    importable = [kind for kind in kinds.list_planned() if kind.home is Home.PLATFORM or kind.name in only]
    refused: dict[survey.Key, str] = {}
    while True:
        found = survey.survey(project.manifest, snapshot, importable, selects=selects, refused=refused)
        texts, included = write_manifests.render_files(found.imported, {kind.name: kind for kind in importable}, folder)
        texts = {path: write_manifests.append((present or {}).get(path, ""), text) for path, text in texts.items()}
        # Existing manifests stay: a proposed text is loaded in addition, or instead if it extends an existing one.
        read = {path if present is not None else f"{path} (new)": text for path, text in texts.items()}
        objections = _objections(project, snapshot, found.imported, read, included)
        if not objections:
            return Proposal(found.imported, found.left_out, texts, included, folder)
        refused |= objections


def _objections(
    project: OpenProject,
    snapshot: Snapshot,
    imported: tuple[Imported, ...],
    texts: Mapping[str, str],
    included: Mapping[str, str],
) -> dict[survey.Key, str]:
    """Why objects cannot be declared, by key. Raises InvalidProject for problems that concern no imported object."""
    if unspellable := survey.find_unencodable(imported):
        return unspellable
    if unwritable := survey.find_unwritable(imported, {kind.name: kind for kind in kinds.list_planned()}):
        return unwritable
    # The variables of the proposals as they will have to be set.
    environ = dict(project.runtime.environ)
    environ |= {name: secret.reveal() for proposal in imported for name, secret in proposal.secrets.items()}
    try:
        loaded = load_manifests_with(
            project.config,
            environ,
            project.variables,
            _encode(texts),
            _encode(included),
        )
    except Rejected as rejected:
        blamed = survey.find_rejected([problem for problem in rejected.problems if problem.is_error], imported)
        if not blamed:
            raise InvalidProject(rejected.problems) from rejected
        return blamed
    policy = PlanOptions(adopt=True, now=project.options.now)
    made = dataclasses.replace(project, manifest=loaded.manifest, warnings=(), options=policy).plan_for(snapshot)
    return survey.find_objections(made, imported)


def _encode(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in texts.items()}
