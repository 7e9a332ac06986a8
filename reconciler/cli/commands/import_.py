"""`reconciler import`: writes manifests for what exists and is not declared. Changes nothing on the platform."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, lookup, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.operations.authoring.import_proposal import Proposal

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
    type=options.OutputPath("name a folder, or print what would be written by --dry-run", whole=False),
    help="The folder to write to; the project's first folder of manifests by default.",
)
@click.option("--all", "everybody", is_flag=True, help="Also what belongs to other stacks, for when they forget it.")
@click.option("--append", is_flag=True, help="Add to files that exist, below what they say.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to tell it."
)
@options.import_options
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
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations.authoring import import_files
    from reconciler.operations.opening.project import open_to_import
    from reconciler.planning.deciding.options import PlanOptions

    only = {lookup.kind(kind).name for kind in kinds}
    opened = open_to_import(workspaces.source_of(common))
    _check_inside(out)
    selection = PlanOptions(targets=common.targets, excludes=common.excludes)
    proposing = opened.propose_import(
        folder=out,
        only=only,
        selects=selection.selects,
        from_other_stacks=everybody,
        append=append,
        on_event=ReadProgress(common.quiet),
    )
    proposal = workspaces.run(proposing)
    changed = frozenset[str]() if dry_run else import_files.write(opened.config.root, proposal, append=append)
    _show(proposal, changed, dry_run=dry_run, form=form)
    if proposal.is_whole:
        return exit_codes.DONE
    return exit_codes.PARTLY if proposal.imported else exit_codes.ERROR


def _check_inside(out: str | None) -> None:
    from reconciler.project import files

    try:
        files.path_inside(out or ".")
    except files.Unreadable as wrong:
        raise exit_codes.Stop(exit_codes.USAGE, f"error: --out: {wrong}; {wrong.remedy}") from None


def _show(proposal: Proposal, changed: frozenset[str], *, dry_run: bool, form: str) -> None:
    """What was written, or would be, on standard output; what was left out beside it."""
    if form == "json":
        output.print_result(_json(proposal))
    else:
        _show_files(proposal, changed, dry_run=dry_run)
    _note_left_out(proposal)
    for address, owner in proposal.owners.items():
        whose = f"{owner.address} of stack {owner.stack}"
        output.print_note(f"{address} is {whose}: to be taken over once that says `ensure: forgotten`")
    if not proposal.imported and proposal.is_whole:
        output.print_note("Nothing to import: everything that can be declared is.")
    if proposal.imported and not proposal.is_read:
        folder = proposal.folder
        output.print_note(f"{folder} is none of the project's manifests: add it under manifests: in reconciler.yaml")


def _show_files(proposal: Proposal, changed: frozenset[str], *, dry_run: bool) -> None:
    if dry_run:
        for path, text in proposal.files.items():
            output.print_result(f"# {path}\n{_sanitize(text)}")
        return
    counts = Counter(proposal.file_of(imported) for imported in proposal.imported)
    for path, count in sorted(counts.items()):
        output.print_result(f"{path}: {output.count(count, 'resource')}{'' if path in changed else ', as it was'}")


def _sanitize(text: str) -> str:
    """A file's text for a terminal, line by line."""
    from reconciler.rendering import terminal_text

    return "".join(f"{terminal_text.sanitize(line)}\n" for line in text.removesuffix("\n").split("\n"))


def _note_left_out(proposal: Proposal) -> None:
    wrong = [left_out for left_out in proposal.left_out if left_out.wrong]
    others = [left_out for left_out in proposal.left_out if not left_out.wrong]
    for left_out in wrong:
        output.print_note(f"not imported: {left_out.kind}{f' {left_out.id}' if left_out.id else ''}: {left_out.why}")
    for other in others[:_MOST]:
        output.print_note(f"left out: {other.kind} {other.id}: {other.why}")
    if len(others) > _MOST:
        output.print_note(f"left out: {len(others) - _MOST} more; --format json lists all")


def _json(proposal: Proposal) -> str:
    import json

    told = {
        "version": 1,
        "resources": [
            {
                "address": str(imported.address),
                "kind": imported.live.kind,
                "id": imported.live.id,
                "file": proposal.file_of(imported),
            }
            for imported in proposal.imported
        ],
        "files": [{"path": path, "text": text} for path, text in proposal.files.items()],
        "left_out": [
            {"kind": left_out.kind, "id": left_out.id or None, "why": left_out.why, "wrong": left_out.wrong}
            for left_out in proposal.left_out
        ],
    }
    return json.dumps(told, indent=2)
