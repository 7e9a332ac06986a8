"""`accept`: writes live values into the manifests, for the fields that changed on the platform.

The manifests are changed in memory, loaded and planned first. Values that would still differ are left out.
"""

from __future__ import annotations

import dataclasses
import difflib
import io
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.model.access_change import AccessChange
from reconciler.model.address import Address
from reconciler.model.plan import Approval, Plan
from reconciler.model.problem import Rejected
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import OMITTED, Json
from reconciler.operations.drift import find_drift, without_known_drift
from reconciler.operations.errors import ApprovalRequired, InvalidProject
from reconciler.operations.open_project import OpenProject
from reconciler.operations.reporting import OnEvent
from reconciler.operations.selection import check_selection
from reconciler.planning import drift_acceptance
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.drift_acceptance import Declined, Offer
from reconciler.planning.planner import compare_manifests
from reconciler.project import atomic_write, files
from reconciler.project.documents import phrases
from reconciler.project.manifests import children
from reconciler.project.manifests.load import load_manifests_with
from reconciler.project.yaml import patch
from reconciler.project.yaml.patch import Unpatchable
from reconciler.rendering import terminal_text


class Acceptance(Struct):
    """The manifests after accepting drift.

    remaining  the plan of the changed manifests, without known drift
    accepted   values that were written into the texts
    declined   values that cannot be accepted, with the reason
    texts      path → text before and after
    access     the entry points that an apply of the changed manifests opens or closes beside one of the original ones
    approvals  that the texts need before they are written: of openings
    """

    remaining: Plan
    accepted: list[Offer] = field(default_factory=list)
    declined: list[Declined] = field(default_factory=list)
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    access: tuple[AccessChange, ...] = ()
    approvals: tuple[Approval, ...] = ()

    @property
    def missing_approvals(self) -> tuple[Approval, ...]:
        return tuple(approval for approval in self.approvals if not approval.granted)


async def accept_drift(
    project: OpenProject, targets: Sequence[str], ignore: Sequence[str], on_event: OnEvent, *, both: bool
) -> Acceptance:
    """See `Workspace.accept_drift`."""
    drift = await find_drift(project, ignore, on_event)
    selection = PlanOptions(targets=tuple(targets))
    check_selection(selection, project.manifest, drift.snapshot, on_event)
    found = accept(project, drift.plan, drift.snapshot, selects=selection.selects, both=both)
    remaining = without_known_drift(project, found.remaining, ignore)
    # Without the warnings of known drift: an entry may match no difference because its difference was accepted.
    found.remaining = replace(remaining, problems=found.remaining.problems)
    return found


def accept(
    project: OpenProject,
    plan: Plan,
    snapshot: Snapshot,
    *,
    selects: Callable[[Address], bool],
    both: bool,
) -> Acceptance:
    """Finds what can be accepted, and changes the manifests in memory. Writes nothing.

    selects  whether a resource is covered
    both     also values that Git changed too, or of which it is unknown what changed them

    Raises InvalidProject if the changed manifests are invalid for another reason.
    """
    offers, declined = drift_acceptance.find_offers(
        plan, project.manifest, snapshot, kinds.list_planned(), selects=selects, both=both
    )
    while True:
        found = Acceptance(plan, declined=list(declined))
        _patch_manifests(project, offers, found)
        refused = _find_refused(project, found, snapshot)
        if not refused:
            return found
        declined += [Declined(str(offer), why) for offer, why in refused]
        offers = [offer for offer in offers if all(offer is not other for other, _ in refused)]


def write(project: OpenProject, found: Acceptance, *, is_approved: bool = False) -> None:
    """Writes the changed manifests.

    is_approved   a person approves what they open

    Raises ApprovalRequired if approvals are missing, Rejected if a path leads through a symbolic link, or OSError.
    """
    if found.missing_approvals and not is_approved:
        flags = " ".join(approval.flag for approval in found.missing_approvals)
        raise ApprovalRequired(f"nothing was written: approval required: pass {flags}")
    for path, (_, after) in found.texts.items():
        file = project.config.root / path
        files.refuse_symlink(project.config.root, path)
        atomic_write.write(file, after, file.stat().st_mode & 0o7777)


def diff(found: Acceptance) -> str:
    """The changes of the manifests as a unified diff, with control characters replaced for the terminal."""
    return diff_texts(found.texts)


def diff_texts(texts: Mapping[str, tuple[str, str]]) -> str:
    """The changes of files, path → text before and after, as a unified diff for the terminal."""
    lines: list[str] = []
    for path, (before, after) in texts.items():
        old, new = (io.StringIO(text).readlines() for text in (before, after))  # lines as Git counts them
        lines += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    return "".join(map(_sanitize_line, lines))


def _sanitize_line(line: str) -> str:
    """A line without control characters, with its original line end: otherwise the patch could not be applied."""
    text = line.removesuffix("\n")
    end = "\r\n" if text.endswith("\r") else "\n"
    sanitized = terminal_text.sanitize(text.removesuffix("\r")) + end
    return sanitized if line.endswith("\n") else f"{sanitized}\\ No newline at end of file\n"


def _patch_manifests(project: OpenProject, offers: list[Offer], found: Acceptance) -> None:
    """Writes each offer into the text of its manifest, or adds it to `declined`."""
    for offer in offers:
        declaration = project.manifest.declarations[offer.address]
        file = declaration.position.file
        try:
            if file not in found.texts:
                text = files.read(project.config.root, file, MAX_BYTES).decode()
                found.texts[file] = (text, text)
            before, text = found.texts[file]
            found.texts[file] = (before, _patch_manifest(project, offer, file, text))
        except (Unpatchable, files.Unreadable) as why:
            at = declaration.at(*offer.path)
            place = "the manifest" if at.file == file else at.file
            found.declined.append(Declined(str(offer), f"{at}: {why}; edit {place}"))
        else:
            found.accepted.append(offer)
    found.texts = {path: texts for path, texts in found.texts.items() if texts[0] != texts[1]}


def _patch_manifest(project: OpenProject, offer: Offer, file: str, text: str) -> str:
    declaration = project.manifest.declarations[offer.address]
    place = children.find_in_file(yaml.read(text.encode(), file).documents, offer.address)
    if place is None:
        raise Unpatchable("no document of the file declares the resource literally")
    document, path = place.document, place.at(("spec", *offer.path))
    value_before = document.value
    for part in path:
        value_before = value_before.get(part, OMITTED) if isinstance(value_before, dict) else OMITTED
    at = declaration.at(*offer.path)
    if at.file != file:
        raise Unpatchable("the value is set here, outside the manifest")
    if (source := _find_expression(value_before)) is not None:
        raise Unpatchable(f"the value is the expression {source}")
    value = offer.value
    if isinstance(value_before, str) and offer.text is not None:
        value = offer.text
    line = document.places[()].line
    if offer.pairs is not None and isinstance(value_before, list):
        return patch.patch_unordered(text, line, path, value_before, value, offer.pairs, offer.key)
    return patch.patch_text(text, line, path, value)


def _find_expression(written: Json) -> str | None:
    """The expression with which a value, or one inside it, is written; None for literals and references."""
    match written:
        case str() if "${{" in written.replace("$${{", ""):
            return "${{ … }}"
        case dict() if len(written) == 1 and (word := next(iter(written))) in phrases.EXPRESSIONS and word != "ref":
            return f"{{{word}: …}}"
        case dict() | list():
            inside = written.values() if isinstance(written, dict) else written
            return next((found for value in inside if (found := _find_expression(value)) is not None), None)
    return None


def _find_refused(project: OpenProject, found: Acceptance, snapshot: Snapshot) -> list[tuple[Offer, str]]:
    """The offers that the changed manifests do not express correctly, with the reason.

    Sets `found.remaining` and, if no offer is refused, `found.access` and `found.approvals`.
    """
    added = {path: after.encode() for path, (_, after) in found.texts.items()}
    try:
        loaded = load_manifests_with(project.config, project.runtime.environ, project.variables, added, {})
    except Rejected as rejected:
        wrong = [problem for problem in rejected.problems if problem.is_error]
        blamed = [
            (offer, f"the manifest would be invalid: {problem.text}")
            for offer in found.accepted
            for problem in wrong
            if problem.subject == str(offer.address) or problem.subject.startswith(f"{offer.address}.")
        ]
        if not blamed:
            raise InvalidProject(rejected.problems) from rejected
        return list({id(offer): (offer, why) for offer, why in blamed}.values())
    edited = dataclasses.replace(project, manifest=loaded.manifest, warnings=loaded.warnings)
    found.remaining = edited.plan_for(snapshot)
    differing = {
        (change.address, field_change.path) for change in found.remaining.changes for field_change in change.fields
    }
    refused = [
        (offer, "the field would still differ from the platform")
        for offer in found.accepted
        if any(address == offer.address and _is_within(path, offer) for address, path in differing)
    ]
    if found.texts and not refused:
        found.access, found.approvals = compare_manifests(
            project.manifest, loaded.manifest, snapshot, kinds.list_planned(), project.options
        )
    return refused


def _is_within(path: str, offer: Offer) -> bool:
    prefix = ".".join(offer.path)
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))
