"""`reconciler list KIND`: what there is of a kind, whoever it belongs to; also of kinds that can only be looked at."""

from __future__ import annotations

import difflib

import click

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler list ReservedDomain
        reconciler list Tunnel --format json | jq '.objects[].public_url'
    """,
)
@click.argument("kind")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to show it."
)
@options.project_options
def command(common: options.Options, kind: str, form: str) -> int:
    """List the objects of KIND on the platform, whoever they belong to."""
    from reconciler import kinds
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.kinds import read_only
    from reconciler.operations.opening.project import open_without_manifests
    from reconciler.rendering import listing

    wanted = read_only.find(kind)
    if wanted is None:
        known = sorted(kind.name for kind in (*read_only.KINDS, *kinds.every()))
        close = difflib.get_close_matches(kind, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"these can be listed: {', '.join(known)}"
        raise click.BadParameter(f"{kind!r} is not a kind; {hint}", param_hint="KIND")
    opened = open_without_manifests(workspaces.source_of(common))
    found = workspaces.run(opened.list_objects(wanted, on_event=ReadProgress(common.quiet)))
    if form == "json":
        output.print_result(listing.render_json(wanted, found.objects, complete=found.complete))
    else:
        output.print_result(listing.render_table(wanted, found.objects, output.width()))
        if not found.objects and found.complete and not common.quiet:
            output.print_note(f"There is no {wanted.name}.")
    if not found.complete:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {wanted.name} could not be listed to the end: {found.why}")
    return exit_codes.DONE
