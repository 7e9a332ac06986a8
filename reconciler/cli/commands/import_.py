"""`reconciler import`: writes manifests for what exists and is not declared. Changes nothing on the platform."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, lookup, options, output
from reconciler.cli.terminal.group import Command
from reconciler.model.problem import Rejected

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.cli.proposing import Proposal
    from reconciler.model.snapshot import Snapshot
    from reconciler.project.settings.config import Config

_MODE = 0o644  # nothing that is written is secret
_MOST = 20  # lines about objects that are left out: the rest is in the JSON


@click.command(
    cls=Command,
    examples="""
        reconciler import --dry-run
        reconciler import --kind TLSEdge --kind ReservedDomain --out manifests/edges
        reconciler import --target 'IPPolicy/office*'
        reconciler import --dry-run --format json | jq '.left_out'
    """,
)
@click.option(
    "--kind", "kinds", metavar="KIND", multiple=True, shell_complete=lookup.complete, help="Only this; may be repeated."
)
@click.option(
    "--out",
    metavar="DIR",
    type=options.Place("name a folder, or print what would be written by --dry-run", whole=False),
    help="The folder to write to; the project's first folder of manifests by default.",
)
@click.option("--all", "everybody", is_flag=True, help="Also what belongs to other stacks, for when they forget it.")
@click.option("--append", is_flag=True, help="Add to files that exist, below what they say.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to tell it."
)
@options.surveying
def command(
    common: options.Options,
    kinds: tuple[str, ...],
    out: str | None,
    everybody: bool,
    append: bool,
    dry_run: bool,
    form: str,
) -> int:
    """Write manifests for what exists and is not declared, and check that a plan of them changes nothing."""
    from reconciler.cli import proposing, session
    from reconciler.planning.deciding.options import Policy
    from reconciler.planning.importing import survey

    chosen = {lookup.kind(each).name for each in kinds}
    opened = session.opened_to_import(common)
    root, folder = opened.config.root, _folder(opened.config, out)
    policy = Policy(targets=common.targets, excludes=common.excludes)
    snapshot, passing = session.run(session.surveyed(opened))
    if snapshot.doubt:
        output.say(f"warning: {snapshot.doubt}")
    proposal = proposing.propose(
        opened,
        survey.without_others(opened.manifest, snapshot) if everybody else snapshot,
        common.variables,
        folder=folder,
        selects=lambda address: (not chosen or address.kind in chosen) and policy.selects(address),
        present=_present(root, folder) if append else None,
    )
    new = {} if dry_run else _writable(root, proposal, append=append)
    _write(root, new)
    left_out = (*proposal.left_out, *survey.passing(passing))
    proposal = replace(proposal, left_out=tuple(each for each in left_out if not chosen or each.kind in chosen))
    _tell(proposal, new, dry_run=dry_run, form=form)
    _tell_left_out(proposal)
    _tell_of_others(opened.manifest.stack, proposal, snapshot)
    if not proposal.imported and proposal.is_whole:
        output.say("Nothing to import: everything that can be declared is.")
    if proposal.imported and not _is_read(opened.config, folder):
        output.say(f"{folder} is none of the project's manifests: add it under manifests: in reconciler.yaml")
    if proposal.is_whole:
        return exit_codes.DONE
    return exit_codes.PARTLY if proposal.imported else exit_codes.ERROR


def _folder(project: Config, out: str | None) -> str:
    """Where to write, below the project's root."""
    from reconciler.project import files

    folders = (
        each for each in project.manifests if not each.endswith(files.MANIFESTS) and not (project.root / each).is_file()
    )
    try:
        return files.inside(out or next(folders, "manifests"))
    except files.Unreadable as wrong:
        raise exit_codes.Stop(exit_codes.USAGE, f"error: --out: {wrong}; {wrong.remedy}") from None


def _is_read(project: Config, folder: str) -> bool:
    """Whether manifests in the folder are the project's."""
    from reconciler.project import files

    named = map(files.inside, project.manifests)
    return any(each in (".", folder) or folder.startswith(f"{each}/") for each in named)


def _present(root: Path, folder: str) -> dict[str, str]:
    """The manifests right in a folder, which may be added to. What cannot be read is told if it comes to that."""
    from reconciler.project import files
    from reconciler.project.manifests import write as write_manifests
    from reconciler.project.yaml.errors import MAX_BYTES

    found = {}
    for path in sorted(write_manifests.below(folder, each.name) for each in (root / folder).glob("*.yaml")):
        with contextlib.suppress(files.Unreadable, UnicodeDecodeError):
            found[path] = files.read(root, path, MAX_BYTES).decode()
    return found


def _writable(root: Path, proposal: Proposal, *, append: bool) -> dict[str, str]:
    """The files that are to be written: not those that are as they would be. Stop if one says something else."""
    from reconciler.project import files
    from reconciler.project.yaml.errors import MAX_BYTES

    new, others = {}, []
    for path, text in proposal.files.items():
        files.refuse_detour(root, path)
        if not (root / path).exists():
            new[path] = text
        elif (present := files.read(root, path, MAX_BYTES)) == text.encode():
            continue
        elif append and path in proposal.manifests:
            _check_kept(path, present, text)
            new[path] = text
        else:
            others.append(path)
    if others:
        raise exit_codes.Stop(
            exit_codes.ERROR,
            *(f"error: {path} exists and says something else" for path in others),
            "nothing was written; name another folder with --out, or add to these manifests with --append",
        )
    return new


def _check_kept(path: str, present: bytes, text: str) -> None:
    """Stop unless what the file says now is said in the text as well: a last line may end where it did not before."""
    from reconciler.model.value import canonical
    from reconciler.project.yaml import reader as yaml

    before, after = yaml.read(present, path), yaml.read(text.encode(), path)
    if before.problems:
        raise Rejected(before.problems)
    said, says = ([canonical(each.value) for each in of.documents if each.value is not None] for of in (before, after))
    if says[: len(said)] != said:
        raise exit_codes.Stop(
            exit_codes.ERROR,
            f"error: {path} would say something else with anything added to it",
            "nothing was written; let its last line end with a line break, or name another folder with --out",
        )


def _write(root: Path, new: Mapping[str, str]) -> None:
    from reconciler.cli.terminal import atomic_write

    # What manifests include comes first: a torn import leaves no manifest that cannot be read.
    for path in sorted(new, key=lambda path: (path.endswith(".yaml"), path)):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o7777 if file.exists() else _MODE
        atomic_write.write(file, new[path], mode)


def _tell(proposal: Proposal, new: Mapping[str, str], *, dry_run: bool, form: str) -> None:
    if form == "json":
        output.answer(_json(proposal))
        return
    for path, text in proposal.files.items() if dry_run else ():
        output.answer(f"# {path}\n{_shown(text)}")
    counts = Counter(proposal.file_of(each) for each in proposal.imported)
    for path, count in sorted(counts.items()) if not dry_run else ():
        output.answer(f"{path}: {output.count(count, 'resource')}{'' if path in new else ', as it was'}")


def _shown(text: str) -> str:
    """A file's text for a terminal, line by line."""
    from reconciler.rendering import terminal_text

    return "".join(f"{terminal_text.clean(line)}\n" for line in text.removesuffix("\n").split("\n"))


def _tell_left_out(proposal: Proposal) -> None:
    wrong = [each for each in proposal.left_out if each.wrong]
    others = [each for each in proposal.left_out if not each.wrong]
    for each in wrong:
        output.say(f"not imported: {each.kind}{f' {each.id}' if each.id else ''}: {each.why}")
    for each in others[:_MOST]:
        output.say(f"left out: {each.kind} {each.id}: {each.why}")
    if len(others) > _MOST:
        output.say(f"left out: {len(others) - _MOST} more; --format json lists all")


def _tell_of_others(stack: str, proposal: Proposal, snapshot: Snapshot) -> None:
    """With --all: whose the objects are that were imported as if they were nobody's."""
    imported = {(each.live.kind, each.live.locator): each.address for each in proposal.imported}
    for live in (live for listing in snapshot.listings.values() for live in listing.objects):
        address = imported.get((live.kind, live.locator))
        if address is not None and live.owner is not None and live.owner.stack != stack:
            whose = f"{live.owner.address} of stack {live.owner.stack}"
            output.say(f"{address} is {whose}: to be taken over once that says `ensure: forgotten`")


def _json(proposal: Proposal) -> str:
    import json

    told = {
        "version": 1,
        "resources": [
            {"address": str(each.address), "kind": each.live.kind, "id": each.live.id, "file": proposal.file_of(each)}
            for each in proposal.imported
        ],
        "files": [{"path": path, "text": text} for path, text in proposal.files.items()],
        "left_out": [
            {"kind": each.kind, "id": each.id or None, "why": each.why, "wrong": each.wrong}
            for each in proposal.left_out
        ],
    }
    return json.dumps(told, indent=2)
