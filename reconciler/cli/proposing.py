"""What `import` would write: surveyed, spelt, read back as the project's own manifests, and planned, all in memory.

What would not come out as it is on the platform is left out, and the rest is proposed anew without it. Writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reconciler import kinds
from reconciler.cli.session import Session
from reconciler.model.address import Address
from reconciler.model.problem import Rejected
from reconciler.model.snapshot import Snapshot
from reconciler.planning.importing import survey
from reconciler.planning.importing.survey import Imported, LeftOut
from reconciler.planning.planner import Policy
from reconciler.project.documents.resolve import Variable
from reconciler.project.manifests import load as manifests
from reconciler.project.manifests import write as write_manifests


@dataclass(frozen=True)
class Proposal:
    """Texts by path below the project's root: manifests, and what they include."""

    imported: tuple[Imported, ...]
    left_out: tuple[LeftOut, ...]
    manifests: Mapping[str, str]
    included: Mapping[str, str]
    folder: str

    @property
    def files(self) -> Mapping[str, str]:
        return {**self.manifests, **self.included}

    def file_of(self, each: Imported) -> str:
        """The manifest it stands in."""
        return write_manifests.file_of(each, {kind.name: kind for kind in kinds.every()}, self.folder)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing that could have been imported."""
        return not any(each.wrong for each in self.left_out)


def propose(
    session: Session,
    snapshot: Snapshot,
    variables: Mapping[str, Variable],
    *,
    folder: str,
    selects: Callable[[Address], bool],
    present: Mapping[str, str] | None = None,
) -> Proposal:
    """Everything selected that can be declared as it is. `present` are texts of manifests that are added to."""
    refused: dict[survey.Key, str] = {}
    while True:
        found = survey.survey(session.manifest, snapshot, kinds.planned(), selects=selects, refused=refused)
        texts, included = write_manifests.layout(found.imported, {each.name: each for each in kinds.every()}, folder)
        texts = {path: write_manifests.appended((present or {}).get(path, ""), text) for path, text in texts.items()}
        # What is there stays there: a new text counts beside it, unless it is the old one with something added.
        read = {path if present is not None else f"{path} (new)": text for path, text in texts.items()}
        objections = _objections(session, snapshot, variables, found.imported, read, included)
        if not objections:
            return Proposal(found.imported, found.left_out, texts, included, folder)
        refused |= objections


def _objections(
    session: Session,
    snapshot: Snapshot,
    variables: Mapping[str, Variable],
    imported: tuple[Imported, ...],
    texts: Mapping[str, str],
    included: Mapping[str, str],
) -> dict[survey.Key, str]:
    """What keeps each from being declared. Rejected, if it is about none of them."""
    if unspellable := survey.unspellable(imported):
        return unspellable
    try:
        loaded = manifests.load_with(session.config, os.environ, variables, _encoded(texts), _encoded(included))
    except Rejected as rejected:
        blamed = survey.blamed([each for each in rejected.problems if each.is_error], imported)
        if not blamed:
            raise
        return blamed
    policy = Policy(adopt=True, now=session.policy.now)
    made = replace(session, manifest=loaded.manifest, warnings=(), policy=policy).plan(snapshot)
    return survey.objections(made, imported)


def _encoded(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in texts.items()}
