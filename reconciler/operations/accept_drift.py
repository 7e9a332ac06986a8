"""`drift --accept`: writes into the manifests what the platform has, where the platform moved.

Everything is tried in memory first: what the project's own reading and planning would not take as accepted is left out.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.plan import Plan
from reconciler.model.problem import Rejected
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import Json
from reconciler.operations.errors import InvalidProject
from reconciler.operations.workspace import Workspace
from reconciler.planning import drift_acceptance
from reconciler.planning.drift_acceptance import OMITTED, Declined, Offer
from reconciler.project import atomic_write, files
from reconciler.project.documents import phrases
from reconciler.project.manifests.load import load_manifests_with
from reconciler.project.yaml import patch
from reconciler.project.yaml import reader as yaml
from reconciler.project.yaml.errors import MAX_BYTES
from reconciler.project.yaml.patch import Unpatchable
from reconciler.rendering import terminal_text


@dataclass
class Acceptance:
    """`texts` are manifests as they would be, beside what they are; `left` is the plan of them."""

    remaining: Plan
    accepted: list[Offer] = field(default_factory=list)
    declined: list[Declined] = field(default_factory=list)
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)


def accept(
    workspace: Workspace,
    plan: Plan,
    snapshot: Snapshot,
    *,
    selects: Callable[[Address], bool],
    both: bool,
) -> Acceptance:
    """What can be accepted, and how the manifests would be then. Writes nothing."""
    offers, declined = drift_acceptance.find_offers(
        plan, workspace.manifest, snapshot, kinds.list_planned(), selects=selects, both=both
    )
    while True:
        found = Acceptance(plan, declined=list(declined))
        _patch_manifests(workspace, offers, found)
        refused = _find_refused(workspace, found, snapshot)
        if not refused:
            return found
        declined += [Declined(str(offer), why) for offer, why in refused]
        offers = [offer for offer in offers if all(offer is not each for each, _ in refused)]


def write(workspace: Workspace, found: Acceptance) -> None:
    for path, (_, after) in found.texts.items():
        file = workspace.config.root / path
        files.refuse_symlink(workspace.config.root, path)
        atomic_write.write(file, after, file.stat().st_mode & 0o7777)


def diff(found: Acceptance) -> str:
    """What changes in the manifests, as a patch; for a terminal, so nothing in it gives orders to one."""
    lines: list[str] = []
    for path, (before, after) in found.texts.items():
        old, new = (io.StringIO(each).readlines() for each in (before, after))  # lines as Git counts them
        lines += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    return "".join(map(_sanitize_line, lines))


def _sanitize_line(line: str) -> str:
    """With the end it has in the file: a patch with another one does not apply."""
    text = line.removesuffix("\n")
    end = "\r\n" if text.endswith("\r") else "\n"
    shown = terminal_text.sanitize(text.removesuffix("\r")) + end
    return shown if line.endswith("\n") else f"{shown}\\ No newline at end of file\n"


def _patch_manifests(workspace: Workspace, offers: list[Offer], found: Acceptance) -> None:
    """Each offer into the text of its manifest, or among what is declined."""
    for offer in offers:
        declaration = workspace.manifest.declarations[offer.address]
        file = declaration.position.file
        try:
            if file not in found.texts:
                text = files.read(workspace.config.root, file, MAX_BYTES).decode()
                found.texts[file] = (text, text)
            before, text = found.texts[file]
            found.texts[file] = (before, _patch_manifest(workspace, offer, file, text))
        except (Unpatchable, files.Unreadable) as why:
            found.declined.append(Declined(str(offer), f"{declaration.at(*offer.path)}: {why}; change it by hand"))
        else:
            found.accepted.append(offer)
    found.texts = {path: texts for path, texts in found.texts.items() if texts[0] != texts[1]}


def _patch_manifest(workspace: Workspace, offer: Offer, file: str, text: str) -> str:
    declaration = workspace.manifest.declarations[offer.address]
    document = next(
        (document for document in yaml.read(text.encode(), file).documents if _is_of(document, offer.address)), None
    )
    if document is None:
        raise Unpatchable("it is not written there in so many words")
    path = ("spec", *offer.path)
    there = document.value
    for part in path:
        there = there.get(part, OMITTED) if isinstance(there, dict) else OMITTED
    at = declaration.at(*offer.path)
    if at.file != file:
        raise Unpatchable("it is written outside the manifest")
    if (source := _find_expression(there)) is not None:
        raise Unpatchable(f"it is written as {source}")
    value = offer.value
    if isinstance(there, str) and offer.text is not None:
        value = offer.text
    if offer.unordered and isinstance(there, list) and isinstance(value, list):
        value = patch.order_like(there, value)
    return patch.patch_text(text, document.places[()].line, path, value)


def _is_of(document: yaml.Document, address: Address) -> bool:
    value = document.value
    return (
        isinstance(value, dict)
        and value.get("kind") == address.kind
        and value.get("name") == address.name
        and "for_each" not in value
    )


def _find_expression(written: Json) -> str | None:
    """How a value, or one inside it, is written if not as itself. References are, by their name."""
    match written:
        case str() if "${{" in written.replace("$${{", ""):
            return "${{ … }}"
        case dict() if len(written) == 1 and (word := next(iter(written))) in phrases.EXPRESSIONS and word != "ref":
            return f"{{{word}: …}}"
        case dict() | list():
            inside = written.values() if isinstance(written, dict) else written
            return next((found for each in inside if (found := _find_expression(each)) is not None), None)
    return None


def _find_refused(workspace: Workspace, found: Acceptance, snapshot: Snapshot) -> list[tuple[Offer, str]]:
    """What the manifests would not say rightly. Sets what is `left` otherwise."""
    added = {path: after.encode() for path, (_, after) in found.texts.items()}
    try:
        loaded = load_manifests_with(workspace.config, workspace.runtime.environ, workspace.variables, added, {})
    except Rejected as rejected:
        wrong = [problem for problem in rejected.problems if problem.is_error]
        blamed = [
            (offer, f"the manifest would be wrong: {problem.text}")
            for offer in found.accepted
            for problem in wrong
            if problem.subject == str(offer.address) or problem.subject.startswith(f"{offer.address}.")
        ]
        if not blamed:
            raise InvalidProject(rejected.problems) from rejected
        return list({id(offer): (offer, why) for offer, why in blamed}.values())
    found.remaining = replace(workspace, manifest=loaded.manifest, warnings=loaded.warnings).plan_for(snapshot)
    differing = {
        (change.address, field_change.path) for change in found.remaining.changes for field_change in change.fields
    }
    return [
        (offer, "it would still differ")
        for offer in found.accepted
        if any(address == offer.address and _is_within(path, offer) for address, path in differing)
    ]


def _is_within(path: str, offer: Offer) -> bool:
    told = ".".join(offer.path)
    return path == told or path.startswith((f"{told}.", f"{told}["))
