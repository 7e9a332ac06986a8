"""`reconciler status`: whether a stack is in sync and works, what needs a person, and what comes due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.model.status import StackStatus


@click.command(
    cls=Command,
    examples="""
        reconciler status
        reconciler status --target 'ReservedDomain/*'
        reconciler status --verify
        reconciler status --format json
    """,
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json", "html"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("--verify", is_flag=True, help="Also ask the name servers of each zone which DNS records are set.")
@options.name_server_option
@options.status_options
def command(common: options.Options, form: str, verify: bool, name_server: str | None) -> int:
    """Show on one screen whether the stack is in sync, whether it works, what needs a person, and what comes due.

    Changes nothing. Exits 7 if something is degraded; 2 if something progresses, is unknown or drifted; otherwise 0.
    Resources of kinds without health, such as IP policies, count for drift only.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress

    options.check_name_server(name_server, verify=verify)
    opened = workspaces.open_partial_workspace(common)
    work = opened.status(verify=verify, name_server=name_server, on_event=ReadProgress(common.quiet))
    status = workspaces.run(work)
    output.print_result(_render(status, form))
    return status.exit_code


def _render(status: StackStatus, form: str) -> str:
    from reconciler.rendering import status as rendering

    match form:
        case "html":
            from reconciler.rendering.html.status_page import render_page

            return render_page(status)
        case "json":
            return rendering.render_json(status)
        case "markdown":
            return rendering.render_markdown(status)
        case _:
            return rendering.render_text(status, output.width())
