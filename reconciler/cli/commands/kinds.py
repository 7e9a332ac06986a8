"""`reconciler kinds`: lists the kinds that manifests may declare."""

from __future__ import annotations

import click

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler kinds
        reconciler explain TLSEdge
    """,
)
def command() -> int:
    """List the kinds of resources that manifests can declare."""
    from reconciler import kinds
    from reconciler.rendering.reference import terminal as reference

    output.print_result(reference.listing(kinds.declarable()))
    return exit_codes.DONE
