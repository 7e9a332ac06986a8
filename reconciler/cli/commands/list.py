"""`reconciler list [KIND]`: lists the objects of all kinds or of one, managed or not; also of read-only kinds."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command
from reconciler.model.suggestions import did_you_mean


def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of the kinds that can be listed."""
    from reconciler import kinds
    from reconciler.kinds import read_only

    names = sorted(kind.name for kind in (*read_only.KINDS, *kinds.list_planned()))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command(
    cls=Command,
    examples="""
        reconciler list
        reconciler list ReservedDomain
        reconciler list --format json | jq '.objects[] | select(.owner == null)'
        reconciler list Tunnel --format json | jq '.objects[].public_url'
    """,
)
@click.argument("kind", metavar="[KIND]", required=False, shell_complete=complete)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
@options.project_options
def command(common: options.Options, kind: str | None, form: str) -> int:
    """List the objects in the account, with the stack that manages each one. Without KIND, lists all kinds.

    Also lists read-only kinds, which manifests cannot declare, such as Tunnel.
    """
    return _list_all(common, form) if kind is None else _list_kind(common, kind, form)


def _list_all(common: options.Options, form: str) -> int:
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations.project_openers import open_without_manifests
    from reconciler.operations.workspace import Workspace
    from reconciler.rendering import listing

    opened = Workspace.of(open_without_manifests(workspaces.source_of(common)))
    found = workspaces.run(opened.list_account(on_event=ReadProgress(common.quiet)))
    rows = [listing.Row(listed.kind, listed.live, listed.stack, listed.address) for listed in found.objects]
    if form == "json":
        output.print_result(listing.render_all_json(rows, found.incomplete))
    else:
        output.print_result(listing.render_all_table(rows, output.width()))
        if not rows and not found.incomplete and not common.quiet:
            output.print_note("No objects found.")
    if found.incomplete:
        lines = (f"error: the list of {name} is incomplete: {why}" for name, why in found.incomplete.items())
        raise exit_codes.Stop(exit_codes.ERROR, *lines)
    return exit_codes.DONE


def _list_kind(common: options.Options, kind: str, form: str) -> int:
    from reconciler import kinds
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.kinds import read_only
    from reconciler.operations.project_openers import open_without_manifests
    from reconciler.operations.workspace import Workspace
    from reconciler.rendering import listing

    wanted = read_only.find(kind)
    if wanted is None:
        known = sorted(kind.name for kind in (*read_only.KINDS, *kinds.list_planned()))
        hint = did_you_mean(kind, known) or f"use one of {', '.join(known)}"
        raise click.BadParameter(f"unknown kind {kind!r}; {hint}", param_hint="KIND")
    opened = Workspace.of(open_without_manifests(workspaces.source_of(common)))
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
