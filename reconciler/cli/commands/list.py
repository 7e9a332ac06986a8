"""`reconciler list KIND`: lists all objects of a kind, managed or not; also of read-only kinds such as tunnels."""

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
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
@options.project_options
def command(common: options.Options, kind: str, form: str) -> int:
    """List the objects of KIND in the account, with the stack that manages each one.

    Also lists read-only kinds, which manifests cannot declare, such as Tunnel.
    """
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
        hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}"
        raise click.BadParameter(f"unknown kind {kind!r}; {hint}", param_hint="KIND")
    opened = open_without_manifests(workspaces.source_of(common))
    objects = workspaces.run(opened.list_objects(wanted, on_event=ReadProgress(common.quiet)))
    if form == "json":
        output.print_result(listing.render_json(wanted, objects.objects, complete=objects.complete))
    else:
        output.print_result(listing.render_table(wanted, objects.objects, output.width()))
        if not objects.objects and objects.complete and not common.quiet:
            output.print_note(f"No {wanted.name} objects found.")
    if not objects.complete:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: the list of {wanted.name} is incomplete: {objects.why}")
    return exit_codes.DONE
