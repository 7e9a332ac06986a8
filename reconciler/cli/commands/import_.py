"""`reconciler import`: writes manifests for existing objects that are not declared. Changes nothing on the platform."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, lookup, options, output
from reconciler.cli.terminal.group import Command
from reconciler.rendering.text_tools import count

if TYPE_CHECKING:
    from reconciler.operations.authoring.import_proposal import Proposal

_ALL_DECLARED = "all objects that can be declared are declared"
_NONE_SELECTED = "no undeclared object matches --kind, --target and --exclude; `list` shows all objects"
_MAX_SKIPPED = 20  # lines about skipped objects; the JSON lists all


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
    "--kind",
    "kinds",
    metavar="KIND",
    multiple=True,
    shell_complete=lookup.complete,
    help="Limit to this kind (repeatable).",
)
@click.option(
    "--out",
    metavar="DIR",
    type=options.OutputPath("name a folder, or use --dry-run to print the manifests", whole=False),
    help="Folder to write to. [default: the first folder under `manifests` in reconciler.yaml]",
)
@click.option(
    "--all", "from_other_stacks", is_flag=True, help="Also import objects of other stacks, which must forget them."
)
@click.option("--append", is_flag=True, help="Append to existing files.")
@click.option("--dry-run", is_flag=True, help="Print the manifests without writing them.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
@options.import_options
def command(
    common: options.Options,
    kinds: tuple[str, ...],
    out: str | None,
    from_other_stacks: bool,
    append: bool,
    dry_run: bool,
    form: str,
) -> int:
    """Write manifests for existing objects that are not declared.

    Checks that a plan of the written manifests only adopts the objects and changes nothing. Changes nothing on the
    platform.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations.authoring import import_files
    from reconciler.operations.project_openers import open_to_import
    from reconciler.operations.workspace import Workspace
    from reconciler.planning.deciding.options import PlanOptions

    only = {lookup.kind(kind).name for kind in kinds}
    opened = Workspace.of(open_to_import(workspaces.source_of(common)))
    out = common.to_project_path(out) if out is not None else None
    _check_inside(out)
    selection = PlanOptions(targets=common.targets, excludes=common.excludes)
    proposing = opened.propose_import(
        folder=out,
        only=only,
        selects=selection.selects,
        from_other_stacks=from_other_stacks,
        append=append,
        on_event=ReadProgress(common.quiet),
    )
    proposal = workspaces.run(proposing)
    extended = proposal.manifests if append else ()
    changed = frozenset[str]() if dry_run else import_files.write(opened.config.root, proposal.files, extended)
    _show(proposal, changed, dry_run=dry_run, form=form)
    if not proposal.imported and proposal.is_whole:
        why = _NONE_SELECTED if selection.is_limited or only else _ALL_DECLARED
        output.print_note(f"Nothing to import: {why}.")
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
    """Prints written files, or with `dry_run` their text, on standard output, and skipped objects on standard error."""
    if form == "json":
        output.print_result(_json(proposal))
    else:
        _show_files(proposal, changed, dry_run=dry_run)
    _print_skipped(proposal)
    for address, owner in proposal.owners.items():
        output.print_note(
            f"{address} is managed by stack {owner.stack} as {owner.address}; "
            "declare `ensure: forgotten` there and apply it before you apply this stack"
        )
    if proposal.imported and not proposal.is_read:
        output.print_note(f"{proposal.folder} is not read by the project; add it under `manifests` in reconciler.yaml")


def _show_files(proposal: Proposal, changed: frozenset[str], *, dry_run: bool) -> None:
    if dry_run:
        for path, text in proposal.files.items():
            output.print_result(f"# {path}\n{_sanitize(text)}")
        return
    counts = Counter(proposal.file_of(imported) for imported in proposal.imported)
    for path, number in sorted(counts.items()):
        output.print_result(f"{path}: {count(number, 'resource')}{'' if path in changed else ' (unchanged)'}")


def _sanitize(text: str) -> str:
    """A file's text without control characters, except newlines."""
    from reconciler.rendering import terminal_text

    return "".join(f"{terminal_text.sanitize(line)}\n" for line in text.removesuffix("\n").split("\n"))


def _print_skipped(proposal: Proposal) -> None:
    failed = [left_out for left_out in proposal.left_out if left_out.wrong]
    skipped = [left_out for left_out in proposal.left_out if not left_out.wrong]
    for left_out in failed:
        output.print_note(f"not imported: {left_out.kind}{f' {left_out.id}' if left_out.id else ''}: {left_out.why}")
    for left_out in skipped[:_MAX_SKIPPED]:
        output.print_note(f"skipped: {left_out.kind} {left_out.id}: {left_out.why}")
    if len(skipped) > _MAX_SKIPPED:
        output.print_note(f"skipped: {len(skipped) - _MAX_SKIPPED} more (list all with --format json)")


def _json(proposal: Proposal) -> str:
    import json

    form = {
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
    return json.dumps(form, indent=2)
